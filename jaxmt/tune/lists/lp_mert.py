"""LP-MERT: the exact optimum of the error for small problems.

Galley and Quirk (2011); survey, section 5.1.3. A choice of one candidate for
each sentence is possible if some weights make all of them the best of their
lists. That is a linear program over all weights at once: the largest t with

  w.(h(chosen) - h(other)) >= t   for all others,   |w_d| <= bound

is above 0. Sentences are added one after the other; a choice is given up if its
program says that it is impossible, or if nothing that could follow scores
better than the best choice so far (branch and bound). Of the best choice the
weights of the largest t are returned.

The number of choices grows fast. Larger problems are solved exactly on random
groups of sentences, and the weights with the best score on all are returned.
"""

import dataclasses

import numpy as np
import scipy.optimize

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.metrics import bleu, named_metrics
from jaxmt.tune import options
from jaxmt.tune.learning import Chooser
from jaxmt.tune.pool import find_metric, scores, sentence_costs

_STRICT = 1e-7  # margins below are ties


@dataclasses.dataclass(frozen=True, kw_only=True)
class LpMertConfig:
  """How to search.

  Attributes:
    metric: what to optimise.
    objective: "corpus", the corpus score (of BLEU only), or "sentence", the sum
      of sentence scores (BLEU+1 for BLEU).
    sentences: solved exactly together.
    groups: random groups of sentences, if there are more sentences.
    programs: most linear programs of a group; then it is left as it is.
    bound: largest absolute value of a weight.
  """

  metric: str = "bleu"
  objective: str = "corpus"
  sentences: int = 4
  groups: int = 10
  programs: int = 2000
  bound: float = 1.0

  def __post_init__(self):
    find_metric(self.metric)
    options.one_of(self, objective=("corpus", "sentence"))
    options.at_least(self, sentences=1, groups=1, programs=1)
    options.above(self, bound=0)
    if self.objective == "corpus" and self.metric not in named_metrics.BLEU:
      raise InputError(
        f"lp-mert bounds corpora by BLEU only; metric '{self.metric}' needs"
        " objective=sentence"
      )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListedVectors:
  """One list: candidates that can be best, no two with the same features.

  Attributes:
    dense: `[K, D]`.
    fixed: what sparse features add to scores, `[K]`.
    values: statistics `[K, S]`, or negated sentence costs `[K, 1]`.
  """

  dense: np.ndarray
  fixed: np.ndarray
  values: np.ndarray


class Solver:
  """Finds the best possible choice of candidates.

  Attributes:
    programs: linear programs solved so far.
    complete: whether the search has ended by itself.
  """

  def __init__(self, config: LpMertConfig, width: int):
    """Begins; `width` is the number of dense features."""
    self._config = config
    self._width = width
    self.programs = 0
    self.complete = True

  def margin(self, rows: np.ndarray, least: np.ndarray) -> tuple:
    """Returns `(t, weights)` of the largest t with `rows w + least >= t`."""
    self.programs += 1
    if not len(rows):
      return np.inf, np.zeros(self._width)
    limits = [(-self._config.bound, self._config.bound)] * self._width
    answer = scipy.optimize.linprog(
      np.append(np.zeros(self._width), -1.0),
      A_ub=np.column_stack([-rows, np.ones(len(rows))]),
      b_ub=least,
      bounds=[*limits, (None, 1.0)],
      method="highs",
    )
    if answer.x is None:
      return -np.inf, np.zeros(self._width)
    return answer.x[-1], answer.x[:-1]

  def possible(self, one: ListedVectors) -> ListedVectors:
    """Returns the candidates that some weights make the best."""
    keep = [
      k
      for k in range(len(one.fixed))
      if self.margin(*_differences(one, k))[0] > _STRICT
    ]
    return ListedVectors(
      dense=one.dense[keep], fixed=one.fixed[keep], values=one.values[keep]
    )

  def solve(self, lists: list[ListedVectors], best: float) -> np.ndarray | None:
    """Returns weights of the best choice above a score, or None.

    Args:
      lists: one for each sentence.
      best: a score that is known to be possible.
    """
    limits = [_limits(one.values) for one in lists]
    size = lists[0].values.shape[1] if lists else 0
    # What the sentences from each on can add at most.
    rest = [(np.zeros(size), np.zeros(size))]
    for low, high in reversed(limits):
      rest.append((rest[-1][0] + low, rest[-1][1] + high))
    rest.reverse()
    solution: np.ndarray | None = None

    def visit(depth, total, rows, least, weights):
      nonlocal best, solution
      if depth == len(lists):
        best, solution = self._score(total), weights
        return
      one = lists[depth]
      bounds = [
        self._bound(total + value, *rest[depth + 1]) for value in one.values
      ]
      for k in np.argsort(-np.array(bounds), kind="stable").tolist():
        if bounds[k] <= best + 1e-12:
          break
        if self.programs >= self._config.programs:
          self.complete = False
          return
        new_rows, new_least = _differences(one, k)
        more = np.concatenate([rows, new_rows])
        more_least = np.concatenate([least, new_least])
        margin, point = self.margin(more, more_least)
        if margin > _STRICT:
          visit(depth + 1, total + one.values[k], more, more_least, point)

    visit(
      0, np.zeros(size), np.zeros((0, self._width)), np.zeros(0),
      np.zeros(self._width),
    )  # fmt: skip
    return solution

  def _score(self, total: np.ndarray) -> float:
    if self._config.objective == "sentence":
      return float(total[0])
    return float(bleu.bleu_rows(total[None])[0])

  def _bound(self, total, low, high) -> float:
    """No completion scores more: most matches, fewest n-grams.

    Matches cannot exceed n-grams, the brevity penalty is that of the longest
    output and the shortest references.
    """
    if self._config.objective == "sentence":
      return float(total[0] + high[0])
    order = (bleu.SIZE - 1) // 2
    matches = (total + high)[:order]
    grams = np.maximum((total + low)[order : 2 * order], matches)
    if (matches <= 0).any():
      return 0.0
    length = (total + high)[order]
    references = (total + low)[2 * order]
    penalty = min(0.0, 1.0 - references / max(length, 1.0))
    return float(np.exp(np.mean(np.log(matches / grams)) + penalty))


def _limits(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """The least and the largest of each column."""
  return values.min(0), values.max(0)


def _differences(one: ListedVectors, k: int) -> tuple[np.ndarray, np.ndarray]:
  """What the chosen candidate has more than each of the others."""
  others = np.delete(np.arange(len(one.fixed)), k)
  return one.dense[k] - one.dense[others], one.fixed[k] - one.fixed[others]


def _candidates(pool, fixed, values, sentence) -> ListedVectors:
  """A list; of candidates with the same scores always, the first."""
  low, high = pool.offsets[sentence], pool.offsets[sentence + 1]
  table = np.column_stack([pool.dense[low:high], fixed[low:high]])
  _, first = np.unique(table, axis=0, return_index=True)
  rows = low + np.sort(first)
  return ListedVectors(
    dense=pool.dense[rows], fixed=fixed[rows], values=values[rows]
  )


def optimise(
  pool: CandidateLists, weights: np.ndarray, config: LpMertConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """Tunes the dense weights; sparse ones stay as they are.

  Arguments as in `mira.optimise`.
  """
  width = pool.dense.shape[1]
  start = np.array(weights, np.float64)
  sparse_only = start.copy()
  sparse_only[:width] = 0.0
  fixed = scores(pool, sparse_only)
  if config.objective == "sentence":
    values = -sentence_costs(pool, config.metric)[:, None]
    judge = lambda point: _sentence_score(pool, point, values, config.metric)
  else:
    values = pool.statistics[config.metric].astype(np.float64)
    judge = None
  chooser = Chooser(pool, start, config.metric, judge=judge)
  filled = np.flatnonzero(np.diff(pool.offsets))
  rng = np.random.default_rng(seed)
  whole = len(filled) <= config.sentences
  for number in range(1 if whole else config.groups):
    group = filled
    if not whole:
      group = np.sort(rng.choice(filled, config.sentences, replace=False))
    solver = Solver(config, width)
    lists = [
      solver.possible(_candidates(pool, fixed, values, sentence))
      for sentence in group.tolist()
    ]
    lists = [one for one in lists if len(one.fixed)]
    # The widest lists last: bounds cut them most.
    lists.sort(key=lambda one: len(one.fixed))
    solution = solver.solve(lists, -np.inf)
    if solution is None:
      continue
    point = start.copy()
    point[:width] = solution
    record = {"programs": solver.programs, "exact": solver.complete}
    chooser.offer(point, {"group": number, **record})
  if not chooser.history:
    chooser.offer(start, {"group": 0, "programs": 0, "exact": False})
  return chooser.best, chooser.history


def _sentence_score(pool, weights, values, metric) -> float:
  """The mean of sentence scores, with the sign that the metric has."""
  from jaxmt.tune.pool import best

  chosen = best(scores(pool, weights), pool.offsets)
  mean = float(values[chosen, 0].mean()) if len(chosen) else 0.0
  return mean if find_metric(metric).higher_is_better else -mean
