"""Supervised projective parsing: arc scores from hashed features.

    parser = train(treebank, ArcConfig())
    heads = parse(parser, treebank)

The loss is one of `jaxmt.losses.forest_losses` over all projective trees; the
cost of a tree is the number of its wrong arcs. Trees that are not projective
are learnt as the projective trees that share most arcs with them. The parser
has the mean of the weights after each step of the last epoch.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxmt.losses import forest_losses
from jaxmt.parse import arc_features, eisner
from jaxmt.parse.arc_features import SentenceBatch
from jaxmt.text import ragged, treebank
from jaxmt.text.ragged import Ragged
from jaxmt.text.treebank import Treebank

# Losses over all trees, with the right tree as the oracle or by costs alone.
LOSSES: dict[str, Callable] = {
  "likelihood": forest_losses.softmax,
  "softmax-margin": forest_losses.softmax_margin,
  "hinge": forest_losses.structured_hinge,
  "perceptron": forest_losses.structured_perceptron,
  **{
    f"ramp{form}": functools.partial(forest_losses.ramp, form=form)
    for form in (1, 2, 3)
  },
  **{
    f"softramp{form}": functools.partial(forest_losses.soft_ramp, form=form)
    for form in (1, 2, 3)
  },
}
_CELLS = 1 << 14  # arcs of a batch
_SHORTEST = 8  # least padded length


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArcConfig:
  """How a parser learns.

  Attributes:
    loss: one of `LOSSES`.
    epochs: passes over the treebank.
    rate: step of Adagrad.
    decay: share of the weights that a step of size 1 takes away.
    cost_scale: what a wrong arc costs.
    bits: the table has `2^bits` weights.
    seed: of the order of batches.
  """

  loss: str = "likelihood"
  epochs: int = 5
  rate: float = 0.05
  decay: float = 0.03
  cost_scale: float = 1.0
  bits: int = 20
  seed: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArcParser:
  """A learnt parser.

  Attributes:
    weights: see `arc_features.arc_scores`.
    tag_names: the tags it knows.
  """

  weights: dict[str, np.ndarray]
  tag_names: tuple[str, ...]


def batches(
  lengths: np.ndarray, *, cells: int = _CELLS
) -> list[tuple[np.ndarray, int]]:
  """Groups sentences of similar lengths, in few shapes.

  Returns:
    (sentence numbers, -1 in padding; padded length) of each batch. Sentences
    without words are in none.
  """
  longer = np.maximum(lengths, _SHORTEST).tolist()
  sizes = np.array([ragged.bucket(size) for size in longer], int)
  out = []
  for size in np.unique(sizes).tolist():
    rows = np.flatnonzero((sizes == size) & (lengths > 0))
    rows = rows[np.argsort(lengths[rows], kind="stable")]
    width = max(1, cells // (size * size))
    for start in range(0, len(rows), width):
      part = rows[start : start + width]
      out.append(
        (np.pad(part, (0, width - len(part)), constant_values=-1), size)
      )
  return out


def train(
  bank: Treebank,
  config: ArcConfig,
  *,
  report: Callable[[int, float], None] = lambda epoch, loss: None,
) -> ArcParser:
  """Learns a parser.

  Args:
    bank: sentences with trees; others are left out.
    config: settings.
    report: called with the number of each epoch and its mean loss.

  Raises:
    ValueError: if there are no trees, or no such loss.
  """
  bank = treebank.select(bank, bank.has_trees & (bank.lengths > 0))
  if not len(bank):
    raise ValueError("no sentence has a tree")
  if config.loss not in LOSSES:
    raise ValueError(f"no loss '{config.loss}'; there are: {', '.join(LOSSES)}")
  heads = projective_heads(bank)
  names = tuple(bank.tag_names)
  hashes = arc_features.token_hashes(bank, names)
  size = arc_features.SPECIAL_TAGS + len(names)
  weights = {
    "hashed": jnp.zeros(1 << config.bits),
    "between": jnp.zeros((2, size, size, size)),
  }
  optimizer = _optimizer(config)
  state = (weights, optimizer.init(weights))
  groups = batches(bank.lengths)
  rng = np.random.default_rng(config.seed)
  # Batches of all shapes are mixed in an order of their own in every epoch.
  for epoch in range(1, config.epochs + 1):
    losses, count = 0.0, 0
    sums = jax.tree.map(jnp.zeros_like, weights)
    for number in rng.permutation(len(groups)):
      rows, size = groups[number]
      batch = arc_features.batch_of(hashes, bank.words.offsets, rows, size)
      gold = _gold(heads, rows, size, batch.lengths)
      state, sums, loss = _step(state, sums, batch, gold, config=config)
      losses, count = losses + loss, count + int((rows >= 0).sum())
    report(epoch, float(losses) / count)
  mean = jax.tree.map(lambda x: np.asarray(x) / len(groups), sums)
  return ArcParser(weights=mean, tag_names=names)


def _optimizer(config):
  return optax.chain(
    optax.adagrad(config.rate, initial_accumulator_value=0.01),
    optax.add_decayed_weights(-config.rate * config.decay),
  )


def _gold(heads: Ragged, rows, size, lengths):
  """Arcs of the right trees of a batch, bool `[B, N + 1, N]`."""
  padded, _ = ragged.pad(
    ragged.select(heads, rows[rows >= 0]), width=size, fill=-1
  )
  extra = np.full((len(rows) - len(padded), size), -1, padded.dtype)
  return eisner.arc_mask(np.concatenate([padded, extra]), lengths)


@functools.partial(jax.jit, static_argnames="config", donate_argnums=(0, 1))
def _step(state, sums, batch: SentenceBatch, gold, *, config: ArcConfig):
  """One step of the optimiser; also adds the weights to their sums."""
  weights, inner = state
  value, slopes = jax.value_and_grad(_loss)(weights, batch, gold, config)
  changes, inner = _optimizer(config).update(slopes, inner, weights)
  weights = optax.apply_updates(weights, changes)
  return (weights, inner), jax.tree.map(jnp.add, sums, weights), value


def _loss(weights, batch, gold, config):
  """Sum of the losses of a batch."""
  scores = arc_features.arc_scores(weights, batch)
  trees = eisner.ProjectiveTrees(lengths=batch.lengths)
  costs = config.cost_scale * (1.0 - gold)
  oracles = {} if "ramp" in config.loss else {"oracles": gold}
  return LOSSES[config.loss](trees, scores, costs, **oracles)[0]


def projective_heads(bank: Treebank) -> Ragged:
  """Returns the heads; of other trees, of the nearest projective tree."""
  heads = Ragged(flat=bank.heads, offsets=bank.words.offsets)
  crossing = np.flatnonzero(~eisner.projective(heads))
  flat = heads.flat.copy()
  for part, size in batches(bank.lengths[crossing]):
    rows = np.where(part >= 0, crossing[part], -1)
    lengths = np.where(rows >= 0, bank.lengths[rows], 0).astype(np.int32)
    gold = _gold(heads, rows, size, lengths).astype(np.float32)
    nearest = np.asarray(eisner.best_trees(gold, lengths))
    put_rows(flat, heads.offsets, rows, nearest)
  return Ragged(flat=flat, offsets=heads.offsets)


def put_rows(flat, offsets, rows, padded):
  """Writes padded rows into flat ones."""
  lengths = np.where(rows >= 0, np.diff(offsets)[rows], 0)
  there = np.arange(padded.shape[1]) < lengths[:, None]
  flat[(offsets[rows][:, None] + np.arange(padded.shape[1]))[there]] = padded[
    there
  ]


def scored_batches(
  parser: ArcParser, bank: Treebank
) -> Iterator[tuple[np.ndarray, jax.Array | np.ndarray, jax.Array]]:
  """Yields (sentence numbers, lengths, arc scores) of batches."""
  hashes = arc_features.token_hashes(bank, parser.tag_names)
  weights = jax.tree.map(jnp.asarray, parser.weights)
  for rows, size in batches(bank.lengths):
    batch = arc_features.batch_of(hashes, bank.words.offsets, rows, size)
    yield rows, batch.lengths, _scores(weights, batch)


@jax.jit
def _scores(weights: dict[str, jax.Array], batch: SentenceBatch) -> jax.Array:
  return arc_features.arc_scores(weights, batch)


def parse(
  parser: ArcParser, bank: Treebank, *, least_risk: bool = False
) -> Ragged:
  """Returns heads of the best trees, -1 is the root; int32 rows.

  Args:
    parser: a parser.
    bank: words and tags; heads are not looked at.
    least_risk: trees with most expected right arcs instead.
  """
  flat = np.full(len(bank.words.flat), -1, np.int32)
  decode = eisner.risk_trees if least_risk else eisner.best_trees
  for rows, lengths, arcs in scored_batches(parser, bank):
    heads = np.asarray(decode(arcs, lengths))
    put_rows(flat, bank.words.offsets, rows, heads)
  return Ragged(flat=flat, offsets=bank.words.offsets)
