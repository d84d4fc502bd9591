"""Padded lists, and losses on them as functions of weights.

B: sentences. K: candidates. D: dense features. P: sparse features of a
candidate. S: statistics of a metric.
"""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.features import sparse
from jaxmt.losses import registry


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PaddedLists:
  """Candidates of all sentences, float32.

  Attributes:
    dense: `[B, K, D]`.
    ids: places of sparse features in the weight vector, int32 `[B, K, P]`.
    values: of the sparse features, 0 in padding, `[B, K, P]`.
    costs: sentence-level errors, `[B, K]`.
    statistics: of the metric, `[B, K, S]`.
    mask: which candidates exist, bool `[B, K]`.
  """

  dense: Array
  ids: Array
  values: Array
  costs: Array
  statistics: Array
  mask: Array


def pad(
  pool: CandidateLists,
  metric: str,
  costs: np.ndarray,
  *,
  multiple: int = 1,
  features: bool = True,
) -> PaddedLists:
  """Returns the pool padded to rectangles.

  Args:
    pool: with statistics of `metric`.
    metric: whose statistics to take.
    costs: of each candidate, `[N]`.
    multiple: B is padded with empty lists to a multiple of this (devices).
    features: whether to take the features, too; else D = P = 0.
  """
  sentences = -(-max(pool.sentences, 1) // multiple) * multiple
  lengths = np.diff(pool.offsets)
  mask = np.zeros((sentences, max(pool.width, 1)), bool)
  mask[: pool.sentences] = np.arange(mask.shape[1]) < lengths[:, None]
  dense = pool.dense if features else pool.dense[:, :0]
  thin = pool.sparse if features else sparse.empty(len(pool))
  ids, values = sparse.pad(thin)
  ids = np.where(values != 0, ids + pool.dense.shape[1], 0)

  def spread(rows: np.ndarray, dtype=np.float32) -> Array:
    out = np.zeros((*mask.shape, *rows.shape[1:]), dtype)
    out[mask] = rows
    return jnp.asarray(out)

  return PaddedLists(
    dense=spread(dense),
    ids=spread(ids, np.int32),
    values=spread(values),
    costs=spread(costs),
    statistics=spread(pool.statistics[metric]),
    mask=jnp.asarray(mask),
  )


def padded_scores(padded: PaddedLists, weights: Array) -> Array:
  """Returns the model scores, `[B, K]`, differentiable in `weights`."""
  width = padded.dense.shape[-1]
  total = padded.dense @ weights[:width]
  if padded.ids.shape[-1]:
    total += jnp.sum(padded.values * weights[padded.ids], axis=-1)
  return total


_PAIR_LIMIT = 1 << 24  # pairs held at a time by pairwise losses


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Objective:
  """A loss with its settings; only another loss needs another compilation.

  Attributes:
    loss: a name in `jaxmt.losses.registry`.
    settings: of the loss; those left out are as its record says.
    cost_scale: multiplies costs (alpha of the thesis).
    l2: strength of the pull towards the initial weights.
  """

  loss: str = dataclasses.field(metadata={"static": True})
  settings: Mapping[str, float] = dataclasses.field(default_factory=dict)
  cost_scale: float = 1.0
  l2: float = 0.0


def data_sums(
  scores: Array, padded: PaddedLists, objective: Objective
) -> tuple[Array, Array]:
  """Returns what adds up over sentences: `(sum, weight)`.

  Args:
    scores: model scores, `[B, K]`.
    padded: costs and statistics; its features are not used.
    objective: the loss.
  """
  loss = registry.find(objective.loss)
  settings = {**loss.settings, **objective.settings}
  if loss.statistics_of:
    return loss.function(scores, padded.statistics, padded.mask, **settings)
  costs = objective.cost_scale * padded.costs
  width = scores.shape[-1]
  if not loss.pairwise or scores.size * width <= _PAIR_LIMIT:
    return loss.function(scores, costs, padded.mask, **settings)

  # All pairs do not fit: some sentences at a time, computed again for the
  # gradient.
  @jax.checkpoint
  def of_sentence(row):
    return jnp.stack(loss.function(*row, **settings))

  parts = jax.lax.map(
    of_sentence,
    (scores, costs, padded.mask),
    batch_size=max(1, _PAIR_LIMIT // width**2),
  )
  return parts[:, 0].sum(), parts[:, 1].sum()


def score_value(
  scores: Array, padded: PaddedLists, objective: Objective
) -> Array:
  """Returns the loss as a function of the scores `[B, K]`: a scalar."""
  sums, weight = data_sums(scores, padded, objective)
  finish = registry.find(objective.loss).finish
  if finish is not None:
    return finish(sums, weight)
  return sums / jnp.maximum(weight, 1.0)


def value(
  weights: Array, initial: Array, padded: PaddedLists, objective: Objective
) -> Array:
  """Returns the regularised loss: a scalar, differentiable in `weights`.

  Under `jit` with sentences sharded over devices the sums are global.
  """
  loss = score_value(padded_scores(padded, weights), padded, objective)
  moved = weights - initial
  return loss + 0.5 * objective.l2 * jnp.sum(moved * moved)
