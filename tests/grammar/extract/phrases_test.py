"""Phrase tables: orientations, smoothing, significance, reordering files."""

import dataclasses
import math

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.grammar import formats, reordering
from jaxmt.grammar import table as tables
from jaxmt.grammar.extract import (
  orientations,
  phrase_significance,
  phrase_smoothing,
  phrases,
  shards,
)
from jaxmt.grammar.extract.phrases import PhraseOptions
from jaxmt.grammar.extract.shards import CountOptions
from jaxmt.grammar.table import Kind
from jaxmt.runtime.runner import Runner
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import SPECIALS, Vocabulary
from tests import util
from tests.reference import phrases as reference

WORDS = Vocabulary(words=(*SPECIALS, "a", "b", "c", "d"))
FIRST = len(SPECIALS)
RUNNER = Runner(workers=1)


def corpus(seed, size=12, longest=5):
  """Random sentence pairs: (source ids, target ids, links)."""
  rng = np.random.default_rng(seed)
  pairs = []
  for _ in range(size):
    source, target = (
      rng.integers(FIRST, FIRST + 4, rng.integers(1, longest + 1)).tolist()
      for _ in range(2)
    )
    cells = [(i, j) for i in range(len(source)) for j in range(len(target))]
    chosen = rng.random(len(cells)) < 0.3
    links = [cell for cell, yes in zip(cells, chosen, strict=True) if yes]
    pairs.append((source, target, links))
  return pairs


def columns(pairs):
  """The corpus as three ragged arrays."""
  flat = [link for _, _, links in pairs for link in links]
  return (
    ragged.from_rows([one for one, _, _ in pairs]),
    ragged.from_rows([other for _, other, _ in pairs]),
    Ragged(
      flat=np.array(flat, np.int32).reshape(-1, 2),
      offsets=ragged.row_offsets([len(links) for _, _, links in pairs]),
    ),
  )


def extract(pairs, **settings):
  return phrases.extract(
    *columns(pairs),
    source_words=WORDS,
    target_words=WORDS,
    options=PhraseOptions(length=3, **settings),
    count=CountOptions(),
    runner=RUNNER,
  ).table


def keys(table):
  return [
    (tuple(one.tolist()), tuple(other.tolist()))
    for one, other in zip(table.source, table.target, strict=True)
  ]


@pytest.mark.parametrize("kind", orientations.KINDS)
def test_orientations_equal_their_definition(kind):
  for seed in range(4):
    pairs = corpus(seed)
    table = extract(pairs, reordering=kind)
    expected = reference.orientation_counts(
      pairs, PhraseOptions(length=3).limits, kind
    )
    is_phrase = np.flatnonzero(table.kind == Kind.HIERO)
    found = keys(tables.select(table, is_phrase))
    assert sorted(found) == sorted(expected)
    logs = reordering.probabilities(np.array([expected[k] for k in found]))
    _, values = reordering.detach(table)
    np.testing.assert_allclose(values[is_phrase], logs, rtol=1e-5)
    # A copied word has no orientation.
    assert not values[table.kind == Kind.PASS_THROUGH].any()


def test_probabilities_are_those_of_moses():
  logs = reordering.probabilities(np.array([[1, 0, 0, 3, 0, 1]]))
  expected = [0.6, 0.2, 0.2, 3.5 / 5.5, 0.5 / 5.5, 1.5 / 5.5]
  np.testing.assert_allclose(np.exp(logs[0]), expected, rtol=1e-6)


def test_the_columns_are_those_of_phrase_tables():
  table = extract(corpus(0))
  assert table.feature_names == (*phrases.NAMES, *reordering.NAMES)
  assert not (table.kind == Kind.GLUE).any()
  assert (tables.arity(table) == 0).all()
  assert table.feature_names[:4] == phrases.for_moses(table).feature_names


@pytest.mark.parametrize("method", phrase_smoothing.METHODS)
def test_smoothing_equals_its_formulas(method):
  rng = np.random.default_rng(1)
  pairs = np.unique(rng.integers(0, 12, (80, 2)), axis=0)
  source, target = pairs.T
  counts = rng.geometric(0.5, len(pairs)).astype(float)
  found = phrase_smoothing.pair_probabilities(
    counts, source, target, method=method
  )
  n = lambda r: sum(c == r for c in counts)
  share = n(1) / (n(1) + 2 * n(2))
  for row, (f, e) in enumerate(pairs.tolist()):
    c = counts[row]
    if method == "none":
      top = lambda given, other, c=c: c
    elif method == "good-turing":
      factor = (c + 1) * (n(c + 1) + 0.1) / (n(c) + 0.1) / c if c < 10 else 1
      top = lambda given, other, c=c, factor=factor: c * min(factor, 1)
    else:
      d = share
      if method == "kneser-ney":
        r = min(int(c), 3)
        d = max(r - (r + 1) * share * n(r + 1) / n(r), 0)
      d = min(d, 0.99 * c)
      top = lambda given, other, c=c, d=d: (
        c - d + d * sum(given) * sum(other) / len(pairs)
      )
    same_f, same_e = source == f, target == e
    expected = [
      top(same_e, same_f) / counts[same_e].sum(),
      top(same_f, same_e) / counts[same_f].sum(),
    ]
    np.testing.assert_allclose(found[row], expected, rtol=1e-9)
  if method in ("none", "fixed-discount"):
    sums = np.bincount(target, found[:, 0])[np.unique(target)]
    assert (sums <= 1 + 1e-9).all()


def test_significance_equals_counting():
  pairs = corpus(3, size=20)
  table = extract(pairs)
  found, sentences = phrase_significance.significances(
    table, shards.split(*columns(pairs), tokens=7)
  )
  assert sentences == 20
  text = [(one, other) for one, other, _ in pairs]
  for row, (source, target) in enumerate(keys(table)):
    if table.kind[row] == Kind.HIERO:
      expected = reference.chance(text, source, target)
      assert found[row] == pytest.approx(expected, abs=1e-6)


def test_significance_decides_on_pairs_seen_once():
  pairs = [*corpus(5, size=6), ([FIRST] * 3, [FIRST + 1] * 3, [(1, 1)])]
  kept = {
    text: len(extract(pairs, significance=text)) for text in ("", "a-e", "a+e")
  }
  assert kept["a+e"] < kept["a-e"] <= kept[""]
  assert phrase_significance.threshold("a+e", 100) > math.log(100)
  for bad in ("b", "-1", "inf"):
    with pytest.raises(ValueError, match="significance"):
      phrase_significance.threshold(bad, 10)


def test_reordering_files_come_back(tmp_path):
  table = extract(corpus(2))
  path = str(tmp_path / "r.gz")
  phrase = tables.select(table, table.kind == Kind.HIERO)
  reordering.write(phrase, path)
  bare, values = reordering.detach(phrase)
  again = reordering.attach(bare, reordering.read(path))
  np.testing.assert_allclose(
    reordering.detach(again)[1], values, rtol=1e-6, atol=1e-7
  )
  # Pairs that the file does not have count nothing.
  other = dataclasses.replace(bare, target=bare.source)
  model = tables.select(reordering.read(path), np.arange(1))
  assert not reordering.detach(reordering.attach(other, model))[1][1:].any()


def test_bad_reordering_files_are_named(tmp_path):
  path = tmp_path / "r"
  path.write_text("a ||| b ||| 0.1 0.2 0.7\n")
  with pytest.raises(InputError, match="3 scores a line, not 6"):
    reordering.read(str(path))
  path.write_text("a ||| b ||| 1 1 1 1 1 x\n")
  with pytest.raises(InputError, match="r:1: malformed"):
    reordering.read(str(path))


@pytest.mark.parametrize(
  "settings", [{"smoothing": "x"}, {"reordering": "x"}, {"significance": "x"}]
)
def test_unknown_settings_are_refused(settings):
  with pytest.raises(ValueError, match="is none of"):
    extract(corpus(0), **settings)


def test_mosess_own_tables_are_read():
  folder = util.corpus("moses-multi30k-de-en") / "phrase"
  table = formats.read(str(folder / "phrase-table.gz"), "moses", glue=False)
  model = reordering.read(str(folder / "reordering-table.gz"))
  assert len(table) == len(model) == 37188
  values = reordering.detach(reordering.attach(table, model))[1]
  np.testing.assert_allclose(
    np.exp(values.reshape(-1, 2, 3)).sum(-1), 1.0, atol=1e-4
  )
