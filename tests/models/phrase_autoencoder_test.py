"""Recursive auto-encoders of phrases against loops and finite differences."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.models import phrase_autoencoder
from jaxmt.models.phrase_autoencoder import PhraseEncoder, Pulls
from tests.reference import recursive_autoencoder as slow

IDS = np.array(
  [[4, 5, 6, 7, 8], [7, 7, 4, 0, 0], [6, 0, 0, 0, 0], [5, 8, 0, 0, 0]], np.int32
)


def encoder_and_parameters(unit, seed=0):
  """A module and parameters in double precision, far from 0."""
  rng = np.random.default_rng(seed)
  module = PhraseEncoder(words=9, size=3, unit=unit)
  shapes = jax.eval_shape(module.init, jax.random.key(0), IDS)["params"]
  layers = {k: rng.normal(0, 0.6, v.shape) for k, v in shapes.items()}
  return module, {"params": layers}


@functools.partial(jax.jit, static_argnames="module")
def fold(module, parameters, ids):
  return module.apply(parameters, ids)


@functools.partial(jax.jit, static_argnames="module")
def trees(module, parameters, ids):
  return module.apply(parameters, ids, method="merges")


@pytest.mark.parametrize("unit", [False, True])
def test_trees_vectors_and_errors_are_those_of_loops(unit):
  with jax.enable_x64(True):
    for seed in range(5):
      module, parameters = encoder_and_parameters(unit, seed)
      vectors, errors, images = fold(module, parameters, IDS)
      merges = trees(module, parameters, IDS)
      for row, ids in enumerate(IDS):
        real = ids[ids > 0]
        layers = parameters["params"]
        vector, error, tree = slow.fold(layers, real, unit=unit)
        assert merges[row].tolist() == tree + [-1] * (4 - len(tree))
        np.testing.assert_allclose(vectors[row], vector, atol=1e-9)
        np.testing.assert_allclose(errors[row], error, atol=1e-9)
        want = slow.image(layers, vector)
        np.testing.assert_allclose(images[row], want, atol=1e-9)


def test_padding_changes_nothing():
  module, parameters = encoder_and_parameters(False)
  wide = np.pad(IDS, ((0, 0), (0, 3)))
  for one, other in zip(
    fold(module, parameters, IDS), fold(module, parameters, wide), strict=True
  ):
    np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("unit", [False, True])
def test_gradients_are_finite_differences_on_fixed_trees(unit):
  rng = np.random.default_rng(3)
  pulls = Pulls(words=0.1, rebuild=0.2, transform=0.3)
  with jax.enable_x64(True):
    pairs = [encoder_and_parameters(unit, seed) for seed in (1, 2)]
    modules = tuple(module for module, _ in pairs)
    parameters = {
      "source": pairs[0][1],
      "target": pairs[1][1],
    }
    rows = {"source": IDS, "target": IDS[::-1].copy()}
    for side in ("source", "target"):
      for name in ("fixed", "wrong"):
        rows[f"{side}_{name}"] = rng.normal(0, 1, (4, 3))
    loss = phrase_autoencoder.BilingualLoss(modules, 0.15, pulls)
    both = jax.jit(
      jax.value_and_grad(lambda p: loss(p, (), rows, None), has_aux=True)
    )
    (value, weight), slopes = both(parameters)
    assert weight == 4
    tree_of = {
      side: [slow.fold(p["params"], i[i > 0], unit=unit)[2] for i in rows[side]]
      for side, p in parameters.items()
    }

    def plain(p):
      total = 0.0
      for side in p:
        layers = p[side]["params"]
        for row, ids in enumerate(rows[side]):
          real = ids[ids > 0]
          total += slow.side_error(
            layers,
            real,
            rows[f"{side}_fixed"][row],
            rows[f"{side}_wrong"][row],
            alpha=0.15,
            unit=unit,
            tree=tree_of[side][row],
          )
          total += 0.05 * (layers["vectors"][real] ** 2).sum()
          for name, pull in (
            ("encoder", 0.1), ("encoder_bias", 0.1), ("decoder", 0.1),
            ("decoder_bias", 0.1), ("transform", 0.15),
            ("transform_bias", 0.15),
          ):  # fmt: skip
            total += pull * (layers[name] ** 2).sum()
      return total

    np.testing.assert_allclose(value, plain(parameters), rtol=1e-9)
    for side in parameters:
      for name, array in parameters[side]["params"].items():
        way = rng.normal(0, 1, array.shape)
        ends = []
        for step in (1e-6, -1e-6):
          moved = {
            s: {"params": dict(p["params"])} for s, p in parameters.items()
          }
          moved[side]["params"][name] = array + step * way
          ends.append(plain(moved))
        expected = (ends[0] - ends[1]) / 2e-6
        found = (slopes[side]["params"][name] * way).sum()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_wrong_phrases_have_other_words_at_the_same_places():
  rng = np.random.default_rng(0)
  wrong = phrase_autoencoder.wrong_phrases(np.tile(IDS, (20, 1)), 9, rng)
  assert ((wrong > 0) == np.tile(IDS > 0, (20, 1))).all()
  assert set(np.unique(wrong)) == {0, 4, 5, 6, 7, 8}


def test_encoding_in_parts_is_encoding_at_once(monkeypatch):
  module, parameters = encoder_and_parameters(False)
  many = np.tile(IDS, (80, 1))
  whole = phrase_autoencoder.encode(module, parameters, many)
  monkeypatch.setattr(phrase_autoencoder, "_CHUNK", 300)
  for one, other in zip(
    whole, phrase_autoencoder.encode(module, parameters, many), strict=True
  ):
    np.testing.assert_allclose(one, other, atol=1e-6)
  assert jnp.asarray(whole[0]).shape == (320, 3)
