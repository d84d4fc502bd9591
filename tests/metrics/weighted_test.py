"""Sums of metrics against their parts."""

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.metrics import encoded_text, named_metrics

REFERENCES = [["the cat sat on the mat ."], ["a dog", "one dog runs"], ["x"]]
HYPOTHESES = ["the cat sat on a mat .", "a dog runs", ""]


def statistics(name):
  metric = named_metrics.find(name)
  known = encoded_text.encode_references(REFERENCES, unit=metric.unit)
  return metric, metric.statistics(
    metric.prepare(known.references), known.encode(HYPOTHESES), np.arange(3)
  )


@pytest.mark.parametrize("name", ["bleu:2,ter:0.5,wer:1", "nist,per"])
def test_sum_of_parts(name):
  metric, table = statistics(name)
  assert table.shape == (3, metric.size)
  total = 0.0
  alone = 0.0
  for weight, part in named_metrics.parts(name):
    own, rows = statistics(part.name)
    value = own.corpus_score(rows.sum(0))
    total += weight * (value if own.higher_is_better else 1 - value)
    smooth = named_metrics.METRICS["bleu+1"] if part.name == "bleu" else own
    values = np.asarray(smooth.sentence_score(rows))
    alone += weight * (values if own.higher_is_better else 1 - values)
  assert metric.corpus_score(table.sum(0)) == pytest.approx(total)
  np.testing.assert_allclose(metric.sentence_score(table), alone)
  assert metric.higher_is_better


def test_one_name_is_the_metric_itself():
  assert named_metrics.find("ter") is named_metrics.METRICS["ter"]
  with pytest.raises(InputError, match="there are"):
    named_metrics.find("nothing")
