"""Which bi-spans to parse: for each source span the best K target spans.

Liu, Li & Zhou (ACL 2010), "Discriminative Pruning for Discriminative ITG
Alignment" (DPDI): eight features of a bi-span, whose weights put the target
span of a gold tree high among all target spans (`jaxmt.tune.lists.rank_mert`).
Tic-tac-toe pruning (Zhang & Gildea, 2005) is the special case with weight 1 for
the first two features. The pruner of Haghighi et al. (2009), "dp", asks how
many confident links of the HMM a bi-span makes derivations leave out, and has
no weights: see `link_violations`.

All features are differences of running sums over the target, so a batch is a
few matrix products and one fused loop over (source span, target span).

B: sentence pairs. W: width of the batch. Q: source spans. T: target spans, all
of W words by first word, then by last.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmt.align.itg import bispans, link_violations
from jaxmt.align.itg.bispans import BiSpans
from jaxmt.align.itg.link_features import Matrices
from jaxmt.text.ragged import Ragged, row_offsets

FEATURES = (
  "inside",
  "outside",
  "link ratio",
  "inconsistent link ratio",
  "length ratio",
  "position",
  "posterior ratio",
  "inconsistent posterior ratio",
)
PRUNERS = ("dpdi", "tic-tac-toe", "dp")
TIC_TAC_TOE = np.array([1.0, 1.0, 0, 0, 0, 0, 0, 0])
# The features differ in scale: a start that uses the ratios, too.
DPDI_START = np.array([1.0, 1.0, 1.0, -5.0, -1.0, -5.0, 5.0, -20.0])
CONFIDENT = 0.9  # least posterior of a link for the "dp" pruner
LIKELY = 0.5  # and for the others
_FLOOR = 1e-6
_ROWS = 1 << 21  # cells of (source span, target span) in work at once


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pruner:
  """How bi-spans are chosen.

  Attributes:
    name: one of `PRUNERS`.
    weights: of `FEATURES`, float64 `[8]`; all 0 for "dp".
    beam: target spans for each source span.
    ratio: source words per target word that feature 5 compares with; the
      papers have 1.15 for Chinese and English.
  """

  name: str
  weights: np.ndarray
  beam: int = 10
  ratio: float = 1.0

  def __post_init__(self):
    if self.name not in PRUNERS:
      raise ValueError(f"pruner '{self.name}' is none of {', '.join(PRUNERS)}")
    if self.beam < 1:
      raise ValueError(f"beam cannot be {self.beam}")

  @property
  def threshold(self) -> float:
    """The least posterior of what counts as a link."""
    return CONFIDENT if self.name == "dp" else LIKELY


def pruner(name: str, *, beam: int = 10, ratio: float = 1.0) -> Pruner:
  """Returns a pruner with the weights it has before training."""
  start = {
    "dpdi": DPDI_START,
    "tic-tac-toe": TIC_TAC_TOE,
    "dp": np.zeros(len(FEATURES)),
  }
  if name not in start:
    raise ValueError(f"pruner '{name}' is none of {', '.join(PRUNERS)}")
  return Pruner(name=name, weights=start[name], beam=beam, ratio=ratio)


def span_features(
  start: Array,
  end: Array,
  model1: Array,
  links: Array,
  posterior: Array,
  n: Array,
  m: Array,
  ratio: float | Array,
) -> tuple[list[Array], Array]:
  """Computes `FEATURES` of source spans with all target spans.

  With |f| and |e| the lengths of the two spans:

    inside   sum over e_i in the target span of ln mean of p(e_i | f_j) over the
             source span; outside likewise of the words around
    ratio    2 links / (|f| + |e|) of links inside, or of those that leave the
             bi-span; and the same for sums of posteriors
    length   | |f| / |e| - ratio |
    position difference of (first + last) / (2 length of the sentence)

  Args:
    start: first source word, int `[Q]`.
    end: one past the last, int `[Q]`.
    model1: p(target word | source word), `[W, W]` (source x target).
    links: links of a simpler aligner, 0 or 1, `[W, W]`.
    posterior: their posteriors, `[W, W]`.
    n: source words.
    m: target words.
    ratio: see above.

  Returns:
    Eight arrays that broadcast to `[Q, T]`, and which of these target spans are
    in the sentence, bool `[T]`.
  """
  place = jnp.arange(model1.shape[0])
  first, last = _spans(model1.shape[0])
  within = (place >= start[:, None]) & (place < end[:, None])
  inner = within.astype(model1.dtype)
  outer = ((place < n) & ~within).astype(model1.dtype)
  width = (end - start).astype(model1.dtype)[:, None]
  size = jnp.asarray(last + 1 - first, model1.dtype)
  real = place < m

  def runs(values):
    """Sums of `[Q, W]` over target spans, `[Q, T]`, and over all words."""
    sums = jnp.cumsum(jnp.where(real, values, 0.0), axis=-1)
    before = jnp.pad(sums, ((0, 0), (1, 0)))
    return before[:, last + 1] - before[:, first], sums[:, -1, None]

  def mean_log(mask, number):
    return jnp.log(jnp.maximum(mask @ model1 / number, _FLOOR))

  inside, _ = runs(mean_log(inner, width))
  around, total = runs(mean_log(outer, jnp.maximum(n - width, 1.0)))

  def ratios(matrix):
    held, leaving = runs(inner @ matrix)
    arriving, _ = runs(matrix.sum(0)[None])
    scale = 2.0 / (width + size)
    return held * scale, (leaving + arriving - 2.0 * held) * scale

  middle = (start + 1 + end)[:, None] / (2.0 * jnp.maximum(n, 1))
  other = (first + last + 2) / (2.0 * jnp.maximum(m, 1))
  return [
    inside,
    total - around,
    *ratios(links),
    jnp.abs(width / size - ratio),
    jnp.abs(middle - other),
    *ratios(posterior),
  ], jnp.asarray(last < m)


@functools.partial(jax.jit, static_argnames="beam")
def _best_spans(matrices: Matrices, weights, ratio, threshold, *, beam):
  """The best target spans: scores and their numbers, `[B, Q, beam]`."""
  starts, lasts = _spans(matrices.model1.shape[1])
  ends = lasts + 1
  chunk = min(len(starts), max(1, _ROWS // len(starts)))
  count = -(-len(starts) // chunk)
  pad = count * chunk - len(starts)
  cut = lambda array: jnp.asarray(np.pad(array, (0, pad), mode="edge")).reshape(
    count, chunk
  )
  spans = cut(starts), cut(ends)

  def of_pair(model1, posterior, n, m):
    links = (posterior >= threshold).astype(model1.dtype)

    def step(span):
      values, valid = span_features(
        span[0], span[1], model1, links, posterior, n, m, ratio
      )
      score = sum(w * value for w, value in zip(weights, values, strict=True))
      inside = valid & (span[1] <= n)[:, None]
      score = jnp.where(inside, score, -jnp.inf)
      return jax.lax.top_k(score, beam)

    score, place = jax.lax.map(step, spans)
    trim = lambda array: array.reshape(count * chunk, beam)[: len(starts)]
    return trim(score), trim(place)

  return jax.lax.map(
    lambda pair: of_pair(*pair),
    (
      matrices.model1,
      matrices.posterior,
      matrices.source_length,
      matrices.target_length,
    ),
  )


def _spans(width: int) -> tuple[np.ndarray, np.ndarray]:
  """First and last words of all spans, int32 `[T]` each."""
  first, last = np.triu_indices(width)
  return first.astype(np.int32), last.astype(np.int32)


def prune(matrices: Matrices, number: int, how: Pruner) -> BiSpans:
  """Returns the bi-spans of the first `number` sentence pairs of a batch."""
  width = matrices.model1.shape[1]
  starts, lasts = _spans(width)
  beam = min(how.beam, len(starts))
  if how.name == "dp":
    score, place = link_violations.best_spans(
      np.asarray(matrices.posterior)[:number],
      np.asarray(matrices.source_length)[:number],
      np.asarray(matrices.target_length)[:number],
      confident=how.threshold,
      beam=beam,
    )
    first, last = np.divmod(place, width)
  else:
    score, place = _best_spans(
      matrices,
      tuple(np.asarray(how.weights, np.float32)),
      np.float32(how.ratio),
      np.float32(how.threshold),
      beam=beam,
    )
    score, place = np.asarray(score)[:number], np.asarray(place)[:number]
    first, last = starts[place], lasts[place]
  usable = score > -np.inf
  span = np.nonzero(usable)[1]
  flat = np.stack(
    [starts[span], lasts[span] + 1, first[usable], last[usable] + 1], axis=1
  )
  return bispans.from_rows(
    Ragged(flat=flat, offsets=row_offsets(usable.sum((1, 2)))),
    np.asarray(matrices.source_length)[:number],
    np.asarray(matrices.target_length)[:number],
  )


@functools.partial(jax.jit)
def _sample_features(matrices, pair, start, end, ratio, threshold):
  """Features of samples with all target spans, `[S, T, 8]` and a mask."""

  def one(pair, start, end):
    posterior = matrices.posterior[pair]
    values, valid = span_features(
      start[None],
      end[None],
      matrices.model1[pair],
      (posterior >= threshold).astype(posterior.dtype),
      posterior,
      matrices.source_length[pair],
      matrices.target_length[pair],
      ratio,
    )
    values = [jnp.broadcast_to(own, (1, len(valid)))[0] for own in values]
    return jnp.stack(values, -1), valid

  return jax.vmap(one)(pair, start, end)


def sample_features(
  matrices: Matrices, samples: np.ndarray, how: Pruner, *, chunk: int = 128
) -> tuple[Ragged, np.ndarray]:
  """Returns the features of all target spans of some source spans.

  Args:
    matrices: a batch.
    samples: int `[N, 5]`: sentence pair of the batch, gold bi-span.
    how: says what counts as a link, and the ratio of lengths.
    chunk: samples in work at once.

  Returns:
    Features, float32 `[_, 8]` in N rows, and the place of the gold target span
    in each row, int64 `[N]`.
  """
  first, last = _spans(matrices.model1.shape[1])
  number = np.zeros((last[-1] + 1, last[-1] + 1), np.int64)
  number[first, last] = np.arange(len(first))
  rows, golds = [], []
  for begin in range(0, len(samples), chunk):
    own = samples[begin : begin + chunk]
    padded = np.pad(own, ((0, chunk - len(own)), (0, 0)), mode="edge")
    values, valid = _sample_features(
      matrices,
      *padded[:, :3].T,
      np.float32(how.ratio),
      np.float32(how.threshold),
    )
    values = np.asarray(values)[: len(own)]
    valid = np.asarray(valid)[: len(own)]
    gold = number[own[:, 3], own[:, 4] - 1]
    golds.append(np.cumsum(valid, 1)[np.arange(len(own)), gold] - 1)
    rows += [value[mask] for value, mask in zip(values, valid, strict=True)]
  lengths = [len(row) for row in rows]
  flat = np.concatenate(rows) if rows else np.zeros((0, 8), np.float32)
  return (
    Ragged(flat=flat, offsets=row_offsets(lengths)),
    np.concatenate(golds) if golds else np.zeros(0, np.int64),
  )


def missing_share(chart: BiSpans, samples: np.ndarray) -> tuple[int, int]:
  """Returns how many gold bi-spans a chart does not have, and how many are.

  Their ratio is the pruning error rate (PER); both numbers add up.

  Args:
    chart: bi-spans of B sentence pairs.
    samples: int `[N, 5]`: sentence pair, gold bi-span.
  """
  pair = np.repeat(np.arange(len(chart)), np.diff(chart.offsets))
  have = _keys(np.concatenate([pair[:, None], chart.spans], axis=1))
  absent = ~np.isin(_keys(samples), have)
  return int(absent.sum()), len(samples)


def _keys(rows: np.ndarray) -> np.ndarray:
  out = np.zeros(len(rows), np.int64)
  for column in np.asarray(rows, np.int64).T:
    out = (out << 12) | column
  return out
