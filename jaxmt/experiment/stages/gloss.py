"""Word-by-word glossing: the floor under every translation system.

Every source word is replaced by the target word it is linked to most often in
the training data, in source order; a word that is mostly unlinked is left out,
an unknown word is copied.
"""

import dataclasses

import numpy as np

from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import (
  PARTS,
  Corpus,
  Translations,
  encode_training,
)
from jaxmt.text import vocabulary
from jaxmt.text.ragged import Ragged


@dataclasses.dataclass(frozen=True, kw_only=True)
class GlossConfig:
  """How to gloss.

  Attributes:
    drop_unlinked: whether words that are mostly unlinked are left out.
  """

  drop_unlinked: bool = True


def best_translations(
  source: Ragged,
  target: Ragged,
  links: Ragged,
  *,
  source_size: int,
  target_size: int,
  drop_unlinked: bool,
) -> np.ndarray:
  """Returns the most frequent translation of each source word.

  Args:
    source: word ids of N sentences.
    target: word ids of their N translations.
    links: `[L, 2]` pairs (source, target position) in N rows.
    source_size: number of source word ids.
    target_size: number of target word ids.
    drop_unlinked: whether -1 may win, see below.

  Returns:
    int64 `[source_size]`: target ids; -1 where having no link was most
    frequent; ties go to the lower id. Words never seen have -2.
  """
  row = np.repeat(np.arange(len(links)), links.lengths)
  source_place = source.offsets[row] + links.flat[:, 0]
  target_place = target.offsets[row] + links.flat[:, 1]
  linked = np.zeros(len(source.flat), np.bool_)
  linked[source_place] = True
  # Column 0 counts "no link", column 1 + t the target word t.
  unlinked = source.flat[~linked].astype(np.int64) * (target_size + 1)
  if not drop_unlinked:
    unlinked = unlinked[:0]
  pairs = source.flat[source_place].astype(np.int64) * (target_size + 1) + (
    target.flat[target_place] + 1
  )
  key, count = np.unique(np.concatenate([unlinked, pairs]), return_counts=True)
  order = np.lexsort((key, -count, key // (target_size + 1)))
  key = key[order]
  words, first = np.unique(key // (target_size + 1), return_index=True)
  best = np.full(source_size, -2, np.int64)
  best[words] = key[first] % (target_size + 1) - 1
  return best


def gloss(config: GlossConfig, *, corpus: Corpus, links: Links) -> Translations:
  """Glosses tune and test with the most frequent translations.

  Args:
    config: see `GlossConfig`.
    corpus: the text.
    links: of its training part.
  """
  pairs = encode_training(corpus, links.links)
  source_words, target_words = pairs.source_words, pairs.target_words
  best = best_translations(
    pairs.source,
    pairs.target,
    pairs.links,
    source_size=len(source_words),
    target_size=len(target_words),
    drop_unlinked=config.drop_unlinked,
  )
  lines, metrics = {}, {}
  for part in PARTS:
    ids, words = vocabulary.intern(corpus.part(part).source)
    known = np.array([source_words.index.get(w, -1) for w in words], np.int64)
    choice = np.where(known >= 0, best[known], -2)
    spelled = [
      word if t == -2 else "" if t == -1 else target_words.words[t]
      for word, t in zip(words, choice.tolist(), strict=True)
    ]
    lines[f"{part}_hypothesis"] = [
      " ".join(spelled[i] for i in ids[row].tolist() if spelled[i])
      for row in range(len(ids))
    ]
    metrics |= {
      f"{part}_unknown": int(np.sum(known[ids.flat] < 0)),
      f"{part}_words": len(ids.flat),
    }
  return Translations(**lines, metrics=metrics)
