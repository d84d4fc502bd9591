"""The losses of loss-augmented training, exactly, on the host.

The search computes them on its way (`decode.chart.augmentations`); here they
are computed of finished derivations: of the ranks of their parts, and of their
words. Equations are numbered as in the paper (see `theta_config`).
"""

from collections.abc import Callable

import numpy as np

from jaxmt.metrics import base
from jaxmt.metrics.named_metrics import METRICS
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

ORDER = 4
SMOOTHING = 0.5


def beam_loss(
  rank: np.ndarray, *, k: int, margin: int, cost: float
) -> np.ndarray:
  """l_beam of equation (10), figures 3 and 4.

  Args:
    rank: η, from 1 for the best, `[...]`.
    k: the beam width of decoding.
    margin: k_m; 0 makes a step after rank k.
    cost: C.

  Returns:
    0 up to rank k - k_m, C after k + k_m, a line between; float64 `[...]`.
  """
  rank = np.asarray(rank, np.float64)
  if margin == 0:
    return np.where(rank > k, float(cost), 0.0)
  slope = cost / (2.0 * margin)
  return np.clip((rank - (k - margin)) * slope, 0.0, cost)


def derivation_beam_loss(
  ranks: Ragged, *, k: int, margin: int, cost: float
) -> np.ndarray:
  """loss_beam of derivations, equation (9).

  Args:
    ranks: for each derivation the rank, from 1, at every span where it applies
      a rule, D rows.
    k: see `beam_loss`.
    margin: see `beam_loss`.
    cost: see `beam_loss`.

  Returns:
    float64 `[D]`.
  """
  losses = beam_loss(ranks.flat, k=k, margin=margin, cost=cost)
  sums = np.concatenate([np.zeros(1), np.cumsum(losses)])
  return sums[ranks.offsets[1:]] - sums[ranks.offsets[:-1]]


def ngram_matches(
  strings: Ragged, references: Ragged, sentence: np.ndarray
) -> np.ndarray:
  """Counts Σ_g c(g, t) of equation (11) for each order.

  Every n-gram of a string counts as often as the reference has it; nothing is
  clipped.

  Args:
    strings: word ids, D rows.
    references: ids of the same numbering, B rows.
    sentence: the reference of each string, int `[D]`.

  Returns:
    int64 `[D, 4]`.
  """
  return _matches(
    strings.flat,
    strings.offsets,
    references.flat,
    references.offsets,
    np.asarray(sentence, np.int64),
  )


@njit
def _matches(flat, offsets, ref_flat, ref_offsets, sentence):
  out = np.zeros((len(offsets) - 1, ORDER), np.int64)
  for row in range(len(out)):
    first, last = ref_offsets[sentence[row]], ref_offsets[sentence[row] + 1]
    for item in range(offsets[row], offsets[row + 1]):
      for place in range(first, last):
        size = 0
        while (
          size < ORDER
          and item - size >= offsets[row]
          and place - size >= first
          and flat[item - size] == ref_flat[place - size]
        ):
          out[row, size] += 1
          size += 1
  return out


def bleu_loss(
  length: np.ndarray, matches: np.ndarray, *, smoothing: float = SMOOTHING
) -> np.ndarray:
  """loss_goodness of equation (11): minus an approximate log BLEU.

  `-log |t| - ¼ Σ_n log( (matches_n + s) / (max(|t| - n + 1, 0) + s) )`. As
  printed (s = 0) it is infinite without matches and undefined for |t| < n; s
  makes both finite. The first term takes |t| = 0 as 1.

  Args:
    length: |t|, `[...]`.
    matches: see `ngram_matches`, `[..., 4]`.
    smoothing: s.
  """
  words = np.asarray(length, np.float64)
  orders = np.arange(ORDER)
  possible = np.maximum(words[..., None] - orders, 0.0) + smoothing
  logs = np.log((matches + smoothing) / possible)
  return -np.log(np.maximum(words, 1.0)) - logs.mean(-1)


# (strings D rows, references B rows, sentence [D]) -> loss [D].
Goodness = Callable[[Ragged, Ragged, np.ndarray], np.ndarray]


def goodness(name: str) -> Goodness:
  """Returns a goodness loss by name.

  Args:
    name: "bleu" for equation (11), else a sentence metric on words in
      `metrics.named_metrics`: its error, or minus its score if higher is better
      (section IV-C-7).

  Raises:
    ValueError: for an unknown metric, or one of characters.
  """
  if name == "bleu":
    return _bleu_goodness
  if name not in METRICS or METRICS[name].unit != base.WORD:
    known = [n for n, metric in METRICS.items() if metric.unit == base.WORD]
    raise ValueError(f"goodness {name!r} is none of {', '.join(known)}")
  metric = METRICS[name]

  def loss(strings: Ragged, references: Ragged, sentence: np.ndarray):
    counts = np.ones(len(references), np.int64)
    known = metric.prepare(base.make_references(references, counts))
    values = metric.statistics(known, strings, sentence, threads=1)
    score = np.asarray(metric.sentence_score(values), np.float64)
    return -score if metric.higher_is_better else score

  return loss


def _bleu_goodness(strings, references, sentence) -> np.ndarray:
  matches = ngram_matches(strings, references, sentence)
  return bleu_loss(strings.lengths, matches)


def edit_distances(
  strings: Ragged, references: Ragged, sentence: np.ndarray
) -> np.ndarray:
  """Returns the words' edit distance of strings to their references, `[D]`."""
  counts = np.ones(len(references), np.int64)
  known = base.make_references(references, counts)
  values = METRICS["wer"].statistics(known, strings, sentence, threads=1)
  return values[:, 0]


def admissible(
  strings: Ragged,
  references: Ragged,
  sentence: np.ndarray,
  *,
  share: float,
) -> np.ndarray:
  """Which strings are near enough to learn from (section III-A), bool `[D]`.

  "Differ in 25 % of the words at most" is read as: the edit distance of the
  words is at most `share` of the reference's number of words.
  """
  limit = share * references.lengths[np.asarray(sentence, np.int64)]
  return edit_distances(strings, references, sentence) <= limit + 1e-9
