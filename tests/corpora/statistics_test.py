"""Statistics of synthetic corpora."""

from jaxmt.corpora import statistics, synthetic
from jaxmt.corpora.synthetic import SyntheticConfig
from tests.corpora.synthetic_test import SMALL, SPLITS


def test_an_empty_corpus_can_be_described():
  made = synthetic.generate(SyntheticConfig(train=0, tune=0, test=0))
  assert statistics.phenomena(made) == []
  rows = statistics.statistics(made)
  assert all(row["train"] in (0, 1) for row in rows)


def test_statistics_of_a_corpus_counted_by_hand():
  def split(source, references, links):
    return synthetic.Split(
      source=source,
      references=references,
      trees=["(X (X x))"] * len(source),
      links=links,
      tags=[("t",), ()][: len(source)],
    )

  made = synthetic.SyntheticCorpus(
    monolingual=split([], [[]], [[]]),
    train=split(["a b", "a c"], [["x y z", "w x"]], [["0-1 1-0", "0-1"]]),
    tune=split(["a d"], [["x u"], ["x v"]], [["0-0"]] * 2),
    test=split(["b"], [["y"], ["y"]], [["0-0"]] * 2),
  )
  rows = {r["measure"]: r for r in statistics.statistics(made)}

  def row(name):
    return [rows[name][part] for part in SPLITS]

  assert row("sentences") == [2, 1, 1]
  assert row("source words") == [4, 2, 1]
  assert row("target types") == [4, 2, 1]
  assert row("mean source length") == [2, 2, 1]
  assert row("references") == [1, 2, 2]
  assert row("different references, mean") == [1, 2, 1]
  assert row("unknown source words, %") == [0, 50, 0]
  assert row("unknown target words, %") == [0, 50, 0]
  # a is y, then x: a tie, the first counts; b is x; c and d are nothing.
  assert row("source words not in their main translation, %") == [25, 100, 100]
  assert row("links that cross another, %") == [66.67, 0, 0]
  assert row("target words without a link, %") == [40, 50, 0]
  assert statistics.phenomena(made) == [
    {"phenomenon": "t", "train": 50, "tune": 100, "test": 100}
  ]


def test_the_statistics_have_one_column_per_split():
  small = synthetic.generate(SMALL)
  for rows in (
    statistics.statistics(small),
    statistics.phenomena(small),
  ):
    assert all(list(row)[1:] == list(SPLITS) for row in rows)
