"""Counting in shards: any cut, budget, runner and spill give the same bytes."""

import functools
import json
import os
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmt.align import lexical_table
from jaxmt.grammar import lexical
from jaxmt.grammar.extract import extraction, shards
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.shards import CountOptions
from jaxmt.grammar.table import LABELS
from jaxmt.runtime.runner import Runner
from jaxmt.text import array_folder
from tests import util
from tests.grammar import rule_strategies as rules

SERIAL = Runner(kind="serial", workers=1)


def counted(corpus, *, tokens=50, runner=SERIAL, options=None, **count):
  """The table and provenance of a corpus cut into shards of `tokens`."""
  source, target, links = rules.encode(corpus)
  count = CountOptions(provenance=True, **count)
  hiero = functools.partial(
    extraction.hiero_rules, options=options or HieroOptions()
  )
  parts, pairs = shards.count_rules(
    shards.split(source, target, links, tokens=tokens),
    [hiero],
    options=count,
    runner=runner,
  )
  return extraction.assemble(
    parts,
    pairs,
    extraction.TableOptions(
      labels=LABELS,
      source_words=rules.SOURCE_WORDS,
      target_words=rules.TARGET_WORDS,
      sentences=len(corpus),
      alpha=0.0,
      count=count,
      runner=runner,
    ),
  )


def same(one, other):
  a, b = one.provenance, other.provenance
  return (
    rules.same(one.table, other.table)
    and a.rules.flat.tobytes() == b.rules.flat.tobytes()
    and a.rules.offsets.tobytes() == b.rules.offsets.tobytes()
    and a.counts.tobytes() == b.counts.tobytes()
  )


@settings(max_examples=60)
@given(
  rules.corpora(most=6),
  rules.hiero_options(),
  st.integers(1, 12),
  st.integers(1, 1 << 14),
  st.integers(1, 3),
)
def test_any_cut_and_budget_gives_the_same_bytes(
  tmp_path_factory, corpus, options, tokens, memory, min_count
):
  whole = counted(corpus, tokens=10**6, options=options, min_count=min_count)
  with array_folder.scratch(str(tmp_path_factory.getbasetemp() / "x")) as spill:
    parts = counted(
      corpus,
      tokens=tokens,
      options=options,
      min_count=min_count,
      memory=memory,
      spill=spill,
    )
    assert same(whole, parts)


def test_a_small_budget_spills_and_threads_change_nothing(tmp_path):
  corpus = rules.random_corpus(60)
  whole = counted(corpus, tokens=10**6)
  assert len(whole.table) > 1000
  spilled = counted(
    corpus,
    memory=1 << 16,
    spill=str(tmp_path),
    runner=Runner(kind="threads", workers=3),
  )
  assert same(whole, spilled)
  assert len(list(tmp_path.iterdir())) > 3


def test_without_a_spill_folder_nothing_is_written(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  corpus = rules.random_corpus(10)
  assert same(counted(corpus), counted(corpus, memory=1))
  assert not list(tmp_path.iterdir())


def test_shards_hold_the_corpus_in_order():
  source, target, links = rules.encode(rules.random_corpus(20))
  found = list(shards.split(source, target, links, tokens=30, first=7))
  assert len(found) > 3
  assert [shard.first for shard in found] == (
    7 + np.cumsum([0, *(len(shard.source) for shard in found[:-1])])
  ).tolist()
  for name, rows in (("source", source), ("target", target), ("links", links)):
    flat = np.concatenate([getattr(shard, name).flat for shard in found])
    assert flat.tolist() == rows.flat.tolist()
  longest = source.lengths.max()
  assert all(len(s.source.flat) <= max(30, longest) for s in found)


def test_budgets_set_the_size_of_shards():
  large = shards.tokens_per_shard(memory=1 << 34, workers=2)
  small = shards.tokens_per_shard(memory=1 << 20, workers=2)
  assert 1 <= small < large


@settings(max_examples=30)
@given(rules.corpora(most=6), st.integers(1, 12))
def test_word_pairs_add_up(corpus, tokens):
  source, target, links = rules.encode(corpus)
  whole = lexical.count_pairs(source, target, links)
  parts = [
    lexical.count_pairs(shard.source, shard.target, shard.links)
    for shard in shards.split(source, target, links, tokens=tokens)
  ]
  total = lexical.add_pairs([lexical.no_pairs(), *parts])
  assert total.keys.tolist() == whole.keys.tolist()
  assert total.counts.tolist() == whole.counts.tolist()
  size = len(rules.SOURCE_WORDS)
  table = lexical.estimate_lexicon(total, source_size=size)
  other = lexical_table.from_links(source, target, links, source_size=size)
  for name, array in lexical_table.to_values(table).items():
    assert array.tolist() == getattr(other, name).tolist()


_RAY = """
import hashlib, json, os, signal, sys
import functools
from jaxmt.grammar.extract import extraction, shards
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.runtime.runner import Runner, session
from tests.grammar import rule_strategies as rules
from tests.grammar.extract import shards_test

def dying(shard, *, marker):
  if shard.first > 20 and not os.path.exists(marker):
    open(marker, "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
  return extraction.hiero_rules(shard, options=HieroOptions())

if __name__ == "__main__":
  import ray
  runner = Runner(kind="ray", workers=2)
  # The workers find this file and the tests on the driver's path.
  ray.init(
    num_cpus=2, include_dashboard=False, log_to_driver=False,
    runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
  )
  source, target, links = rules.encode(rules.random_corpus(60))
  count = shards.CountOptions(provenance=True, memory=1 << 20)
  parts, pairs = shards.count_rules(
    shards.split(source, target, links, tokens=50),
    [functools.partial(dying, marker=sys.argv[1])],
    options=count,
    runner=runner,
  )
  found = extraction.assemble(
    parts, pairs, extraction.TableOptions(
      labels=("X", "S"), source_words=rules.SOURCE_WORDS,
      target_words=rules.TARGET_WORDS, sentences=60, count=count, runner=runner,
    ),
  )
  expected = shards_test.counted(rules.random_corpus(60), tokens=10**6)
  print(json.dumps({"same": shards_test.same(found, expected)}))
"""


@pytest.mark.slow
def test_ray_gives_the_same_bytes_though_a_worker_dies(tmp_path):
  pytest.importorskip("ray")
  script, marker = tmp_path / "on_ray.py", tmp_path / "killed"
  script.write_text(_RAY)
  path = os.pathsep.join([str(util.ROOT), *sys.path])
  done = util.run_program(
    str(script), str(marker), env={**os.environ, "PYTHONPATH": path}
  )
  assert done.returncode == 0, done.stderr
  assert json.loads(done.stdout.splitlines()[-1]) == {"same": True}
  assert marker.exists()  # one worker was killed indeed
