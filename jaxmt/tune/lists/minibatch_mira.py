"""MIRA on mini-batches: one step for the constraints of several sentences.

Survey, section 6.3 (Eq 60 with K > 1). The sentences of a batch are judged with
the weights before it. Each gives up to `constraints` differences x_j of hope
and fears with violations l_j; the step is the solution of the dual problem

  max_a  sum_j a_j l_j - |sum_j a_j x_j|^2 / 2
  a_j >= 0,  sum of a_j over a sentence <= cap / (sentences of the batch)

The constraints of a sentence share its cap (one slack variable per sentence).
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.text.kernels import longest_row, njit
from jaxmt.tune import learning, options
from jaxmt.tune.learning import Chooser, Learner
from jaxmt.tune.lists import mira
from jaxmt.tune.pool import sentence_costs


@dataclasses.dataclass(frozen=True, kw_only=True)
class MinibatchMiraConfig(mira.MiraConfig):
  """How to update; see `mira.MiraConfig`.

  Attributes:
    batch: sentences of a step.
  """

  batch: int = 10
  cap: float = 0.1
  constraints: int = 5

  def __post_init__(self):
    super().__post_init__()
    options.at_least(self, batch=1)


@njit
def _pair_step(gradient, gram, alpha, j, k, cap_left):
  """Moves mass from k to j (k = -1: from the slack); the change.

  Args:
    gradient: of the dual problem, kept up to date, `[C]`.
    gram: products of the differences, `[C, C]`.
    alpha: `[C]`.
    j: gains mass, or loses it if the best step is negative.
    k: the other way round.
    cap_left: mass of the slack.
  """
  if k < 0:
    slope, curve, most = gradient[j], gram[j, j], cap_left
  else:
    slope = gradient[j] - gradient[k]
    curve = gram[j, j] - 2.0 * gram[j, k] + gram[k, k]
    most = alpha[k]
  if curve <= 1e-15:
    # The objective is a line in this direction.
    if abs(slope) <= 1e-15:
      return 0.0
    step = most if slope > 0.0 else -alpha[j]
  else:
    step = min(most, max(-alpha[j], slope / curve))
  if step == 0.0:
    return 0.0
  alpha[j] += step
  if k >= 0:
    alpha[k] -= step
  for other in range(len(gradient)):
    gradient[other] -= step * gram[other, j]
    if k >= 0:
      gradient[other] += step * gram[other, k]
  return step


@njit
def solve_shared(gram, losses, owner, cap, alpha):
  """Solves the dual problem with a shared cap for each sentence.

  Args:
    gram: products of the differences, `[C, C]`.
    losses: `[C]`.
    owner: the sentence of each constraint, rising, int64 `[C]`.
    cap: of each sentence.
    alpha: gets the solution, `[C]`.
  """
  alpha[:] = 0.0
  gradient = losses.copy()
  for _ in range(500):
    change = 0.0
    for j in range(len(losses)):
      left = cap
      for k in range(len(losses)):
        if owner[k] == owner[j]:
          left -= alpha[k]
      step = _pair_step(gradient, gram, alpha, j, -1, max(0.0, left))
      change = max(change, abs(step))
      for k in range(j):
        if owner[k] == owner[j]:
          step = _pair_step(gradient, gram, alpha, j, k, 0.0)
          change = max(change, abs(step))
    if change < 1e-12:
      break


@njit
def minibatch_pass(lists, order, state, steps, room, batch, settings):
  """One pass; arguments and result as in `mira.mira_pass`.

  `steps` are batches: those before this pass, and after it.
  """
  features, statistics, costs, offsets = lists
  weights, lagged, document = state
  width = longest_row(offsets)
  scores = np.empty(width, np.float64)
  gains = np.empty(width, np.float64)
  rank = np.empty(width, np.float64)
  total = np.empty(statistics.shape[1], np.float64)
  most = settings.constraints
  every = mira.make_constraints(batch * most, room)
  owner = np.empty(batch * most, np.int64)
  updates, total_loss = 0, 0.0
  for low_place in range(0, len(order), batch):
    used = 0
    members = order[low_place : low_place + batch]
    # Hope, fears and their constraints of each sentence of the batch.
    for sentence in members:
      low, high = offsets[sentence], offsets[sentence + 1]
      count = high - low
      if count == 0:
        continue
      for row in range(low, high):
        scores[row - low] = learning.score(features, weights, row)
      mira.fill_gains(
        statistics, costs, low, high, document, settings.by_document, total,
        gains,
      )  # fmt: skip
      constraints = mira.Constraints(
        every.ids[used : used + most],
        every.values[used : used + most],
        every.sizes[used : used + most],
        every.losses[used : used + most],
        every.gram[used : used + most],
        every.alpha[used : used + most],
      )
      number, hope = mira.violated(
        features, low, count, scores, gains, rank, constraints
      )
      owner[used : used + number] = sentence
      if number:
        total_loss += constraints.losses[0]
      used += number
      # The chosen translation enters the pseudo-document.
      if settings.by_document:
        chosen = hope
        if settings.model_background:
          chosen = mira.best_sum(scores, gains, count, 0.0)
        mira.add_to_document(document, statistics[low + chosen], settings.decay)
    # One step that solves the constraints of the whole batch.
    if used:
      mira.fill_gram(every, used)
      # Owners of a batch stand together, in the order of the batch.
      solve_shared(
        every.gram[:used, :used].copy(), every.losses[:used].copy(),
        owner[:used], settings.cap / len(members), every.alpha[:used],
      )  # fmt: skip
      mira.move(every, used, 1.0, weights)
      mira.move(every, used, steps, lagged)
      updates += 1
    steps += 1
  return steps, updates, total_loss


def passes(
  pool: CandidateLists, learner: Learner, config: MinibatchMiraConfig, seed: int
) -> Iterator[tuple[Learner, dict]]:
  """Yields the learner after each pass; arguments as in `mira.passes`."""
  statistics = np.ascontiguousarray(pool.statistics[config.metric], np.float64)
  costs = config.cost_scale * sentence_costs(pool, config.metric)
  if not len(learner.document):
    learner.document = np.ones(statistics.shape[1], np.float64)
  lists = (learning.features_of(pool), statistics, costs, pool.offsets)
  room = learning.room(pool)
  one_pass = lambda order, state, steps, settings: minibatch_pass(
    lists, order, state, steps, room, config.batch, settings
  )
  return mira.run_passes(one_pass, pool.sentences, learner, config, seed)


def optimise(
  pool: CandidateLists,
  weights: np.ndarray,
  config: MinibatchMiraConfig,
  seed: int,
) -> tuple[np.ndarray, list[dict]]:
  """Tunes all weights; arguments and result as in `mira.optimise`."""
  chooser = Chooser(pool, weights, config.metric, explore=config.explore)
  for now, record in passes(pool, Learner(weights=weights), config, seed):
    chooser.offer(now.average, record)
  return chooser.best, chooser.history
