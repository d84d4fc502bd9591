"""Sparse features of whole candidates: they re-rank lists, search lacks them.

    ngram:the_cat     how often a target n-gram occurs (`<s>`, `</s>` included)
    pair:chat_cat     source and target word together in a sentence pair
    RuleBi:A|B        rule B in a site of rule A, see `rule_bigrams`

(survey, section 2.3.2). Each template returns sparse rows and the names of
their ids; `jaxmt.features.selection` thins them out.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt.features import sparse
from jaxmt.text import vocabulary
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets

BEGIN, END = "<s>", "</s>"
NGRAMS = {"unigrams": 1, "bigrams": 2, "trigrams": 3}  # template: order
PAIRS = "all-pairs"
RULE_BIGRAMS = "rule-bigrams"
NAMES = (*NGRAMS, PAIRS, RULE_BIGRAMS)
RULE_PREFIX = "RuleBi:"
_NGRAM, _PAIR = "ngram:", "pair:"
# Prefixes of names, and the templates that may have made them.
_TEMPLATES = {
  _NGRAM: tuple(NGRAMS),
  _PAIR: (PAIRS,),
  RULE_PREFIX: (RULE_BIGRAMS,),
}


def is_template_weight(name: str) -> bool:
  """Whether a weight's name is one that a template makes."""
  return name.startswith(tuple(_TEMPLATES))


def templates_of(weights: Mapping[str, float]) -> tuple[str, ...]:
  """Returns the templates whose features may have weights, from `NAMES`."""
  heads = {
    name.partition(":")[0] + ":" for name, value in weights.items() if value
  }
  return tuple(
    template
    for prefix, templates in _TEMPLATES.items()
    if prefix in heads
    for template in templates
  )


def text_rows(
  templates: Sequence[str],
  lines: Sequence[str],
  *,
  source_lines: Sequence[str],
  sentence: np.ndarray,
) -> list[tuple[sparse.SparseRows, tuple[str, ...]]]:
  """Returns the features of N candidates that their texts tell.

  Args:
    templates: some of `NAMES`.
    lines: the candidates.
    source_lines: of B sentences.
    sentence: the sentence of each candidate, `[N]`.

  Returns:
    One part for each template but `RULE_BIGRAMS`.
  """
  out = []
  for name in templates:
    if name in NGRAMS:
      out.append(target_ngrams(lines, order=NGRAMS[name]))
    elif name == PAIRS:
      out.append(word_pairs(source_lines, lines, sentence))
  return out


def target_ngrams(
  lines: Sequence[str], *, order: int = 2
) -> tuple[sparse.SparseRows, tuple[str, ...]]:
  """Returns the counts of n-grams of one order in each line.

  Args:
    lines: N candidates.
    order: n; the line is framed by one `<s>` and one `</s>` if n > 1.

  Returns:
    `(rows, names)`: N sparse vectors, names `ngram:w1_w2...`.
  """
  if order < 1:
    raise ValueError(f"order must be at least 1, not {order}")
  ids, words = vocabulary.intern(lines)
  if order > 1:
    words = [BEGIN, END, *words]
    ids = _framed(ids)
  parts = np.zeros(0, np.int64)
  keys, offsets = ids.flat.astype(np.int64), ids.offsets
  table = np.arange(len(words))[:, None]
  for n in range(2, order + 1):
    # A gram of n words is a gram of n - 1 words and a word.
    keys, offsets, parts = _extended(keys, offsets, ids, n, len(words))
    distinct, keys = np.unique(parts, return_inverse=True)
    previous, word = np.divmod(distinct, len(words))
    table = np.concatenate([table[previous], word[:, None]], axis=1)
  used, keys = np.unique(keys, return_inverse=True)
  names = tuple(
    _NGRAM + "_".join(words[word] for word in row)
    for row in table[used].tolist()
  )
  return sparse.canonical(keys, np.ones(len(keys)), offsets), names


def _framed(ids: Ragged) -> Ragged:
  """Ids raised by 2, with 0 before and 1 after each row."""
  rows = len(ids)
  offsets = ids.offsets + 2 * np.arange(rows + 1)
  flat = np.empty(len(ids.flat) + 2 * rows, np.int64)
  inner = np.ones(len(flat), bool)
  inner[offsets[:-1]] = inner[offsets[1:] - 1] = False
  flat[inner] = ids.flat + 2
  flat[offsets[:-1]], flat[offsets[1:] - 1] = 0, 1
  return Ragged(flat=flat, offsets=offsets)


def _extended(keys, offsets, ids: Ragged, order: int, base: int):
  """Keys of order n from those of order n - 1: `(keys, offsets, keys)`."""
  lengths = np.maximum(ids.lengths - order + 1, 0)
  new = row_offsets(lengths)
  within = np.arange(new[-1]) - np.repeat(new[:-1], lengths)
  shorter = keys[np.repeat(offsets[:-1], lengths) + within]
  last = ids.flat[np.repeat(ids.offsets[:-1], lengths) + within + order - 1]
  combined = shorter.astype(np.int64) * base + last
  return combined, new, combined


def word_pairs(
  source_lines: Sequence[str], lines: Sequence[str], sentence: np.ndarray
) -> tuple[sparse.SparseRows, tuple[str, ...]]:
  """Returns which source words stand with which target words.

  A pair counts as often as the target word occurs, if the source word occurs
  at all.

  Args:
    source_lines: of B sentences.
    lines: N candidates.
    sentence: the sentence of each candidate, `[N]`.

  Returns:
    `(rows, names)`: N sparse vectors, names `pair:source_target`.
  """
  source, source_words = vocabulary.intern(source_lines)
  target, target_words = vocabulary.intern(lines)
  keys, offsets = _pairs(
    source.flat,
    source.offsets,
    target.flat,
    target.offsets,
    np.asarray(sentence, np.int64),
    len(target_words),
  )
  used, ids = np.unique(keys, return_inverse=True)
  names = tuple(
    f"{_PAIR}{source_words[key // len(target_words)]}"
    f"_{target_words[key % len(target_words)]}"
    for key in used.tolist()
  )
  return sparse.canonical(ids, np.ones(len(ids)), offsets), names


@njit
def _pairs(source, source_offsets, target, target_offsets, sentence, base):
  size = 0
  for row in range(len(sentence)):
    owner = sentence[row]
    words = source_offsets[owner + 1] - source_offsets[owner]
    size += words * (target_offsets[row + 1] - target_offsets[row])
  keys = np.empty(size, np.int64)
  offsets = np.zeros(len(sentence) + 1, np.int64)
  count = 0
  for row in range(len(sentence)):
    low, high = source_offsets[sentence[row]], source_offsets[sentence[row] + 1]
    for place in range(low, high):
      again = False
      for earlier in range(low, place):
        again = again or source[earlier] == source[place]
      if again:
        continue
      for word in range(target_offsets[row], target_offsets[row + 1]):
        keys[count] = np.int64(source[place]) * base + target[word]
        count += 1
    offsets[row + 1] = count
  return keys[:count], offsets
