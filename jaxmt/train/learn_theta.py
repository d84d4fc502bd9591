"""LearnTheta, figure 5: decode the training text, count, estimate, repeat.

    learned = learn_theta.learn(model, bitext, config)
    learned.theta                      # ln P, [R, 5]

Iteration i decodes every sentence with θ(i), selects derivations, sums the
rules' counts over all shards, and estimates θ(i + 1) from them by add-alpha
relative frequency over the same rules: a rule nothing uses keeps alpha. There
is no guarantee of convergence, so each iteration's scores are reported.

Every finished shard and iteration is kept in a `Store`; a run that was killed
goes on behind the last of them and ends with the same bits. Of several
processes each decodes and keeps shards of its own; where to go on is what the
first one's store says, so that all take part in the same sums. If they are to
go on in another number they need one store, on a disk that all of them see.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxmt.decode import model as models
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.decode.forced import forced
from jaxmt.decode.model import Model
from jaxmt.grammar import estimate
from jaxmt.grammar import table as tables
from jaxmt.grammar.estimate import Groups
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.lm import automaton
from jaxmt.runtime import parallel
from jaxmt.runtime import runner as runner_lib
from jaxmt.runtime.runner import Runner
from jaxmt.train import counts as counts_lib
from jaxmt.train import leave_one_out, shard_counting, shard_store
from jaxmt.train.checkpoint_store import Memory, Store
from jaxmt.train.config import ThetaConfig
from jaxmt.train.counts import Contributions
from jaxmt.train.leave_one_out import HeldOut
from jaxmt.train.shard_counting import Bitext, Counted, Shard, Work

# (shard, work=) -> what it gives; further arguments are bound.
ShardFunction = Callable[..., Counted]
# θ [R, 5] -> what to note of it.
Judge = Callable[[np.ndarray], Mapping[str, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Learned:
  """What training gives.

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
class Before:
  """The counts that training starts from, in later epochs.

  Attributes:
    counts: in units of 1 / `COUNT_UNIT`, int64 `[R]`; with `ThetaConfig.alpha`
      they make the θ of the model.
    own: what each sentence gave to them, N rows.
  """

  counts: np.ndarray
  own: Contributions


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
  """Where the work is done; has no influence on the result.

  Attributes:
    runner: threads or Ray workers that take shards.
    mesh: devices that take batches of a shard, or None.
    processes: how many processes share the shards (`jax.distributed`).
    process: which of them this is.
    clock: seconds, for the reports; None leaves them out.
    on_shard: called with the number of sentences done.
  """

  runner: Runner = dataclasses.field(default_factory=Runner)
  mesh: Mesh | None = None
  processes: int = 1
  process: int = 0
  clock: Callable[[], float] | None = None
  on_shard: Callable[[int], None] = lambda sentences: None


def learn(
  model: Model,
  bitext: Bitext,
  config: ThetaConfig,
  *,
  groups: Groups | None = None,
  search: SearchConfig | None = None,
  store: Store | None = None,
  place: Place | None = None,
  on_iteration: Callable[[dict[str, Any]], None] = lambda record: None,
  judge: Judge = lambda theta: {},
  shard_function: ShardFunction = shard_counting.count_shard,
  mix: Callable[[np.ndarray], np.ndarray] = lambda theta: theta,
  name: str = "iteration",
  before: Before | None = None,
  keep_own: bool = False,
) -> Learned:
  """Learns θ in `config.iterations` iterations.

  Args:
    model: rules with θ(0) among their features, and tuned weights.
    bitext: the training text.
    config: see `ThetaConfig`.
    groups: of the model's rules, if known.
    search: sizes of the search, if not those of `decoding.search_config`.
    store: keeps what is done; see above.
    place: where to work.
    on_iteration: called with each iteration's record.
    judge: called with each new θ in process 0, gives entries of the record.
    shard_function: what a shard gives; `decoding.count_shard` searches it.
    mix: what becomes of each new θ before it is used.
    name: what iterations are called in the store.
    before: what the model's θ was estimated from, if not from extraction.
    keep_own: whether to return what each sentence gave, for `before` of an
      epoch that follows. Where several processes work, their stores must be
      one.
  """
  groups = groups or estimate.group_rules(model.table)
  store, place = store or Memory(), place or Place()
  model = scaled(model, config.scale)
  source = models.rescore_source(model, bitext.source)
  bitext = dataclasses.replace(bitext, source=source)
  search = search or shard_counting.search_config(config, model)
  shards = shard_counting.make_shards(
    bitext.source.ids.lengths,
    span=model.limits.span,
    cells=config.batch_cells - search.tile - 1,  # what a chart has besides
    size=config.shard,
  )
  mine = shards[place.process :: place.processes]
  counts = np.rint(np.asarray(model.table.counts) * COUNT_UNIT).astype(np.int64)
  if before is not None:
    counts = before.counts
  start, counts, history = _finished(store, name, config, counts, place, mine)
  for record in history:
    on_iteration(record)
  theta: np.ndarray | None = None
  kept: Contributions | None = None
  if keep_own and start == config.iterations and place.process == 0:
    last = store.get(f"{name}{start - 1}") or {}
    kept = shard_store.own_of(last) if "rules" in last else None
  if start:
    _forget(store, mine, config, name, start - 1)
    theta = mix(theta_of(counts, groups, config))
  for number in range(start, config.iterations):
    work = Work(
      model=model if theta is None else with_theta(model, theta),
      bitext=bitext,
      config=config,
      search=search,
      held=_held(model, bitext, config, groups, counts, number, before),
      per_sentence=config.leave_one_out == "counts",
    )
    own = _own(work, mine, store, name, number, before)
    since = place.clock() if place.clock else 0.0
    resumed = any(
      store.get(shard_store.entry(name, number, shard)) is not None
      for shard in mine
    )
    counted = _map(shard_function, own, work, store, place, name, number)
    counts, values = _reduce(counted, mine, work, place)
    record = {"iteration": number, **describe(values, counts)}
    record["left_out"] = work.held.kind if work.held else "none"
    if place.clock and not resumed:  # or some shards would take no time
      seconds = place.clock() - since
      record["seconds"] = round(seconds, 3)
      record["sentences_per_second"] = round(len(bitext) / seconds, 3)
    theta = mix(theta_of(counts, groups, config))
    if place.process == 0:  # whose sums say that all shards are there
      record |= judge(theta)
      if keep_own and number + 1 == config.iterations:
        kept = shard_store.collect(store, name, number, shards)
      noted: dict[str, Any] = {"counts": counts, "record": record}
      noted |= {} if kept is None else shard_store.own_values(kept)
      store.put(f"{name}{number}", noted)
    _meet(place)  # nobody may forget what a run without this record needs
    _forget(store, mine, config, name, number)
    history.append(record)
    on_iteration(record)
  _meet(place)  # the store may be removed when all are done with it
  if theta is None:
    theta = theta_of(counts, groups, config)
  return Learned(
    theta=theta.astype(np.float32),
    counts=counts,
    history=tuple(history),
    own=kept,
  )


def before_of(learned: Learned) -> Before | None:
  """What an epoch that follows starts from; None if that is not known."""
  if learned.own is None:
    return None
  return Before(counts=learned.counts, own=learned.own)


def _meet(place: Place) -> None:
  """Waits for all processes."""
  if place.processes > 1:
    parallel.sum_over_processes(np.zeros(1, np.int64))


def theta_of(
  counts: np.ndarray, groups: Groups, config: ThetaConfig
) -> np.ndarray:
  """Add-alpha relative frequencies of counts in units, float64 `[R, 5]`."""
  return estimate.relative_frequency(
    counts / COUNT_UNIT, groups, alpha=config.alpha
  )


def scaled(model: Model, scale: float) -> Model:
  """Returns the model with weights such that ln p_lm has weight `scale`.

  Ranks and best derivations stay the same. Nothing changes if `scale` is 0 or
  the language model's weight is not positive.
  """
  if not scale or model.lm_weight <= 0:
    return model
  factor = scale / model.lm_weight
  return models.with_weights(
    model, {name: factor * value for name, value in model.weights.items()}
  )


def with_theta(model: Model, theta: np.ndarray) -> Model:
  """Returns the model with other values of its θ features, `[R, 5]`.

  Raises:
    ValueError: if the model lacks one of them.
  """
  names = model.table.feature_names
  missing = [name for name in estimate.THETA if name not in names]
  if missing:
    raise ValueError(f"the table has no feature {missing[0]!r}")
  features = np.array(model.table.features)
  features[:, [names.index(name) for name in estimate.THETA]] = theta
  return models.with_features(model, features)


def _finished(
  store: Store,
  name: str,
  config: ThetaConfig,
  counts: np.ndarray,
  place: Place,
  shards: list[Shard],
) -> tuple[int, np.ndarray, list[dict[str, Any]]]:
  """Returns what an earlier run has done, the same for all processes.

  If the next iteration needs shards of the last one, and one of them is gone or
  was damaged, nothing is done: all begins anew.

  Args:
    store: what the first process has in it counts.
    name: what iterations are called in it.
    config: how many iterations there are.
    counts: before the first iteration, int64 `[R]`.
    place: which process this is.
    shards: that this process decodes.

  Returns:
    How many iterations are done, the counts of the last, and the records of
    all, in the first process; no records in the others.
  """
  first, history = counts, []
  for number in range(config.iterations if place.process == 0 else 0):
    done = store.get(f"{name}{number}")
    if done is None:
      break
    counts = np.asarray(done["counts"])
    history.append(done["record"])
  number = len(history)
  if place.processes > 1:
    told = np.append(counts, number)
    told = parallel.sum_over_processes(told if place.process == 0 else 0 * told)
    number, counts = int(told[-1]), told[:-1]
  lost = 0
  if config.leave_one_out == "counts" and 0 < number < config.iterations:
    last = [shard_store.entry(name, number - 1, shard) for shard in shards]
    lost = sum(store.get(entry) is None for entry in last)
  if place.processes > 1:
    lost = int(parallel.sum_over_processes(np.array([lost]))[0])
  return (0, first, []) if lost else (number, counts, history)


def _held(
  model, bitext, config, groups, counts, number, before
) -> HeldOut | None:
  """What leaving one out needs in an iteration.

  Own counts can be taken out of the θ they are in: of extraction's, of the
  iteration before, or of the epoch `before`. If training starts from another θ
  (a mixture, or smoothed), what its sentences gave to it is not known any more:
  then the first iteration forbids the rules that only the sentence has.
  """
  kind = config.leave_one_out
  if kind == "none":
    return None
  if bitext.provenance is None:
    raise ValueError("leaving one out needs provenance")
  known = number > 0 or before is not None or _extracted(model, groups)
  if kind == "counts" and not known:
    kind = "singletons"
  # Of extraction there is no smoothing; singletons are always its own.
  first = (number == 0 and before is None) or kind == "singletons"
  now = np.asarray(model.table.counts) if first else counts / COUNT_UNIT
  alpha = 0.0 if first else config.alpha
  return HeldOut(
    kind=kind,
    total=estimate.totals(now, groups, alpha=alpha),
    groups=groups,
    alpha=alpha,
    weights=leave_one_out.theta_weights(model.weights),
    one_word=(tables.arity(model.table) == 0)
    & (model.table.source.lengths == 1),
    alone=None if first else forced.own_rules(bitext.provenance),
  )


def _extracted(model: Model, groups: Groups) -> bool:
  """Whether a model's θ is the relative frequency of its rules' counts."""
  names = model.table.feature_names
  columns = [names.index(name) for name in estimate.THETA]
  theta = estimate.relative_frequency(np.asarray(model.table.counts), groups)
  return np.allclose(model.table.features[:, columns], theta, atol=1e-4)


def _own(work, shards, store, name, number: int, before) -> list[Shard]:
  """The shards with what their sentences gave to the counts in use."""
  if work.held is None:
    return shards
  if number == 0 and before is not None and work.held.kind == "counts":
    given = [counts_lib.select(before.own, shard.rows) for shard in shards]
  elif number == 0 or work.held.kind == "singletons":
    given = [
      counts_lib.from_provenance(work.bitext.provenance, shard.rows)
      for shard in shards
    ]
  else:
    given = [
      shard_store.load(store, shard_store.entry(name, number - 1, s)).made
      for s in shards
    ]
  return [
    dataclasses.replace(shard, own=own)
    for shard, own in zip(shards, given, strict=True)
  ]


def _map(
  function, shards, work, store, place, name: str, number: int
) -> Iterator[Counted]:
  """Yields what each shard gives, in order, from the store if it is there."""
  entries = [shard_store.entry(name, number, shard) for shard in shards]
  known = [store.get(entry) is not None for entry in entries]
  waiting = [s for s, there in zip(shards, known, strict=True) if not there]
  bound = functools.partial(function, work=work)
  if place.runner.kind != "ray":
    bound = functools.partial(
      bound,
      lm=automaton.to_device(work.model.lm),
      mesh=place.mesh,
      guard=shard_counting.Guard(),
    )
  with runner_lib.session(place.runner):
    made = runner_lib.map_shards(bound, waiting, runner=place.runner)
    for shard, entry, there in zip(shards, entries, known, strict=True):
      if not there:
        counted = next(made)
        shard_store.put(store, entry, counted)
        place.on_shard(len(shard.rows))
      else:
        counted = shard_store.load(store, entry)
      yield counted


def _forget(store, shards, config, name: str, number: int) -> None:
  """Drops what no later iteration can need."""
  kept = config.leave_one_out == "counts" and number + 1 < config.iterations
  for shard in shards:
    store.drop(shard_store.entry(name, number - 1, shard))
    if not kept:
      store.drop(shard_store.entry(name, number, shard))


def _reduce(counted, shards, work, place):
  """Sums counts `[R]`; lays out what is known of sentences, `[N, 6]`."""
  sums = np.zeros(len(work.model.table), np.int64)
  values = np.zeros((len(work.bitext), 6))
  for shard, one in zip(shards, counted, strict=True):
    counts_lib.add(sums, one.made)
    flags = np.stack([one.admissible, one.derived], axis=1)
    values[shard.rows] = np.concatenate([one.values, flags], axis=1)
  if place.processes > 1:
    sums = parallel.sum_over_processes(sums)
    # A sentence is zero bits in all processes but one: sums are exact.
    bits = parallel.sum_over_processes(values.reshape(-1).view(np.int64))
    values = bits.view(np.float64).reshape(values.shape)
  return sums, values


def describe(values: np.ndarray, sums: np.ndarray) -> dict[str, Any]:
  """Returns what people want to know of an iteration.

  "fallback_mass_share" is the share of all counts that comes from sentences
  without an admissible derivation.

  Args:
    values: for each sentence the columns of `Counted.values`, then whether it
      had an admissible derivation and any derivation at all, `[N, 6]`.
    sums: counts of the rules in units, int64 `[R]`.
  """
  admissible, derived = values[:, 4] > 0, values[:, 5] > 0
  mean = lambda column, rows: (
    round(float(np.mean(values[rows, column])), 6) if rows.any() else None
  )
  return {
    "sentences": len(values),
    "admissible": int(admissible.sum()),
    "fallbacks": int((~admissible).sum()),
    "without_derivation": int((~derived).sum()),
    "admissible_share": round(float(admissible.mean()), 6)
    if len(values)
    else 0.0,
    "fallback_mass_share": _share(values[:, 3], ~admissible),
    "searched_score": mean(0, derived),
    "model_score": mean(1, admissible),
    "augmented_score": mean(2, admissible),
    "rules_per_sentence": mean(3, np.ones(len(values), bool)),
    "rules_used": int(np.sum(sums > 0)),
  }


def _share(mass: np.ndarray, rows: np.ndarray) -> float:
  """The share of `mass` `[N]` that some rows have, bool `[N]`; 0 of nothing."""
  total = float(mass.sum())
  return round(float(mass[rows].sum()) / total, 6) if total else 0.0
