"""Workdirs of tuning: resumed, started over, never taken from others."""

import json

import pytest

from jaxmt.errors import InputError
from jaxmt.experiment import tuning_run

ABOUT = {"files": {"dev": "1"}, "settings": {"seed": 0}}


def opened(folder, *, resume=True, **changes):
  about = {**ABOUT, **changes}
  return tuning_run.open_workdir(str(folder), about=about, resume_there=resume)


def test_a_run_goes_on_or_is_started_over(tmp_path):
  opened(tmp_path / "run").put("one", {"a": ["x"]})
  assert opened(tmp_path / "run").get("one") == {"a": ["x"]}
  with pytest.raises(InputError, match="other settings or files"):
    opened(tmp_path / "run", settings={"seed": 1})
  again = opened(tmp_path / "run", resume=False, settings={"seed": 1})
  assert again.get("one") is None


@pytest.mark.parametrize("resume", [True, False])
def test_a_folder_called_state_of_somebody_else_stays(tmp_path, resume):
  (tmp_path / "state").mkdir()
  (tmp_path / "state" / "thesis.tex").write_text("years of work")
  with pytest.raises(InputError, match="state is there, but no run"):
    opened(tmp_path, resume=resume)
  assert (tmp_path / "state" / "thesis.tex").exists()


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize(
  "text", [json.dumps({"config": {}, "status": "finished"}), "[]", "{", ""]
)
def test_the_run_of_another_program_stays(tmp_path, text, resume):
  (tmp_path / "run.json").write_text(text)
  (tmp_path / "state").mkdir()
  with pytest.raises(InputError, match="holds a run of another kind"):
    opened(tmp_path, resume=resume)
  assert (tmp_path / "run.json").read_text() == text
  assert (tmp_path / "state").is_dir()


def test_settings_of_any_bytes_are_recorded(tmp_path):
  assert opened(tmp_path, settings={"option": "\udcff=1"}).get("x") is None
  assert opened(tmp_path, settings={"option": "\udcff=1"}).get("x") is None
