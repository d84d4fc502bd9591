"""The outer loop: decode, merge, optimise, and judge by decoding again.

Survey, Fig 3 (batch) and Fig 8 (online); Gimpel (2012), Algorithm 1. The
decoder is a function, so the loop serves any: it gets weights and sentence
numbers and returns candidates, the best of each sentence first.

Weights are judged by what the decoder makes of them, never by re-ranking the
pool, and the best-judged ones are returned. `save` keeps the state of a round,
and a run stopped at any round continues from it (`restore`), with the same
result.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import candidate_lists
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.features import sparse
from jaxmt.metrics import encoded_text, named_metrics
from jaxmt.metrics.base import Metric
from jaxmt.runtime.checkpoint import Store
from jaxmt.tune import methods
from jaxmt.tune.learning import LearnerMemory
from jaxmt.tune.methods import Method
from jaxmt.tune.pool import find_metric, make_pool, pool_score

Weights = Mapping[str, float]
# (weights, numbers of n sentences) -> n lists in that order, best first.
Decode = Callable[[Weights, np.ndarray], CandidateLists]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoopConfig:
  """How long to go on, and what to keep.

  Attributes:
    metric: what the decoder's 1-best is judged by.
    rounds: T; there are T optimisations and T + 1 decodings.
    merge: whether candidates of earlier rounds stay in the pool.
    batch_size: 0 decodes all sentences, then optimises; otherwise each round
      goes through the sentences in random batches of this size, updating after
      each on its candidates alone (online learning). Online learners carry
      what they know from batch to batch and round to round; their current
      weights decode the next batch, their averaged ones are judged. Other
      methods optimise each batch, starting from the last one's result.
    batch_passes: of an online learner over a batch.
    min_change: stop when no weight moves by more, relative to the largest.
    patience: stop after N rounds without a better score; 0: never.
    held_out: N: every N-th sentence is not learnt from, and weights are judged
      on these alone; 0: they are judged on all sentences, and learnt from all.
  """

  metric: str = "bleu"
  rounds: int = 10
  merge: bool = True
  batch_size: int = 0
  batch_passes: int = 1
  min_change: float = 1e-6
  patience: int = 0
  held_out: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stages:
  """Lists of partial translations after those of B sentences.

  Attributes:
    sentence: the sentence of list B + g, int64 `[G]`.
    share: of its source words that are translated, `[G]`: its reference counts
      with this share of its length.
  """

  sentence: np.ndarray
  share: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoopState:
  """Everything a later round depends on.

  Attributes:
    round: decodings done.
    weights: for the next decoding of all sentences.
    initial: those before the first round, which regularisers pull to.
    best_weights: those of the best score so far.
    best_score: of the decoder's output, higher is better in any metric.
    candidates: the merged pool, or None.
    history: one record per round.
    finished: whether a stop rule has fired.
    memory: what an online learner carries on, or None.
  """

  round: int
  weights: dict[str, float]
  initial: dict[str, float]
  best_weights: dict[str, float]
  best_score: float
  candidates: CandidateLists | None
  history: tuple[dict[str, Any], ...]
  finished: bool = False
  memory: LearnerMemory | None = None


def begin(weights: Weights) -> LoopState:
  """Returns the state before the first decoding."""
  return LoopState(
    round=0,
    weights=dict(weights),
    initial=dict(weights),
    best_weights=dict(weights),
    best_score=-np.inf,
    candidates=None,
    history=(),
  )


def run(
  decode: Decode,
  references: encoded_text.ReferenceLines,
  method: Method,
  state: LoopState,
  config: LoopConfig,
  seed: int,
  *,
  stages: Stages | None = None,
  on_round: Callable[[LoopState], None] = lambda state: None,
) -> LoopState:
  """Tunes weights with a decoder in the loop.

  Args:
    decode: see `Decode`.
    references: for each of B sentences its references.
    method: from `jaxmt.tune.methods`, configured for `config.metric`.
    state: `begin(weights)`, or the last state of an interrupted run.
    config: see `LoopConfig`.
    seed: each round's own seed comes from it and the round's number.
    stages: what the decoder's lists after the B sentences are; None: there are
      none.
    on_round: called with the state after each round, e.g. to save it.

  Returns:
    The last state; `best_weights` are the result.

  Raises:
    InputError: if stages are to be learned from online, or by another metric
      than BLEU; or if sentences are held out of stages or forests.
  """
  check_stages(config, stages is not None)
  check_held_out(config, method, stages is not None)
  method = methods.exploring(method)
  kind = find_metric(config.metric)
  setting = _Setting(
    decode=decode,
    references=references,
    method=method,
    optimise=methods.bound(method),
    passes=methods.online_passes(method),
    kind=kind,
    measure=encoded_text.make_measure(references, kind),
    config=config,
    seed=seed,
    stages=stages,
  )
  pool = state.candidates
  if pool is not None:  # of a resumed run
    measured = setting.measured(pool, np.arange(len(references)))
    state = dataclasses.replace(state, candidates=measured)
  while not state.finished:
    state = _one_round(setting, state)
    on_round(state)
  return state


def best_of(history: Sequence[Mapping[str, Any]], metric: str) -> float:
  """Returns the best score of all rounds: of error rates, the lowest."""
  pick = max if find_metric(metric).higher_is_better else min
  return pick(record["score"] for record in history)


def _round_seed(seed: int, number: int, part: int = 0) -> int:
  return int(np.random.SeedSequence([seed, number, part]).generate_state(1)[0])


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Setting:
  """What stays the same in all rounds.

  Attributes:
    decode: see `Decode`.
    references: for each of B sentences its references.
    method: what optimises.
    optimise: the method with its settings.
    passes: the same as an online learner, or None.
    kind: what weights are judged by.
    measure: statistics of translations against the references.
    config: see `LoopConfig`.
    seed: see `run`.
    stages: what lists after those of the sentences are, or None.
  """

  decode: Decode
  references: encoded_text.ReferenceLines
  method: Method
  optimise: Callable[..., Any]
  passes: Callable[..., Any] | None
  kind: Metric
  measure: encoded_text.Measure
  config: LoopConfig
  seed: int
  stages: Stages | None = None

  @property
  def judges(self) -> np.ndarray:
    """The sentences that weights are judged on, rising."""
    numbers = np.arange(len(self.references))
    every = self.config.held_out
    return numbers[numbers % every == every - 1] if every else numbers

  @property
  def learnt_from(self) -> np.ndarray:
    """The sentences that weights are learnt from, rising."""
    numbers = np.arange(len(self.references))
    return (
      np.setdiff1d(numbers, self.judges) if self.config.held_out else numbers
    )

  def judged(self, lists: CandidateLists) -> tuple[dict[str, Any], float]:
    """Scores the first candidate of each judging sentence: `(record, score)`.

    Those of stages are not among them.
    """
    judges = self.judges
    sentence, first = np.unique(lists.sentence, return_index=True)
    first = first[np.isin(sentence, judges)]
    empty = np.setdiff1d(judges, sentence)  # sentences without any
    total = lists.statistics[self.config.metric][first].sum(0, dtype=np.float64)
    total += self.measure([""] * len(empty), empty).sum(0, dtype=np.float64)
    value = float(self.kind.corpus_score(total))
    words = sum(len(lists.lines[row].split()) for row in first.tolist())
    expected = sum(
      len((self.references[row][0] or "").split()) for row in judges.tolist()
    )
    record: dict[str, Any] = {"score": value}
    record["length_ratio"] = words / max(1, expected)
    return record, value if self.kind.higher_is_better else -value

  def measured(
    self, lists: CandidateLists, numbers: np.ndarray
  ) -> CandidateLists:
    """Returns lists with statistics; their sentences have these numbers."""
    statistics = self._statistics(lists, numbers)
    forests = lists.forests
    if forests is not None:
      forests = forests.bind([self.references[n] for n in numbers.tolist()])
    return dataclasses.replace(
      lists,
      statistics={**lists.statistics, self.config.metric: statistics},
      forests=forests,
    )

  def _statistics(
    self, pool: CandidateLists, numbers: np.ndarray
  ) -> np.ndarray:
    """Statistics of all candidates, `[N, S]`."""
    if self.stages is None:
      return self.measure(pool.lines, numbers[pool.sentence])
    owner = np.concatenate([numbers, self.stages.sentence])[pool.sentence]
    share = np.concatenate([np.ones(len(numbers)), self.stages.share])
    statistics = np.array(self.measure(pool.lines, owner))
    # The last statistic of BLEU is the length of the reference.
    length = statistics[:, -1] * share[pool.sentence]
    statistics[:, -1] = np.rint(length).astype(statistics.dtype)
    return statistics


def check_stages(config: LoopConfig, staged: bool) -> None:
  """Raises InputError if lists of partial translations cannot be used."""
  if staged and (config.batch_size or config.metric not in named_metrics.BLEU):
    raise InputError(
      "stages need metric 'bleu' and lists of all sentences: no batch_size"
    )


def check_held_out(config: LoopConfig, method: Method, staged: bool) -> None:
  """Raises InputError if sentences cannot be held out."""
  if config.held_out == 1 or config.held_out < 0:
    raise InputError("held_out must be 0 or at least 2")
  on_forests = methods.forest_density(method) is not None
  if config.held_out and (staged or on_forests):
    raise InputError("held_out is for lists of whole sentences")


def _one_round(setting: _Setting, state: LoopState) -> LoopState:
  """Decodes, judges the weights, merges, and optimises."""
  config = setting.config
  # Decode, and judge the weights by the best candidates.
  everything = np.arange(len(setting.references))
  lists = setting.decode(state.weights, everything)
  lists = setting.measured(lists, everything)
  record, score = setting.judged(lists)
  best_weights, best_score = state.best_weights, state.best_score
  improved = score > best_score
  if improved:
    best_weights, best_score = dict(state.weights), score
  if config.held_out:
    learnt = np.isin(lists.sentence, setting.learnt_from)
    lists = candidate_lists.take(lists, np.flatnonzero(learnt))
  # Merge the candidates with those of earlier rounds.
  pool, known = _pooled(state.candidates, lists, config)
  record |= {"round": state.round, "pool": len(pool), "new": len(pool) - known}
  record["features"] = len(pool.names)
  record["nonzero"] = sum(value != 0 for value in state.weights.values())
  record["weights"] = dense_weights(state.weights)
  idle = 0 if improved else 1 + _idle(state.history)
  record["idle"] = idle
  enough = config.patience > 0 and idle >= config.patience
  stuck = config.merge and config.batch_size == 0 and len(pool) == known
  # Optimise, unless this was the last round.
  weights, memory = state.weights, state.memory
  finished = state.round >= config.rounds or enough or stuck
  if not finished:
    if config.batch_size:
      memory = _online(setting, state)
      weights = memory.average
    else:
      round_seed = _round_seed(setting.seed, state.round)
      weights, details = _optimised(
        setting, pool, weights, state.initial, round_seed
      )
      record |= details
    record["change"] = _change(state.weights, weights)
    finished = record["change"] <= config.min_change
  keep = config.merge and config.batch_size == 0
  return LoopState(
    round=state.round + 1,
    weights=weights,
    initial=state.initial,
    best_weights=best_weights,
    best_score=best_score,
    candidates=pool if keep else None,
    history=(*state.history, record),
    finished=finished,
    memory=memory,
  )


def dense_weights(weights: Mapping[str, float]) -> dict[str, float]:
  """Returns the weights of dense features, rounded for records.

  Names of sparse features have a colon; there may be millions of them.
  """
  return {
    name: round(float(value), 6)
    for name, value in weights.items()
    if ":" not in name
  }


def _idle(history) -> int:
  return history[-1]["idle"] if history else 0


def _pooled(earlier, lists, config):
  """The pool of this round and how many of it were known before."""
  if earlier is None or not config.merge:
    pool, known = make_pool(lists), 0
  else:
    known = len(earlier)  # a pool's candidates, so without duplicates
    pool = make_pool(candidate_lists.concatenate([earlier, lists]))
    # Forests are those of this round; earlier rounds stay as candidates.
    pool = dataclasses.replace(pool, forests=lists.forests)
  return pool, known


def _optimised(setting, pool, weights, initial, seed):
  """New weights and what to note about them."""
  start = candidate_lists.to_vector(weights, pool.names)
  centre = candidate_lists.to_vector(initial, pool.names)
  more = {"centre": centre} if setting.method.centred else {}
  tuned, history = setting.optimise(pool, start, seed=seed, **more)
  metric = setting.method.config.metric
  details = {"pool_score": pool_score(pool, tuned, metric)}
  if history and "loss" in history[-1]:
    details["loss"] = history[-1]["loss"]
  result = dict(weights)
  result |= candidate_lists.from_vector(
    tuned, pool.names, keep=pool.dense.shape[1]
  )
  for name in pool.names:
    if name in weights and name not in result:
      result[name] = 0.0
  return result, details


def _online(setting, state) -> LearnerMemory:
  """Goes through all sentences once, in batches; what is known then."""
  config = setting.config
  rng = np.random.default_rng(_round_seed(setting.seed, state.round))
  order = rng.permutation(setting.learnt_from)
  memory = state.memory or LearnerMemory(weights=dict(state.weights))
  for part, low in enumerate(range(0, len(order), config.batch_size)):
    batch = np.sort(order[low : low + config.batch_size])
    lists = setting.decode(memory.weights, batch)
    pool = setting.measured(make_pool(lists), batch)
    part_seed = _round_seed(setting.seed, state.round, part + 1)
    memory = _learnt(setting, pool, memory, state.initial, part_seed)
  return memory


def _learnt(setting, pool, memory, initial, seed) -> LearnerMemory:
  """What is known after a batch."""
  method, passes = setting.method, setting.passes
  if passes is None:
    weights, _ = _optimised(setting, pool, memory.weights, initial, seed)
    return LearnerMemory(weights=weights)
  settings = dataclasses.replace(
    method.config, passes=setting.config.batch_passes
  )
  learner = memory.recall(pool.names)
  learner.centre = candidate_lists.to_vector(initial, pool.names)
  for _ in passes(pool, learner, settings, seed):
    pass  # each pass changes the learner
  return memory.store(learner, pool.names)


def _change(before: Weights, after: Weights) -> float:
  """The largest move of a weight, relative to the largest weight."""
  names = sorted(set(before) | set(after))
  old = candidate_lists.to_vector(before, names)
  new = candidate_lists.to_vector(after, names)
  size = max(np.abs(old).max(initial=0.0), np.abs(new).max(initial=0.0))
  return float(np.abs(new - old).max(initial=0.0) / size) if size else 0.0


def to_arrays(state: LoopState) -> dict[str, np.ndarray]:
  """Returns the state as arrays, to be saved by the caller."""
  facts = {
    "round": state.round,
    "weights": state.weights,
    "initial": state.initial,
    "best_weights": state.best_weights,
    "best_score": state.best_score,
    "history": list(state.history),
    "finished": state.finished,
    "memory": state.memory and dataclasses.asdict(state.memory),
    "pool": state.candidates is not None,
  }
  arrays = {"facts": _packed(json.dumps(facts))}
  if state.candidates is not None:
    pool = state.candidates
    arrays |= {
      "sentence": pool.sentence,
      "lines": _packed("\n".join(pool.lines)),
      "names": _packed("\n".join(pool.names)),
      "ids": pool.features.ids,
      "values": pool.features.values,
      "offsets": pool.features.offsets,
    }
  return arrays


def _packed(string: str) -> np.ndarray:
  return np.frombuffer(string.encode("utf-8"), np.uint8)


def from_arrays(arrays: Mapping[str, np.ndarray]) -> LoopState:
  """Returns the state that `to_arrays` wrote."""
  facts = json.loads(arrays["facts"].tobytes())
  candidates = None
  if facts.pop("pool"):
    sentence = np.asarray(arrays["sentence"], np.int64)
    lines = arrays["lines"].tobytes().decode("utf-8").split("\n")
    names = arrays["names"].tobytes().decode("utf-8").split("\n")
    candidates = candidate_lists.from_rows(
      sentence,
      lines if len(sentence) else [],
      sparse.SparseRows(
        ids=np.asarray(arrays["ids"], np.int32),
        values=np.asarray(arrays["values"], np.float64),
        offsets=np.asarray(arrays["offsets"], np.int64),
      ),
      names if names != [""] else (),
    )
  facts["history"] = tuple(facts["history"])
  if facts["memory"] is not None:
    facts["memory"] = LearnerMemory(**facts["memory"])
  return LoopState(candidates=candidates, **facts)


def save(
  store: Store, state: LoopState, *, prefix: str, notes: Any = None
) -> None:
  """Keeps a state; the one before is forgotten only when this one is whole.

  Args:
    store: where to.
    state: after a round.
    prefix: tells several runs in one store apart.
    notes: JSON, kept beside it.
  """
  values = {**to_arrays(state), "notes": {"notes": notes}}
  store.put(f"{prefix}{state.round}", values)
  store.drop(f"{prefix}{state.round - 1}")


def restore(
  store: Store, *, prefix: str, rounds: int
) -> tuple[LoopState, Any] | None:
  """Returns the last state and its notes, or None if there is none.

  Args:
    store: see `save`.
    prefix: see `save`.
    rounds: T; a run has at most T + 1 states.
  """
  for number in range(rounds + 1, 0, -1):
    values = store.get(f"{prefix}{number}")
    if values is not None:
      return from_arrays(values), values["notes"]["notes"]
  return None
