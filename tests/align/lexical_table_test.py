"""Word translation tables by hand, their laws, and keeping them."""

import numpy as np
import pytest

from jaxmt.align import em, lexical_table, named_aligners
from jaxmt.runtime import checkpoint, parallel
from jaxmt.text import links, ragged

# Ids from 1; source 1 2 / 1 3, target 4 5 6 / 4.
SOURCE = ragged.from_rows([[1, 2], [1, 3]])
TARGET = ragged.from_rows([[4, 5, 6], [4]])
LINKS = links.parse_links(["0-0 0-1", "0-0"])


def table():
  return lexical_table.from_links(SOURCE, TARGET, LINKS, source_size=4)


def test_counts_by_hand():
  # Links 1-4 1-5 1-4; without a link: source 2 and 3, target 6.
  found = table()
  entries = {
    (s, t): (f, b)
    for s, t, f, b in zip(
      found.sources.tolist(),
      found.targets.tolist(),
      found.forward.tolist(),
      found.backward.tolist(),
      strict=True,
    )
  }
  assert entries == {
    (0, 6): (1.0, 1.0),
    (1, 4): (2 / 3, 1.0),
    (1, 5): (1 / 3, 1.0),
    (2, 0): (1.0, 0.5),
    (3, 0): (1.0, 0.5),
  }


def test_probabilities_sum_to_one():
  rng = np.random.default_rng(0)
  rows = lambda: ragged.from_rows(
    [rng.integers(1, 9, 5).tolist() for _ in range(20)]
  )
  source, target = rows(), rows()
  text = [
    " ".join(f"{i}-{j}" for i, j in rng.integers(0, 5, (4, 2)))
    for _ in range(20)
  ]
  found = lexical_table.from_links(
    source, target, links.parse_links(text), source_size=9
  )
  by_source = np.bincount(found.sources, found.forward)
  by_target = np.bincount(found.targets, found.backward)
  np.testing.assert_allclose(by_source[np.unique(found.sources)], 1.0)
  np.testing.assert_allclose(by_target[np.unique(found.targets)], 1.0)
  assert (np.diff(found.keys) > 0).all()


def test_lookup():
  source = np.array([[1, 1], [9, 2]])
  target = np.array([[5, 6], [4, 0]])
  forward, backward = lexical_table.lookup(table(), source, target, floor=1e-9)
  np.testing.assert_allclose(forward, [[1 / 3, 1e-9], [1e-9, 1.0]])
  np.testing.assert_allclose(backward, [[1.0, 1e-9], [1e-9, 0.5]])
  empty = lexical_table.from_links(
    ragged.from_rows([[]]),
    ragged.from_rows([[]]),
    links.parse_links([""]),
    source_size=1,
  )
  assert lexical_table.lookup(empty, source, target)[0].tolist() == [
    [0, 0],
    [0, 0],
  ]


def test_artefact_round_trip(tmp_path):
  checkpoint.write(tmp_path / "lexicon", lexical_table.to_values(table()), {})
  values, _ = checkpoint.read(tmp_path / "lexicon")
  again = lexical_table.from_values(values)
  for name, value in lexical_table.to_values(table()).items():
    np.testing.assert_array_equal(getattr(again, name), value)
    assert getattr(again, name).dtype == value.dtype
  np.testing.assert_array_equal(again.keys, table().keys)


def test_moses_lines():
  words = ["NULL", "eins", "zwei", "drei", "one", "a", "the"]
  forward, backward = lexical_table.to_lines(table(), words, words)
  assert forward == [
    "the NULL 1.0000000",
    "one eins 0.6666667",
    "a eins 0.3333333",
    "NULL zwei 1.0000000",
    "NULL drei 1.0000000",
  ]
  assert backward[1:4] == [
    "eins one 1.0000000",
    "eins a 1.0000000",
    "zwei NULL 0.5000000",
  ]


def test_from_alignment():
  source = ragged.from_rows([[1, 2], [1], [2, 3]])
  target = ragged.from_rows([[1, 2], [1], [2]])
  result = em.align(
    source,
    target,
    named_aligners.default_config("model1", iterations=4),
    mesh=parallel.make_mesh(1),
  )
  found = lexical_table.from_alignment(result, source_size=4, minimum=0.0)
  assert (np.diff(found.keys) > 0).all()
  by_source = np.bincount(found.sources, found.forward, minlength=4)
  np.testing.assert_allclose(by_source, 1.0, rtol=1e-5)
  by_target = np.bincount(found.targets, found.backward, minlength=3)
  np.testing.assert_allclose(by_target, 1.0, rtol=1e-5)
  pairs = result.table
  forward, backward = lexical_table.lookup(found, pairs.source, pairs.target)
  for side, values in (("forward", forward), ("backward", backward)):
    learnt = np.exp(result.parameters[side].pairs[:-1])
    np.testing.assert_allclose(values, learnt, rtol=1e-6)
  few = lexical_table.from_alignment(result, source_size=4, minimum=0.5)
  assert 0 < len(few) < len(found)
  with pytest.raises(KeyError):
    one = em.align(
      source,
      target,
      named_aligners.default_config("model1"),
      mesh=parallel.make_mesh(1),
      directions=("forward",),
    )
    lexical_table.from_alignment(one, source_size=4)
