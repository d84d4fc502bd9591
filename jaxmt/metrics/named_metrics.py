"""The metrics by name, with their usual settings."""

import functools
import math

from jaxmt.errors import InputError
from jaxmt.metrics import (
  base,
  bleu,
  chrf,
  edits,
  gtm,
  meteor,
  nist,
  ter,
  weighted,
)

METRICS: dict[str, base.Metric] = {
  metric.name: metric
  for metric in (
    bleu.metric(),
    # The same statistics; sentences are scored by BLEU+1, corpora by BLEU.
    bleu.metric(name="bleu+1", sentence_smoothing=bleu.PLUS_ONE),
    # One added to the unigrams too (Gimpel 2012).
    bleu.metric(name="bleu+1-all", sentence_smoothing=bleu.PLUS_ONE_ALL),
    # BLEU+1 made fit for pairwise ranking (see `bleu.Smoothing`).
    bleu.metric(name="bleu+1-grounded", sentence_smoothing=bleu.GROUNDED),
    ter.metric(),
    nist.metric(),
    edits.metric("wer"),
    edits.metric("per"),
    gtm.metric(),
    meteor.metric(),
    chrf.metric(),
    chrf.metric(word_order=2),
  )
}
# Metrics with BLEU's statistics, whose corpus score is BLEU.
BLEU = ("bleu", "bleu+1", "bleu+1-all", "bleu+1-grounded")


def parts(name: str) -> list[tuple[float, base.Metric]]:
  """Reads `bleu`, `bleu,ter` (equal weights) or `bleu:0.7,ter:0.3`.

  Raises:
    InputError: for a metric that does not exist, or a weight that is none.
  """
  pieces = [piece.partition(":") for piece in name.split(",")]
  metrics = []
  for metric, colon, text in pieces:
    if metric not in METRICS:
      known = ", ".join(sorted(METRICS))
      raise InputError(f"no metric '{metric}'; there are: {known}")
    try:
      weight = float(text) if colon else 1.0 / len(pieces)
    except ValueError:
      weight = math.nan
    if not math.isfinite(weight):
      raise InputError(f"metric '{name}': '{text}' is not a weight")
    metrics.append((weight, METRICS[metric]))
  return metrics


@functools.cache
def find(name: str) -> base.Metric:
  """Returns a metric by name, or the weighted sum of several; see `parts`.

  In sums, sentences are scored by BLEU+1 where the name says `bleu`.
  """
  metrics = parts(name)
  if len(metrics) == 1 and ":" not in name:
    return metrics[0][1]
  plus_one = METRICS["bleu+1"]
  return weighted.make_metric(
    name, [(w, plus_one if m.name == "bleu" else m) for w, m in metrics]
  )
