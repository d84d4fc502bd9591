"""Parameter mixing: tune shards apart, then average (survey, section 7.1)."""

import concurrent.futures
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists, take_sentences
from jaxmt.tune import options
from jaxmt.tune.learning import Chooser
from jaxmt.tune.methods import Method
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
    threads: 0 leaves the number to Python.
    explore: never to return the start, see `Chooser`; for loops.
  """

  metric: str = "bleu"
  shards: int = 4
  rounds: int = 1
  keep: int = 0
  norm: int = 2
  threads: int = 0
  explore: bool = False

  def __post_init__(self):
    find_metric(self.metric)
    options.one_of(self, norm=(1, 2))
    options.at_least(self, shards=1, rounds=1, keep=0, threads=0)


def wrap(method: Method, *, metric: str, **settings: Any) -> Method:
  """Returns the method on shards of the sentences.

  Args:
    method: configured for `metric`.
    metric: what it optimises.
    **settings: others of `MixingConfig`.
  """
  return Method(
    optimise=optimise,
    config=MixingConfig(metric=metric, **settings),
    explores=True,
    centred=True,
    inner=method,
  )


def select_columns(
  stacked: np.ndarray, *, dense: int, keep: int, norm: int
) -> np.ndarray:
  """Returns the mean of shard weights with only the strongest columns.

  Args:
    stacked: `[shards, D + F]`.
    dense: D; these are always kept.
    keep: how many of the others; 0 means all.
    norm: 1 or 2.

  Returns:
    `[D + F]`; columns not kept are 0 (Simianer et al. 2012).
  """
  mean = stacked.mean(0)
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
  for number in range(config.rounds):
    begin = current

    def work(shard: int, begin=begin, number=number) -> np.ndarray:
      shard_seed = seed + 1000003 * number + shard
      return inner(parts[shard], begin, shard_seed, centre)[0]

    with concurrent.futures.ThreadPoolExecutor(
      config.threads or None
    ) as executor:
      stacked = np.stack(list(executor.map(work, range(shards))))
    current = select_columns(
      stacked, dense=pool.dense.shape[1], keep=config.keep, norm=config.norm
    )
    chooser.offer(current, {"round": number, "shards": shards})
  best = np.zeros(len(weights))
  best[place] = chooser.best
  return best, chooser.history
