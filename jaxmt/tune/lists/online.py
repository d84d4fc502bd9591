"""Averaged perceptron, also in batches, and AROW on k-best lists.

Survey, sections 6.2 and 6.4. Both pass over the sentences in a shuffled order
and return the best pass by pool score. Online, a batch is passed over once and
what was learnt is carried to the next (`jaxmt.tune.loop`).
"""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.metrics import bleu, named_metrics
from jaxmt.text.kernels import longest_row, njit
from jaxmt.tune import costs as costs_lib
from jaxmt.tune import learning, options
from jaxmt.tune.learning import Chooser, Learner


@dataclasses.dataclass(frozen=True, kw_only=True)
class PerceptronConfig:
  """How to update.

  Attributes:
    metric: whose sentence costs to use.
    costs: see `jaxmt.tune.costs`.
    passes: over the pool.
    rate: the step; with non-zero initial weights it matters.
    surrogate: what stands for the reference: "oracle", the candidate of least
      cost (Eq 29), "hope", the best of score - cost_scale * cost, or "ref", a
      candidate without any cost: sentences whose list has none are skipped.
    cost_scale: see `surrogate`.
    batch: sentences of an update, which is the mean of theirs (Eq 59).
    decay: above 0, costs are by decayed statistics; see `decayed_costs`.
    explore: never to return the start, see `Chooser`; for loops.
  """

  metric: str = "bleu"
  costs: str = "sentence"
  passes: int = 30
  rate: float = 0.01
  surrogate: str = "hope"
  cost_scale: float = 10.0
  batch: int = 1
  decay: float = 0.0
  explore: bool = False

  def __post_init__(self):
    costs_lib.check(self.costs, self.metric)
    options.one_of(self, surrogate=("oracle", "hope", "ref"))
    options.at_least(self, passes=1, batch=1)
    _check_decay(self)
    options.above(self, rate=0, cost_scale=0)


def _check_decay(config) -> None:
  options.at_least(config, decay=0)
  options.at_most(config, decay=1)
  if config.decay and (
    config.metric not in named_metrics.BLEU or config.costs != "sentence"
  ):
    raise InputError(
      "option 'decay' goes with metric 'bleu' and costs 'sentence' only"
    )


@njit
def decayed_costs(statistics, low, high, document, scale, costs):
  """Writes the costs of a list by decayed statistics (Eq 57-58).

  The cost of a candidate is 1 - BLEU of the pseudo-document with it, times the
  length of their references over that of its own, since one sentence moves
  the document by its share only.

  Args:
    statistics: of BLEU, `[N, 9]`.
    low: first candidate of the list.
    high: the one after its last.
    document: statistics of the pseudo-document, `[9]`.
    scale: multiplies costs.
    costs: `[N]`; those of the list are written.
  """
  total = np.empty(bleu.SIZE, np.float64)
  last = bleu.SIZE - 1
  for row in range(low, high):
    for s in range(bleu.SIZE):
      total[s] = document[s] + statistics[row, s]
    share = total[last] / max(1.0, statistics[row, last])
    costs[row] = scale * share * (1.0 - bleu.bleu(total))


@njit
def _add_to_document(statistics, row, document, decay):
  for s in range(len(document)):
    document[s] = decay * document[s] + statistics[row, s]


def _document(pool, learner: Learner, config) -> tuple[np.ndarray, np.ndarray]:
  """Statistics and the pseudo-document; empty ones without decay."""
  if not config.decay:
    return np.zeros((0, 0)), np.zeros(0)
  rows = np.ascontiguousarray(pool.statistics[config.metric], np.float64)
  if not len(learner.document):
    learner.document = np.ones(rows.shape[1], np.float64)
  return rows, learner.document


@njit
def _score_list(features, weights, low, high, scores):
  for row in range(low, high):
    scores[row - low] = learning.score(features, weights, row)


@njit
def _extreme(scores, costs, low, count, cost_scale):
  """The place of the largest `score + cost_scale * cost`."""
  top = 0
  for k in range(1, count):
    if (
      scores[k] + cost_scale * costs[low + k]
      > scores[top] + cost_scale * costs[low + top]
    ):
      top = k
  return top


@njit
def _cheapest(scores, costs, low, count):
  """The place of the least cost, ties by score."""
  top = 0
  for k in range(1, count):
    less = costs[low + k] < costs[low + top]
    same = costs[low + k] == costs[low + top]
    if less or (same and scores[k] > scores[top]):
      top = k
  return top


class PerceptronSettings(NamedTuple):
  """Settings of a pass, as the kernel takes them."""

  rate: float  # the step
  hope: float  # cost scale of the hope; 0: the oracle, below 0: the reference
  batch: int  # sentences that are judged with the same weights
  decay: float  # of the pseudo-document; 0 leaves the costs as they are


@njit
def perceptron_pass(lists, order, state, steps, room, settings):
  """One pass; changes the state (see `mira`).

  Args:
    lists: `learning.Features`; statistics `[N, 9]` if there is a decay;
      sentence costs `[N]`; offsets of lists, int64 `[B + 1]`.
    order: sentences in the order of the pass.
    state: weights `[D + F]`, lagged `[D + F]`, pseudo-document `[9]`.
    steps: batches seen before.
    room: most features that two candidates differ in.
    settings: see `PerceptronSettings`.

  Returns:
    `(steps, number of updates)`.
  """
  features, statistics, costs, offsets = lists
  weights, lagged, document = state
  rate, hope, batch, decay = settings
  scores = np.empty(longest_row(offsets), np.float64)
  ids = np.empty(room, np.int64)
  values = np.empty(room, np.float64)
  updates = 0
  # In batches, weights stay as they are until the batch ends.
  frozen = weights if batch == 1 else weights.copy()
  seen = 0
  for sentence in order:
    low = offsets[sentence]
    count = offsets[sentence + 1] - low
    if count == 0:
      continue
    _score_list(features, frozen, low, low + count, scores)
    if decay > 0.0:
      decayed_costs(statistics, low, low + count, document, 1.0, costs)
    good = _cheapest(scores, costs, low, count)
    if hope > 0.0:
      good = _extreme(scores, costs, low, count, -hope)
    bad = _extreme(scores, costs, low, count, 0.0)
    reached = hope >= 0.0 or costs[low + good] < 1e-9
    if reached and good != bad and costs[low + good] < costs[low + bad]:
      size = learning.subtract(features, low + good, low + bad, ids, values)
      learning.add(ids, values, size, rate / batch, weights)
      learning.add(ids, values, size, rate / batch * steps, lagged)
      updates += 1
    if decay > 0.0:
      _add_to_document(statistics, low + bad, document, decay)
    seen += 1
    if seen == batch:
      seen = 0
      steps += 1  # steps without an update count in the average
      if batch > 1:
        frozen[:] = weights
  if seen:
    steps += 1
  return steps, updates


def perceptron_passes(
  pool: CandidateLists, learner: Learner, config: PerceptronConfig, seed: int
) -> Iterator[tuple[Learner, dict]]:
  """Yields the learner after each pass; arguments as in `mira.passes`."""
  rng = np.random.default_rng(seed)
  costs = costs_lib.candidate_costs(
    pool, learner.weights, metric=config.metric, kind=config.costs
  )
  statistics, document = _document(pool, learner, config)
  hopes = {"hope": config.cost_scale, "oracle": 0.0, "ref": -1.0}
  settings = PerceptronSettings(
    rate=config.rate,
    hope=hopes[config.surrogate],
    batch=config.batch,
    decay=config.decay,
  )
  for number in range(config.passes):
    learner.steps, updates = perceptron_pass(
      (learning.features_of(pool), statistics, costs, pool.offsets),
      rng.permutation(pool.sentences),
      (learner.weights, learner.lagged, document),
      learner.steps,
      learning.room(pool),
      settings,
    )
    yield learner, {"pass": number, "updates": updates}


def perceptron(
  pool: CandidateLists, weights: np.ndarray, config: PerceptronConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """Averaged perceptron; arguments as in `mira.optimise`."""
  chooser = Chooser(pool, weights, config.metric, explore=config.explore)
  for now, record in perceptron_passes(
    pool, Learner(weights=weights), config, seed
  ):
    chooser.offer(now.average, record)
  return chooser.best, chooser.history


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArowConfig:
  """How to update.

  Attributes:
    metric: whose sentence costs to use.
    costs: see `jaxmt.tune.costs`.
    passes: over the pool.
    cost_scale: multiplies costs: the margin asked for.
    variant: "printed" is Eq 64-67 (squared hinge) with the cost difference for
      the margin; "exact" minimises Eq 63.
    variance_rate: lambda_var; larger shrinks variances faster.
    cap: lambda_MIRA of the exact variant.
    initial_variance: of every weight.
    decay: above 0, costs are by decayed statistics; see `decayed_costs`.
    explore: never to return the start, see `Chooser`; for loops.
  """

  metric: str = "bleu"
  costs: str = "sentence"
  passes: int = 10
  cost_scale: float = 10.0
  variant: str = "exact"
  variance_rate: float = 0.001
  cap: float = 0.02
  initial_variance: float = 1.0
  decay: float = 0.0
  explore: bool = False

  def __post_init__(self):
    costs_lib.check(self.costs, self.metric)
    options.one_of(self, variant=("printed", "exact"))
    options.at_least(self, passes=1, cost_scale=0)
    options.above(self, variance_rate=0, cap=0, initial_variance=0)
    _check_decay(self)


@njit
def arow_step(difference, state, loss, settings):
  """One AROW update on the difference of two candidates; diagonal.

  Args:
    difference: x: ids, values, and how many there are.
    state: weights and variances `[D + F]`, changed.
    loss: how far the good candidate is behind.
    settings: whether the exact variant is meant, `variance_rate`, `cap`.

  The printed variant keeps the diagonal of the downdated covariance, the exact
  one adds to the precisions: `1 / variance += rate * x^2`.
  """
  ids, values, size = difference
  weights, variances = state
  exact, rate, cap = settings
  spread = 0.0  # x' Sigma x
  for place in range(size):
    spread += values[place] ** 2 * variances[ids[place]]
  if spread <= 0.0 or loss <= 0.0:
    return
  beta = 1.0 / (spread + 1.0 / (2.0 * rate))
  alpha = min(cap, loss / spread) if exact else loss * beta
  for place in range(size):
    number = ids[place]
    weights[number] += alpha * variances[number] * values[place]
  for place in range(size):
    number = ids[place]
    square = values[place] ** 2
    if exact:
      variances[number] /= 1.0 + rate * square * variances[number]
    else:
      variances[number] -= beta * variances[number] ** 2 * square


class ArowSettings(NamedTuple):
  """Settings of a pass, as the kernel takes them."""

  exact: bool  # which variant
  rate: float  # lambda_var
  cap: float  # lambda_MIRA
  decay: float  # of the pseudo-document; 0 leaves the costs as they are
  scale: float  # of the costs


@njit
def arow_pass(lists, order, state, room, settings):
  """One pass; changes the state; returns the number of updates.

  Args:
    lists: as in `perceptron_pass`, the costs scaled.
    order: sentences in the order of the pass.
    state: weights `[D + F]`, variances `[D + F]`, pseudo-document `[9]`.
    room: most features that two candidates differ in.
    settings: see `ArowSettings`.
  """
  features, statistics, costs, offsets = lists
  weights, variances, document = state
  exact, rate, cap, decay, scale = settings
  scores = np.empty(longest_row(offsets), np.float64)
  ids = np.empty(room, np.int64)
  values = np.empty(room, np.float64)
  updates = 0
  for sentence in order:
    low = offsets[sentence]
    count = offsets[sentence + 1] - low
    if count == 0:
      continue
    _score_list(features, weights, low, low + count, scores)
    if decay > 0.0:
      decayed_costs(statistics, low, low + count, document, scale, costs)
    good = _extreme(scores, costs, low, count, -1.0)
    bad = _extreme(scores, costs, low, count, 1.0)
    extra = costs[low + bad] - costs[low + good]
    loss = extra - (scores[good] - scores[bad])
    if good != bad and extra > 0.0 and loss > 0.0:
      size = learning.subtract(features, low + good, low + bad, ids, values)
      difference = (ids, values, size)
      arow_step(difference, (weights, variances), loss, (exact, rate, cap))
      updates += 1
    if decay > 0.0:
      top = _extreme(scores, costs, low, count, 0.0)
      _add_to_document(statistics, low + top, document, decay)
  return updates


def arow_passes(
  pool: CandidateLists, learner: Learner, config: ArowConfig, seed: int
) -> Iterator[tuple[Learner, dict]]:
  """Yields the learner after each pass; arguments as in `mira.passes`.

  It does not average: as variances shrink, so do the steps.
  """
  rng = np.random.default_rng(seed)
  costs = config.cost_scale * costs_lib.candidate_costs(
    pool, learner.weights, metric=config.metric, kind=config.costs
  )
  learner.variances[learner.variances == 0.0] = config.initial_variance
  statistics, document = _document(pool, learner, config)
  settings = ArowSettings(
    exact=config.variant == "exact",
    rate=config.variance_rate,
    cap=config.cap,
    decay=config.decay,
    scale=config.cost_scale,
  )
  for number in range(config.passes):
    updates = arow_pass(
      (learning.features_of(pool), statistics, costs, pool.offsets),
      rng.permutation(pool.sentences),
      (learner.weights, learner.variances, document),
      learning.room(pool),
      settings,
    )
    yield learner, {"pass": number, "updates": updates}


def arow(
  pool: CandidateLists, weights: np.ndarray, config: ArowConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """AROW between hope and fear; arguments as in `mira.optimise`.

  Offers the weights after each pass and their mean over passes.
  """
  total = np.zeros(len(weights))
  chooser = Chooser(pool, weights, config.metric, explore=config.explore)
  for now, record in arow_passes(pool, Learner(weights=weights), config, seed):
    total += now.weights
    chooser.offer(total / (record["pass"] + 1), record)
    chooser.offer(now.weights, {**record, "mean": False})
  return chooser.best, chooser.history
