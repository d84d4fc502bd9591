"""Fewer features: selection and sums of templates, for any method."""

import dataclasses
import functools

import numpy as np
import pytest

from jaxmt.decode import candidate_lists
from jaxmt.errors import InputError
from jaxmt.experiment.stages import tune
from jaxmt.features import selection, sparse
from jaxmt.tune import feature_subset, methods, mixing, pool
from tests.tune import small_pool


def coloured(seed=0, *, features=12):
  """A pool whose sparse features have names of two templates.

  Few as they are, all features are stored densely.
  """
  made = small_pool.make(seed, sparse_features=features)
  found = made
  names = [
    name.replace("word", "Odd:" if name[-1] in "13579" else "Even:")
    for name in found.names
  ]
  refs = small_pool.references(np.random.default_rng(seed), made.sentences)
  dense = pool.make_pool(
    candidate_lists.from_rows(
      sentence=found.sentence,
      lines=found.lines,
      features=found.features,
      names=tuple(names),
    ),
    sentences=made.sentences,
  )
  assert dense.dense.shape[1] == len(names)
  return pool.with_statistics(dense, refs)


def reduce_with(method, made, start, **settings):
  config = feature_subset.ReducedConfig(**settings)
  inner = functools.partial(methods.run, method)
  return feature_subset.optimise(made, start, config, 0, inner=inner)


def thin(names):
  return np.array([":" in name for name in names])


def counts_of(made):
  """In how many sentences each feature differs, all taken one by one."""
  rows = made.features
  full = sparse.to_dense(rows, len(made.names))
  out = np.zeros(len(made.names), int)
  for low, high in zip(made.offsets, made.offsets[1:], strict=False):
    if high > low:
      out += full[low:high].max(0) != full[low:high].min(0)
  return out


def test_nothing_left_out_is_the_method_itself():
  made = coloured()
  start = small_pool.start(made)
  method = methods.find("arow")
  found, history = reduce_with(method, made, start, min_count=0, keep=99)
  expected, steps = method.optimise(made, start, method.config, 0)
  np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
  assert len(history) == len(steps)


@pytest.mark.parametrize("sparsely", [False, True])
def test_only_frequent_features_get_weights(sparsely):
  made = coloured()
  if sparsely:
    made = pool.split_sparse(made)[0]
    assert made.dense.shape[1] == 4
  counts = counts_of(made)
  start = small_pool.start(made)
  start[thin(made.names)] = 0.3  # is gone where the feature is left out
  method = methods.find("kbmira")
  least = int(np.median(counts[thin(made.names)]))
  some, _ = reduce_with(method, made, start, min_count=least)
  gone = thin(made.names) & (counts < least)
  assert gone.any() and (some[gone] == 0).all() and (some[~gone] != 0).sum() > 4
  few, _ = reduce_with(method, made, start, keep=3)
  used = np.flatnonzero(thin(made.names) & (few != 0))
  assert len(used) == 3
  assert counts[used].min() >= np.sort(counts[thin(made.names)])[-3]


def test_sums_are_tuned_for_their_members():
  made = coloured()
  rng = np.random.default_rng(1)
  start = small_pool.start(made)
  start[thin(made.names)] = rng.normal(size=12)
  method = methods.configure(methods.find("mert"), {"restarts": "3"})
  found, history = reduce_with(method, made, start, summary=True)
  ratios = {
    kind: {
      round(found[place] / start[place], 9)
      for place, name in enumerate(made.names)
      if name.startswith(kind)
    }
    for kind in ("Odd:", "Even:")
  }
  assert [len(values) for values in ratios.values()] == [1, 1]
  assert ratios["Odd:"] != ratios["Even:"]
  best = max(row["score"] for row in history)
  assert pool.pool_score(made, found, "bleu") == pytest.approx(best)
  assert best > pool.pool_score(made, start, "bleu")


def test_a_summary_of_nothing_is_refused():
  method = methods.find("mert")
  made = coloured()
  with pytest.raises(InputError, match="sparse features that have weights"):
    reduce_with(method, made, small_pool.start(made), summary=True)
  made = small_pool.make(0)
  with pytest.raises(InputError, match="sparse features that have weights"):
    reduce_with(method, made, small_pool.start(made), summary=True)


def test_wrapped_twice():
  """On shards, with fewer features; the method inside is to explore."""
  made = coloured()
  inner = methods.configure(methods.find("arow"), {"passes": "2"})
  mixed = mixing.wrap(inner, metric="bleu", shards=2)
  assert (
    feature_subset.wrap(mixed, metric="bleu", keep=0, summary=False) is mixed
  )
  whole = methods.exploring(feature_subset.wrap(mixed, metric="bleu", keep=2))
  assert whole.inner.config.explore and whole.inner.inner.config.explore
  assert methods.innermost(whole) == whole.inner.inner
  assert methods.settings(whole)["inner"]["inner"]["passes"] == 2
  tuned, _ = methods.run(whole, made, small_pool.start(made), 0)
  assert (tuned[thin(made.names)] != 0).sum() <= 2


def test_online_learning_takes_all_features():
  config = tune.TuneStageConfig(keep_features=2)
  tune.check(config)
  with pytest.raises(InputError, match="keep_features"):
    tune.check(dataclasses.replace(config, batch_size=3))


def test_kept_features_of_rare_ones():
  made = pool.split_sparse(coloured())[0]
  counts = selection.sentence_counts(made.sparse, made.sentence, 12)
  kept = feature_subset.kept_features(made, min_count=int(counts.max()), keep=5)
  assert 0 < kept.sum() <= 5 and (counts[kept] == counts.max()).all()
  assert feature_subset.kept_features(made, min_count=1000).sum() == 0
  small = feature_subset.restrict(made, kept)
  assert len(small.names) == 4 + kept.sum()
