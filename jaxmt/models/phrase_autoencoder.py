r"""Recursive auto-encoders of phrases, for one language and for two.

A phrase is folded into one vector (Socher et al. 2011). Of the neighbours c1,
c2 the pair that is rebuilt best is replaced by its parent p, until one is left:

    p = tanh(W1 [c1; c2] + b1),  [c1'; c2'] = tanh(W2 p + b2),
    E_rec = sum over all p of 1/2 || [c1; c2] - [c1'; c2'] ||^2.

Bilingually-constrained auto-encoders (Zhang et al. 2014, section 3) are one for
each language, with a map of each space into the other. For a phrase pair (s, t)
and a wrong translation t' of s, which has t's words replaced at random,

    E_sem(s|t) = 1/2 || p_t - tanh(W_l p_s + b_l) ||^2,
    E*_sem(s|t) = max(0, E_sem(s|t) - E_sem(s|t') + 1),
    E(s|t) = alpha E_rec(s) + (1 - alpha) E*_sem(s|t),

and E(t|s) likewise. Both sides learn at the same time, each from vectors of the
other that stay as they were at the beginning of the epoch (section 3.3.3).

The choice of pairs is no function to differentiate: trees are built first, and
gradients go through fixed trees. Phrases are rows of ids padded with 0, which
is no word; all rows of a batch are folded at once.

V: words. D: numbers of a vector. W: words of the longest phrase. B: phrases.
"""

import dataclasses
import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmt.text.vocabulary import SPECIALS

SIDES = ("source", "target")
_CHUNK = 4096  # phrases that are folded together when none is learned from


class PhraseEncoder(nn.Module):
  """Folds phrases of one language, and maps them into another's space.

  Attributes:
    words: V, with `SPECIALS`.
    size: D.
    unit: scale the vectors of words and parents to length 1.
  """

  words: int
  size: int
  unit: bool = False

  def setup(self):
    """Makes the parameters."""
    deep, start = nn.initializers.lecun_normal(), nn.initializers.normal(0.1)
    zero, size = nn.initializers.zeros, self.size
    self.vectors = self.param("vectors", start, (self.words, size))
    self.encoder = self.param("encoder", deep, (2 * size, size))
    self.encoder_bias = self.param("encoder_bias", zero, (size,))
    self.decoder = self.param("decoder", deep, (size, 2 * size))
    self.decoder_bias = self.param("decoder_bias", zero, (2 * size,))
    self.transform = self.param("transform", deep, (size, size))
    self.transform_bias = self.param("transform_bias", zero, (size,))

  def __call__(self, ids: Array) -> tuple[Array, Array, Array]:
    """Returns the vectors of phrases, E_rec, and the vectors' images.

    Args:
      ids: int32 `[B, W]`.

    Returns:
      float `[B, D]`, `[B]`, `[B, D]`.
    """
    leaves = self._scaled(self.vectors[ids])
    leaves = jnp.where((ids > 0)[..., None], leaves, 0.0)
    merges = jax.lax.stop_gradient(self.merges(ids))
    top, error = _fold(self._join, leaves, merges)
    return top, error, self.image(top)

  def image(self, top: Array) -> Array:
    """Maps vectors of phrases into the other language's space."""
    return jnp.tanh(top @ self.transform + self.transform_bias)

  def merges(self, ids: Array) -> Array:
    """Returns which pair each step of the greedy tree joins.

    Returns:
      the place of the pair's left part among the parts that there are then, -1
      after the last step, int32 `[B, W - 1]`.
    """
    leaves = self._scaled(self.vectors[ids])
    leaves = jnp.where((ids > 0)[..., None], leaves, 0.0)
    return _greedy(self._join, leaves, (ids > 0).sum(-1))

  def _scaled(self, vectors: Array) -> Array:
    if not self.unit:
      return vectors
    # The square root has no slope at 0, which the second term keeps away.
    squares = (vectors**2).sum(-1, keepdims=True) + 1e-12
    return vectors * jax.lax.rsqrt(squares)

  def _join(self, left: Array, right: Array) -> tuple[Array, Array]:
    """The parents of pairs, and how badly they rebuild them."""
    both = jnp.concatenate([left, right], -1)
    parent = jnp.tanh(both @ self.encoder + self.encoder_bias)
    parent = self._scaled(parent)
    again = jnp.tanh(parent @ self.decoder + self.decoder_bias)
    return parent, 0.5 * ((both - again) ** 2).sum(-1)


def _pick(values: Array, place: Array) -> Array:
  """Item `place` `[B]` of each row of `[B, W, ...]`."""
  return values[jnp.arange(len(values)), place]


def _close_gap(values: Array, place: Array, *, drop: int) -> Array:
  """Rows `[B, W, ...]` without item `place + drop`; the last one stays."""
  width = values.shape[1]
  index = jnp.arange(width)[None]
  index = jnp.where(index < place[:, None] + drop, index, index + 1)
  return values[jnp.arange(len(values))[:, None], jnp.minimum(index, width - 1)]


def _greedy(join, leaves: Array, lengths: Array) -> Array:
  """The merges of greedy trees; see `PhraseEncoder.merges`.

  Parents of neighbours are kept: a step computes the two that are new.
  """
  width = leaves.shape[1]
  if width == 1:
    return jnp.zeros((len(leaves), 0), jnp.int32)
  rows = jnp.arange(len(leaves))

  def step(number, state):
    nodes, parents, errors, merges = state
    size = lengths - number  # parts of each phrase now
    real = jnp.arange(width - 1) < size[:, None] - 1
    best = jnp.argmin(jnp.where(real, errors, jnp.inf), -1)
    place = best.astype(jnp.int32)
    open_ = size > 1
    merges = merges.at[:, number].set(jnp.where(open_, place, -1))
    # The pair becomes its parent, what is right of it moves to the left.
    parent = _pick(parents, place)
    nodes = _close_gap(nodes, place, drop=1).at[rows, place].set(parent)
    parents = _close_gap(parents, place, drop=0)
    errors = _close_gap(errors, place, drop=0)
    # The two pairs that the parent is part of. Where it is the first or last
    # part, one of them is no pair, and written out of range: dropped.
    for first in (place - 1, place):
      pair = jnp.clip(first, 0, width - 2)
      new, error = join(_pick(nodes, pair), _pick(nodes, pair + 1))
      target = jnp.where(first < 0, width, first)
      parents = parents.at[rows, target].set(new, mode="drop")
      errors = errors.at[rows, target].set(error, mode="drop")
    return nodes, parents, errors, merges

  parents, errors = join(leaves[:, :-1], leaves[:, 1:])
  merges = jnp.full((len(leaves), width - 1), -1, jnp.int32)
  state = (leaves, parents, errors, merges)
  return jax.lax.fori_loop(0, width - 1, step, state)[3]


def _fold(join, leaves: Array, merges: Array) -> tuple[Array, Array]:
  """Folds phrases along given trees: `[B, D]` and E_rec `[B]`."""
  rows = jnp.arange(len(leaves))

  def step(carry, place):
    nodes, total = carry
    real, at = place >= 0, jnp.maximum(place, 0)
    right = jnp.minimum(at + 1, nodes.shape[1] - 1)
    parent, error = join(_pick(nodes, at), _pick(nodes, right))
    joined = _close_gap(nodes, at, drop=1).at[rows, at].set(parent)
    nodes = jnp.where(real[:, None, None], joined, nodes)
    return (nodes, total + jnp.where(real, error, 0.0)), None

  start = (leaves, jnp.zeros(len(leaves), leaves.dtype))
  (nodes, total), _ = jax.lax.scan(step, start, merges.T)
  return nodes[:, 0], total


# --- losses -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pulls:
  """Weights lambda of the regulariser lambda / 2 ||theta||^2.

  Attributes:
    words: of vectors of words; of those of each phrase, so that a word that is
      seldom seen is not pulled by the phrases that do not have it.
    rebuild: of W1, b1, W2, b2.
    transform: of W_l, b_l.
  """

  words: float = 1e-2
  rebuild: float = 1e-3
  transform: float = 1e-3


def _pull(parameters, ids, weight, pulls: Pulls) -> Array:
  """The regulariser of a batch, times the number of its phrases."""
  layers = parameters["params"]
  squares = {name: (value**2).sum() for name, value in layers.items()}
  of_words = (layers["vectors"][ids] ** 2).sum(-1)
  inner = sum(
    squares[name] for name in squares if name.startswith(("enc", "dec"))
  )
  outer = squares["transform"] + squares["transform_bias"]
  return 0.5 * (
    pulls.words * jnp.where(ids > 0, of_words, 0.0).sum()
    + weight * (pulls.rebuild * inner + pulls.transform * outer)
  )


@dataclasses.dataclass(frozen=True)
class RebuildingLoss:
  """E_rec of the phrases of one language, `{"ids": [B, W]}`."""

  encoder: PhraseEncoder
  pulls: Pulls

  def __call__(self, parameters, constants, rows, key):
    """See `fitting.Loss`."""
    del constants, key
    ids = rows["ids"]
    outputs: Any = self.encoder.apply(parameters, ids)
    error = outputs[1]
    weight = jnp.float32(len(ids))
    return error.sum() + _pull(parameters, ids, weight, self.pulls), weight


@dataclasses.dataclass(frozen=True)
class BilingualLoss:
  """E(s|t) + E(t|s), each side learning from vectors that stay.

  Rows have, for each side, ids `[B, W]`, and `fixed` and `wrong`: the vectors
  `[B, D]` of the phrases on the other side and of their wrong versions.
  """

  encoders: tuple[PhraseEncoder, PhraseEncoder]
  alpha: float
  pulls: Pulls

  def __call__(self, parameters, constants, rows, key):
    """See `fitting.Loss`."""
    del constants, key
    total = jnp.zeros(())
    for side, encoder in zip(SIDES, self.encoders, strict=True):
      side_parameters, ids = parameters[side], rows[side]
      weight = jnp.float32(len(ids))
      outputs: Any = encoder.apply(side_parameters, ids)
      _, rebuild, image = outputs
      margin = margin_error(image, rows[f"{side}_fixed"], rows[f"{side}_wrong"])
      errors = self.alpha * rebuild + (1 - self.alpha) * margin
      total += errors.sum() + _pull(side_parameters, ids, weight, self.pulls)
    return total, jnp.float32(len(rows[SIDES[0]]))


def semantic_error(image: Array, other: Array) -> Array:
  """Returns E_sem of images `[B, D]` and the other side's vectors, `[B]`."""
  return 0.5 * ((other - image) ** 2).sum(-1)


def margin_error(image: Array, fixed: Array, wrong: Array) -> Array:
  """Returns E*_sem, `[B]`."""
  good, bad = semantic_error(image, fixed), semantic_error(image, wrong)
  return jax.nn.relu(good - bad + 1.0)


# --- using ------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames="encoder")
def _apply(encoder, parameters, ids):
  return encoder.apply(parameters, ids)


def encode(
  encoder: PhraseEncoder, parameters: Any, ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Returns vectors, E_rec and images of N phrases, some at a time.

  Args:
    encoder: D numbers a vector.
    parameters: of the encoder; their type is that of the result.
    ids: int32 `[N, W]`.
  """
  parts = []
  for start in range(0, max(len(ids), 1), _CHUNK):
    part = ids[start : start + _CHUNK]
    # Two sizes of batches, so that little is compiled.
    size = 256 if len(part) <= 256 else _CHUNK
    padded = np.pad(part, ((0, size - len(part)), (0, 0)))
    encoded = _apply(encoder, parameters, padded)
    parts.append([np.asarray(one)[: len(part)] for one in encoded])
  vectors, errors, images = (
    np.concatenate(c) for c in zip(*parts, strict=True)
  )
  return vectors, errors, images


def wrong_phrases(
  ids: np.ndarray, words: int, rng: np.random.Generator
) -> np.ndarray:
  """Returns phrases with each word replaced by a random one, `[N, W]`."""
  first = len(SPECIALS) if words > len(SPECIALS) else 1
  drawn = rng.integers(first, words, ids.shape).astype(np.int32)
  return np.where(ids > 0, drawn, 0)
