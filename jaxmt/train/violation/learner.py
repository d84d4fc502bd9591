"""The learner: epochs of minibatches of violation-fixing updates.

    learned = learner.learn(setting, config, store=store)
    learned.names, learned.values          # averaged weights of the best epoch

The state after some minibatches and after each epoch goes to a `Store`. A run
that was killed resumes there and ends with the same bits, whatever threads,
devices, processes or Ray workers it runs on.
"""

import dataclasses
import functools
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import decoding
from jaxmt.decode import model as models
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.decode.model import Model, Source
from jaxmt.features import feature_keys, rule_templates
from jaxmt.features.feature_keys import KeyedWeights
from jaxmt.runtime import parallel
from jaxmt.runtime import runner as runner_lib
from jaxmt.runtime.checkpoint import Store
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.train.training import Resources
from jaxmt.train.violation import (
  averaged_weights,
  development,
  differences,
  minibatch,
  partial_derivations,
  tallies,
)
from jaxmt.train.violation.averaged_weights import AveragedWeights
from jaxmt.train.violation.development import Development
from jaxmt.train.violation.forced_forests import ForcedText
from jaxmt.train.violation.learn_config import LearnConfig
from jaxmt.train.violation.minibatch import Contribution, Pack, UpdateWork
from jaxmt.train.violation.tallies import Tally


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearningSetting:
  """What to learn from.

  Attributes:
    model: rules and language model, with the templates of the config.
    source: N sentences.
    references: one or more lines for each.
    forced: their forced forests; not read for local updates.
    start: weights to start from; those of sparse features stay in use if the
      templates have them.
    search: sizes of the search.
    development: judges each epoch; None takes the last epoch.
    excluded: rules that each sentence must not use, N rising rows, or None.
  """

  model: Model
  source: Source
  references: Sequence[Sequence[str]]
  forced: ForcedText
  start: Mapping[str, float]
  search: SearchConfig
  development: Development | None = None
  excluded: Ragged | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnedWeights:
  """What came out.

  Attributes:
    names: of the features, dense ones first.
    values: averaged weights of the best epoch; no sparse one is 0.
    history: one record for each epoch.
  """

  names: tuple[str, ...]
  values: np.ndarray
  history: tuple[dict[str, Any], ...]

  @property
  def weights(self) -> dict[str, float]:
    """All weights by name."""
    return dict(zip(self.names, self.values.tolist(), strict=True))


@dataclasses.dataclass(kw_only=True)
class LearningProgress:
  """Where a run is.

  Attributes:
    weights: the learner.
    epoch: passes done.
    batch: minibatches of the present pass done.
    tally: what happened in them.
    history: records of passes done.
    names: of features that are not compiled, by key.
  """

  weights: AveragedWeights
  epoch: int = 0
  batch: int = 0
  tally: Tally = dataclasses.field(default_factory=tallies.empty)
  history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
  names: dict[int, str] = dataclasses.field(default_factory=dict)


def prepare_model(model: Model, config: LearnConfig) -> Model:
  """Returns the model with the sparse features of the settings."""
  templates = rule_templates.parse(config.templates)
  return models.with_templates(model, templates)


def usable_rows(setting: LearningSetting, config: LearnConfig) -> np.ndarray:
  """Returns the sentences to learn from, int64.

  Local updates need no derivation of the reference; all others do.
  """
  lengths = setting.source.ids.lengths
  fit = (lengths > 0) & (lengths <= config.max_words)
  if config.update != "local":
    fit &= setting.forced.reached
  return np.flatnonzero(fit)


def learn(
  setting: LearningSetting,
  config: LearnConfig,
  *,
  store: Store,
  resources: Resources | None = None,
  on_epoch: Callable[[dict[str, Any]], None] = lambda record: None,
) -> LearnedWeights:
  """Learns weights.

  Args:
    setting: what to learn from.
    config: how.
    store: keeps states; of several processes only the first writes there.
    resources: where to run.
    on_epoch: called with each epoch's record.
  """
  resources = resources or Resources()
  rows = usable_rows(setting, config)
  state = _restore(store, setting)
  for record in state.history:
    on_epoch(record)
  parameters = None
  if resources.runner.kind != "ray":
    parameters = decoding.search_parameters(
      setting.model, config=setting.search, mesh=resources.mesh
    )
  while state.epoch < config.epochs and not _finished(state.history, config):
    since = resources.clock() if resources.clock else 0.0
    resumed = state.batch > 0
    run_epoch(setting, config, rows, state, store, resources, parameters)
    seconds = resources.clock() - since if resources.clock else 0.0
    record = _record(setting, config, rows, state)
    if resources.clock and not resumed:
      record["seconds"] = round(seconds, 3)
      record["sentences_per_second"] = round(len(rows) / max(seconds, 1e-9), 2)
    record |= _judged(setting, config, state, store, resources)
    state.history.append(record)
    state.epoch, state.batch = state.epoch + 1, 0
    state.tally = tallies.empty()
    _save(store, state, resources)
    on_epoch(record)
  return _learned(setting, state, store)


def _finished(
  history: Sequence[Mapping[str, Any]], config: LearnConfig
) -> bool:
  """Whether scores have stopped rising."""
  if not config.patience or len(history) <= config.patience:
    return False
  scores = [record.get("bleu", 0.0) for record in history]
  return len(scores) - 1 - int(np.argmax(scores)) >= config.patience


def run_epoch(
  setting, config, rows, state, store, resources, parameters
) -> None:
  """Goes over all sentences once, or over the rest of them."""
  seed = np.random.SeedSequence([config.seed, state.epoch])
  order = np.random.default_rng(seed).permutation(rows)
  size = config.minibatch
  rate = 1.0 / (1.0 + config.decay * state.epoch)
  for number in range(state.batch, -(-len(order) // size)):
    some = order[number * size : (number + 1) * size]
    work = work_of(setting, config, state.weights.current)
    dense, whole = minibatch.total(
      contributions(setting, config, some, work, resources, parameters),
      len(some),
    )
    averaged_weights.step(
      state.weights,
      dense=rate * config.dense_rate * dense,
      keys=whole.keys,
      values=rate * config.rate * whole.values,
      witness=whole.witness,
    )
    state.names |= whole.names
    state.tally = tallies.add(state.tally, whole.stats)
    state.batch = number + 1
    resources.on_shard(len(some))
    if config.checkpoint and state.batch % config.checkpoint == 0:
      _save(store, state, resources)


def work_of(
  setting: LearningSetting, config: LearnConfig, weights: KeyedWeights
) -> UpdateWork:
  """Returns the model and the text under some weights."""
  model = models.with_weights(setting.model, weights)
  return UpdateWork(
    model=model,
    source=models.rescore_source(model, setting.source),
    config=config,
    search=setting.search,
  )


def make_pack(
  setting: LearningSetting, config: LearnConfig, rows: np.ndarray
) -> Pack:
  """Returns some sentences with what updates need of them."""
  local = config.update == "local"
  none = np.zeros(0, np.int64)
  return Pack(
    rows=rows,
    good=partial_derivations.take(
      setting.forced.partials, none if local else rows
    ),
    references=tuple(
      tuple(setting.references[row]) for row in (rows.tolist() if local else ())
    ),
    excluded=None
    if setting.excluded is None
    else ragged.select(setting.excluded, rows),
  )


def contributions(
  setting, config, rows, work: UpdateWork, resources: Resources, parameters
) -> list[Contribution]:
  """Returns the contributions of a minibatch's packs, of all processes.

  Args:
    setting: what to learn from.
    config: how.
    rows: the sentences of the minibatch, int64.
    work: the weights before it, see `work_of`.
    resources: where to run.
    parameters: of `decoding.search_parameters`, or None.
  """
  packs = minibatch.pack_rows(
    setting.source.ids.lengths,
    rows,
    span=setting.model.limits.span,
    cells=config.batch_cells - setting.search.tile - 1,
  )
  width = 1 if resources.mesh is None else resources.mesh.size
  mine = packs[resources.process :: resources.processes]
  groups = [mine[first : first + width] for first in range(0, len(mine), width)]
  items = (
    [make_pack(setting, config, one) for one in group] for group in groups
  )
  run = functools.partial(minibatch.contribute, work=work)
  if resources.runner.kind != "ray":
    run = functools.partial(run, parameters=parameters, mesh=resources.mesh)
  results = runner_lib.map_shards(run, items, runner=resources.runner)
  contributions = [one for group in results for one in group]
  return exchange(contributions, resources)


def exchange(
  contributions: list[Contribution], resources: Resources
) -> list[Contribution]:
  """Returns the contributions of all processes, in the order of processes."""
  if resources.processes == 1:
    return contributions
  sent = np.frombuffer(_to_bytes(contributions), np.uint8)
  sent = np.pad(sent, (0, -len(sent) % 8)).view(np.int64)
  sizes = np.zeros(resources.processes, np.int64)
  sizes[resources.process] = len(sent)
  ends = np.cumsum(parallel.sum_over_processes(sizes))
  # Everyone writes to a place of its own; zeros elsewhere leave it as it is.
  everything = np.zeros(int(ends[-1]), np.int64)
  begin = int(ends[resources.process]) - len(sent)
  everything[begin : begin + len(sent)] = sent
  everything = parallel.sum_over_processes(everything)
  parts = np.split(everything, ends[:-1])
  return [one for part in parts for one in _from_bytes(part.tobytes())]


def _to_bytes(contributions: Sequence[Contribution]) -> bytes:
  arrays = {"count": np.array([len(contributions)])}
  for number, one in enumerate(contributions):
    for field in dataclasses.fields(one):
      value = getattr(one, field.name)
      if field.name == "names":
        text = json.dumps(list(value.items())).encode()
        value = np.frombuffer(text, np.uint8)
      arrays[f"{field.name}{number}"] = value
  stream = io.BytesIO()
  np.savez(stream, **arrays)
  return stream.getvalue()


def _from_bytes(data: bytes) -> list[Contribution]:
  with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
    out = []
    for number in range(int(arrays["count"][0])):
      values: dict[str, Any] = {
        field.name: arrays[f"{field.name}{number}"]
        for field in dataclasses.fields(Contribution)
      }
      pairs = json.loads(values["names"].tobytes())
      values["names"] = {int(key): name for key, name in pairs}
      out.append(Contribution(**values))
    return out


def _record(setting, config, rows, state: LearningProgress) -> dict[str, Any]:
  """What an epoch came to."""
  return {
    "epoch": state.epoch + 1,
    "update": config.update,
    "sentences": len(rows),
    "left_out": len(setting.source) - len(rows),
    **tallies.describe(state.tally),
    "features": state.weights.count,
    "nonzero": state.weights.nonzero,
  }


def _judged(setting, config, state, store, resources) -> dict[str, Any]:
  """Scores the averaged weights; stores them if they are the best so far."""
  average = state.weights.average()
  if setting.development is None:
    _put_best(store, state, average, resources)
    return {}
  numbers = np.zeros(5)
  if resources.process == 0:
    judged, share, average = _best_share(setting, config, average)
    numbers[:] = *dataclasses.astuple(judged), share
  if resources.processes > 1:
    bits = parallel.sum_over_processes(numbers.view(np.int64))
    numbers = bits.view(np.float64)
  earlier = [record["bleu"] for record in state.history]
  if numbers[0] > max(earlier, default=-1.0):
    _put_best(store, state, average, resources)
  names = [field.name for field in dataclasses.fields(development.Judgement)]
  return dict(zip((*names, "share"), numbers.tolist(), strict=True))


def _best_share(setting, config, average: KeyedWeights):
  """The best weights on the way to `average`: judgement, share, weights."""
  found = []
  for share in config.shares:
    weights = averaged_weights.between(setting.start, average, share)
    judged, weights = development.judge(
      setting.development,
      weights,
      length_search=config.length_search,
      length_ratio=config.length_ratio,
    )
    found.append((judged, share, weights))
  return max(found, key=lambda one: one[0].bleu)


def _put_best(store, state, average: KeyedWeights, resources) -> None:
  """Stores averaged weights, sparse ones with their witnesses."""
  if resources.process:
    return
  slots = np.flatnonzero(average.table.values)
  order = slots[np.argsort(state.weights.place[slots])]
  store.put(
    "best",
    {
      "named": dict(average.named),
      "keys": average.table.keys[order],
      "values": average.table.values[order],
      "witness": state.weights.witness[state.weights.place[order]],
    },
  )


def _save(store: Store, state: LearningProgress, resources: Resources) -> None:
  if resources.process:
    return
  store.put(
    "state",
    {
      **averaged_weights.to_values(state.weights),
      "epoch": state.epoch,
      "batch": state.batch,
      "tally": np.array(state.tally),
      "history": state.history,
      "extra_names": [[str(key), name] for key, name in state.names.items()],
    },
  )


def _restore(store: Store, setting: LearningSetting) -> LearningProgress:
  values = store.get("state")
  if values is None:
    names = setting.model.feature_names
    weights = averaged_weights.begin(setting.start, names)
    known = set(names)
    more = {
      name: value
      for name, value in setting.start.items()
      if value and name not in known
    }
    keys = feature_keys.keys_of(tuple(more))
    averaged_weights.put(weights, keys, np.array([*more.values()]))
    extra = dict(zip(keys.tolist(), more, strict=True))
    return LearningProgress(weights=weights, names=extra)
  return LearningProgress(
    weights=averaged_weights.from_values(values),
    epoch=int(values["epoch"]),
    batch=int(values["batch"]),
    tally=np.array(values["tally"]),
    history=list(values["history"]),
    names={int(key): name for key, name in values["extra_names"]},
  )


def _learned(
  setting: LearningSetting, state: LearningProgress, store: Store
) -> LearnedWeights:
  """Spells the features of the best weights."""
  best = store.get("best")
  if best is None:
    raise ValueError("nothing was learned")
  keys, witness = np.asarray(best["keys"]), np.asarray(best["witness"])
  compiled = witness[:, 4] >= 0
  names = np.empty(len(keys), object)
  names[compiled] = differences.spell(
    setting.model, setting.source, witness[compiled]
  )
  names[~compiled] = [state.names[key] for key in keys[~compiled].tolist()]
  return LearnedWeights(
    names=(*best["named"], *names.tolist()),
    values=np.concatenate(
      [[*best["named"].values()], np.asarray(best["values"])]
    ),
    history=tuple(state.history),
  )
