"""Losses as functions of weights: what gradient methods minimise."""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array

from jaxmt.losses import registry
from jaxmt.tune.lists.padded import PaddedLists, padded_scores

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
