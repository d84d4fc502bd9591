"""Names, usual settings and checks of the aligners."""

import dataclasses

import pytest

from jaxmt.align import registry


def test_a_name_is_taken_once_and_a_warm_up_must_exist():
  hmm = registry.find("hmm")
  with pytest.raises(ValueError, match="'hmm' exists already"):
    registry.register(hmm)
  with pytest.raises(ValueError, match="'ibm9' is none of diagonal"):
    registry.register(dataclasses.replace(hmm, name="new", warm_up="ibm9"))
  assert "new" not in registry.names()


def test_models_have_their_usual_settings():
  assert registry.default_config("hmm").null_probability == 0.4
  assert registry.default_config("model1").alpha == 0.0
  assert registry.default_config("hmm", alpha=0.5).alpha == 0.5


def test_a_warm_up_model_goes_first():
  config = registry.default_config("hmm", iterations=4, warm_up=3)
  order = [(model.name, *rest) for model, *rest in registry.stages(config)]
  assert order == [("model1", 3, 3), ("hmm", 3, 4)]
  assert registry.total_passes(config) == 7
  assert registry.total_passes(registry.default_config("diagonal")) == 5


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
    registry.default_config("hmm", **changes)
