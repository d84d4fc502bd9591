"""Scoring in blocks and passes equals scoring with groups in memory."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmt.grammar import estimate, lexical, table
from jaxmt.grammar.extract import (
  packed_rules,
  static_features,
  streaming_features,
)
from jaxmt.grammar.table import Kind
from jaxmt.runtime.runner import Runner
from jaxmt.text import array_folder
from tests.grammar import rule_strategies as rules


@settings(max_examples=100)
@given(
  rules.tables(most=14),
  st.sampled_from([0.0, 0.5]),
  st.sampled_from([1, 100, 1 << 20]),
  st.integers(1, 5),
)
def test_blocks_and_passes_do_not_show(made, alpha, memory, step):
  taking = np.isin(made.kind, [Kind.HIERO, Kind.TREE_TO_STRING])
  first = packed_rules.sort_canonical(table.select(made, taking))
  made = table.concatenate([first, table.select(made, ~taking)])
  # Blocks of about `step` rules that end where the source side changes.
  bounds = [0]
  for rule in range(1, len(first)):
    before, here = first.source[rule - 1], first.source[rule]
    if rule - bounds[-1] >= step and before.tolist() != here.tolist():
      bounds.append(rule)
  bounds = np.unique([*bounds, len(first), len(made)])
  lexicon = lexical.estimate_lexicon(lexical.no_pairs(), source_size=0)
  features = static_features.find(())
  blocks = streaming_features.score(
    made,
    features,
    lexicon,
    bounds=bounds,
    alpha=alpha,
    memory=memory,
    runner=Runner(workers=2),
  )
  found = np.concatenate(
    [np.zeros((0, len(static_features.column_names(features)))), *blocks]
  )
  groups = estimate.group_rules(made)
  width = len(estimate.THETA)
  np.testing.assert_allclose(
    found[:, :width],
    estimate.relative_frequency(made.counts, groups, alpha=alpha),
    atol=1e-5,
  )
  weights = lexical.lexical_weights(
    made.source, made.target, made.links, lexicon
  )
  np.testing.assert_allclose(
    found[:, width : width + 2], np.where(groups.member[:, None], weights, 0)
  )
  assert (found[:, width + 2 :] == estimate.indicators(made)).all()


def test_sums_can_lie_on_disk(tmp_path):
  with array_folder.scratch(str(tmp_path / "near")) as folder:
    array = array_folder.scratch_array(folder, "a", 3, np.int32)
    array[1] = 5
    assert array.tolist() == [0, 5, 0]
    assert isinstance(array.base, np.memmap)
    assert len(array_folder.scratch_array(folder, "b", 0, np.int32)) == 0
  assert not list(tmp_path.iterdir())
