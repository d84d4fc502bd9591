"""MIRA on k-best lists: hope and fear, one or several constraints, averaged.

Survey, section 6.3 and Eq 60-62; the batch form (decode once, then many passes
over the same lists) is Cherry and Foster's (2012): gains are BLEU against a
decaying pseudo-document, times its reference length, and the
averaged weights of the best pass are returned. Online, average and
pseudo-document are carried from batch to batch.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.metrics import compiled_bleu, registry
from jaxmt.text.kernels import njit
from jaxmt.tune import options
from jaxmt.tune.best_iterate import Chooser
from jaxmt.tune.learner import Learner, begin
from jaxmt.tune.lists import feature_rows
from jaxmt.tune.pool import find_metric
from jaxmt.tune.pool_scores import sentence_costs


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


@njit
def _gains(statistics, costs, low, high, document, by_document, total, out):
  """Fills the gain of each candidate of a list: higher is better."""
  if not by_document:
    for row in range(low, high):
      out[row - low] = -costs[row]
    return
  last = compiled_bleu.SIZE - 1
  for row in range(low, high):
    for s in range(compiled_bleu.SIZE):
      total[s] = document[s] + statistics[row, s]
    out[row - low] = compiled_bleu.bleu(total) * total[last]


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
def _best_sum(scores, gains, count, sign):
  top = 0
  for k in range(1, count):
    if scores[k] + sign * gains[k] > scores[top] + sign * gains[top]:
      top = k
  return top


@njit
def mira_pass(
  features,
  statistics,
  costs,
  offsets,
  order,
  weights,
  lagged,
  document,
  steps,
  *settings,
):
  """One pass; changes weights, lagged and document in place.

  `lagged` collects each update times the number of steps before it, so that
  the average of all weights so far is `weights - lagged / steps`.

  Args:
    features: see `rows.Features`.
    statistics: `[N, S]`.
    costs: sentence costs, `[N]`.
    offsets: int64 `[B + 1]`.
    order: sentences in the order of the pass.
    weights: `[D + F]`.
    lagged: `[D + F]`.
    document: the pseudo-document, `[S]`.
    steps: sentences seen before this pass.
    *settings: cap, decay, constraints, by_document, model_background, room.

  Returns:
    `(steps, number of updates, summed loss)`.
  """
  cap, decay, constraints, by_document, model_background, room = settings
  width = 0
  for row in range(len(offsets) - 1):
    width = max(width, offsets[row + 1] - offsets[row])
  scores = np.empty(width, np.float64)
  gains = np.empty(width, np.float64)
  rank = np.empty(width, np.float64)
  total = np.empty(statistics.shape[1], np.float64)
  ids = np.empty((constraints, room), np.int64)
  values = np.empty((constraints, room), np.float64)
  sizes = np.zeros(constraints, np.int64)
  gram = np.zeros((constraints, constraints), np.float64)
  losses = np.zeros(constraints, np.float64)
  alpha = np.zeros(constraints, np.float64)
  updates = 0
  total_loss = 0.0
  for sentence in order:
    low, high = offsets[sentence], offsets[sentence + 1]
    count = high - low
    if count == 0:
      continue
    for row in range(low, high):
      scores[row - low] = feature_rows.score(features, weights, row)
    _gains(statistics, costs, low, high, document, by_document, total, gains)
    hope = _best_sum(scores, gains, count, 1.0)
    found = 0
    for k in range(count):
      rank[k] = scores[k] - gains[k]
    while found < min(constraints, count):
      fear = 0
      for k in range(1, count):
        if rank[k] > rank[fear]:
          fear = k
      lead = gains[hope] - gains[fear]
      if rank[fear] == -np.inf or fear == hope or lead <= 0.0:
        break
      rank[fear] = -np.inf
      sizes[found] = feature_rows.subtract(
        features, low + hope, low + fear, ids[found], values[found]
      )
      losses[found] = lead - (scores[hope] - scores[fear])
      if losses[found] <= 0.0 or sizes[found] == 0:
        break
      found += 1
    if found:
      for j in range(found):
        for k in range(found):
          gram[j, k] = _dot_sparse(
            ids[j], values[j], sizes[j], ids[k], values[k], sizes[k]
          )
      solve(gram, losses, found, cap / found, alpha)
      for j in range(found):
        if alpha[j] > 0.0:
          feature_rows.add(ids[j], values[j], sizes[j], alpha[j], weights)
          feature_rows.add(
            ids[j], values[j], sizes[j], steps * alpha[j], lagged
          )
      updates += 1
      total_loss += losses[0]
    steps += 1
    if by_document:
      chosen = hope
      if model_background:
        chosen = _best_sum(scores, gains, count, 0.0)
      for s in range(len(document)):
        document[s] = decay * document[s] + statistics[low + chosen, s]
  return steps, updates, total_loss


def passes(
  pool: CandidateLists, learner: Learner, config: MiraConfig, seed: int
) -> Iterator[tuple[Learner, dict]]:
  """Yields the learner and a record after each pass; changes the learner.

  Args:
    pool: with statistics of `config.metric`.
    learner: over the pool's features; it goes on with its average and its
      pseudo-document.
    config: see `MiraConfig`.
    seed: of the orders.
  """
  rng = np.random.default_rng(seed)
  by_document = config.metric in registry.BLEU
  statistics = np.ascontiguousarray(pool.statistics[config.metric], np.float64)
  costs = config.cost_scale * sentence_costs(pool, config.metric)
  if not len(learner.document):
    learner.document = np.ones(statistics.shape[1], np.float64)
  for number in range(config.passes):
    order = np.arange(pool.sentences)
    if config.shuffle:
      order = rng.permutation(pool.sentences)
    learner.steps, updates, loss = mira_pass(
      feature_rows.features_of(pool),
      statistics,
      costs,
      pool.offsets,
      order,
      learner.weights,
      learner.lagged,
      learner.document,
      learner.steps,
      config.cap,
      config.decay,
      config.constraints,
      by_document,
      config.background == "model",
      feature_rows.room(pool),
    )
    yield learner, {"pass": number, "updates": updates, "loss": loss}


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
  for now, record in passes(pool, begin(weights), config, seed):
    chooser.offer(now.average, record)
  return chooser.best, chooser.history
