"""Weights by domain."""

import numpy as np
import pytest

from jaxmt.decode import candidate_lists
from jaxmt.errors import InputError
from jaxmt.features import sparse
from jaxmt.tune import domains, loop, methods, pool
from tests.tune import small_pool
from tests.tune.online_loop_test import decoder

START = {"hint": 0.02, "length": 0.1, "noise": 0.3}


def test_effective_weights_are_sums():
  weights = {"a": 1.0, "Domain:x:a": 0.5, "Domain:x:Edge:fF:b": 2.0}
  weights["Domain:y:a"] = 9.0
  assert domains.effective(weights, "x") == {"a": 1.5, "Edge:fF:b": 2.0}
  assert domains.effective(weights, "z") == {"a": 1.0}


def test_scores_with_copies_are_those_of_the_effective_weights():
  made = small_pool.make(0, sparse_features=6)
  labels = ["x" if n % 3 else "y" for n in range(made.sentences)]
  split = domains.split_lists(made, labels)
  rng = np.random.default_rng(0)
  weights = dict(
    zip(split.names, rng.normal(size=len(split.names)).tolist(), strict=True)
  )
  whole = sparse.dot(
    split.features, candidate_lists.to_vector(weights, split.names)
  )
  for label in "xy":
    own = candidate_lists.to_vector(
      domains.effective(weights, label), made.names
    )
    rows = np.array([labels[s] == label for s in made.sentence])
    expected = sparse.dot(made.features, own)
    np.testing.assert_allclose(whole[rows], expected[rows], atol=1e-12)


def opposite():
  """Sentences of one domain want much of a feature, of the other little."""
  made = small_pool.make(1, sentences=20, width=9)
  labels = ["up" if n % 2 else "down" for n in range(20)]
  sign = np.array([1.0 if labels[s] == "up" else -1.0 for s in made.sentence])
  dense = made.dense.copy()
  dense[:, 0] *= sign  # the hint
  refs = small_pool.references(np.random.default_rng(1), 20)
  return type(made)(**{**vars(made), "dense": dense}), labels, refs


def test_a_loop_learns_what_no_common_weights_can():
  made, labels, refs = opposite()
  plain = decoder(made)
  scores = {}
  for name, decode in (
    ("common", plain),
    ("split", domains.split(plain, labels)),
  ):
    state = loop.run(
      decode,
      refs,
      methods.configure(methods.find("mert"), {"restarts": "5"}),
      loop.begin(START),
      loop.LoopConfig(rounds=3, min_change=0.0),
      0,
    )
    scores[name] = state.best_score
    if name == "split":
      weights = state.best_weights
  assert scores["split"] > scores["common"] + 0.02
  # The lists of a domain are those of its effective weights.
  found = domains.split(plain, labels)(weights, np.arange(20))
  for label in ("up", "down"):
    rows = np.array([n for n in range(20) if labels[n] == label])
    own = plain(domains.effective(weights, label), rows)
    mine = np.flatnonzero(np.isin(found.sentence, rows))
    assert [found.lines[k] for k in mine] == own.lines
  assert pool.make_pool(found).sentences == 20


def test_labels_are_checked():
  domains.check(["a", "b"], 2, "f")
  with pytest.raises(InputError, match="f: 1 lines for 2 sentences"):
    domains.check(["a"], 2, "f")
  for wrong in ("", "a b", "a:b"):
    with pytest.raises(InputError, match="f:2: a domain is one word"):
      domains.check(["a", wrong], 2, "f")
