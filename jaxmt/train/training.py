"""What a training of θ is given, shares between its steps, and returns."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxmt.decode.chart.search import SearchConfig
from jaxmt.decode.model import Model
from jaxmt.grammar.estimate import Groups
from jaxmt.runtime.checkpoint import Store
from jaxmt.runtime.runner import Runner
from jaxmt.train import shard_store, theta_features
from jaxmt.train.counts import Contributions
from jaxmt.train.shard_counting import Shard, TrainingBitext
from jaxmt.train.theta_config import ThetaConfig
from jaxmt.train.theta_method import ThetaMethod


@dataclasses.dataclass(frozen=True, kw_only=True)
class Learned:
  """The result of training.

  Attributes:
    theta: natural logs in the order of `estimate.THETA`, float32 `[R, 5]`.
    counts: what they were estimated from in units of 1 / `COUNT_UNIT`, int64
      `[R]`.
    history: one record for each iteration, see `describe`; those of an earlier
      run only in the first process.
    own: what each sentence gave to the counts, N rows, if it was asked for and
      is known; only in the first process.
  """

  theta: np.ndarray
  counts: np.ndarray
  history: tuple[dict[str, Any], ...]
  own: Contributions | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreviousEpoch:
  """The counts that training starts from, in later epochs.

  Attributes:
    counts: in units of 1 / `COUNT_UNIT`, int64 `[R]`; with `ThetaConfig.alpha`
      they give the θ of the model.
    own: what each sentence gave to them, N rows.
  """

  counts: np.ndarray
  own: Contributions


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resources:
  """Where training runs; results do not depend on it.

  Attributes:
    runner: threads or Ray workers that take shards.
    mesh: devices that take batches of a shard, or None.
    processes: number of processes that share the shards (`jax.distributed`).
    process: number of this process.
    clock: seconds, for the reports; None leaves them out.
    on_shard: called with the number of sentences of a finished shard.
  """

  runner: Runner = dataclasses.field(default_factory=Runner)
  mesh: Mesh | None = None
  processes: int = 1
  process: int = 0
  clock: Callable[[], float] | None = None
  on_shard: Callable[[int], None] = lambda sentences: None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
  """How a training is run.

  Attributes:
    groups: of the model's rules; None computes them.
    search: sizes of the search; None for `shard_counting.search_config`.
    store: finished shards and iterations; None keeps them in memory.
    resources: where to run.
    on_iteration: called with each iteration's record.
    evaluate: called with each new θ in process 0; returns entries of the
      record.
    keep_own: whether to return what each sentence gave to the counts, as
      `PreviousEpoch` of a later epoch. Several processes then need one store.
  """

  groups: Groups | None = None
  search: SearchConfig | None = None
  store: Store | None = None
  resources: Resources = dataclasses.field(default_factory=Resources)
  on_iteration: Callable[[dict[str, Any]], None] = lambda record: None
  evaluate: Callable[[np.ndarray], Mapping[str, Any]] = lambda theta: {}
  keep_own: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
  """What all iterations share.

  Attributes:
    model: with θ(0), its weights scaled.
    bitext: its static scores are of that model.
    config: the settings.
    method: the method.
    groups: of the model's rules.
    search: sizes of the search.
    shards: of all processes.
    mine: those of this process.
    store: finished shards and iterations.
    options: see `RunOptions`.
    previous: counts of the epoch before, or None.
    mix: see `learn`.
    name: see `learn`.
  """

  model: Model
  bitext: TrainingBitext
  config: ThetaConfig
  method: ThetaMethod
  groups: Groups
  search: SearchConfig
  shards: list[Shard]
  mine: list[Shard]
  store: Store
  options: RunOptions
  previous: PreviousEpoch | None
  mix: Callable[[np.ndarray], np.ndarray]
  name: str

  @property
  def resources(self) -> Resources:
    """Where the training runs."""
    return self.options.resources

  def entry(self, number: int, shard: Shard) -> str:
    """Returns the store's name of a shard of an iteration."""
    return shard_store.entry(self.name, number, shard)

  def theta(self, counts: np.ndarray) -> np.ndarray:
    """Returns θ of counts in units, float64 `[R, 5]`."""
    return self.mix(theta_features.theta_of(counts, self.groups, self.config))
