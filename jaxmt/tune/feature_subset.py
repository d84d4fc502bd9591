"""Tuning fewer features: sparse ones left out, or folded into a few sums.

See `pool.split_sparse` for which these are. D: dense features. F: sparse ones.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.features import selection
from jaxmt.tune.methods import Method, Result
from jaxmt.tune.pool import KBestPool, split_sparse, summarised

Optimise = Callable[..., Result]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReducedConfig:
  """What is left of the sparse features; the rest get weight 0.

  Attributes:
    inner: the config of the method that tunes what is left.
    metric: the same as the method's.
    min_count: leave out features that differ among the candidates of fewer
      sentences.
    keep: of the others, keep those that differ in most sentences; 0 keeps all.
    summary: fold the features of each template into one sum by their present
      weights, and tune the sums with the dense features (survey, Eq 7). The
      result has each weight times that of its sum.
  """

  inner: Any
  metric: str = "bleu"
  min_count: int = 0
  keep: int = 0
  summary: bool = False


def wrap(method: Method, *, metric: str, **settings: Any) -> Method:
  """Returns the method on fewer features; itself if all of them stay.

  Args:
    method: configured for `metric`.
    metric: what it optimises.
    **settings: others of `ReducedConfig`.
  """
  if not any(settings.values()):
    return method
  config = ReducedConfig(inner=method.config, metric=metric, **settings)
  return Method(
    optimise=functools.partial(optimise, method.optimise), config=config
  )


def optimise(
  method: Optimise,
  pool: KBestPool,
  weights: np.ndarray,
  config: ReducedConfig,
  seed: int,
) -> Result:
  """Runs `method` on the reduced pool; its result is for the whole one.

  Args:
    method: `(pool, weights, config, seed) -> (weights, history)`.
    pool: N candidates.
    weights: where to start, `[D + F]`.
    config: see `ReducedConfig`.
    seed: the method's.
  """
  whole, place = split_sparse(pool)
  kept = kept_features(whole, min_count=config.min_count, keep=config.keep)
  width = whole.dense.shape[1]
  chosen = np.concatenate([place[:width], place[width:][kept]])
  small = restrict(whole, kept)
  tune = _tune_sums if config.summary else _tune
  result = np.zeros(len(weights))
  result[chosen], history = tune(method, small, weights[chosen], config, seed)
  return result, history


def kept_features(
  pool: KBestPool, *, min_count: int = 0, keep: int = 0
) -> np.ndarray:
  """Returns which of the F sparsely stored features stay; bool `[F]`."""
  count = len(pool.names) - pool.dense.shape[1]
  lists = selection.sentence_counts(pool.sparse, pool.sentence, count)
  kept = lists >= min_count
  return kept & selection.most_frequent(lists, keep) if keep else kept


def restrict(pool: KBestPool, kept: np.ndarray) -> KBestPool:
  """Returns the pool with some of its sparse features only; bool `[F]`."""
  width = pool.dense.shape[1]
  rows, names = selection.select(pool.sparse, pool.names[width:], kept)
  return dataclasses.replace(
    pool, sparse=rows, names=(*pool.names[:width], *names)
  )


def _tune(method, pool, weights, config, seed) -> Result:
  return method(pool, weights, config.inner, seed)


def _tune_sums(method, pool, weights, config, seed) -> Result:
  """Tunes dense features and one sum for each template."""
  width = pool.dense.shape[1]
  thin = weights[width:]
  if not thin.any():
    raise InputError("a summary needs sparse features that have weights")
  kinds = [name.partition(":")[0] for name in pool.names[width:]]
  _, groups = np.unique(kinds, return_inverse=True)
  small = summarised(pool, weights, groups)
  start = np.concatenate([weights[:width], np.ones(groups.max() + 1)])
  tuned, history = method(small, start, config.inner, seed)
  sums = tuned[width:]
  return np.concatenate([tuned[:width], sums[groups] * thin]), history
