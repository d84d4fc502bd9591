"""Maximum-entropy reordering of neighbouring blocks (Xiong, Liu & Lin 2006).

When a bracketing grammar joins the blocks A1 and A2, neighbours in the source,
in order o (straight or inverted), the feature adds

    ln p(o | A1, A2) = ln σ(± (b + Σ_k θ[f_k(A1, A2)]))

where the f_k are words at the edges of both blocks in both languages, and pairs
of such words. Pairs are hashed into 2^bits parameters. θ is found on examples
from aligned text (`grammar.extract.block_pairs`) by L-BFGS with a Gaussian
prior. Words that the examples have less than `min_count` times are unknown.

N: examples or applications. V: words. P: parameters.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.errors import InputError
from jaxmt.features.stateful import (
  RuleInputs,
  RuleSides,
  StatefulFeature,
  Values,
)
from jaxmt.grammar.table import X
from jaxmt.text import array_folder, vocabulary
from jaxmt.text.vocabulary import SPECIALS, UNK, Vocabulary

NAME = "MaxEntReordering"
ENDS = 4  # first and last source word, first and last target word
# Pairs of edges: 0 to 3 of the left block, 4 to 7 of the right.
PAIRS = ((1, 4), (1, 5), (0, 4), (3, 7), (2, 6), (3, 6))
EMPTY = vocabulary.PAD  # at the edges of an empty string
_STRAIGHT, _INVERTED = 1, 2
_FACTORS = (np.uint32(0x9E3779B1), np.uint32(0x85EBCA77))
_TOP = 30  # most bits of hashed pairs


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaxEntOptions:
  """How the model is trained.

  Attributes:
    min_count: words seen less often at an edge are unknown.
    bits: pairs of words have 2^bits parameters.
    l2: strength of the Gaussian prior: its inverse variance.
    steps: of L-BFGS.
    longest: most source words of a block.
    held_out: N: every N-th sentence measures accuracy; 0: none.
  """

  min_count: int = 2
  bits: int = 18
  l2: float = 10.0
  steps: int = 60
  longest: int = 40
  held_out: int = 20


def check_options(options: MaxEntOptions) -> None:
  """Raises `ValueError` for settings that make no sense."""
  if not 1 <= options.bits <= _TOP:
    raise ValueError(f"bits must be 1 to {_TOP}")
  for name in ("min_count", "steps", "held_out", "l2"):
    if getattr(options, name) < 0:
      raise ValueError(f"{name} must not be negative")
  if options.longest < 1:
    raise ValueError("longest must be at least 1")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReorderingModel:
  """A trained model, on the host.

  Attributes:
    source_words: the V source words it knows; `vocabulary.UNK` are the others.
    target_words: likewise.
    theta: float32 `[P]`: bias; a parameter for each edge and word; pairs.
    bits: see `MaxEntOptions`.
  """

  source_words: Vocabulary
  target_words: Vocabulary
  theta: np.ndarray
  bits: int

  @property
  def sizes(self) -> tuple[int, int]:
    """Numbers of source and target words."""
    return len(self.source_words.words), len(self.target_words.words)


def num_parameters(sizes: tuple[int, int], bits: int) -> int:
  """P of a model with these numbers of words."""
  return 1 + 4 * (sizes[0] + sizes[1]) + (1 << bits)


def feature_ids(words, *, sizes: tuple[int, int], bits: int) -> jax.Array:
  """Returns the parameters that are summed, int32 `[..., 8 + pairs]`.

  Args:
    words: ids at the edges of the left and the right block, int32 `[..., 8]`.
    sizes: numbers of source and target words.
    bits: of hashed pairs.
  """
  words = jnp.asarray(words, jnp.int32)
  ids, first = [], 1
  for edge in range(2 * ENDS):
    ids.append(first + words[..., edge])
    first += sizes[edge % ENDS // 2]
  for number, (one, other) in enumerate(PAIRS):
    key = words[..., one].astype(jnp.uint32) * _FACTORS[0]
    key = (key ^ (key >> 15)) + words[..., other].astype(jnp.uint32)
    key = (key ^ np.uint32(number)) * _FACTORS[1]
    key = key ^ (key >> 13)
    ids.append(first + (key >> (32 - bits)).astype(jnp.int32))
  return jnp.stack(ids, axis=-1)


def logits(theta: jax.Array, ids: jax.Array) -> jax.Array:
  """Returns the log odds of *straight*, `[...]`."""
  theta = jnp.asarray(theta)
  chosen = theta.at[ids].get(mode="promise_in_bounds")
  return theta[0] + chosen.sum(-1)


def loss(
  theta: jax.Array,
  ids: jax.Array,
  inverted: jax.Array,
  weight: jax.Array,
  l2: float,
) -> jax.Array:
  """Returns the mean of -ln p, with the prior.

  Args:
    theta: `[P]`.
    ids: of `feature_ids`, `[N, K]`.
    inverted: bool `[N]`.
    weight: of each example, 0 for padding, `[N]`.
    l2: see `MaxEntOptions`.
  """
  odds = logits(theta, ids)
  lost = jax.nn.softplus(jnp.where(inverted, odds, -odds))
  total = jnp.maximum(weight.sum(), 1.0)
  return (lost * weight).sum() / total + 0.5 * l2 * (theta**2).sum() / total


@functools.partial(jax.jit, static_argnames=("steps",))
def _minimise(theta, ids, inverted, weight, l2, *, steps):
  """Runs L-BFGS; returns θ and the loss."""
  import optax  # slow to load, and only training needs it

  value = functools.partial(
    loss, ids=ids, inverted=inverted, weight=weight, l2=l2
  )
  method = optax.lbfgs()
  value_and_grad = optax.value_and_grad_from_state(value)

  def step(_, carry):
    theta, state = carry
    level, gradient = value_and_grad(theta, state=state)
    updates, state = method.update(
      gradient, state, theta, value=level, grad=gradient, value_fn=value
    )
    return optax.apply_updates(theta, updates), state

  start = (theta, method.init(theta))
  theta, _ = jax.lax.fori_loop(0, steps, step, start)
  return theta, value(theta)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainReport:
  """What training saw.

  Attributes:
    examples: number of training examples.
    inverted: share of inverted ones.
    loss: mean -ln p with the prior, at the end.
    held_out: number of held-out examples.
    accuracy: share of them whose order the model prefers.
    majority: share of the more frequent order.
  """

  examples: int
  inverted: float
  loss: float
  held_out: int
  accuracy: float
  majority: float


def train(
  words: np.ndarray,
  inverted: np.ndarray,
  sentence: np.ndarray,
  *,
  source_words: Vocabulary,
  target_words: Vocabulary,
  options: MaxEntOptions,
) -> tuple[ReorderingModel, TrainReport]:
  """Trains a model on examples of block pairs.

  Args:
    words: ids at the edges, int32 `[N, 8]`, see `block_pairs.BlockPairs`.
    inverted: bool `[N]`.
    sentence: where each example comes from, int `[N]`.
    source_words: of the ids.
    target_words: of the ids.
    options: see `MaxEntOptions`.
  """
  check_options(options)
  every = options.held_out
  held_out = (
    sentence % every == every - 1 if every else np.zeros(len(words), bool)
  )
  ours, maps = [], []
  for side, known in enumerate((source_words, target_words)):
    edges = [2 * side, 2 * side + 1, ENDS + 2 * side, ENDS + 2 * side + 1]
    counts = np.bincount(
      words[~held_out][:, edges].reshape(-1), minlength=len(known.words)
    )
    keep = np.flatnonzero(counts >= max(options.min_count, 1))
    keep = keep[keep >= len(SPECIALS)]
    table = np.full(len(known.words), UNK, np.int32)
    table[keep] = len(SPECIALS) + np.arange(len(keep))
    maps.append(table)
    chosen = [known.words[word] for word in keep.tolist()]
    ours.append(Vocabulary(words=(*SPECIALS, *chosen)))
  mapped = np.empty_like(words)
  for edge in range(2 * ENDS):
    mapped[:, edge] = maps[edge % ENDS // 2][words[:, edge]]
  sizes = (len(ours[0].words), len(ours[1].words))
  theta, level = _fit(mapped[~held_out], inverted[~held_out], sizes, options)
  model = ReorderingModel(
    source_words=ours[0],
    target_words=ours[1],
    theta=theta,
    bits=options.bits,
  )
  right = (log_odds(model, mapped[held_out]) < 0) == inverted[held_out]
  share = float(inverted[held_out].mean()) if held_out.any() else 0.0
  return model, TrainReport(
    examples=int((~held_out).sum()),
    inverted=float(inverted[~held_out].mean()) if (~held_out).any() else 0.0,
    loss=level,
    held_out=int(held_out.sum()),
    accuracy=float(right.mean()) if held_out.any() else 0.0,
    majority=max(share, 1 - share) if held_out.any() else 0.0,
  )


def _fit(words, inverted, sizes, options) -> tuple[np.ndarray, float]:
  """Parameters and loss; examples padded to few sizes."""
  size = len(words)
  start = np.zeros(num_parameters(sizes, options.bits), np.float32)
  if not size:
    return start, 0.0
  room = 1 << max(size - 1, 1023).bit_length()
  pad = lambda column: np.concatenate(
    [column, np.zeros((room - size, *column.shape[1:]), column.dtype)]
  )
  theta, level = _minimise(
    jnp.asarray(start),
    feature_ids(pad(words), sizes=sizes, bits=options.bits),
    jnp.asarray(pad(inverted)),
    jnp.asarray(pad(np.ones(size, np.float32))),
    options.l2,
    steps=options.steps,
  )
  theta = np.array(theta)
  theta[np.abs(theta) < 1e-30] = 0.0  # no denormal numbers in the search
  return theta, float(level)


def log_odds(model: ReorderingModel, words: np.ndarray) -> np.ndarray:
  """Returns ln p(straight) / p(inverted) of block pairs, float32 `[N]`.

  Args:
    model: the model.
    words: ids of its own words, int32 `[N, 8]`.
  """
  ids = feature_ids(words, sizes=model.sizes, bits=model.bits)
  return np.asarray(logits(jnp.asarray(model.theta), ids))


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaxEntReordering(StatefulFeature):
  """ln p(order | blocks) of the joins of a bracketing grammar.

  Its parameters are a `ReorderingModel`. The state is the words at the edges of
  the hypothesis; all hypotheses of a cell have the same source words, so that
  only the target's tell states apart. Rules with words and non-terminals, and
  glue, add nothing.

  Attributes:
    sizes: numbers of words of the model, which search is compiled for.
    bits: of its hashed pairs.
  """

  names: tuple[str, ...] = (NAME,)
  columns: int = ENDS
  sizes: tuple[int, int] = (0, 0)
  bits: int = 18

  @property
  def key(self) -> tuple[int, ...]:
    """The target words."""
    return (2, 3)

  @property
  def follows_from_strings(self) -> bool:
    """Yes: words at the edges of both strings."""
    return True

  def rule_inputs(
    self, sides: RuleSides, parameters: ReorderingModel
  ) -> RuleInputs:
    """Returns the words at the edges of phrase pairs, and what joins which."""
    target = _edges(sides.target, sides.words, parameters.target_words)
    source = _edges(sides.source, sides.source_words, parameters.source_words)
    return RuleInputs(
      arrays=(np.concatenate([source, target], axis=1), _orders(sides)),
      values=np.zeros((len(sides), 1), np.float32),
    )

  def to_device(self, parameters: ReorderingModel) -> jax.Array:
    """Returns θ."""
    return jnp.asarray(parameters.theta)

  def apply(self, parameters, rule, tails) -> tuple[jax.Array, Values]:
    """Returns the new edges, and ln p of the order where two blocks join."""
    edges, order = rule
    one, other = tails[..., 0, :], tails[..., 1, :]
    ids = feature_ids(
      jnp.concatenate([one, other], -1), sizes=self.sizes, bits=self.bits
    )
    odds = logits(parameters, ids)
    sign = jnp.where(order == _INVERTED, -1.0, 1.0)
    value = jnp.where(order > 0, -jax.nn.softplus(-sign * odds), 0.0)
    swap = (order == _INVERTED)[..., None]
    before, after = jnp.where(swap, other, one), jnp.where(swap, one, other)
    # The edges of an empty target string are those of its neighbour.
    first = jnp.where(before[..., 2:3] == EMPTY, after, before)
    last = jnp.where(after[..., 3:4] == EMPTY, before, after)
    ends = jnp.concatenate(
      [one[..., 0:1], other[..., 1:2], first[..., 2:3], last[..., 3:4]], -1
    )
    return jnp.where((order > 0)[..., None], ends, edges), (value,)


def make_features(
  model: ReorderingModel | None,
) -> list[tuple[StatefulFeature, Any]]:
  """Returns the feature with its parameters, as `make_model` takes them."""
  if model is None:
    return []
  return [(MaxEntReordering(sizes=model.sizes, bits=model.bits), model)]


def _edges(rows, words: tuple[str, ...], known: Vocabulary) -> np.ndarray:
  """The model's ids of the first and last words of rows, int32 `[N, 2]`.

  `EMPTY` where there is none, `UNK` for a non-terminal.
  """
  find = known.index.get
  ids = np.array([find(word, UNK) for word in words], np.int32)
  ids[: len(SPECIALS)] = UNK
  out = np.full((len(rows), 2), EMPTY, np.int32)
  full = np.flatnonzero(rows.lengths > 0)
  places = (rows.offsets[:-1][full], rows.offsets[1:][full] - 1)
  for column, place in enumerate(places):
    symbol = rows.flat[place]
    out[full, column] = np.where(symbol >= 0, ids[np.maximum(symbol, 0)], UNK)
  return out


def _orders(sides: RuleSides) -> np.ndarray:
  """Whether each rule joins two blocks straight (1) or inverted (2), `[N]`."""
  bare = (sides.source.lengths == 2) & (sides.target.lengths == 2)
  rows = np.flatnonzero(bare)
  one, two = (
    rows_of.flat[rows_of.offsets[:-1][rows][:, None] + np.arange(2)]
    for rows_of in (sides.source, sides.target)
  )
  good = (one < 0).all(1) & (two < 0).all(1) & (sides.label[rows] == X)
  order = np.zeros(len(sides), np.int32)
  order[rows[good]] = np.where(two[good, 0] == -1, _STRAIGHT, _INVERTED)
  return order


def to_values(model: ReorderingModel) -> dict[str, Any]:
  """Returns a model as named arrays and lists of strings."""
  return {
    "reordering_theta": model.theta,
    "reordering_bits": np.array([model.bits], np.int32),
    "reordering_source_words": vocabulary.to_lines(model.source_words),
    "reordering_target_words": vocabulary.to_lines(model.target_words),
  }


def read(path: str) -> ReorderingModel | None:
  """Reads the model that a grammar's folder may hold beside its rules.

  Raises:
    InputError: naming what is wrong with it.
  """
  folder = array_folder.open_folder(path, verify=True)
  if "reordering_theta.npy" not in folder.names:
    return None
  values: dict[str, Any] = {
    name: folder.array(name) for name in ("reordering_theta", "reordering_bits")
  }
  for side in ("source", "target"):
    name = f"reordering_{side}_words"
    values[name] = folder.lines(name)
  return from_values(values, path=path)


def from_values(
  values: Mapping[str, Any], *, path: str | None = None
) -> ReorderingModel:
  """Returns the model that `to_values` took apart.

  Raises:
    InputError: if sizes do not fit, or a parameter is not a number.
  """
  theta = np.asarray(values["reordering_theta"])
  bits = np.asarray(values["reordering_bits"])
  if (
    bits.shape != (1,)
    or bits.dtype != np.int32
    or not 1 <= int(bits[0]) <= _TOP
  ):
    raise InputError("reordering_bits is out of range", path=path)
  model = ReorderingModel(
    source_words=vocabulary.from_lines(
      list(values["reordering_source_words"]), path=path
    ),
    target_words=vocabulary.from_lines(
      list(values["reordering_target_words"]), path=path
    ),
    theta=theta,
    bits=int(bits[0]),
  )
  expected = num_parameters(model.sizes, model.bits)
  if theta.dtype != np.float32 or theta.shape != (expected,):
    raise InputError(f"reordering_theta is not float32 [{expected}]", path=path)
  if not np.isfinite(theta).all():
    raise InputError(
      "reordering_theta has a value that is no number", path=path
    )
  return model
