"""Is one system better than another? Tests on cached statistics.

Both tests need only the additive statistics of each sentence. They draw the
same random numbers as sacreBLEU does for the same seed, and resample all
systems alike (the tests are paired):

* `bootstrap` draws sentences with replacement (Koehn, 2004);
* `randomization` swaps the two systems' output at random per sentence
  (Riezler and Maxwell, 2005).

A p-value is `(1 + number of samples at least as extreme) / (1 + samples)`.
sacreBLEU counts only samples strictly more extreme than what was observed. The
two agree unless there are ties; with ties sacreBLEU's p is too small, down to
"significant" for two identical systems, which get p = 1 here.

Sums over resampled sentences are matrix products with counts, in chunks of
samples, so memory does not grow with the number of samples.

N: sentences. S: statistics. M: systems. B: samples.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from jaxmt.metrics.base import Metric

DEFAULT_SEED = 12345
BOOTSTRAP_SAMPLES = 1000
RANDOMIZATION_SAMPLES = 10000

# Cells of a chunk of the [samples, sentences] matrix: 32 MB of float64.
_CHUNK_CELLS = 1 << 22
# Samples per chunk are a multiple of this, because random booleans come 32 to a
# word and a call starts a new word: only so chunks continue one stream.
_BITS = 32
_TOLERANCE = 1e-9


@dataclasses.dataclass(frozen=True, kw_only=True)
class Interval:
  """A score and how far it varies over resampled test sets.

  Attributes:
    score: of the whole test set.
    mean: over bootstrap samples.
    margin: half the width of the central 95 % of the samples.
  """

  score: float
  mean: float
  margin: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
  """One system against the baseline.

  Attributes:
    interval: the system's score.
    p_value: how probable so large a difference is if the systems are equal.
    better: whether the system's score is better than the baseline's.
  """

  interval: Interval
  p_value: float
  better: bool


def _chunks(samples: int, sentences: int) -> Iterator[int]:
  """Yields sizes that add up to `samples`."""
  size = max(_BITS, _CHUNK_CELLS // max(1, sentences) // _BITS * _BITS)
  for start in range(0, samples, size):
    yield min(size, samples - start)


def _draw_counts(
  rng: np.random.Generator, samples: int, sentences: int
) -> Iterator[np.ndarray]:
  """Yields how often each sample has each sentence, float64 `[b, N]`."""
  for size in _chunks(samples, sentences):
    drawn = rng.choice(sentences, size=(size, sentences), replace=True)
    drawn += np.arange(size)[:, None] * sentences
    counts = np.bincount(drawn.ravel(), minlength=size * sentences)
    yield counts.reshape(size, sentences).astype(np.float64)


def _check(baseline: np.ndarray, systems: np.ndarray, samples: int) -> None:
  if systems.ndim != 3 or systems.shape[1:] != baseline.shape:
    raise ValueError(
      f"systems {systems.shape} do not fit the baseline {baseline.shape}"
    )
  if not len(baseline):
    raise ValueError("no sentences")
  if samples < 1:
    raise ValueError(f"samples must be at least 1, not {samples}")


def _interval(score: float, scores: np.ndarray) -> Interval:
  ordered = np.sort(scores)
  cut = len(ordered) // 40
  margin = 0.5 * (ordered[len(ordered) - cut - 1] - ordered[cut])
  return Interval(
    score=float(score), mean=float(ordered.mean()), margin=float(margin)
  )


def _p_value(samples: np.ndarray, observed: float) -> float:
  extreme = np.sum(samples >= observed - _TOLERANCE)
  return float((extreme + 1) / (len(samples) + 1))


def _better(metric: Metric, score: float, baseline: float) -> bool:
  return bool(score > baseline if metric.higher_is_better else score < baseline)


def bootstrap_scores(
  metric: Metric,
  statistics: np.ndarray,
  *,
  samples: int = BOOTSTRAP_SAMPLES,
  seed: int = DEFAULT_SEED,
) -> np.ndarray:
  """Returns the corpus scores of resampled test sets, `[M, B]`.

  Args:
    metric: whose statistics they are.
    statistics: per system and sentence, `[M, N, S]`.
    samples: B.
    seed: the same seed and N give the same samples, whatever the system.
  """
  systems, sentences, size = statistics.shape
  flat = np.asarray(statistics, np.float64).transpose(1, 0, 2)
  flat = flat.reshape(sentences, systems * size)
  rng = np.random.default_rng(seed)
  parts = []
  for counts in _draw_counts(rng, samples, sentences):
    sums = (counts @ flat).reshape(len(counts), systems, size)
    parts.append(metric.corpus_score(sums).T)
  return np.concatenate(parts, axis=1)


def confidence(
  metric: Metric,
  statistics: np.ndarray,
  *,
  samples: int = BOOTSTRAP_SAMPLES,
  seed: int = DEFAULT_SEED,
) -> Interval:
  """Returns one system's score with its bootstrap interval; `[N, S]`."""
  _check(statistics, statistics[None], samples)
  scores = bootstrap_scores(
    metric, statistics[None], samples=samples, seed=seed
  )
  score = metric.corpus_score(np.asarray(statistics, np.float64).sum(0))
  return _interval(score, scores[0])


def bootstrap(
  metric: Metric,
  baseline: np.ndarray,
  systems: np.ndarray,
  *,
  samples: int = BOOTSTRAP_SAMPLES,
  seed: int = DEFAULT_SEED,
) -> list[Comparison]:
  """Paired bootstrap resampling of each system against the baseline.

  The sampled absolute differences, less their mean, are what differences look
  like around zero; p is how often they reach the observed difference.

  Args:
    metric: whose statistics they are.
    baseline: per sentence, `[N, S]`.
    systems: per system and sentence, `[M, N, S]`.
    samples: B.
    seed: of the draws, which all systems share.
  """
  _check(baseline, systems, samples)
  both = np.concatenate([baseline[None], systems]).astype(np.float64)
  observed = metric.corpus_score(both.sum(1))
  drawn = bootstrap_scores(metric, both, samples=samples, seed=seed)
  results = []
  for score, scores in zip(observed[1:], drawn[1:], strict=True):
    gaps = np.abs(scores - drawn[0])
    results.append(
      Comparison(
        interval=_interval(score, scores),
        p_value=_p_value(gaps - gaps.mean(), abs(score - observed[0])),
        better=_better(metric, score, observed[0]),
      )
    )
  return results


def randomization(
  metric: Metric,
  baseline: np.ndarray,
  systems: np.ndarray,
  *,
  samples: int = RANDOMIZATION_SAMPLES,
  confidence_samples: int = BOOTSTRAP_SAMPLES,
  seed: int = DEFAULT_SEED,
) -> list[Comparison]:
  """Two-sided approximate randomisation of each system against the baseline.

  Args:
    metric: whose statistics they are.
    baseline: per sentence, `[N, S]`.
    systems: per system and sentence, `[M, N, S]`.
    samples: B swaps.
    confidence_samples: bootstrap samples for the intervals.
    seed: of the swaps, which all systems share, and of the bootstrap.
  """
  _check(baseline, systems, samples)
  baseline = np.asarray(baseline, np.float64)
  systems = np.asarray(systems, np.float64)
  first = metric.corpus_score(baseline.sum(0))
  observed = metric.corpus_score(systems.sum(1))
  sentences, size = baseline.shape
  # The first pseudo-system is half the sum plus a signed half difference, the
  # second the same with the sign turned: one product gives both.
  half = 0.5 * (baseline + systems).sum(1)
  difference = 0.5 * (baseline - systems).transpose(1, 0, 2)
  difference = difference.reshape(sentences, len(systems) * size)
  rng = np.random.default_rng(seed)
  parts = []
  for number in _chunks(samples, sentences):
    swaps = rng.integers(2, size=(number, sentences), dtype=bool)
    signs = np.where(swaps, 1.0, -1.0)
    moved = (signs @ difference).reshape(number, len(systems), size)
    gap = metric.corpus_score(half + moved) - metric.corpus_score(half - moved)
    parts.append(np.abs(gap).T)
  gaps = np.concatenate(parts, axis=1)
  drawn = bootstrap_scores(
    metric, systems, samples=confidence_samples, seed=seed
  )
  return [
    Comparison(
      interval=_interval(score, scores),
      p_value=_p_value(row, abs(score - first)),
      better=_better(metric, score, first),
    )
    for score, scores, row in zip(observed, drawn, gaps, strict=True)
  ]
