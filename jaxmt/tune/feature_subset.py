"""Tuning fewer features: sparse ones left out, or folded into a few sums.

See `pool.split_sparse` for which these are. D: dense features. F: sparse ones.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.features import selection
from jaxmt.tune import options
from jaxmt.tune.methods import Method, Result
from jaxmt.tune.pool import split_sparse, summarised

# (lists, weights, seed, centre) -> (weights, history)
Tune = Callable[[CandidateLists, np.ndarray, int, np.ndarray | None], Result]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReducedConfig:
  """What is left of the sparse features; the rest get weight 0.

  Attributes:
    metric: the same as the method's.
    min_count: leave out features that differ among the candidates of fewer
      sentences.
    keep: of the others, keep those that differ in most sentences; 0 keeps all.
    summary: fold the features of each template into one sum by their present
      weights, and tune the sums with the dense features (survey, Eq 7). The
      result has each weight times that of its sum.
  """

  metric: str = "bleu"
  min_count: int = 0
  keep: int = 0
  summary: bool = False

  def __post_init__(self):
    options.at_least(self, min_count=0, keep=0)


def wrap(method: Method, *, metric: str, **settings: Any) -> Method:
  """Returns the method on fewer features; itself if all of them stay.

  Args:
    method: configured for `metric`.
    metric: what it optimises.
    **settings: others of `ReducedConfig`.
  """
  if not any(settings.values()):
    return method
  config = ReducedConfig(metric=metric, **settings)
  return Method(optimise=optimise, config=config, centred=True, inner=method)


def optimise(
  pool: CandidateLists,
  weights: np.ndarray,
  config: ReducedConfig,
  seed: int,
  *,
  inner: Tune,
  centre: np.ndarray | None = None,
) -> Result:
  """Runs `inner` on the reduced pool; its result is for the whole one.

  Args:
    pool: N candidates.
    weights: where to start, `[D + F]`.
    config: see `ReducedConfig`.
    seed: the method's.
    inner: the method.
    centre: where a regulariser pulls to, `[D + F]`; None: `weights`.
  """
  whole, place = split_sparse(pool)
  selected = kept_features(whole, min_count=config.min_count, keep=config.keep)
  width = whole.dense.shape[1]
  chosen = np.concatenate([place[:width], place[width:][selected]])
  small = restrict(whole, selected)
  tune = functools.partial(_tune_sums, inner) if config.summary else inner
  result = np.zeros(len(weights))
  pull = weights if centre is None else centre
  result[chosen], history = tune(small, weights[chosen], seed, pull[chosen])
  return result, history


def kept_features(
  pool: CandidateLists, *, min_count: int = 0, keep: int = 0
) -> np.ndarray:
  """Returns which of the F sparsely stored features stay; bool `[F]`."""
  count = len(pool.names) - pool.dense.shape[1]
  lists = selection.sentence_counts(pool.sparse, pool.sentence, count)
  chosen = lists >= min_count
  return chosen & selection.most_frequent(lists, keep) if keep else chosen


def restrict(pool: CandidateLists, features: np.ndarray) -> CandidateLists:
  """Returns the pool with some of its sparse features only; bool `[F]`."""
  width = pool.dense.shape[1]
  rows, names = selection.select(pool.sparse, pool.names[width:], features)
  return dataclasses.replace(
    pool, sparse=rows, names=(*pool.names[:width], *names)
  )


def _tune_sums(inner: Tune, pool, weights, seed, centre) -> Result:
  """Tunes dense features and one sum for each template.

  A regulariser pulls sums to 1, where they start.
  """
  width = pool.dense.shape[1]
  thin = weights[width:]
  if not thin.any():
    raise InputError("a summary needs sparse features that have weights")
  kinds = [name.partition(":")[0] for name in pool.names[width:]]
  _, groups = np.unique(kinds, return_inverse=True)
  small = summarised(pool, weights, groups)
  ones = np.ones(groups.max() + 1)
  start = np.concatenate([weights[:width], ones])
  pull = np.concatenate([centre[:width], ones])
  tuned, history = inner(small, start, seed, pull)
  sums = tuned[width:]
  return np.concatenate([tuned[:width], sums[groups] * thin]), history
