"""Rampion with hopes and fears found in forests.

As `rampion`: the concave-convex procedure of Gimpel (2012), Algorithm 1, but
the maxima are over all derivations of the forests. Deterministic.
"""

import dataclasses

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.text.kernels import njit
from jaxmt.tune import options
from jaxmt.tune.forests import forest_data
from jaxmt.tune.gradient_config import check_metric
from jaxmt.tune.learning import Chooser
from jaxmt.tune.lists import rampion


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestRampionConfig(rampion.RampionConfig):
  """How to descend; see `rampion.RampionConfig`.

  Attributes:
    density: edges kept for each source word, those of the best derivations; 0
      keeps all.
  """

  costs: str = "linear-bleu"
  density: float = 50.0

  def __post_init__(self):
    check_metric(self.metric)
    super().__post_init__()
    options.at_least(self, density=0)
    options.at_most(self, gamma=0)
    options.one_of(self, costs=("linear-bleu",))


@njit
def ramp_pass(forest, features, origin, costs, hopes, initial, weights, *steps):
  """One pass over all sentences with frozen hopes; changes the weights.

  Args:
    forest: (node offsets, edge offsets, tails) of B sentences.
    features: of the decoder's edges, `[E', F]`.
    origin: the decoder's edge of each edge, `[E]`.
    costs: of edges, those of the convex side, `[E]`.
    hopes: features of the frozen derivations, `[B, F]`.
    initial: weights to be pulled to, `[F]`.
    weights: `[F]`.
    *steps: rate; what is left of the distance to the initial weights.

  Returns:
    The number of updates.
  """
  rate, shrink = steps
  node_offsets, edge_offsets, tails = forest
  room = forest_data.workspace(node_offsets)
  edges = np.empty(64, np.int64)
  fear = np.empty(len(weights))
  updates = 0
  for sentence in range(len(node_offsets) - 1):
    low, high = node_offsets[sentence], node_offsets[sentence + 1]
    if low == high:
      continue
    first, last = edge_offsets[low], edge_offsets[high]
    values = np.empty(last - first)
    for edge in range(first, last):
      values[edge - first] = costs[edge]
      for column in range(len(weights)):
        values[edge - first] += features[origin[edge], column] * weights[column]
    edges, count = forest_data.best_derivation(
      low, high, edge_offsets, tails, values, first, room, edges
    )
    fear[:] = 0.0
    for k in range(count):
      fear += features[origin[edges[k]]]
    moved = hopes[sentence] - fear
    weights[:] = initial + shrink * (weights - initial) + rate * moved
    updates += np.any(moved != 0.0)
  return updates


def optimise(
  pool: CandidateLists,
  weights: np.ndarray,
  config: ForestRampionConfig,
  seed: int,
  *,
  centre: np.ndarray | None = None,
) -> tuple[np.ndarray, list[dict]]:
  """Minimises a ramp loss; arguments as in `mira.optimise`.

  `seed` is not used: the algorithm is deterministic. The regulariser pulls to
  `centre`, by default the weights to start from.
  """
  del seed
  data = forest_data.prepare(pool, weights, config.metric)
  scale = config.cost_scale
  scale = rampion.COST_SCALES[config.form] if scale is None else scale
  costs = scale * data.costs()
  lower = costs if config.form in (2, 3) else np.zeros_like(costs)
  upper = costs if config.form in (1, 3) else np.zeros_like(costs)
  forest = data.split.forest
  initial = np.array(weights if centre is None else centre, np.float64)
  current = np.array(weights, np.float64)
  shrink = rampion.shrink_per_sentence(config, len(forest))
  chooser = Chooser(
    pool,
    weights,
    config.metric,
    explore=config.explore,
    last=config.last,
    judge=forest_data.ForestJudge(pool, config.metric),
  )
  for number in range(config.rounds):
    hopes = forest_data.best_sums(
      forest, data.scores(current) - lower, data.features[data.split.edge]
    )
    updates = 0
    for _ in range(config.passes):
      updates += ramp_pass(
        (forest.node_offsets, forest.edge_offsets, forest.tails),
        data.features,
        data.split.edge,
        upper,
        hopes,
        initial,
        current,
        config.rate,
        shrink,
      )
    chooser.offer(current, {"round": number, "updates": updates})
  return chooser.best, chooser.history
