"""Particle swarm optimisation of the corpus score (survey, section 5.1.3).

Every particle is a weight vector with a velocity. It is pulled to the best
place it has been at and to the best place of all:

  v <- inertia v + personal u (p - x) + social u' (g - x),   x <- x + v

with u, u' uniform in [0, 1] for each weight. The survey gives no constants; the
defaults are Clerc and Kennedy's (2002), for which swarms converge. All
particles move at once, so that the result does not depend on threads.
"""

import concurrent.futures
import dataclasses

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.tune import options
from jaxmt.tune.learning import Chooser
from jaxmt.tune.pool import find_metric, pool_score


@dataclasses.dataclass(frozen=True, kw_only=True)
class SwarmConfig:
  """How to search.

  Attributes:
    metric: what to optimise.
    particles: the first begins at the given weights, the others uniformly in
      plus or minus `spread`.
    moves: of each particle.
    spread: see `particles`.
    inertia: share of a velocity that is kept.
    personal: largest pull to a particle's own best place.
    social: largest pull to the best place of all.
    threads: 0 leaves the number to Python.
  """

  metric: str = "bleu"
  particles: int = 30
  moves: int = 40
  spread: float = 1.0
  inertia: float = 0.7298
  personal: float = 1.49618
  social: float = 1.49618
  threads: int = 0

  def __post_init__(self):
    find_metric(self.metric)
    options.at_least(self, particles=1, moves=1, inertia=0, personal=0)
    options.at_least(self, social=0, threads=0)
    options.at_most(self, inertia=1)
    options.above(self, spread=0)


def optimise(
  pool: CandidateLists, weights: np.ndarray, config: SwarmConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """Searches the dense weights; arguments as in `mira.optimise`."""
  sign = 1.0 if find_metric(config.metric).higher_is_better else -1.0
  width = pool.dense.shape[1]
  rest = np.asarray(weights, np.float64)[width:]
  rng = np.random.default_rng(seed)
  shape = (config.particles, width)
  place = rng.uniform(-config.spread, config.spread, shape)
  place[0] = weights[:width]
  velocity = rng.uniform(-config.spread, config.spread, shape)
  chooser = Chooser(pool, weights, config.metric)

  def judge(point: np.ndarray) -> float:
    full = np.concatenate([point, rest])
    return sign * pool_score(pool, full, config.metric)

  with concurrent.futures.ThreadPoolExecutor(
    config.threads or None
  ) as executor:
    best_places = place.copy()
    value = np.array(list(executor.map(judge, place)))
    for number in range(config.moves):
      best = best_places[int(np.argmax(value))]
      velocity = (
        config.inertia * velocity
        + config.personal * rng.uniform(size=shape) * (best_places - place)
        + config.social * rng.uniform(size=shape) * (best - place)
      )
      place = place + velocity
      now = np.array(list(executor.map(judge, place)))
      better = now > value
      best_places[better], value[better] = place[better], now[better]
      if better.any() or not number:
        top = np.concatenate([best_places[int(np.argmax(value))], rest])
        chooser.offer(top, {"move": number})
  return chooser.best, chooser.history
