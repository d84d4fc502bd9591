"""The pool: all candidates seen so far, what tuning works on, and its scores.

B: sentences. N: candidates of all sentences. D: dense features. F: sparse
features. S: statistics of a metric. A weight vector is `[D + F]`, dense first.
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from jaxmt.decode import candidate_lists
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.features import selection, sparse
from jaxmt.metrics import base, encoded_text, link_accuracy, named_metrics
from jaxmt.text.kernels import njit

# With more features than this, only those that are named or common are dense.
DENSE_LIMIT = 64


def _cannot(*_, **__):
  raise ValueError("zero-one statistics depend on the pool")


def _share(statistics):
  count = np.maximum(statistics[..., 1], 1)
  return statistics[..., 0] / count


# Zero-one error (Eq 18) as a metric of a pool: statistics (misses, sentences),
# made by `jaxmt.tune.costs.zero_one_pool`.
ZERO_ONE = base.Metric(
  name="zero-one",
  size=2,
  higher_is_better=False,
  percent=True,
  unit=base.WORD,
  prepare=_cannot,
  statistics=_cannot,
  corpus_score=_share,
  sentence_score=_share,
)


def make_pool(
  lists: CandidateLists,
  *,
  sentences: int | None = None,
  dense_names: Sequence[str] | None = None,
) -> CandidateLists:
  """Drops duplicates and broken candidates, and stores features densely.

  Two candidates are the same if text and features are.

  Args:
    lists: the order of candidates is kept.
    sentences: B; as many as the lists have when None.
    dense_names: features to store densely, in this order. When None: all if
      they are few (`DENSE_LIMIT`), else those in at least half of the lists.

  Raises:
    ValueError: if a candidate's sentence is not below `sentences`.
  """
  sentences = lists.sentences if sentences is None else sentences
  if len(lists) and lists.sentence[-1] >= sentences:
    raise ValueError(f"sentence {lists.sentence[-1]} of {sentences}")
  rows = lists.features
  broken = _broken_rows(rows.values, rows.offsets)
  whole = np.flatnonzero(~broken)
  text_ids = _intern_lines(lists.lines)
  chosen = whole[
    _first_of_kind(
      lists.sentence[whole],
      text_ids[whole],
      *_parts(sparse.select(rows, whole)),
    )
  ]
  pool = candidate_lists.take(lists, chosen)
  dense, thin, names = _split_dense(
    sparse.select(rows, chosen), lists.names, pool.sentence, dense_names
  )
  return dataclasses.replace(
    pool,
    sentences=sentences,
    dense=dense,
    sparse=thin,
    names=names,
    dropped=lists.dropped + int(broken.sum()),
  )


def _parts(rows: sparse.SparseRows):
  return rows.ids, rows.values, rows.offsets


def _intern_lines(lines: Sequence[str]) -> np.ndarray:
  """Equal lines get equal ids; int32 `[N]`."""
  index: dict[str, int] = {}
  ids = (index.setdefault(line, len(index)) for line in lines)
  return np.fromiter(ids, np.int32, len(lines))


@njit
def _broken_rows(values, offsets):
  """Which rows hold NaN or infinity."""
  out = np.zeros(len(offsets) - 1, np.bool_)
  for row in range(len(out)):
    for place in range(offsets[row], offsets[row + 1]):
      if not np.isfinite(values[place]):
        out[row] = True
  return out


@njit
def _same(ids, values, offsets, a, b):
  low, other = offsets[a], offsets[b]
  size = offsets[a + 1] - low
  if offsets[b + 1] - other != size:
    return False
  for place in range(size):
    if (
      ids[low + place] != ids[other + place]
      or values[low + place] != values[other + place]
    ):
      return False
  return True


@njit
def _first_of_kind(sentence, text_ids, ids, values, offsets):
  """Which candidates differ from all before them; bool `[N]`."""
  total = len(sentence)
  size = 16
  while size < 2 * total:
    size *= 2
  mask = np.uint64(size - 1)
  slots = np.full(size, -1, np.int64)
  first = np.ones(total, np.bool_)
  bits = values.view(np.uint64)
  prime = np.uint64(0x9E3779B97F4A7C15)
  for row in range(total):
    key = np.uint64(sentence[row]) * prime + np.uint64(text_ids[row])
    for place in range(offsets[row], offsets[row + 1]):
      key = (key ^ bits[place] ^ np.uint64(ids[place])) * prime
      key ^= key >> np.uint64(29)
    slot = (key ^ (key >> np.uint64(32))) & mask
    while slots[slot] >= 0:
      other = slots[slot]
      if (
        sentence[other] == sentence[row]
        and text_ids[other] == text_ids[row]
        and _same(ids, values, offsets, row, other)
      ):
        first[row] = False
        break
      slot = (slot + np.uint64(1)) & mask
    if first[row]:
      slots[slot] = row
  return first


def _split_dense(rows, names, sentence, dense_names):
  """Dense columns, the other features as sparse rows, and all names."""
  if dense_names is None:
    dense_names = _common(rows, names, sentence)
  place = {name: number for number, name in enumerate(names)}
  dense_names = tuple(dense_names)
  chosen = [place[name] for name in dense_names if name in place]
  thin_table = np.full(len(names), 0, np.int32)
  thin_table[chosen] = -1
  others = np.flatnonzero(thin_table == 0)
  thin_table[others] = np.arange(len(others))
  dense_table = np.full(len(names), -1, np.int32)
  for column, name in enumerate(dense_names):
    if name in place:
      dense_table[place[name]] = column
  dense = sparse.to_dense(sparse.renumber(rows, dense_table), len(dense_names))
  all_names = dense_names + tuple(names[other] for other in others.tolist())
  return dense, sparse.renumber(rows, thin_table), all_names


def _common(rows, names, sentence) -> tuple[str, ...]:
  """Features to store densely: all if few, else those in half of the lists."""
  if len(names) <= DENSE_LIMIT:
    return tuple(names)
  owner = np.repeat(sentence, np.diff(rows.offsets)).astype(np.int64)
  pairs = np.unique(rows.ids.astype(np.int64) * (1 << 32) + owner)
  counts = np.bincount(pairs >> 32, minlength=len(names))
  lists = len(np.unique(sentence))
  order = np.argsort(-counts, kind="stable")[:DENSE_LIMIT]
  common = np.sort(order[2 * counts[order] >= lists])
  return tuple(names[number] for number in common.tolist())


@functools.cache
def find_metric(name: str) -> base.Metric:
  """Returns a metric by name: of text, sums of several, links, `ZERO_ONE`."""
  others = {ZERO_ONE.name: ZERO_ONE, **link_accuracy.METRICS}
  return others[name] if name in others else named_metrics.find(name)


def with_statistics(
  pool: CandidateLists,
  references: encoded_text.ReferenceLines,
  metrics: Sequence[str] = ("bleu",),
) -> CandidateLists:
  """Returns the pool with the statistics of metrics in it.

  Args:
    pool: B sentences.
    references: for each of B sentences its references, tokenised like the
      candidates.
    metrics: names in `jaxmt.metrics.named_metrics`.

  Raises:
    ValueError: if B sentences and references do not match.
  """
  if len(references) != pool.sentences:
    raise ValueError(
      f"{pool.sentences} sentences, references of {len(references)}"
    )
  statistics = dict(pool.statistics)
  encoded: dict[str, tuple] = {}
  for name in metrics:
    metric = find_metric(name)
    if metric.unit not in encoded:
      known = encoded_text.encode_references(references, unit=metric.unit)
      encoded[metric.unit] = known.references, known.encode(pool.lines)
    refs, hypotheses = encoded[metric.unit]
    statistics[name] = metric.statistics(
      metric.prepare(refs), hypotheses, pool.sentence
    )
  forests = pool.forests
  if forests is not None:
    forests = forests.bind(references)
  return dataclasses.replace(pool, statistics=statistics, forests=forests)


def split_sparse(pool: CandidateLists) -> tuple[CandidateLists, np.ndarray]:
  """Returns the pool with all sparse features stored so.

  A feature is sparse if there is a colon in its name, as in those of all
  templates, or if the pool stores it sparsely: of many features, those of few
  lists.

  Returns:
    `(pool, place)`: a weight vector `w` of the given pool is `w[place]` for the
    new one.
  """
  stored = pool.names[: pool.dense.shape[1]]
  dense = [name for name in stored if ":" not in name]
  if len(dense) == len(stored):
    return pool, np.arange(len(pool.names))
  split = make_pool(pool, dense_names=dense)
  place = {name: number for number, name in enumerate(pool.names)}
  return split, np.array([place[name] for name in split.names])


def summarised(
  pool: CandidateLists, weights: np.ndarray, groups: np.ndarray
) -> CandidateLists:
  """Returns a dense pool: sparse features folded into one sum per group.

  Args:
    pool: F sparse features.
    weights: `[D + F]`; those of sparse features make the sums.
    groups: the group of each sparse feature, int `[F]`.

  Returns:
    A pool with the features `summary_0`, ... after the dense ones. Weight 1
    for them gives the scores of the old weights.
  """
  width = pool.dense.shape[1]
  sums = selection.summary_features(pool.sparse, weights[width:], groups)
  names = tuple(f"summary_{number}" for number in range(sums.shape[1]))
  return dataclasses.replace(
    pool,
    dense=np.concatenate([pool.dense, sums], 1),
    sparse=sparse.empty(len(pool)),
    names=pool.names[:width] + names,
  )


def scores(pool: CandidateLists, weights: np.ndarray) -> np.ndarray:
  """Returns the model score of each candidate, float64 `[N]`."""
  width = pool.dense.shape[1]
  if len(weights) != len(pool.names):
    raise ValueError(f"{len(weights)} weights, {len(pool.names)} features")
  total = _dense_scores(pool.dense, np.asarray(weights, np.float64))
  if len(pool.sparse.ids):
    total += sparse.dot(pool.sparse, weights[width:])
  return total


@njit
def _dense_scores(dense, weights):
  """`dense @ weights`: rows this short are slower through BLAS."""
  out = np.zeros(dense.shape[0], np.float64)
  for row in range(dense.shape[0]):
    total = 0.0
    for column in range(dense.shape[1]):
      total += dense[row, column] * weights[column]
    out[row] = total
  return out


def best(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
  """Returns the first highest candidate of each non-empty list; int64."""
  return _best(np.asarray(values, np.float64), offsets)


@njit
def _best(values, offsets):
  out = np.empty(len(offsets) - 1, np.int64)
  count = 0
  for row in range(len(offsets) - 1):
    if offsets[row] == offsets[row + 1]:
      continue
    top = offsets[row]
    for place in range(offsets[row] + 1, offsets[row + 1]):
      if values[place] > values[top]:
        top = place
    out[count] = top
    count += 1
  return out[:count]


def backward(pool: CandidateLists, slopes: np.ndarray) -> np.ndarray:
  """Returns the gradient in the weights, given that in the scores.

  Args:
    pool: N candidates.
    slopes: d loss / d score of each candidate, `[N]`.

  Returns:
    float64 `[D + F]`.
  """
  width = pool.dense.shape[1]
  out = np.zeros(len(pool.names), np.float64)
  _backward(
    pool.dense,
    pool.sparse.ids,
    pool.sparse.values,
    pool.sparse.offsets,
    np.asarray(slopes, np.float64),
    out[:width],
    out[width:],
  )
  return out


@njit
def _backward(dense, ids, values, offsets, slopes, out, thin):
  for row in range(len(slopes)):
    slope = slopes[row]
    if slope == 0.0:
      continue
    for column in range(dense.shape[1]):
      out[column] += slope * dense[row, column]
    for place in range(offsets[row], offsets[row + 1]):
      thin[ids[place]] += slope * values[place]


def pool_score(pool: CandidateLists, weights: np.ndarray, metric: str) -> float:
  """Returns the corpus score of the best candidates under `weights`."""
  chosen = best(scores(pool, weights), pool.offsets)
  total = pool.statistics[metric][chosen].sum(0, dtype=np.float64)
  return float(find_metric(metric).corpus_score(total))


def sentence_costs(pool: CandidateLists, metric: str) -> np.ndarray:
  """Returns each candidate's sentence-level error, float64 `[N]`.

  `1 - score` for metrics where higher is better, the score for error rates.
  BLEU's sentence form is BLEU+1.
  """
  # Sentences are scored by BLEU+1 where corpora are scored by BLEU.
  plus_one = metric == "bleu"
  kind = named_metrics.METRICS["bleu+1"] if plus_one else find_metric(metric)
  values = np.asarray(kind.sentence_score(pool.statistics[metric]), np.float64)
  return 1.0 - values if kind.higher_is_better else values
