"""Glossing against an obvious count."""

import collections

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmt.experiment.stages import gloss
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.text import ragged


def slow(source, target, links, drop_unlinked):
  counts = collections.defaultdict(collections.Counter)
  for s, t, pairs in zip(source, target, links, strict=True):
    for i, j in pairs:
      counts[s[i]][t[j]] += 1
    if drop_unlinked:
      for i in range(len(s)):
        if i not in {i for i, _ in pairs}:
          counts[s[i]][-1] += 1
  return {w: min(c, key=lambda t: (-c[t], t)) for w, c in counts.items() if c}


@st.composite
def corpora(draw):
  rows = []
  for _ in range(draw(st.integers(0, 4))):
    s = draw(st.lists(st.integers(0, 3), max_size=4))
    t = draw(st.lists(st.integers(0, 3), max_size=4))
    cells = [(i, j) for i in range(len(s)) for j in range(len(t))]
    links = sorted(draw(st.sets(st.sampled_from(cells)))) if cells else []
    rows.append((s, t, links))
  return rows


@settings(max_examples=200)
@given(corpora(), st.booleans())
def test_equals_counting(rows, drop_unlinked):
  source, target, links = ([row[i] for row in rows] for i in range(3))
  flat = np.array([x for row in links for x in row], np.int32).reshape(-1, 2)
  offsets = np.cumsum([0, *map(len, links)])
  best = gloss.best_translations(
    ragged.from_rows(source),
    ragged.from_rows(target),
    ragged.Ragged(flat=flat, offsets=offsets),
    source_size=5,
    target_size=4,
    drop_unlinked=drop_unlinked,
  )
  expected = slow(source, target, links, drop_unlinked)
  assert {w: t for w, t in enumerate(best.tolist()) if t != -2} == expected


def test_words_are_glossed_dropped_or_copied():
  corpus = Corpus(
    train_source=["a b c", "b a"],
    train_target=["x y", "y x"],
    tune_source=["c b a", "", "新 a"],
    test_source=["a a"],
  )
  done = gloss.gloss(
    gloss.GlossConfig(),
    corpus=corpus,
    links=Links(links=["0-0 1-1", "0-0 1-1"]),
  )
  assert done.tune_hypothesis == ["y x", "", "新 x"]
  assert done.test_hypothesis == ["x x"]
  assert done.metrics["tune_unknown"] == 1
  assert done.metrics["tune_words"] == 5
