"""Whole extractions: joint grammars, on disk as in memory, empty corpora."""

import dataclasses
import functools

import numpy as np
import pytest

from jaxmt.grammar import estimate, native, provenance, table, validation
from jaxmt.grammar.extract import extraction, ghkm, shards, static_features
from jaxmt.grammar.extract.ghkm import GhkmOptions
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.shards import CountOptions
from jaxmt.grammar.table import Kind
from jaxmt.runtime.runner import Runner
from jaxmt.text.trees import parse_trees
from tests.grammar import rule_strategies as rules

SERIAL = Runner(kind="serial", workers=1)
HIERO = functools.partial(extraction.hiero_rules, options=HieroOptions())
TREE = functools.partial(ghkm.tree_rules, options=GhkmOptions())


def right_branching(corpus):
  """A tree over each source sentence: (NP a (NP b (NP c)))."""
  lines = []
  for source, _, _ in corpus:
    tree = ""
    for word in reversed(source):
      tree = f"(NP (W {word}) {tree})" if tree else f"(NP (W {word}))"
    lines.append(tree or "()")
  return parse_trees(lines)


def joint(corpus, extractors, *, runner=SERIAL):
  source, target, links = rules.encode(corpus)
  return extraction.extract(
    source,
    target,
    links,
    extractors,
    source_words=rules.SOURCE_WORDS,
    target_words=rules.TARGET_WORDS,
    trees=right_branching(corpus),
    count=CountOptions(provenance=True),
    runner=runner,
  )


def rows(made, kind):
  chosen = np.flatnonzero(made.kind == kind)
  return {
    (table.rule_text(made, rule), tuple(made.fragments[rule].tolist())): (
      made.counts[rule]
    )
    for rule in chosen
  }


def test_a_joint_grammar_holds_both_kinds():
  corpus = rules.random_corpus(20, longest=6)
  both = joint(corpus, [HIERO, TREE]).table
  validation.validate(both)
  assert both.labels == ("X", "S", "NP", "W")
  for kind, extractor in ((Kind.HIERO, HIERO), (Kind.TREE_TO_STRING, TREE)):
    alone = joint(corpus, [extractor]).table
    assert len(rows(alone, kind)) > 20
    assert rows(both, kind) == rows(alone, kind)
  assert np.bincount(both.kind).tolist()[Kind.GLUE] == 2
  # θ is over the union: every left-hand side's rules sum to one.
  member = estimate.group_rules(both).member
  probability = np.exp(table.feature(both, "rule_given_lhs")[member])
  sums = np.bincount(both.lhs[member], probability)
  np.testing.assert_allclose(sums[sums > 0], 1, rtol=1e-4)


def test_joint_provenance_gives_the_counts_back():
  corpus = rules.random_corpus(20, longest=6)
  found = joint(corpus, [HIERO, TREE], runner=Runner(workers=2))
  counts = provenance.recount(
    found.provenance, np.ones(20), size=len(found.table)
  )
  assert counts.tolist() == found.table.counts.tolist()


@pytest.mark.parametrize("size", [0, 1, 30])
@pytest.mark.parametrize(
  ("keep", "memory"), [(False, 1 << 30), (True, 1 << 30), (True, 1 << 16)]
)
def test_on_disk_as_in_memory(tmp_path, size, keep, memory):
  corpus = rules.random_corpus(size)
  source, target, links = rules.encode(corpus)
  arguments = {
    "labels": table.LABELS,
    "source_words": rules.SOURCE_WORDS,
    "target_words": rules.TARGET_WORDS,
    "sentences": size,
    "alpha": 0.5,
    "runner": SERIAL,
  }

  def made(function, *where):
    spill = tmp_path / function.__name__
    spill.mkdir()
    count = CountOptions(provenance=keep, memory=memory, spill=str(spill))
    parts = shards.count_rules(
      shards.split(source, target, links, tokens=40),
      [HIERO],
      options=count,
      runner=SERIAL,
    )
    options = extraction.TableOptions(**arguments, count=count)
    return function(*where, *parts, options)

  made(extraction.write, str(tmp_path / "t"))
  found = made(extraction.assemble)
  assert rules.same(native.read(str(tmp_path / "t")), found.table)
  if keep:
    origin = native.read_provenance(str(tmp_path / "t"))
    for name in ("flat", "offsets"):
      a = getattr(origin.rules, name)
      b = getattr(found.provenance.rules, name)
      assert a.tolist() == b.tolist()
    assert origin.counts.tolist() == found.provenance.counts.tolist()
  else:
    assert found.provenance is None


def test_every_rule_has_its_features():
  made = joint(rules.random_corpus(10), [HIERO, TREE]).table
  chosen = static_features.find(())
  assert made.feature_names == static_features.column_names(chosen)
  assert made.feature_names[-5:] == estimate.INDICATORS
  assert np.isfinite(made.features).all()
  logs = made.features[:, : len(estimate.THETA) + 2]
  assert (logs <= 1e-6).all()
  glue = np.isin(made.kind, [Kind.GLUE, Kind.PASS_THROUGH])
  assert not logs[glue].any()
  assert (logs[~glue] < 0).any(axis=1).all()


def test_trees_are_needed_for_tree_rules():
  corpus = rules.random_corpus(2)
  source, target, links = rules.encode(corpus)
  shard = next(shards.split(source, target, links))
  assert dataclasses.replace(shard, trees=None).trees is None
  with pytest.raises(ValueError, match="need trees"):
    TREE(shard)
