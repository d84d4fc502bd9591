"""Asynchronous online learning: shards that never wait for one another.

Survey, section 7.1.2, Fig 12 and Eq 76-77. Each shard goes through its own
sentences in batches. After a batch it sends what the batch has changed,
w_new - w_old, to all other shards; before a batch it adds what has arrived. (Eq
77 as printed would replace weights by the sum of the messages; every message
is added, once.)

How long a message takes is drawn from the seed, 1 to `delay` batches, instead
of being left to the machine: so a run can be repeated, and what delays do to
learning can be measured. At the end of a round everything arrives, and all
shards have the same weights.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists, take_sentences
from jaxmt.tune import learning
from jaxmt.tune.learning import Chooser, Learner
from jaxmt.tune.pool import split_sparse


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixingSetting:
  """Who learns what.

  Attributes:
    passes: of the learner, see `methods.Method`.
    config: of the learner, with one pass.
    shards: S; sentence s, s + S, ... belong to shard s.
    rounds: passes of each shard over its sentences.
    batch: sentences between two messages.
    delay: most batches that a message takes.
  """

  passes: Callable[
    [CandidateLists, Learner, Any, int], Iterator[tuple[Learner, dict]]
  ]
  config: Any
  shards: int
  rounds: int
  batch: int
  delay: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Message:
  """What a batch has changed, `[D + F]`, and when it arrives.

  Attributes:
    change: `[D + F]`.
    arrival: the step before which each shard adds it, -1 once it has, `[S]`.
  """

  change: np.ndarray
  arrival: np.ndarray


def optimise(
  pool: CandidateLists,
  weights: np.ndarray,
  setting: MixingSetting,
  seed: int,
  *,
  metric: str,
  mean: bool = False,
  explore: bool = False,
) -> tuple[np.ndarray, list[dict]]:
  """Learns on shards that exchange their updates as they go.

  Args:
    pool: N candidates of B sentences.
    weights: where to start, `[D + F]`.
    setting: see `MixingSetting`.
    seed: of orders and delays.
    metric: what weights are chosen by.
    mean: offer the mean of all shards' weights after all batches so far, not
      the weights that all have after a round.
    explore: see `Chooser`.

  Returns:
    See `methods.Method`.
  """
  pool, place = split_sparse(pool)
  start = np.array(weights, np.float64)[place]
  shards = max(1, min(setting.shards, pool.sentences))
  learners = [learning.Learner(weights=start) for _ in range(shards)]
  rng = np.random.default_rng(seed)
  chooser = Chooser(pool, start, metric, explore=explore)
  total, count = np.zeros(len(start)), 0
  for number in range(setting.rounds):
    added, batches = _round(pool, learners, setting, rng)
    total, count = total + added, count + batches
    chooser.offer(
      total / max(count, 1) if mean else learners[0].weights.copy(),
      {"round": number, "shards": shards},
    )
  best = np.zeros(len(weights))
  best[place] = chooser.best
  return best, chooser.history


def _round(
  pool, learners: list[Learner], setting: MixingSetting, rng
) -> tuple[np.ndarray, int]:
  """Lets every shard go through its sentences once; changes the learners.

  Returns:
    The sum of the shards' weights after each batch, and the number of batches.
  """
  shards = len(learners)
  batches = [
    _batches(np.arange(s, pool.sentences, shards), setting.batch, rng)
    for s in range(shards)
  ]
  sent: list[list[_Message]] = [[] for _ in learners]
  total, count = np.zeros(len(learners[0].weights)), 0
  for step in range(max(map(len, batches))):
    for shard, learner in enumerate(learners):
      if step >= len(batches[shard]):
        continue
      _receive(learner, sent, shard, step)
      before = learner.weights.copy()
      some = take_sentences(pool, batches[shard][step])
      part_seed = int(rng.integers(1 << 31))
      for _ in setting.passes(some, learner, setting.config, part_seed):
        pass  # the pass changes the learner
      total += learner.weights
      count += 1
      arrival = step + rng.integers(1, setting.delay + 1, shards)
      change = learner.weights - before
      sent[shard].append(_Message(change=change, arrival=arrival))
  last = np.iinfo(np.int64).max
  for shard, learner in enumerate(learners):
    _receive(learner, sent, shard, last)
  # The same sums in another order: equal but for rounding, and now equal.
  for learner in learners[1:]:
    learner.weights[:] = learners[0].weights
  return total, count


def _receive(learner: Learner, sent, shard: int, step: int) -> None:
  """Adds the messages of others that have arrived before a step."""
  for other, messages in enumerate(sent):
    for message in messages:
      if other != shard and 0 <= message.arrival[shard] <= step:
        learner.weights += message.change
        message.arrival[shard] = -1


def _batches(rows: np.ndarray, size: int, rng) -> list[np.ndarray]:
  """Rows in a random order, cut into batches; each batch rises."""
  order = rng.permutation(rows)
  return [np.sort(order[k : k + size]) for k in range(0, len(order), size)]
