"""LearnTheta, figure 5: decode the training text, count, estimate, repeat.

    learned = learn_theta.learn(model, bitext, config, method=method)
    learned.theta                      # ln P, [R, 5]

Iteration i decodes every sentence with θ(i), selects derivations, sums the
rules' counts over all shards, and estimates θ(i + 1) from them by add-alpha
relative frequency over the same rules: an unused rule keeps alpha. There is no
guarantee of convergence, so each iteration's scores are reported.

Every finished shard and iteration goes to a `Store`; a run that was killed
resumes after the last one, and results are bitwise identical. Of several
processes each decodes and stores shards of its own. The first one's store says
where to resume, so that all take part in the same sums. To resume with another
number of processes, they need one store on a disk that all of them see.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.forced import forced
from jaxmt.decode.model import Model
from jaxmt.grammar import estimate
from jaxmt.grammar import table as tables
from jaxmt.grammar.estimate import Groups
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.runtime import parallel
from jaxmt.runtime import runner as runner_lib
from jaxmt.train import (
  beam_diagnosis,
  leave_one_out,
  shard_counting,
  shard_store,
)
from jaxmt.train import counts as counts_lib
from jaxmt.train.counts import Contributions
from jaxmt.train.leave_one_out import HeldOut
from jaxmt.train.shard_counting import (
  COLUMNS,
  Counted,
  CountingWork,
  Shard,
  TrainingBitext,
)
from jaxmt.train.shard_store import MemoryStore
from jaxmt.train.theta_config import OWN_COUNTS, ThetaConfig
from jaxmt.train.theta_features import scaled, theta_of, with_theta
from jaxmt.train.theta_method import ThetaMethod
from jaxmt.train.training import (
  Learned,
  PreviousEpoch,
  Resources,
  RunOptions,
  Training,
)


def learn(
  model: Model,
  bitext: TrainingBitext,
  config: ThetaConfig,
  *,
  method: ThetaMethod,
  options: RunOptions | None = None,
  previous: PreviousEpoch | None = None,
  mix: Callable[[np.ndarray], np.ndarray] = lambda theta: theta,
  name: str = "iteration",
) -> Learned:
  """Learns θ in `config.iterations` iterations.

  Args:
    model: rules with θ(0) among their features, and tuned weights.
    bitext: the training text.
    config: see `ThetaConfig`.
    method: how shards are searched, selected from and counted.
    options: how to run.
    previous: what the model's θ was estimated from, if not from extraction.
    mix: changes each new θ before it is used.
    name: prefix of the iterations' names in the store.
  """
  config = method.resolve(config)
  training = _prepare(
    model, bitext, config, method, options or RunOptions(), previous, mix, name
  )
  start, counts, history = _finished(training)
  for record in history:
    training.options.on_iteration(record)
  theta = own = None
  if start:
    own = _stored_own(training, start)
    _drop_shards(training, start - 1)
    theta = training.theta(counts)
  for number in range(start, config.iterations):
    counts, record = _iteration(training, number, counts, theta)
    theta = training.theta(counts)
    if training.resources.process == 0:
      record |= training.options.evaluate(theta)
      own = _store_iteration(training, number, counts, record)
    # A run that is killed here resumes from the shards until process 0 has
    # written the iteration: all wait for that before they drop them.
    _wait(training.resources)
    _drop_shards(training, number)
    history.append(record)
    training.options.on_iteration(record)
  _wait(training.resources)  # the caller may remove the store afterwards
  if theta is None:
    theta = theta_of(counts, training.groups, config)
  return Learned(
    theta=theta.astype(np.float32),
    counts=counts,
    history=tuple(history),
    own=own,
  )


def _prepare(
  model, bitext, config, method, options, previous, mix, name
) -> Training:
  """Scales the weights, scores the text with them, and cuts it into shards."""
  groups = options.groups or estimate.group_rules(model.table)
  model = scaled(model, config.scale)
  source = models.rescore_source(model, bitext.source)
  bitext = dataclasses.replace(bitext, source=source)
  search = options.search or shard_counting.search_config(config)
  shards = shard_counting.make_shards(
    bitext.source.ids.lengths,
    span=model.limits.span,
    cells=config.batch_cells - search.tile - 1,  # what a chart has besides
    size=config.shard,
    diagnose=config.diagnose,
  )
  resources = options.resources
  return Training(
    model=model,
    bitext=bitext,
    config=config,
    method=method,
    groups=groups,
    search=search,
    shards=shards,
    mine=shards[resources.process :: resources.processes],
    store=options.store or MemoryStore(),
    options=options,
    previous=previous,
    mix=mix,
    name=name,
  )


def _iteration(
  training: Training,
  number: int,
  counts: np.ndarray,
  theta: np.ndarray | None,
) -> tuple[np.ndarray, dict[str, Any]]:
  """Decodes, selects and counts; returns the new counts and the record."""
  model, resources = training.model, training.resources
  work = CountingWork(
    model=model if theta is None else with_theta(model, theta),
    bitext=training.bitext,
    config=training.config,
    method=training.method,
    search=training.search,
    held=_held(training, counts, number),
    per_sentence=training.config.leave_one_out in OWN_COUNTS,
  )
  shards = _with_own(training, work, number)
  since = resources.clock() if resources.clock else 0.0
  resumed = any(
    training.store.get(training.entry(number, shard)) is not None
    for shard in training.mine
  )
  counted = _count_shards(training, shards, work, number)
  counts, values = _reduce(counted, training.mine, work, resources)
  record = {"iteration": number, **describe(values, counts)}
  record["left_out"] = work.held.kind if work.held else "none"
  # The time of an iteration that found some of its shards says nothing.
  if resources.clock and not resumed:
    seconds = resources.clock() - since
    record["seconds"] = round(seconds, 3)
    record["sentences_per_second"] = round(len(training.bitext) / seconds, 3)
  return counts, record


def _store_iteration(
  training: Training, number: int, counts: np.ndarray, record: dict[str, Any]
) -> Contributions | None:
  """Stores a finished iteration, in process 0, which has seen every shard.

  Returns:
    What each sentence gave, if it is the last iteration and is asked for.
  """
  own = None
  if training.options.keep_own and number + 1 == training.config.iterations:
    own = shard_store.collect(
      training.store, training.name, number, training.shards
    )
  values: dict[str, Any] = {"counts": counts, "record": record}
  values |= {} if own is None else shard_store.own_values(own)
  training.store.put(f"{training.name}{number}", values)
  return own


def _stored_own(training: Training, finished: int) -> Contributions | None:
  """Returns what each sentence gave, if all iterations are finished."""
  if not training.options.keep_own or training.resources.process:
    return None
  if finished < training.config.iterations:
    return None
  last = training.store.get(f"{training.name}{finished - 1}") or {}
  return shard_store.own_of(last) if "rules" in last else None


def _wait(resources: Resources) -> None:
  """Waits for all processes."""
  if resources.processes > 1:
    parallel.sum_over_processes(np.zeros(1, np.int64))


def _finished(
  training: Training,
) -> tuple[int, np.ndarray, list[dict[str, Any]]]:
  """Returns what an earlier run has done, the same for all processes.

  If the next iteration needs shards of the last one, and one of them is missing
  or damaged, training starts from the beginning.

  Returns:
    How many iterations are done, the counts of the last, and the records of
    all, in the first process; no records in the others.
  """
  config, resources, store = training.config, training.resources, training.store
  first = np.asarray(training.model.table.counts) * COUNT_UNIT
  first = np.rint(first).astype(np.int64)
  if training.previous is not None:
    first = training.previous.counts
  counts, history = first, []
  # Process 0 reads the iterations that are stored, in order.
  for number in range(config.iterations if resources.process == 0 else 0):
    done = store.get(f"{training.name}{number}")
    if done is None:
      break
    counts = np.asarray(done["counts"])
    history.append(done["record"])
  number = len(history)
  # It tells the others how far they are.
  if resources.processes > 1:
    state = np.append(counts, number)
    mine = state if resources.process == 0 else 0 * state
    state = parallel.sum_over_processes(mine)
    number, counts = int(state[-1]), state[:-1]
  # Every process looks for the shards it needs of the last iteration.
  missing = 0
  if config.leave_one_out in OWN_COUNTS and 0 < number < config.iterations:
    last = [training.entry(number - 1, shard) for shard in training.mine]
    missing = sum(store.get(entry) is None for entry in last)
  if resources.processes > 1:
    missing = int(parallel.sum_over_processes(np.array([missing]))[0])
  return (0, first, []) if missing else (number, counts, history)


def _held(
  training: Training, counts: np.ndarray, number: int
) -> HeldOut | None:
  """Returns what leaving one out needs in an iteration.

  Own counts can be taken out of the θ they are in: of extraction's, of the
  iteration before, or of the epoch before. If training starts from another θ
  (a mixture, or smoothed), nobody knows what its sentences gave to it. Then the
  first iteration forbids the rules that only the sentence has.
  """
  model, groups, previous = training.model, training.groups, training.previous
  kind = training.config.leave_one_out
  if kind == "none":
    return None
  if training.bitext.provenance is None:
    raise ValueError("leaving one out needs provenance")
  known = number > 0 or previous is not None or _extracted(model, groups)
  if kind in OWN_COUNTS and not known:
    kind = "singletons"
  # Of extraction there is no smoothing; singletons are always its own.
  first = (number == 0 and previous is None) or kind == "singletons"
  now = np.asarray(model.table.counts) if first else counts / COUNT_UNIT
  alpha = 0.0 if first else training.config.alpha
  return HeldOut(
    kind=kind,
    total=estimate.totals(now, groups, alpha=alpha),
    groups=groups,
    alpha=alpha,
    weights=leave_one_out.theta_weights(model.weights),
    one_word=(tables.arity(model.table) == 0)
    & (model.table.source.lengths == 1),
    words=leave_one_out.rule_words(model.table),
    alone=None if first else forced.own_rules(training.bitext.provenance),
  )


def _extracted(model: Model, groups: Groups) -> bool:
  """Whether a model's θ is the relative frequency of its rules' counts."""
  own = estimate.theta_names(model.table)
  columns = [estimate.THETA.index(name) for name in own]
  theta = estimate.relative_frequency(np.asarray(model.table.counts), groups)
  now = estimate.theta_values(model.table)
  return np.allclose(now[:, columns], theta[:, columns], atol=1e-4)


def _with_own(
  training: Training, work: CountingWork, number: int
) -> list[Shard]:
  """Returns the shards with what their sentences gave to the counts in use."""
  provenance, previous = work.bitext.provenance, training.previous
  if work.held is None or provenance is None:
    return training.mine
  if number == 0 and previous is not None and work.held.kind in OWN_COUNTS:
    contributions = [
      counts_lib.select(previous.own, s.rows) for s in training.mine
    ]
  elif number == 0 or work.held.kind == "singletons":
    contributions = [
      counts_lib.from_provenance(provenance, shard.rows)
      for shard in training.mine
    ]
  else:
    entries = [training.entry(number - 1, shard) for shard in training.mine]
    contributions = [
      shard_store.load(training.store, entry).made for entry in entries
    ]
  return [
    dataclasses.replace(shard, own=own_counts)
    for shard, own_counts in zip(training.mine, contributions, strict=True)
  ]


def _count_shards(
  training: Training, shards: list[Shard], work: CountingWork, number: int
) -> Iterator[Counted]:
  """Yields the counts of each shard in order, from the store if it has them."""
  store, resources = training.store, training.resources
  entries = [training.entry(number, shard) for shard in shards]
  stored = [store.get(entry) is not None for entry in entries]
  waiting = [s for s, done in zip(shards, stored, strict=True) if not done]
  count = functools.partial(training.method.count, work=work)
  if resources.runner.kind != "ray":
    count = functools.partial(
      count,
      parameters=shard_counting.search_parameters(work),
      mesh=resources.mesh,
    )
  with runner_lib.session(resources.runner):
    results = runner_lib.map_shards(count, waiting, runner=resources.runner)
    for shard, entry, done in zip(shards, entries, stored, strict=True):
      if done:
        counted = shard_store.load(store, entry)
      else:
        counted = next(results)
        shard_store.put(store, entry, counted)
        resources.on_shard(len(shard.rows))
      yield counted


def _drop_shards(training: Training, number: int) -> None:
  """Drops the shards that no later iteration needs."""
  config, store = training.config, training.store
  last = number + 1 == config.iterations
  needed = config.leave_one_out in OWN_COUNTS and not last
  for shard in training.mine:
    store.drop(training.entry(number - 1, shard))
    if not needed:
      store.drop(training.entry(number, shard))


def _reduce(counted, shards, work: CountingWork, resources: Resources):
  """Sums counts `[R]`; collects the values of all sentences, `[N, V + 2]`."""
  sums = np.zeros(len(work.model.table), np.int64)
  values = np.zeros((len(work.bitext), len(COLUMNS) + 2))
  for shard, one in zip(shards, counted, strict=True):
    counts_lib.add(sums, one.made)
    flags = np.stack([one.admissible, one.derived], axis=1)
    values[shard.rows] = np.concatenate([one.values, flags], axis=1)
  if resources.processes > 1:
    sums = parallel.sum_over_processes(sums)
    # A sentence is zero bits in all processes but one: sums are exact.
    bits = parallel.sum_over_processes(values.reshape(-1).view(np.int64))
    values = bits.view(np.float64).reshape(values.shape)
  return sums, values


def describe(values: np.ndarray, sums: np.ndarray) -> dict[str, Any]:
  """Returns the record of an iteration.

  "fallback_mass_share" is the share of all counts that comes from sentences
  without an admissible derivation.

  Args:
    values: for each sentence the columns of `Counted.values`, then whether it
      had an admissible derivation and any derivation at all, `[N, V + 2]`.
    sums: counts of the rules in units, int64 `[R]`.
  """
  admissible, derived = values[:, -2] > 0, values[:, -1] > 0
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
    **beam_diagnosis.record(lambda name: values[:, COLUMNS.index(name)]),
  }


def _share(mass: np.ndarray, rows: np.ndarray) -> float:
  """Returns the share of `mass` `[N]` in some rows, bool `[N]`; 0 of none."""
  total = float(mass.sum())
  return round(float(mass[rows].sum()) / total, 6) if total else 0.0
