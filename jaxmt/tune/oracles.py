"""Oracles: the candidates that count as right (survey, section 4)."""

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.tune.pool import find_metric
from jaxmt.tune.pool_scores import best


def sentence_oracles(
  costs: np.ndarray, offsets: np.ndarray, *, tolerance: float = 1e-9
) -> np.ndarray:
  """Returns all candidates of least cost of their list, bool `[N]`."""
  lengths = np.diff(offsets)
  kept = np.flatnonzero(lengths)
  least = np.minimum.reduceat(costs, offsets[:-1][kept]) if len(kept) else []
  limit = np.repeat(np.asarray(least) + tolerance, lengths[kept])
  return costs <= limit


def greedy_corpus_oracle(
  pool: CandidateLists,
  *,
  metric: str,
  seed: int,
  max_passes: int = 20,
  tolerance: float = 1e-12,
) -> tuple[np.ndarray, float]:
  """Finds candidates with a good corpus score together (Fig 2).

  Starts from each list's best sentence score and sweeps over the sentences in
  random order: try each candidate with all other sentences fixed, take it if
  the corpus improves; until a sweep changes nothing. A local optimum.

  Args:
    pool: with statistics of `metric`.
    metric: corpus metric.
    seed: of the orders.
    max_passes: at most so many sweeps.
    tolerance: changes smaller than this are ties.

  Returns:
    `(rows, score)`: the chosen candidate of each non-empty list, in order, and
    the corpus score.
  """
  kind = find_metric(metric)
  sign = 1.0 if kind.higher_is_better else -1.0
  statistics = pool.statistics[metric].astype(np.float64)
  single = sign * np.asarray(kind.sentence_score(pool.statistics[metric]))
  chosen = best(single, pool.offsets)
  lists = np.flatnonzero(np.diff(pool.offsets))
  total = statistics[chosen].sum(0)
  rng = np.random.default_rng(seed)
  for _ in range(max_passes):
    changed = False
    for number in rng.permutation(len(lists)).tolist():
      low, high = pool.offsets[lists[number]], pool.offsets[lists[number] + 1]
      rest = total - statistics[chosen[number]]
      values = sign * np.asarray(kind.corpus_score(rest + statistics[low:high]))
      now = values[chosen[number] - low]
      top = int(np.argmax(values))
      if values[top] > now + tolerance:
        chosen[number] = low + top
        total = rest + statistics[low + top]
        changed = True
    if not changed:
      break
  return chosen, float(kind.corpus_score(total))


def pseudo_corpus_costs(
  pool: CandidateLists, context: np.ndarray, *, metric: str
) -> np.ndarray:
  """Returns each candidate's corpus error within a fixed context (Eq 56).

  The sentence's own entry in the context is replaced by the candidate, and the
  error times the number of sentences taken, since one sentence moves a corpus
  score only by a share of 1 / B.

  Args:
    pool: with statistics of `metric`.
    context: a candidate row for each non-empty list, in order.
    metric: corpus metric.
  """
  kind = find_metric(metric)
  statistics = pool.statistics[metric].astype(np.float64)
  lengths = np.diff(pool.offsets)
  own = np.repeat(np.asarray(context), lengths[lengths > 0])
  rest = statistics[context].sum(0) - statistics[own]
  values = np.asarray(kind.corpus_score(rest + statistics), np.float64)
  errors = 1.0 - values if kind.higher_is_better else values
  return errors * len(context)
