"""Rampion: hard ramp losses by the concave-convex procedure.

Gimpel (2012), Algorithm 1: T' times, freeze the concave side (the hopes), then
T'' passes of stochastic subgradient descent on the convex rest, sentence by
sentence in order, regularised towards the initial weights. Deterministic. The
outermost loop, T, is the decoder's (`jaxmt.tune.loop`).
"""

import dataclasses

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.text.kernels import njit
from jaxmt.tune import costs as costs_lib
from jaxmt.tune import learning, options
from jaxmt.tune.learning import Chooser
from jaxmt.tune.pool import scores

COST_SCALES = {1: 10.0, 2: 2.0, 3: 10.0}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RampionConfig:
  """How to descend.

  Attributes:
    metric: whose sentence costs to use.
    costs: see `jaxmt.tune.costs`.
    form: ramp 1, 2 or 3.
    cost_scale: alpha; None takes 10, 2 and 10 for the three forms (the thesis:
      1, 1 and 10, for its weights to start from).
    gamma: above 0, ramp 2 with a weight of the cost for each sentence (Eq
      3.10): gamma_i is this times the list's range of scores over its range of
      costs, so that model and cost trade off alike in all lists. The thesis
      does not say how to choose gamma_i. `cost_scale` is not used then.
    rounds: T', how often the hopes are chosen again (the thesis: 10, for each
      of 20 rounds of decoding).
    passes: T'', over the sentences for each choice.
    rate: eta (the thesis: 1e-4, starting from sensible weights).
    pull: C, strength of the pull towards the initial weights.
    last: return the last iterate, not the one of the best pool score.
    explore: never to return the start, see `Chooser`; for loops.
  """

  metric: str = "bleu"
  costs: str = "sentence"
  form: int = 3
  cost_scale: float | None = None
  gamma: float = 0.0
  rounds: int = 20
  passes: int = 5
  rate: float = 1e-3
  pull: float = 1.0
  last: bool = False
  explore: bool = False

  def __post_init__(self):
    costs_lib.check(self.costs, self.metric)
    options.one_of(self, form=tuple(COST_SCALES))
    options.at_least(self, rounds=1, passes=1, pull=0, gamma=0)
    options.above(self, rate=0)
    if self.gamma and self.form != 2:
      raise InputError("option 'gamma' is for form 2")
    if self.cost_scale is not None:
      options.at_least(self, cost_scale=0)


@njit
def _argmax(values, low, high):
  top = low
  for row in range(low + 1, high):
    if values[row] > values[top]:
      top = row
  return top


@njit
def ramp_pass(features, base, costs, offsets, hopes, moved, scale, *settings):
  """One pass over all sentences with frozen hopes.

  The weights are `initial + scale * moved`: shrinking towards the initial
  weights is one multiplication, whatever the number of features.

  Args:
    features: see `rows.Features`.
    base: scores under the initial weights, `[N]`.
    costs: costs to add to the score of the convex side, `[N]`.
    offsets: int64 `[B + 1]`.
    hopes: the frozen candidate of each sentence, `[B]`.
    moved: `[D + F]`, changed in place.
    scale: of `moved`.
    *settings: rate, shrink per sentence, room.

  Returns:
    `(scale, number of updates)`.
  """
  rate, shrink, room = settings
  ids = np.empty(room, np.int64)
  values = np.empty(room, np.float64)
  updates = 0
  for sentence in range(len(offsets) - 1):
    low, high = offsets[sentence], offsets[sentence + 1]
    if low == high:
      continue
    fear = low
    top = -np.inf
    for row in range(low, high):
      value = (
        base[row] + scale * learning.score(features, moved, row) + costs[row]
      )
      if value > top:
        top, fear = value, row
    scale *= shrink
    if fear != hopes[sentence]:
      size = learning.subtract(features, hopes[sentence], fear, ids, values)
      learning.add(ids, values, size, rate / scale, moved)
      updates += 1
    if scale < 1e-6:
      moved *= scale
      scale = 1.0
  return scale, updates


@njit
def _all_argmax(values, offsets):
  out = np.zeros(len(offsets) - 1, np.int64)
  for row in range(len(out)):
    if offsets[row] < offsets[row + 1]:
      out[row] = _argmax(values, offsets[row], offsets[row + 1])
  return out


def shrink_per_sentence(config: RampionConfig, sentences: int) -> float:
  """Returns `1 - rate * pull / B`, what is left of the distance to the centre.

  Raises:
    InputError: if nothing would be left of it.
  """
  shrink = 1.0 - config.rate * config.pull / max(sentences, 1)
  if shrink <= 0.0:
    raise InputError(
      f"rate {config.rate:g} times pull {config.pull:g} must be less than the"
      f" number of sentences, {sentences}"
    )
  return shrink


def sentence_trade_offs(
  values: np.ndarray, costs: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
  """Returns each list's range of scores over its range of costs, `[B]`.

  0 for lists whose scores or costs are all the same.

  Args:
    values: scores, `[N]`.
    costs: `[N]`.
    offsets: int64 `[B + 1]`.
  """
  out = np.zeros(len(offsets) - 1)
  some = np.flatnonzero(np.diff(offsets) > 0)
  if not len(some):
    return out
  first = offsets[:-1][some]
  spread = lambda one: (
    np.maximum.reduceat(one, first) - np.minimum.reduceat(one, first)
  )
  below = spread(costs)
  out[some] = np.where(
    below > 0, spread(values) / np.where(below > 0, below, 1.0), 0.0
  )
  return out


def optimise(
  pool: CandidateLists,
  weights: np.ndarray,
  config: RampionConfig,
  seed: int,
  *,
  centre: np.ndarray | None = None,
) -> tuple[np.ndarray, list[dict]]:
  """Minimises a ramp loss; arguments as in `mira.optimise`.

  `seed` is not used: the algorithm is deterministic. The regulariser pulls to
  `centre`, by default the weights to start from.
  """
  del seed
  scale = config.cost_scale
  scale = COST_SCALES[config.form] if scale is None else scale
  costs = costs_lib.candidate_costs(
    pool, weights, metric=config.metric, kind=config.costs
  )
  if config.gamma:
    trade = sentence_trade_offs(scores(pool, weights), costs, pool.offsets)
    costs = costs * np.repeat(config.gamma * trade, np.diff(pool.offsets))
  else:
    costs = scale * costs
  nothing = np.zeros_like(costs)
  lower = costs if config.form in (2, 3) else nothing
  upper = costs if config.form in (1, 3) else nothing
  initial = np.array(weights if centre is None else centre, np.float64)
  current = np.array(weights, np.float64)
  base = scores(pool, initial)
  shrink = shrink_per_sentence(config, pool.sentences)
  chooser = Chooser(
    pool, weights, config.metric, explore=config.explore, last=config.last
  )
  for number in range(config.rounds):
    hopes = _all_argmax(scores(pool, current) - lower, pool.offsets)
    moved, scale = current - initial, 1.0
    updates = 0
    for _ in range(config.passes):
      scale, changed = ramp_pass(
        learning.features_of(pool),
        base,
        upper,
        pool.offsets,
        hopes,
        moved,
        scale,
        config.rate,
        shrink,
        learning.room(pool),
      )
      updates += changed
    current = initial + scale * moved
    chooser.offer(current, {"round": number, "updates": updates})
  return chooser.best, chooser.history
