"""MIRA on k-best lists: hope and fear, one or several constraints, averaged.

Survey, section 6.3 and Eq 60-62; the batch form (decode once, then many passes
over the same lists) is Cherry and Foster's (2012): gains are BLEU against a
decaying pseudo-document, times its reference length, and the
averaged weights of the best pass are returned. Online, average and
pseudo-document are carried from batch to batch.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.metrics import bleu, named_metrics
from jaxmt.text.kernels import longest_row, njit
from jaxmt.tune import learning, options
from jaxmt.tune.learning import Chooser, Learner
from jaxmt.tune.pool import find_metric, sentence_costs


@dataclasses.dataclass(frozen=True, kw_only=True)
class MiraConfig:
  """How to update.

  Attributes:
    metric: what to optimise. BLEU uses the pseudo-document; other metrics use
      sentence costs times `cost_scale`.
    passes: over the pool.
    cap: C, the largest step (lambda of Eq 60); larger fits more.
    decay: of the pseudo-document, per sentence.
    cost_scale: multiplies sentence costs where these are used.
    constraints: fears per sentence; above 1 the dual problem is solved.
    shuffle: a new order of sentences for each pass.
    background: whose statistics enter the pseudo-document: those of the "model"
      best (survey, section 6.1.2) or of the "hope" (Moses).
    explore: never to return the start, see `Chooser`; for loops.
  """

  metric: str = "bleu"
  passes: int = 60
  cap: float = 0.01
  decay: float = 0.999
  cost_scale: float = 10.0
  constraints: int = 1
  shuffle: bool = True
  background: str = "model"
  explore: bool = False

  def __post_init__(self):
    find_metric(self.metric)
    options.one_of(self, background=("model", "hope"))
    options.at_least(self, passes=1, constraints=1, decay=0, cost_scale=0)
    options.at_most(self, decay=1)
    options.above(self, cap=0)


class PassSettings(NamedTuple):
  """What kernels need of `MiraConfig`."""

  cap: float
  decay: float
  constraints: int
  by_document: bool
  model_background: bool


class Constraints(NamedTuple):
  """Up to C differences of features that shall be worth their losses.

  Attributes:
    ids: features of each difference, rising, int64 `[C, R]`.
    values: their values, `[C, R]`.
    sizes: number of features of each, int64 `[C]`.
    losses: how much each constraint is violated, `[C]`.
    gram: products of the differences, `[C, C]`.
    alpha: solution of the dual problem, `[C]`.
  """

  ids: np.ndarray
  values: np.ndarray
  sizes: np.ndarray
  losses: np.ndarray
  gram: np.ndarray
  alpha: np.ndarray


@njit
def make_constraints(count, room):
  """Returns room for `count` differences of up to `room` features."""
  return Constraints(
    np.empty((count, room), np.int64),
    np.empty((count, room), np.float64),
    np.zeros(count, np.int64),
    np.zeros(count, np.float64),
    np.zeros((count, count), np.float64),
    np.zeros(count, np.float64),
  )


@njit
def solve(gram, losses, count, cap, alpha):
  """Maximises `alpha.losses - |sum alpha x|^2 / 2` over 0 <= alpha <= cap.

  Coordinate ascent (Hildreth); `gram` holds the products of the differences.
  """
  alpha[:count] = 0.0
  for _ in range(200):
    change = 0.0
    for j in range(count):
      if gram[j, j] <= 0.0:
        continue
      slack = losses[j]
      for k in range(count):
        slack -= gram[j, k] * alpha[k]
      new = min(cap, max(0.0, alpha[j] + slack / gram[j, j]))
      change = max(change, abs(new - alpha[j]))
      alpha[j] = new
    if change < 1e-10:
      break


@njit
def _dot_sparse(ids, values, size, other_ids, other_values, other_size):
  """The product of two differences, both with rising ids."""
  total = 0.0
  left = right = 0
  while left < size and right < other_size:
    if ids[left] == other_ids[right]:
      total += values[left] * other_values[right]
      left += 1
      right += 1
    elif ids[left] < other_ids[right]:
      left += 1
    else:
      right += 1
  return total


@njit
def fill_gram(constraints, count):
  """Fills the products of the first `count` differences."""
  ids, values, sizes, _, gram, _ = constraints
  for j in range(count):
    for k in range(count):
      gram[j, k] = _dot_sparse(
        ids[j], values[j], sizes[j], ids[k], values[k], sizes[k]
      )


@njit
def solve_constraints(constraints, count, cap):
  """Solves the dual problem of the first `count` constraints."""
  _, _, _, losses, gram, alpha = constraints
  fill_gram(constraints, count)
  solve(gram, losses, count, cap / count, alpha)


@njit
def move(constraints, count, scale, weights):
  """Adds `scale` times the step of a solved problem to `weights`, in place."""
  for j in range(count):
    if constraints.alpha[j] > 0.0:
      learning.add(
        constraints.ids[j],
        constraints.values[j],
        constraints.sizes[j],
        scale * constraints.alpha[j],
        weights,
      )


@njit
def add_to_document(document, statistics, decay):
  """Adds a translation to the decaying pseudo-document, in place."""
  for s in range(len(document)):
    document[s] = decay * document[s] + statistics[s]


@njit
def fill_gains(statistics, costs, low, high, document, by_document, total, out):
  """Fills the gain of each candidate of a list: higher is better."""
  if not by_document:
    for row in range(low, high):
      out[row - low] = -costs[row]
    return
  last = bleu.SIZE - 1
  for row in range(low, high):
    for s in range(bleu.SIZE):
      total[s] = document[s] + statistics[row, s]
    out[row - low] = bleu.bleu(total) * total[last]


@njit
def best_sum(scores, gains, count, sign):
  """Returns the place of the largest `score + sign * gain`."""
  top = 0
  for k in range(1, count):
    if scores[k] + sign * gains[k] > scores[top] + sign * gains[top]:
      top = k
  return top


@njit
def violated(features, low, count, scores, gains, rank, constraints):
  """Writes the constraints of a list: `(number of them, the hope)`.

  Args:
    features: see `learning.Features`.
    low: first candidate of the list.
    count: number of its candidates.
    scores: their model scores.
    gains: their gains.
    rank: room for as many numbers.
    constraints: gets differences to the hope and losses.
  """
  hope = best_sum(scores, gains, count, 1.0)
  for k in range(count):
    rank[k] = scores[k] - gains[k]
  number = 0
  while number < min(len(constraints.sizes), count):
    # The fear that is not used yet.
    fear = 0
    for k in range(1, count):
      if rank[k] > rank[fear]:
        fear = k
    lead = gains[hope] - gains[fear]
    if rank[fear] == -np.inf or fear == hope or lead <= 0.0:
      break
    rank[fear] = -np.inf
    size = learning.subtract(
      features,
      low + hope,
      low + fear,
      constraints.ids[number],
      constraints.values[number],
    )
    loss = lead - (scores[hope] - scores[fear])
    constraints.sizes[number], constraints.losses[number] = size, loss
    if loss <= 0.0 or size == 0:
      break
    number += 1
  return number, hope


@njit
def mira_pass(lists, order, state, steps, room, settings):
  """One pass; changes weights, lagged and document in place.

  `lagged` collects each update times the number of steps before it, so that
  the average of all weights so far is `weights - lagged / steps`.

  Args:
    lists: `learning.Features`; statistics `[N, S]`; sentence costs `[N]`;
      offsets of lists, int64 `[B + 1]`.
    order: sentences in the order of the pass.
    state: weights `[D + F]`, lagged `[D + F]`, pseudo-document `[S]`.
    steps: sentences seen before this pass.
    room: most features that two candidates differ in.
    settings: see `PassSettings`.

  Returns:
    `(steps, number of updates, summed loss)`.
  """
  features, statistics, costs, offsets = lists
  weights, lagged, document = state
  width = longest_row(offsets)
  scores = np.empty(width, np.float64)
  gains = np.empty(width, np.float64)
  rank = np.empty(width, np.float64)
  total = np.empty(statistics.shape[1], np.float64)
  constraints = make_constraints(settings.constraints, room)
  updates, total_loss = 0, 0.0
  by_document = settings.by_document
  for sentence in order:
    low, high = offsets[sentence], offsets[sentence + 1]
    count = high - low
    if count == 0:
      continue
    for row in range(low, high):
      scores[row - low] = learning.score(features, weights, row)
    fill_gains(
      statistics, costs, low, high, document, by_document, total, gains
    )
    number, hope = violated(
      features, low, count, scores, gains, rank, constraints
    )
    if number:
      solve_constraints(constraints, number, settings.cap)
      move(constraints, number, 1.0, weights)
      move(constraints, number, steps, lagged)
      updates += 1
      total_loss += constraints.losses[0]
    steps += 1
    if by_document:
      chosen = hope
      if settings.model_background:
        chosen = best_sum(scores, gains, count, 0.0)
      add_to_document(document, statistics[low + chosen], settings.decay)
  return steps, updates, total_loss


def run_passes(
  one_pass: Callable[..., tuple[int, int, float]],
  sentences: int,
  learner: Learner,
  config: MiraConfig,
  seed: int,
) -> Iterator[tuple[Learner, dict]]:
  """Yields the learner and a record after each pass; changes the learner.

  Args:
    one_pass: `(order, state, steps, settings) -> (steps, updates, loss)`, see
      `mira_pass`.
    sentences: B.
    learner: continues with its average and its pseudo-document.
    config: see `MiraConfig`.
    seed: of the orders.
  """
  rng = np.random.default_rng(seed)
  settings = PassSettings(
    cap=config.cap,
    decay=config.decay,
    constraints=config.constraints,
    by_document=config.metric in named_metrics.BLEU,
    model_background=config.background == "model",
  )
  state = (learner.weights, learner.lagged, learner.document)
  for number in range(config.passes):
    order = np.arange(sentences)
    if config.shuffle:
      order = rng.permutation(sentences)
    learner.steps, updates, loss = one_pass(
      order, state, learner.steps, settings
    )
    yield learner, {"pass": number, "updates": updates, "loss": loss}


def passes(
  pool: CandidateLists, learner: Learner, config: MiraConfig, seed: int
) -> Iterator[tuple[Learner, dict]]:
  """Yields the learner and a record after each pass; see `run_passes`.

  Args:
    pool: with statistics of `config.metric`.
    learner: over the pool's features.
    config: see `MiraConfig`.
    seed: of the orders.
  """
  statistics = np.ascontiguousarray(pool.statistics[config.metric], np.float64)
  costs = config.cost_scale * sentence_costs(pool, config.metric)
  if not len(learner.document):
    learner.document = np.ones(statistics.shape[1], np.float64)
  lists = (learning.features_of(pool), statistics, costs, pool.offsets)
  room = learning.room(pool)
  one_pass = lambda order, state, steps, settings: mira_pass(
    lists, order, state, steps, room, settings
  )
  return run_passes(one_pass, pool.sentences, learner, config, seed)


def optimise(
  pool: CandidateLists, weights: np.ndarray, config: MiraConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """Tunes all weights; see `MiraConfig`.

  Args:
    pool: with statistics of `config.metric`.
    weights: where to start, float64 `[D + F]`.
    config: see `MiraConfig`.
    seed: of the orders.

  Returns:
    The averaged weights of the pass with the best pool score (the start, if no
    pass is better), and one record per pass.
  """
  chooser = Chooser(pool, weights, config.metric, explore=config.explore)
  for now, record in passes(pool, Learner(weights=weights), config, seed):
    chooser.offer(now.average, record)
  return chooser.best, chooser.history
