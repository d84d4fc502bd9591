"""The contract of a method that estimates rule probabilities θ.

A method is a `ThetaMethod` record; `jaxmt.train.theta_methods` has those of
this package by name, and `theta_methods.register` adds one. Most methods differ
in `search` and `select` only: they decode the training text, select
derivations, count their rules and estimate θ from the counts, in several
iterations (`jaxmt.train.learn_theta`). Ray sends records to other processes, so
functions have to be at module level.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from jaxmt.decode.chart.accumulators import Augmentation
from jaxmt.train.theta_config import ThetaConfig


def plain_search(config: ThetaConfig) -> Augmentation | None:
  """Adds nothing to the scores of the training search."""
  del config
  return None


def all_iterations(config: ThetaConfig) -> int:
  """Returns the passes through the text of a method that only iterates."""
  return config.iterations


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThetaMethod:
  """A way to estimate θ.

  Attributes:
    name: what `ThetaConfig.method` calls it.
    select: `(model, source, forest, references, config) -> Selection`: which
      derivations of a sentence count, and how much.
    count: `(shard, *, work, parameters, mesh) -> Counted`: the counts of a
      shard. `shard_counting.count_shard` searches, `theta_methods.count_forced`
      takes the derivations that reach the reference.
    train: `(method, model, bitext, config, *, options, previous) -> Learned`:
      the whole procedure.
    search: `(config) -> Augmentation | None`: what is added to the scores of
      the training search.
    passes: `(config) -> int`: how often `train` goes through the text.
    fallback: what `ThetaConfig.fallback` "default" stands for. Methods that
      are baselines skip sentences without an admissible derivation: with
      counts of extraction in their place they would be mixtures of themselves
      and relative frequency.
    needs_text: whether it decodes the training text. If not, it needs no
      provenance, and a system that uses it trains nothing.
  """

  name: str
  select: Callable[..., Any]
  count: Callable[..., Any]
  train: Callable[..., Any]
  search: Callable[[ThetaConfig], Augmentation | None] = plain_search
  passes: Callable[[ThetaConfig], int] = all_iterations
  fallback: str = "skip"
  needs_text: bool = True

  def resolve(self, config: ThetaConfig) -> ThetaConfig:
    """Returns the settings with the method's own fall-back in place."""
    if config.fallback != "default":
      return config
    return dataclasses.replace(config, fallback=self.fallback)
