"""What a candidate costs: sentence errors, or approximations of the corpus's.

sentence       1 - sentence score, or the error rate
bleu+1-all     1 - BLEU+1 with one added to unigrams too (Gimpel 2012)
linear-bleu    first-order change of log BLEU (survey, Eq 46-52)
pseudo-corpus  the corpus error with the candidate in it (Eq 56)
pareto         0 if no other candidate is better by all of the metrics, else
               1 (Eq 79; Duh et al. 2012), for metrics such as `bleu,ter`
corpus-oracle  0 for the candidates of a good corpus score together, found
               greedily (Fig 2), else 1

Oracles are the candidates that count as right (survey, section 4).

The corpus of `linear-bleu` and `pseudo-corpus` is the pool: a batch, if the
method learns online.
"""

import dataclasses

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.metrics import linear_bleu, named_metrics, weighted
from jaxmt.text.kernels import njit
from jaxmt.tune.pool import ZERO_ONE, best, find_metric, scores, sentence_costs


def sentence_oracles(
  costs: np.ndarray, offsets: np.ndarray, *, tolerance: float = 1e-9
) -> np.ndarray:
  """Returns all candidates of least cost of their list, bool `[N]`."""
  lengths = np.diff(offsets)
  filled = np.flatnonzero(lengths)
  least = (
    np.minimum.reduceat(costs, offsets[:-1][filled]) if len(filled) else []
  )
  limit = np.repeat(np.asarray(least) + tolerance, lengths[filled])
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
    max_passes: most sweeps.
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
  contexts = np.repeat(np.asarray(context), lengths[lengths > 0])
  rest = statistics[context].sum(0) - statistics[contexts]
  values = np.asarray(kind.corpus_score(rest + statistics), np.float64)
  errors = 1.0 - values if kind.higher_is_better else values
  return errors * len(context)


KINDS = (
  "sentence",
  "bleu+1-all",
  "linear-bleu",
  "pseudo-corpus",
  "corpus-oracle",
  "pareto",
)


def check(kind: str, metric: str) -> None:
  """Checks that there are such costs of the metric.

  Raises:
    InputError: for an unknown kind or metric, or if they do not fit.
  """
  if kind not in KINDS:
    raise InputError(f"costs '{kind}' are none of: {', '.join(KINDS)}")
  find_metric(metric)
  if kind in ("linear-bleu", "bleu+1-all") and metric not in named_metrics.BLEU:
    raise InputError(f"costs '{kind}' do not go with metric '{metric}'")


def candidate_costs(
  pool: CandidateLists,
  weights: np.ndarray,
  *,
  metric: str,
  kind: str = "sentence",
) -> np.ndarray:
  """Returns the cost of each candidate, float64 `[N]`.

  Args:
    pool: with statistics of `metric`.
    weights: `[D + F]`; their best candidates are the corpus that "linear-bleu"
      and "pseudo-corpus" start from.
    metric: whose errors.
    kind: one of `KINDS`.

  Raises:
    InputError: for an unknown kind, or one that does not fit the metric.
  """
  check(kind, metric)
  if kind == "sentence":
    return sentence_costs(pool, metric)
  if kind == "bleu+1-all":
    smoothed = named_metrics.METRICS[kind]
    return 1.0 - np.asarray(smoothed.sentence_score(pool.statistics[metric]))
  if kind == "pareto":
    return pareto_costs(metric_costs(pool, metric), pool.offsets)
  if kind == "corpus-oracle":
    chosen, _ = greedy_corpus_oracle(pool, metric=metric, seed=0)
    values = np.ones(len(pool))
    values[chosen] = 0.0
    return values
  context = best(scores(pool, weights), pool.offsets)
  if kind == "pseudo-corpus":
    return pseudo_corpus_costs(pool, context, metric=metric)
  statistics = pool.statistics[metric].astype(np.float64)
  constants = linear_bleu.linearize(statistics[context].sum(0))
  errors = linear_bleu.linear_bleu_error(statistics, constants)
  # One sentence moves the corpus by a share of 1 / B only.
  return errors * len(context)


def metric_costs(pool: CandidateLists, metric: str) -> np.ndarray:
  """Returns the sentence errors by each part of a metric, float64 `[L, N]`."""
  parts = named_metrics.parts(metric)
  if len(parts) == 1:
    return sentence_costs(pool, metric)[None]
  out = []
  statistics = pool.statistics[metric]
  for _, part, span in weighted.columns(parts):
    kind = named_metrics.METRICS["bleu+1"] if part.name == "bleu" else part
    values = np.asarray(kind.sentence_score(statistics[:, span]), np.float64)
    out.append(1.0 - values if kind.higher_is_better else values)
  return np.stack(out)


@njit
def pareto_costs(costs, offsets):
  """Returns 0 for candidates that no other dominates, 1 for the rest.

  k dominates j if it is nowhere worse and somewhere better.

  Args:
    costs: float64 `[L, N]`.
    offsets: candidates of each list, int64 `[B + 1]`.
  """
  out = np.zeros(costs.shape[1], np.float64)
  for row in range(len(offsets) - 1):
    for one in range(offsets[row], offsets[row + 1]):
      for other in range(offsets[row], offsets[row + 1]):
        no_worse, better = True, False
        for kind in range(len(costs)):
          no_worse = no_worse and costs[kind, other] <= costs[kind, one]
          better = better or costs[kind, other] < costs[kind, one]
        if no_worse and better:
          out[one] = 1.0
          break
  return out


def zero_one_pool(pool: CandidateLists, metric: str) -> CandidateLists:
  """Returns the pool with statistics of the zero-one error (Eq 18).

  The oracles are all candidates of least cost by `metric`.
  """
  hits = sentence_oracles(sentence_costs(pool, metric), pool.offsets)
  table = np.stack([~hits, np.ones(len(hits), bool)], axis=1).astype(np.int32)
  statistics = {**pool.statistics, ZERO_ONE.name: table}
  return dataclasses.replace(pool, statistics=statistics)
