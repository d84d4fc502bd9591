"""Tables of scores with significance."""

import pytest

from jaxmt.metrics import comparison, evaluation
from tests.reference import metric_pairs


def test_rows_and_table():
  first, references = metric_pairs.pairs(8, 50)
  truth = [row[0] for row in references]
  settings = evaluation.Settings(metrics=("bleu", "wer"))
  scored = evaluation.evaluate(references, [first, truth], settings)
  plan = comparison.SignificancePlan(paired=True, samples=99)
  table = [
    row
    for item in scored
    for row in comparison.rows(item, ["old", "new"], plan)
  ]
  assert [row["system"] for row in table] == ["old", "new", "old", "new"]
  assert "p_value" not in table[0]
  assert table[1]["score"] == pytest.approx(100)
  assert table[1]["p_value"] == pytest.approx(0.01)
  assert table[1]["better"] and table[3]["better"]
  assert table[3]["difference"] == pytest.approx(-table[2]["score"])
  lines = comparison.table_lines(table, decimals=1)
  assert (
    lines[0].split() == "metric system score mean ± 95% difference p".split()
  )
  for line in lines[1:]:
    assert line[lines[0].index("score") - 1] == " "
    assert line[lines[0].index("score")].isdigit()
  assert lines[2].startswith("BLEU    new     100.0  100.0 ± 0.0")
  assert "0.0100*" in lines[2]
  plain = comparison.table_lines(
    comparison.rows(scored[1], ["o", "n"]), decimals=0
  )
  assert plain[0] == "metric  system  score"


def test_plan_in_words():
  plan = comparison.SignificancePlan(paired=True, test="randomization", seed=5)
  assert plan.signature() == [("bs", 1000), ("ar", 10000), ("seed", 5)]
  plan = comparison.SignificancePlan(
    paired=False, test="randomization", samples=70
  )
  assert plan.signature() == [("bs", 70), ("seed", 12345)]
