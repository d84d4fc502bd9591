"""The metrics by name, with their usual settings."""

from jaxmt.metrics import base, bleu, chrf, edits, gtm, nist, ter

METRICS: dict[str, base.Metric] = {
  metric.name: metric
  for metric in (
    bleu.metric(),
    # The same statistics; sentences are scored by BLEU+1, corpora by BLEU.
    bleu.metric(name="bleu+1", sentence_smoothing=bleu.PLUS_ONE),
    # BLEU+1 made fit for pairwise ranking (see `bleu.Smoothing`).
    bleu.metric(name="bleu+1-grounded", sentence_smoothing=bleu.GROUNDED),
    ter.metric(),
    nist.metric(),
    edits.metric("wer"),
    edits.metric("per"),
    gtm.metric(),
    chrf.metric(),
    chrf.metric(word_order=2),
  )
}
