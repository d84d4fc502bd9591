"""Searching a sorted run of rules."""

import functools

import numpy as np

from jaxmt.grammar.extract import extraction, shards, sorted_runs
from jaxmt.grammar.extract.hiero import HieroOptions
from tests.grammar import rule_strategies as rules


def test_bounds_are_found_in_a_run():
  source, target, links = rules.encode(rules.random_corpus(5))
  shard = next(shards.split(source, target, links))
  run, _ = shards.map_shard(
    shard,
    extractors=[
      functools.partial(extraction.hiero_rules, options=HieroOptions())
    ],
    provenance=False,
  )
  lists = [run.rows[row].tolist() for row in range(len(run))]
  for row in range(0, len(run), 7):
    for key in (lists[row], lists[row][:2], [*lists[row], 5]):
      found = sorted_runs.lower_bound(
        run.rows.flat, run.rows.offsets, np.array(key, np.int32)
      )
      assert found == sum(other < key for other in lists)
