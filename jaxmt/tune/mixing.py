"""Parameter mixing: tune shards apart, then average (survey, section 7.1).

Mixing is synchronous, or with a delay (`MixingConfig.delay`) asynchronous: see
`jaxmt.tune.asynchronous`.
"""

import concurrent.futures
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists, take_sentences
from jaxmt.errors import InputError
from jaxmt.tune import asynchronous, methods, options
from jaxmt.tune.learning import Chooser
from jaxmt.tune.methods import LISTS, Method
from jaxmt.tune.pool import find_metric, split_sparse

# (lists, weights, seed, centre) -> (weights, history)
Tune = Callable[
  [CandidateLists, np.ndarray, int, np.ndarray | None],
  tuple[np.ndarray, list[dict]],
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixingConfig:
  """How to mix.

  Attributes:
    metric: what the mixed weights are scored by.
    shards: number of parts that sentences are dealt out to.
    rounds: 1 mixes once at the end; more start again from the mixture.
    keep: sparse features kept after each mixing, those whose column of shard
      weights has the largest norm; 0 keeps all.
    norm: 1 or 2, the norm of `keep`.
    weighting: what shards count for in a mixture (mu of Eq 75): "uniform", or
      "updates", the share of updates that a shard has made in the round
      (McDonald et al. 2010); for methods that count their updates.
    mean: offer the mean of the mixtures of all rounds, which the next round
      still does not start from.
    delay: 0 mixes when all shards are done; above, shards of an online learner
      send their updates to one another as they go, and each update arrives 1 to
      `delay` batches later (survey, section 7.1.2).
    batch: sentences between two messages, if there is a delay.
    threads: 0 leaves the number to Python.
    explore: never to return the start, see `Chooser`; for loops.
  """

  metric: str = "bleu"
  shards: int = 4
  rounds: int = 1
  keep: int = 0
  norm: int = 2
  weighting: str = "uniform"
  mean: bool = False
  delay: int = 0
  batch: int = 10
  threads: int = 0
  explore: bool = False

  def __post_init__(self):
    find_metric(self.metric)
    options.one_of(self, norm=(1, 2))
    options.one_of(self, weighting=("uniform", "updates"))
    options.at_least(self, shards=1, rounds=1, keep=0, threads=0)
    options.at_least(self, delay=0, batch=1)
    if self.delay and (self.keep or self.weighting != "uniform"):
      raise InputError("option 'delay' goes with neither keep nor weighting")


def wrap(method: Method, *, metric: str, **settings: Any) -> Method:
  """Returns the method on shards of the sentences.

  Args:
    method: configured for `metric`.
    metric: what it optimises.
    **settings: others of `MixingConfig`.

  Raises:
    InputError: if mixing is asynchronous and the method no online learner.
  """
  config = MixingConfig(metric=metric, **settings)
  if config.delay:
    return _without_waiting(method, config)
  return Method(
    optimise=optimise,
    config=config,
    explores=True,
    centred=True,
    inner=method,
  )


def _without_waiting(method: Method, config: MixingConfig) -> Method:
  """The method on shards that send one another their updates."""
  passes = methods.online_passes(method)
  if passes is None or method.needs != LISTS:
    raise InputError("option 'delay' needs an online learner on lists")

  def run(pool, weights, config, seed):
    return asynchronous.optimise(
      pool,
      weights,
      asynchronous.MixingSetting(
        passes=passes,
        config=dataclasses.replace(method.config, passes=1),
        shards=config.shards,
        rounds=config.rounds,
        batch=config.batch,
        delay=config.delay,
      ),
      seed,
      metric=config.metric,
      mean=config.mean,
      explore=config.explore,
    )

  return Method(optimise=run, config=config, explores=True)


def select_columns(
  stacked: np.ndarray,
  *,
  dense: int,
  keep: int,
  norm: int,
  shares: np.ndarray | None = None,
) -> np.ndarray:
  """Returns the mean of shard weights with only the strongest columns.

  Args:
    stacked: `[shards, D + F]`.
    dense: D; these are always kept.
    keep: how many of the others; 0 means all.
    norm: 1 or 2.
    shares: what each shard counts for, `[shards]`; None: all the same.

  Returns:
    `[D + F]`; columns not kept are 0 (Simianer et al. 2012).
  """
  mean = np.average(stacked, axis=0, weights=shares)
  if not keep or stacked.shape[1] - dense <= keep:
    return mean
  strength = np.linalg.norm(stacked[:, dense:], ord=norm, axis=0)
  order = np.argsort(-strength, kind="stable")
  mean[dense + order[keep:]] = 0.0
  return mean


def optimise(
  pool: CandidateLists,
  weights: np.ndarray,
  config: MixingConfig,
  seed: int,
  *,
  inner: Tune,
  centre: np.ndarray | None = None,
) -> tuple[np.ndarray, list[dict]]:
  """Runs `inner` on shards of the pool and mixes their weights.

  Shard s holds the sentences s, s + shards, ... The mixture does not depend on
  the number of threads. Regularisers pull to `centre`, in all rounds the
  weights to start from unless it is given.
  """
  pool, place = split_sparse(pool)
  shards = max(1, min(config.shards, pool.sentences))
  parts = [
    take_sentences(pool, np.arange(s, pool.sentences, shards))
    for s in range(shards)
  ]
  current = np.array(weights, np.float64)[place]
  centre = current if centre is None else centre[place]
  chooser = Chooser(pool, current, config.metric, explore=config.explore)
  total = np.zeros(len(current))
  for number in range(config.rounds):
    begin = current

    def work(shard: int, begin=begin, number=number):
      shard_seed = seed + 1000003 * number + shard
      return inner(parts[shard], begin, shard_seed, centre)

    with concurrent.futures.ThreadPoolExecutor(
      config.threads or None
    ) as executor:
      results = list(executor.map(work, range(shards)))
    current = select_columns(
      np.stack([tuned for tuned, _ in results]),
      dense=pool.dense.shape[1],
      keep=config.keep,
      norm=config.norm,
      shares=_shares([history for _, history in results], config.weighting),
    )
    total += current
    chooser.offer(
      total / (number + 1) if config.mean else current,
      {"round": number, "shards": shards},
    )
  best = np.zeros(len(weights))
  best[place] = chooser.best
  return best, chooser.history


def _shares(
  histories: Sequence[Sequence[dict]], weighting: str
) -> np.ndarray | None:
  """What shards count for; None if all count the same."""
  if weighting == "uniform":
    return None
  if not all(h and "updates" in h[-1] for h in histories):
    raise InputError("weighting 'updates': the method counts no updates")
  counts = np.array(
    [sum(r.get("updates", 0) for r in history) for history in histories], float
  )
  return counts if counts.any() else None
