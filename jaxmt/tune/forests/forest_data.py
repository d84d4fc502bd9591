"""Forests as tuning sees them: features and costs of edges.

Costs are the first-order change of corpus BLEU: with BLEU's statistics summed
over the best derivations of the weights to start from, the cost of an n-gram is
minus the slope of BLEU in its count, times the number of sentences. They are
sums over the edges of a split forest (`forest_ngrams`), so hope, fear and
expectations are those of all its derivations. It is the linear BLEU of Tromble
et al. (2008) with the true slopes: of each order's own precision and, if the
output is too short, of the brevity penalty.

B: sentences. E: edges of split forests. E': edges of the decoder's. F:
features.

The candidates of earlier rounds are in the space, too: each that is not in the
present list of its sentence is one more edge of the root. Without them weights
would go back to where earlier rounds have found nothing but bad output. If such
a candidate is in the present forest after all, it counts twice.
"""

import dataclasses

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.hypergraph import Forest, best_derivations, sum_values, viterbi
from jaxmt.metrics import bleu, encoded_text
from jaxmt.text.kernels import longest_row, njit
from jaxmt.tune.forests import forest_ngrams
from jaxmt.tune.forests.forest_mert import ForestLines
from jaxmt.tune.forests.forest_ngrams import NgramForests
from jaxmt.tune.gradient_config import check_metric
from jaxmt.tune.lists import mert


@njit
def workspace(node_offsets):
  """Returns room for `best_derivation`: (inside, back, stack)."""
  most = max(1, longest_row(node_offsets))
  return np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)


@njit
def best_derivation(low, high, edge_offsets, tails, values, first, room, out):
  """Finds the best derivation of one sentence; the first of equal ones.

  Args:
    low: its first node.
    high: one past its last, the root.
    edge_offsets: of all nodes.
    tails: of all edges.
    values: what each of its edges adds, from edge `first` on.
    first: its first edge.
    room: from `workspace`.
    out: gets the edges of the derivation; as long as it needs.

  Returns:
    `(out, number of edges)`: `out` itself, or a longer array.
  """
  inside, back, stack = room
  arity = tails.shape[1]
  for node in range(low, high):
    inside[node - low], back[node - low] = -np.inf, -1
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      value = values[edge - first]
      for part in range(arity):
        if tails[edge, part] < 0:
          break
        value += inside[tails[edge, part] - low]
      if value > inside[node - low]:
        inside[node - low], back[node - low] = value, edge
  # Down from the root. A node may be used several times, so `stack` may grow.
  count, top = 0, 1
  stack[0] = high - 1
  while top:
    top -= 1
    edge = back[stack[top] - low]
    if count == len(out):
      out = np.concatenate((out, np.empty_like(out)))
    out[count] = edge
    count += 1
    if top + arity > len(stack):
      stack = np.concatenate((stack, np.empty(arity, np.int64)))
    for part in range(arity):
      if tails[edge, part] < 0:
        break
      stack[top] = tails[edge, part]
      top += 1
  return out, count


# Added to all counts of the corpus, so that no order is without matches.
_SMOOTHING = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestData:
  """What learners on forests need.

  Attributes:
    split: the forests.
    features: of the decoder's edges and of earlier candidates after them, in
      the order of the weights, float64 `[E', F]`.
    references: words of the reference of each sentence that is nearest in
      length to the best derivation at the start, float64 `[B]`.
    slopes: cost of each statistic, float64 `[8]`.
  """

  split: NgramForests
  features: np.ndarray
  references: np.ndarray
  slopes: np.ndarray

  def scores(self, weights: np.ndarray) -> np.ndarray:
    """Returns the model score of each edge, float64 `[E]`."""
    return (self.features @ weights)[self.split.edge]

  def costs(self) -> np.ndarray:
    """Returns the cost of each edge, in BLEU of the corpus, float64 `[E]`."""
    return self.split.statistics @ self.slopes


def prepare(
  pool: CandidateLists,
  weights: np.ndarray,
  metric: str,
  *,
  brevity: float = 0.0,
) -> ForestData:
  """Splits the forests of a pool and finds costs.

  Args:
    pool: with forests and their references; only dense features.
    weights: `[F]`; where costs are linear.
    metric: what is tuned.
    brevity: share of the brevity penalty's slope in the costs.

  Raises:
    InputError: if there are no forests, sparse features, or another metric than
      BLEU.
  """
  check_pool(pool, metric)
  forests = pool.forests
  index = {name: place for place, name in enumerate(forests.names)}
  values = forests.spelled.features
  earlier = _earlier(pool)
  features = np.zeros((len(values) + len(earlier), len(pool.names)))
  for place, name in enumerate(pool.names):
    if name in index:
      features[: len(values), place] = values[:, index[name]]
  features[len(values) :] = pool.dense[earlier]
  split = forest_ngrams.split(
    forests,
    lines=[pool.lines[row] for row in earlier.tolist()],
    sentence=pool.sentence[earlier],
  )
  return linear_data(
    split,
    features,
    scores=features @ weights,
    references=forests.references,
    brevity=brevity,
  )


def linear_data(
  split: NgramForests,
  features: np.ndarray,
  *,
  scores: np.ndarray,
  references: encoded_text.ReferenceLines,
  brevity: float = 0.0,
) -> ForestData:
  """Returns forests with the linear cost of BLEU where the model stands now.

  Args:
    split: the forests.
    features: of the decoder's edges, `[E', F]`.
    scores: of the decoder's edges, `[E']`.
    references: of each sentence.
    brevity: see `prepare`.
  """
  sums = best_sums(split.forest, scores[split.edge], split.statistics)
  lengths = nearest_lengths(references, sums[:, 4])
  filled = np.diff(split.forest.node_offsets) > 0
  corpus = np.append(sums.sum(0), lengths[filled].sum()) + _SMOOTHING
  slopes, plain = np.empty((2, 2 * forest_ngrams.ORDER))
  bleu.slopes(corpus, slopes)
  bleu.slopes(np.append(corpus[:-1], 0.0), plain)
  slopes = brevity * slopes + (1.0 - brevity) * plain
  return ForestData(
    split=split,
    features=features,
    references=np.where(filled, lengths, 0.0),
    slopes=-slopes * max(1, int(filled.sum())),
  )


def check_pool(pool: CandidateLists, metric: str) -> None:
  """Raises `InputError` if a pool cannot be tuned on as forests."""
  if pool.forests is None:
    raise InputError("tuning on forests needs a decoder that makes them")
  if pool.dense.shape[1] != len(pool.names):
    raise InputError("forests have dense features only: leave out templates")
  check_metric(metric)


def nearest_lengths(references, lengths: np.ndarray) -> np.ndarray:
  """Returns the reference length nearest to each length, float64 `[B]`.

  Of two as near it is the shorter one.
  """
  out = np.zeros(len(lengths))
  for row, (lines, length) in enumerate(zip(references, lengths, strict=True)):
    sizes = [len(line.split()) for line in lines if line is not None]
    out[row] = min(sizes, key=lambda size: (abs(size - length), size))
  return out


def _earlier(pool: CandidateLists) -> np.ndarray:
  """Candidates that are in no list of the present round, int64, rising."""
  known = pool.forests.listed
  rows = zip(pool.sentence.tolist(), pool.lines, strict=True)
  return np.array(
    [place for place, row in enumerate(rows) if row not in known], np.int64
  )


def best_sums(
  forest: Forest, values: np.ndarray, table: np.ndarray
) -> np.ndarray:
  """Returns the sums of a table over the best derivations, float64 `[B, C]`.

  Args:
    forest: B sentences.
    values: of edges, `[E]`; the best derivation has the largest sum.
    table: what to sum of each edge, `[E, C]`.
  """
  out = np.zeros((len(forest), table.shape[1]))
  filled = forest.roots >= 0
  best = viterbi(forest, values)
  tops = best.back[forest.roots[filled]]
  out[filled] = sum_values(best_derivations(forest, best, tops)[0], table)
  return out


class ForestJudge:
  """Scores weights by the best derivations of forests and earlier lists."""

  def __init__(self, pool: CandidateLists, metric: str):
    self._lines = ForestLines(pool, pool.forests, metric)
    self._metric = metric

  def __call__(self, weights: np.ndarray) -> float:
    """Returns the corpus score of the metric itself, clipped and exact."""
    still = np.zeros(len(weights))
    lines = self._lines.trace(np.asarray(weights, np.float64), still)
    return mert.best_interval(*lines, metric=self._metric)[1]
