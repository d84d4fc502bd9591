"""Names, usual settings and checks of the aligners."""

import dataclasses

import pytest

from jaxmt.align import named_aligners


def test_a_name_is_taken_once_and_a_warm_up_must_exist():
  hmm = named_aligners.find("hmm")
  with pytest.raises(ValueError, match="'hmm' exists already"):
    named_aligners.register(hmm)
  with pytest.raises(ValueError, match="'ibm9' is none of diagonal"):
    named_aligners.register(
      dataclasses.replace(hmm, name="new", warm_up="ibm9")
    )
  assert "new" not in named_aligners.names()


def test_models_have_their_usual_settings():
  assert named_aligners.default_config("hmm").null_probability == 0.4
  assert named_aligners.default_config("model1").alpha == 0.0
  assert named_aligners.default_config("hmm", alpha=0.5).alpha == 0.5


def test_a_warm_up_model_goes_first():
  config = named_aligners.default_config("hmm", iterations=4, warm_up=3)
  order = [
    (model.name, *rest) for model, *rest in named_aligners.stages(config)
  ]
  assert order == [("model1", 3, 3), ("hmm", 3, 4)]
  assert named_aligners.total_passes(config) == 7
  assert (
    named_aligners.total_passes(named_aligners.default_config("diagonal")) == 5
  )


@pytest.mark.parametrize(
  "changes",
  [
    {"iterations": 0},
    {"null_probability": 1.0},
    {"alpha": -1.0},
    {"alpha": float("nan")},
    {"decoder": "best"},
    {"threshold": 1.0},
  ],
)
def test_settings_out_of_range(changes):
  with pytest.raises(ValueError, match=next(iter(changes))):
    named_aligners.default_config("hmm", **changes)
