"""The losses as functions of weights: what gradient methods minimise."""

import dataclasses

import jax
import jax.numpy as jnp
from jax import Array

from jaxmt.losses import corpus, likelihood, margin, ramp, ranking
from jaxmt.tune.padded import PaddedPool, padded_scores


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Objective:
  """A loss with its settings; only another loss needs another compilation.

  Attributes:
    loss: a name in `LOSSES`, or "xbleu".
    cost_scale: multiplies costs (alpha of the thesis).
    scale: gamma of Eq 22: scores are multiplied by it in risk and xBLEU.
    temperature: of annealed risk.
    l2: strength of the pull towards the initial weights.
  """

  loss: str = dataclasses.field(metadata={"static": True})
  cost_scale: float = 1.0
  scale: float = 1.0
  temperature: float = 0.0
  l2: float = 0.0


def _annealed(scores, costs, mask, objective):
  return likelihood.annealed_risk(
    scores,
    costs,
    mask,
    temperature=objective.temperature,
    scale=objective.scale,
  )


def _risk(scores, costs, mask, objective):
  return likelihood.risk(scores, costs, mask, scale=objective.scale)


def _plain(function, **settings):
  def loss(scores, costs, mask, objective):
    del objective
    return function(scores, costs, mask, **settings)

  return loss


LOSSES = {
  "softmax": _plain(likelihood.softmax),
  "softmax-margin": _plain(likelihood.softmax_margin),
  "risk": _risk,
  "annealed-risk": _annealed,
  "hinge": _plain(margin.hinge),
  "structured-hinge": _plain(margin.structured_hinge),
  "loss-augmented-hinge": _plain(margin.loss_augmented_hinge),
  "margin": _plain(margin.margin),
  "relative-margin": _plain(margin.relative_margin, bound=5.0, strength=0.1),
  "ranking": _plain(ranking.ranking, kind="logistic"),
  "ranking-hinge": _plain(ranking.ranking, kind="hinge"),
  "ranking-perceptron": _plain(ranking.ranking, kind="perceptron"),
  "cross-entropy-ranking": _plain(ranking.cross_entropy_ranking),
  "mse": _plain(ranking.mean_squared_error),
  **{f"ramp{n}": _plain(ramp.ramp, form=n) for n in (1, 2, 3)},
  **{f"softramp{n}": _plain(ramp.soft_ramp, form=n) for n in (1, 2, 3)},
  **{
    f"hardsoftramp{n}": _plain(ramp.hybrid_ramp, form=n, soft_upper=True)
    for n in (1, 2, 3)
  },
  **{
    f"softhardramp{n}": _plain(ramp.hybrid_ramp, form=n, soft_upper=False)
    for n in (1, 2, 3)
  },
}
# Losses over all pairs of candidates, `[B, K, K]`.
_PAIRWISE = ("margin", "ranking", "ranking-hinge", "ranking-perceptron")
_PAIR_LIMIT = 1 << 24  # pairs held at a time
# The order of BLEU in `jaxmt.metrics.bleu`'s statistics.
_ORDER = 4


def data_sums(
  scores: Array, padded: PaddedPool, objective: Objective
) -> tuple[Array, Array]:
  """Returns what adds up over sentences: `(sums, weight)`.

  For sentence losses the sum is a number, for xBLEU the expected statistics.

  Args:
    scores: model scores, `[B, K]`.
    padded: costs and statistics; its features are not used.
    objective: the loss.
  """
  if objective.loss == "xbleu":
    sums = corpus.expected_statistics(
      scores, padded.statistics, padded.mask, scale=objective.scale
    )
    return sums, jnp.ones(())
  loss = LOSSES[objective.loss]
  costs = objective.cost_scale * padded.costs
  width = scores.shape[-1]
  if objective.loss not in _PAIRWISE or scores.size * width <= _PAIR_LIMIT:
    return loss(scores, costs, padded.mask, objective)

  @jax.checkpoint
  def of_sentence(row):
    row_scores, row_costs, row_mask = row
    return jnp.stack(loss(row_scores, row_costs, row_mask, objective))

  parts = jax.lax.map(
    of_sentence,
    (scores, costs, padded.mask),
    batch_size=max(1, _PAIR_LIMIT // width**2),
  )
  return parts[:, 0].sum(), parts[:, 1].sum()


def finish(sums: Array, weight: Array, objective: Objective) -> Array:
  """Returns the loss of the summed parts of all shards."""
  if objective.loss == "xbleu":
    matches = sums[:_ORDER]
    totals = sums[_ORDER : 2 * _ORDER]
    return -corpus.smooth_bleu(matches, totals, totals[0], sums[2 * _ORDER])
  return sums / jnp.maximum(weight, 1.0)


def score_value(
  scores: Array, padded: PaddedPool, objective: Objective
) -> Array:
  """Returns the loss as a function of the scores `[B, K]`: a scalar."""
  sums, weight = data_sums(scores, padded, objective)
  return finish(sums, weight, objective)


def value(
  weights: Array, initial: Array, padded: PaddedPool, objective: Objective
) -> Array:
  """Returns the regularised loss: a scalar, differentiable in `weights`.

  Under `jit` with sentences sharded over devices the sums are global.
  """
  loss = score_value(padded_scores(padded, weights), padded, objective)
  moved = weights - initial
  return loss + 0.5 * objective.l2 * jnp.sum(moved * moved)


def check(objective: Objective, statistics: int) -> None:
  """Raises ValueError if there is no such loss, or no BLEU for xBLEU."""
  if objective.loss == "xbleu":
    if statistics != 2 * _ORDER + 1:
      raise ValueError("xbleu needs the statistics of BLEU")
  elif objective.loss not in LOSSES:
    raise ValueError(f"loss '{objective.loss}' is none of {sorted(LOSSES)}")
