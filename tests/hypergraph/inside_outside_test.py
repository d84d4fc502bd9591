"""Passes over forests against every derivation, in every semiring."""

import dataclasses
import functools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies
from jax import test_util
from jax.sharding import PartitionSpec

from jaxmt.decode.translation_forest import edge_features
from jaxmt.hypergraph import (
  device_layout,
  inside_outside,
  log_totals,
  marginals,
  semirings,
)
from jaxmt.runtime import parallel
from tests.reference import forests

K = 5
TILE = 32
SIZES = device_layout.LayoutSizes(
  nodes=256,
  sentences=4,
  edges=768,
  uses=1024,
  edge_tiles=96,
  use_tiles=96,
)


def everything(laid, scores, left, right):
  """What all semirings say of forests."""
  total, passes = inside_outside.total, inside_outside.passes
  log = passes(laid, scores, semirings.LOG)
  best = passes(laid, scores, semirings.MAX)
  counts = passes(laid, jnp.ones_like(scores), semirings.COUNTING)
  return {
    "log": log.total,
    "log inside": log.inside,
    "log outside": log.outside,
    "log through": log.through,
    "marginals": inside_outside.marginals(laid, scores),
    "max": best.total.score,
    "back": best.inside.back,
    "max through": best.through.score,
    "count": counts.total,
    "counts": counts.through,
    "kbest": total(laid, scores, semirings.kbest(K)),
    "mean": total(laid, (scores, left), semirings.EXPECTATION).mean,
    "product": total(
      laid, (scores, left, right), semirings.COVARIATION
    ).product,
  }


def little(laid, scores, *_):
  """The part of that which other computations are made of."""
  log = inside_outside.passes(laid, scores, semirings.LOG)
  return {
    "log": log.total,
    "log through": log.through,
    "marginals": inside_outside.marginals(laid, scores),
  }


compiled = jax.jit(everything)


def inputs(made, sizes=SIZES, seed=0):
  """Layout, scores and two random vectors of each edge, padded."""
  laid = device_layout.lay_out(made, tile=TILE, sizes=sizes)
  rng = np.random.default_rng(seed)
  left, right = rng.normal(size=(2, sizes.edges, 2)).astype(np.float32)
  scores = np.full(sizes.edges, 7.0, np.float32)
  scores[: len(made.score)] = made.score
  return laid, scores, left, right[:, :1]


def follow(made, back, node):
  """The edges of the best derivation below a node."""
  edge = int(back[node])
  assert made.edge_offsets[node] <= edge < made.edge_offsets[node + 1]
  below = [follow(made, back, t) for t in made.tails[edge] if t >= 0]
  return [edge, *(e for part in below for e in part)]


def check(made, found, scores, left, right):
  """Compares with the enumeration; returns how many sentences."""
  checked = 0
  edges = len(made.score)
  close = functools.partial(np.testing.assert_allclose, atol=3e-4, rtol=3e-5)
  owner = np.searchsorted(made.node_offsets, made.heads, side="right") - 1
  for row, every in enumerate(forests.enumerated(made)):
    if every is None:
      continue
    checked += 1
    own = np.flatnonzero(owner == row)
    if not every:
      assert found["log"][row] == -np.inf
      assert found["count"][row] == 0
      assert (found["kbest"][row] == -np.inf).all()
      continue
    uses = np.stack([np.bincount(e, minlength=edges) for e in every])
    totals = uses @ scores[:edges].astype(np.float64)
    log_sum = np.logaddexp.reduce(totals)
    close(found["log"][row], log_sum)
    p = np.exp(totals - log_sum)
    close(found["marginals"][own], (p @ uses)[own])
    assert found["count"][row] == len(every)
    close(found["counts"][own], uses.sum(0)[own])
    close(found["max"][row], totals.max())
    falling = np.sort(totals)[::-1][:K]
    close(found["kbest"][row][: len(falling)], falling)
    assert (found["kbest"][row][len(falling) :] == -np.inf).all()
    one = uses @ left[:edges].astype(np.float64)
    two = uses @ right[:edges].astype(np.float64)
    close(found["mean"][row], p @ one)
    close(found["product"][row], np.einsum("d,df,dg->fg", p, one, two))
    with np.errstate(divide="ignore"):
      used = np.where(uses[:, own] > 0, totals[:, None], -np.inf)
    close(found["max through"][own], used.max(0))
    root = made.node_offsets[row + 1] - 1
    path = follow(made, found["back"], root)
    close(scores[path].sum(), totals.max())
  return checked


def check_passes(made):
  """Every semiring's passes over forests; returns how many were checked."""
  laid, scores, left, right = inputs(made)
  found = jax.tree.map(np.asarray, compiled(laid, scores, left, right))
  checked = check(made, found, scores, left, right)
  edges = made.num_edges
  assert not found["marginals"][edges:].any()
  return checked


@pytest.mark.parametrize("order", [2, 3])
def test_forests_of_grammars_of_two_sites(order):
  for seed in range(16):
    _, _, _, made = forests.decoded(seed, order=order, arity=2)
    assert check_passes(made)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_forests_of_joint_grammars(order):
  """Also against derivations listed without a forest."""
  compared = wide = 0
  for seed in range(40):
    one = forests.joint(seed, order=order)
    assert check_passes(one.made) == len(one.every)
    check_expectations(one)
    compared += len(one.every)
    wide += np.count_nonzero(one.wide)
    assert (one.made.tails >= 0).all(1).any() == any(one.wide)
  assert compared >= 130
  assert wide >= 45  # with rules of five sites


def check_expectations(one):
  """Totals are sums over all derivations, marginals expect their features."""
  posteriors, totals = marginals(one.made), log_totals(one.made)
  values = edge_features(one.model, one.source, one.made)
  owner = np.searchsorted(one.made.node_offsets, one.made.heads, side="right")
  names = ("score", "Match", "Mismatch", "Glue", "PassThrough", "WordPenalty")
  columns = [one.model.feature_names.index(name) for name in names]
  for row, every in enumerate(one.every):
    scores = np.array([item[0] for item in every])
    np.testing.assert_allclose(
      totals[row], np.logaddexp.reduce(scores), atol=5e-4
    )
    own = owner == row + 1
    counts = np.array([[*item[2:], -len(item[1])] for item in every], float)
    np.testing.assert_allclose(
      posteriors[own] @ values[own][:, columns],
      np.exp(scores - totals[row]) @ counts,
      atol=2e-3,
    )


@hypothesis.settings(max_examples=150)
@hypothesis.given(seed=strategies.integers(0, 10**6))
def test_random_forests(seed):
  """These use nodes several times, have loose nodes and empty sentences.

  The number of derivations through an edge then counts each of its uses.
  """
  made = forests.random_forest(seed, sentences=4, nodes=5, arity=2, fan=3)
  laid, scores, left, right = inputs(made)
  found = jax.tree.map(np.asarray, compiled(laid, scores, left, right))
  check(made, found, scores, left, right)
  loose = np.isneginf(found["log outside"][: made.num_nodes])
  np.testing.assert_array_equal(
    found["marginals"][: made.num_edges] == 0, loose[made.heads]
  )


def test_sizes_that_are_too_small():
  made = forests.random_forest(0)
  small = dataclasses.replace(SIZES, edges=1)
  with pytest.raises(ValueError, match="fit"):
    device_layout.lay_out(made, tile=TILE, sizes=small)


def test_gradients():
  made = forests.random_forest(4, sentences=3, nodes=4)
  rng = np.random.default_rng(4)
  with jax.enable_x64(True):
    laid = inside_outside.lay_out(made, tile=16)
    scores = jnp.asarray(made.score, jnp.float64)
    left = jnp.asarray(rng.normal(size=(len(scores), 2)))
    some = lambda out: jnp.where(out > -jnp.inf, out, 0.0)
    weigh = lambda out: out * np.arange(1, 1 + out.size).reshape(out.shape)

    @jax.jit
    def values(x, y):
      """Four outputs; the last one is itself a gradient."""
      mean = inside_outside.total(laid, (x, y), semirings.EXPECTATION).mean
      return (
        weigh(some(inside_outside.inside(laid, x, semirings.LOG))),
        weigh(some(inside_outside.inside(laid, x, semirings.MAX).score)),
        weigh(mean),
        weigh(inside_outside.marginals(laid, x)),
      )

    test_util.check_grads(values, (scores, left), order=1, modes=["rev"])
    # The expectation is the slope of the log total in the vector's weight.
    _, _, mean, marginals = values(scores, left)
    np.testing.assert_allclose(
      marginals / weigh(jnp.ones(len(scores))) @ left,
      (mean / weigh(jnp.ones(mean.shape))).sum(0),
      atol=1e-9,
    )


def test_memory_of_the_gradient_is_linear():
  """A chain has as many levels, and so tiles, as nodes."""
  size = 400
  base = forests.random_forest(2, sentences=1, nodes=1)
  tails = np.repeat(np.arange(-1, size - 1), 2).astype(np.int32)[:, None]
  chain = dataclasses.replace(
    base,
    node_offsets=np.array([0, size], np.int64),
    edge_offsets=np.arange(0, 2 * size + 1, 2),
    tails=tails,
    score=np.zeros(2 * size, np.float32),
  )
  laid = device_layout.lay_out(chain, tile=16)
  assert len(laid.edge_tiles.start) >= size
  gradient = jax.jit(inside_outside.marginals).lower(laid, chain.score)
  used = gradient.compile().memory_analysis().temp_size_in_bytes
  items = sum(leaf.size for leaf in jax.tree.leaves(laid))
  assert used < 4 * 10 * items < 4 * size * laid.nodes
  posteriors = jax.jit(inside_outside.marginals)(laid, chain.score)
  np.testing.assert_allclose(posteriors, 0.5, rtol=1e-5)


def test_gradient_of_max_is_the_best_derivation():
  made = forests.random_forest(11, sentences=4, nodes=5, fan=3)
  laid, scores, _, _ = inputs(made)

  def best(x):
    out = inside_outside.total(laid, x, semirings.MAX).score
    return jnp.sum(jnp.where(out > -jnp.inf, out, 0.0))

  slopes = np.asarray(jax.jit(jax.grad(best))(scores))
  want = np.zeros(len(scores))
  for every in forests.enumerated(made):
    if every:
      top = max(every, key=lambda e: float(scores[e].sum()))
      np.add.at(want, top, 1)
  np.testing.assert_allclose(slopes, want)


def test_eager_compiled_mapped_and_sharded_are_the_same():
  made = [
    forests.random_forest(seed, sentences=4, nodes=5) for seed in range(8)
  ]
  parts = [inputs(one, seed=seed) for seed, one in enumerate(made)]
  want = [compiled(*part) for part in parts]
  eager = little(*parts[0])
  for name in eager:
    np.testing.assert_allclose(eager[name], want[0][name], atol=2e-5)
  stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *parts)
  mapped = jax.jit(jax.vmap(little))(*stacked)
  mesh = parallel.make_mesh(8)

  def part(*arrays):
    found = everything(*jax.tree.map(lambda leaf: leaf[0], arrays))
    return jax.tree.map(lambda leaf: leaf[None], found)

  split = PartitionSpec(mesh.axis_names[0])
  sharded = jax.jit(
    jax.shard_map(
      part, mesh=mesh, in_specs=split, out_specs=split, check_vma=False
    )
  )(*stacked)
  for number, one in enumerate(want):
    for other in (mapped, sharded):
      for name in other:
        np.testing.assert_allclose(
          other[name][number], one[name], atol=2e-5, rtol=2e-5, err_msg=name
        )


def test_padding_and_batching_change_nothing():
  one = forests.random_forest(1, sentences=4, nodes=5)
  want = compiled(*inputs(one))
  _, scores, _, _ = inputs(one)
  for tile in (16, 64):
    got = jax.jit(little)(device_layout.lay_out(one, tile=tile), scores)
    for name in got:
      size = min(len(got[name]), len(want[name]))
      np.testing.assert_allclose(
        got[name][:size], want[name][:size], atol=1e-5, err_msg=name
      )
  # Every sentence by itself.
  for row in range(len(one)):
    edges = slice(*one.edge_cuts[row : row + 2])
    got = compiled(*inputs(one[row]))
    for name in ("log", "max", "count", "kbest"):
      np.testing.assert_allclose(
        got[name][0], want[name][row], atol=1e-5, err_msg=name
      )
    np.testing.assert_allclose(
      got["marginals"][: edges.stop - edges.start],
      want["marginals"][edges],
      atol=1e-5,
    )


def test_no_derivations_at_all():
  none = forests.random_forest(0, sentences=3, nodes=0)
  assert none.num_edges == 0
  laid = inside_outside.lay_out(none, tile=16)
  scores = jnp.zeros(0)
  found = jax.jit(little)(laid, scores)
  assert (found["log"] == -jnp.inf).all()
  assert found["marginals"].shape == found["log through"].shape == (0,)
