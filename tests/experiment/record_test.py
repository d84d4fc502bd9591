"""Records become named values and come back as what a function asks for."""

import dataclasses

import numpy as np

from jaxmt.experiment import pipeline, record
from jaxmt.experiment.stages import corpus, evaluate, system
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.system import Theta
from jaxmt.experiment.stages.theta import LearnedTheta
from jaxmt.text import ragged
from jaxmt.train.counts import Contributions


@dataclasses.dataclass(frozen=True, kw_only=True)
class Numbers(record.Record):
  values: np.ndarray
  note: str | None = None


def numbers(config: int) -> Numbers:
  return Numbers(values=np.arange(config))


def total(config: None, *, first: Numbers, **rest: Numbers) -> dict[str, int]:
  return {"total": int(sum(n.values.sum() for n in (first, *rest.values())))}


def test_stages_exchange_records(tmp_path):
  with pipeline.open_run(str(tmp_path), config={}) as run:
    made = {k: run.stage(f"numbers{k}", numbers, config=k) for k in (3, 4, 5)}
    done = run.stage("total", total, first=made[3], a=made[4], b=made[5])
    assert isinstance(made[3].value, Numbers) and made[3].value.note is None
    assert "note" not in made[3].values
    assert done.value == {"total": 3 + 6 + 10}


def test_a_missing_part_stays_missing():
  text = corpus.Corpus(train_source=["a"], train_target=["b"])
  values = text.to_values()
  assert "train_links" not in values
  assert corpus.Corpus.from_values(values | {"more": 1}) == text
  assert text.part("train").references == [["b"]]


def test_scores_and_learned_theta_come_back():
  scores = evaluate.Scores(
    rows=[], signatures={"bleu": "s"}, statistics={"bleu": np.ones((1, 2, 3))}
  )
  again = evaluate.Scores.from_values(scores.to_values())
  assert again.statistics["bleu"].shape == (1, 2, 3)
  own = Contributions(
    rules=ragged.from_rows([[0, 2], [1]]), units=np.array([5, 6, 7])
  )
  learned = LearnedTheta(
    theta=np.zeros((3, 5), np.float32),
    counts=np.array([5, 7, 6]),
    history=[],
    metrics={},
    own=own,
  )
  again = LearnedTheta.from_values(learned.to_values())
  assert again.own is not None
  np.testing.assert_array_equal(again.own.units, own.units)
  np.testing.assert_array_equal(again.own.rules.offsets, [0, 2, 3])
  # A stage that needs θ alone takes it from what training wrote.
  assert Theta.from_values(learned.to_values()).theta is learned.theta


def test_optional_records_are_recognised():
  def function(config, *, theta: Theta | None = None) -> Links:
    del config, theta
    return Links(links=[])

  given = record.arguments(function, {"theta": {"theta": np.zeros(1)}})
  assert isinstance(given["theta"], system.Theta)
  assert record.result_type(function) is Links
