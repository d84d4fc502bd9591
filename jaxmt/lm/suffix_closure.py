"""Adds the n-grams that pruning by other toolkits may have left out.

SRILM can drop "b c" and keep "a b c". The probabilities are well defined all
the same, by backing off; but states and left contexts are simpler where every
suffix of an n-gram is an n-gram too. What is missing is added with exactly the
probability that backing off would give it, and no back-off weight, so no score
changes (KenLM does the same).
"""

import dataclasses

import numpy as np

from jaxmt.lm import ngram_model as model_lib
from jaxmt.lm.ngram_model import Level, NgramModel


def close(model: NgramModel) -> NgramModel:
  """Returns the model with every suffix of every n-gram in it.

  N-grams that were there keep their numbers; new ones follow them.
  """
  levels = list(model.levels)
  for k in range(2, len(levels)):
    # An inserted n-gram's context is the suffix of a context, which the pass
    # over the order below has made sure of.
    missing = np.flatnonzero(levels[k].suffix < 0)
    if not missing.size:
      continue
    contexts = levels[k - 1].suffix[levels[k].context[missing]]
    suffix = levels[k].suffix.copy()
    suffix[missing] = _ensure(levels, k - 1, contexts, levels[k].word[missing])
    levels[k] = dataclasses.replace(levels[k], suffix=suffix)
  return dataclasses.replace(model, levels=tuple(levels))


def _ensure(
  levels: list[Level], k: int, context: np.ndarray, word: np.ndarray
) -> np.ndarray:
  """Returns the numbers of the (k+1)-grams (context, word); adds new ones."""
  if k == 0:
    return word
  level = levels[k]
  base = np.int64(len(levels[0]))
  known = level.context * base + level.word
  keys, where = np.unique(context * base + word, return_inverse=True)
  order = np.argsort(known, kind="stable")
  place = np.searchsorted(known[order], keys)
  rows = order[np.minimum(place, len(order) - 1)] if len(order) else place
  new = np.ones(len(keys), bool) if not len(order) else known[rows] != keys
  numbers = np.where(new, len(level) + np.cumsum(new) - 1, rows)
  if new.any():
    contexts = (keys[new] // base).astype(np.int32)
    words = (keys[new] % base).astype(np.int32)
    lower = levels[k - 1]
    suffix = _ensure(
      levels, k - 1, lower.suffix[contexts] if k > 1 else contexts, words
    )
    lower = levels[k - 1]
    levels[k] = model_lib.append(
      level,
      context=contexts,
      word=words,
      suffix=suffix.astype(np.int32),
      probability=lower.backoff[contexts] + lower.probability[suffix],
      backoff=np.zeros(len(words), np.float32),
    )
  return numbers[where]
