"""MIRA on forests against its formula."""

import numpy as np

from jaxmt.metrics import bleu
from jaxmt.tune import learning
from jaxmt.tune.forests import (
  forest_mira,
)
from tests.tune.forests.forest_loss_test import START, brute, made


def test_mira_equals_the_step_of_its_formula():
  """One sentence, one constraint: w + min(C, loss / |x|^2) x (Eq 61-62)."""
  pool, data = made(7, sentences=1)
  config = forest_mira.ForestMiraConfig(passes=1, cap=0.05)
  forest, statistics = data.split.forest, data.split.statistics
  scores = data.scores(START)
  best = brute(data, 0, scores)
  document = np.ones(9)
  document[:8] += statistics[best].sum(0)
  document[8] += data.references[0]
  slopes = np.empty(8)
  bleu.slopes(document, slopes)
  gains = document[8] * (statistics @ slopes)
  hope, fear = (brute(data, 0, scores + sign * gains) for sign in (1, -1))
  table = data.features[data.split.edge]
  way = table[hope].sum(0) - table[fear].sum(0)
  loss = gains[hope].sum() - gains[fear].sum() - START @ way
  expected = START + min(0.05, max(0.0, loss / (way @ way))) * way
  now = learning.Learner(weights=START)
  next(forest_mira.passes(pool, now, config, 0))
  assert len(forest) == 1
  np.testing.assert_allclose(now.weights, expected, rtol=1e-9)
  assert not np.allclose(expected, START)
