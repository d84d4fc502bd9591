"""The compiled corpus BLEU against the metric."""

import numpy as np

from jaxmt.metrics import compiled_bleu, registry


def test_compiled_bleu_is_the_metric():
  rng = np.random.default_rng(0)
  totals = np.sort(rng.integers(5, 400, (200, 4)))[:, ::-1]
  matches = (totals * rng.uniform(0, 1, totals.shape)).astype(int)
  reference = rng.integers(1, 500, (200, 1))
  sums = np.concatenate([matches, totals, reference], 1).astype(np.float64)
  some = (matches > 0).all(1)  # the metric smooths, the kernel gives 0
  np.testing.assert_allclose(
    compiled_bleu.bleu_rows(sums[some]),
    registry.METRICS["bleu"].corpus_score(sums[some]),
    rtol=1e-12,
  )
  assert (compiled_bleu.bleu_rows(sums[~some]) == 0).all()
