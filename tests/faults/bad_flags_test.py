"""Numbers have bounds; bad values of flags are one line.

JAXMT_FAULTS=long changes every flag of every program, which takes half an hour
of processor time; otherwise those of a program that starts at once.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile

import pytest

from tests import util
from tests.faults.program_commands import COMMANDS

_NUMBERS = ("DEFINE_integer", "DEFINE_float")
_SOURCES = sorted(
  [
    *(util.ROOT / "launch").glob("*.py"),
    *(util.ROOT / "jaxmt/experiment/flags").glob("*_flags.py"),
  ]
)
_FAST = ("cluster",)


@pytest.mark.parametrize("path", _SOURCES, ids=lambda path: path.name)
def test_every_number_has_a_lowest_value(path):
  """A negative size or a rate of minus infinity is refused as it is read."""
  calls = [
    node
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.Call)
    and isinstance(node.func, ast.Attribute)
    and node.func.attr in _NUMBERS
  ]
  without = [
    call.args[0].value
    for call in calls
    if "lower_bound" not in {keyword.arg for keyword in call.keywords}
  ]
  assert without == []


def test_every_program_has_a_command():
  programs = {path.stem for path in (util.ROOT / "launch").glob("*.py")}
  assert {one.program for one in COMMANDS} == programs - {"example"}


def test_bad_values_are_told_in_one_line():
  long = os.environ.get("JAXMT_FAULTS") == "long"
  with tempfile.TemporaryDirectory(dir=util.fast_folder()) as folder:
    done = subprocess.run(
      [
        *(sys.executable, "-m", "tests.faults.bad_flags", folder),
        *(() if long else _FAST),
      ],
      env={
        **os.environ,
        "PYTHONPATH": str(util.ROOT),
        "FLAGS_SECONDS": "60" if long else "20",
      },
      cwd=util.ROOT,
      capture_output=True,
      text=True,
    )
  assert done.returncode == 0, done.stderr[-3000:]
  for program, found in json.loads(done.stdout).items():
    assert found["findings"] == [], program
    assert found["endings"]["2"] > 20, program


# Flags that are texts, but not names of files.
_WORDS = frozenset(
  (
    *("method", "metric", "metrics", "loss", "update", "templates", "option"),
    *("candidates", "hidden", "shares", "leave_one_out", "length_search"),
    *("parameters", "groups", "entries", "seeds", "shard", "system", "domain"),
    *("significance", "prune", "verbs", "tokenize", "sentences", "host"),
    *("source_language", "target_language", "detokenize", "error_beams"),
    *("error_pops", "ray_address", "coordinator", "compile_cache", "dialect"),
  )
)
_TEXTS = ("DEFINE_string", "DEFINE_list", "DEFINE_multi_string")


def _calls(path, names):
  return [
    node
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.Call)
    and isinstance(node.func, ast.Attribute)
    and node.func.attr in names
  ]


@pytest.mark.parametrize(
  "path",
  [path for path in _SOURCES if _calls(path, ["check_paths"])],
  ids=lambda path: path.name,
)
def test_every_file_that_a_flag_names_is_kept_apart(path):
  """No output of a program is a file that it reads, by any of its flags."""
  adopted = [
    util.ROOT / f"jaxmt/experiment/flags/{call.args[0].id}.py"
    for call in _calls(path, ["adopt_module_key_flags"])
  ]
  named = {
    call.args[0].value
    for source in (path, *adopted)
    for call in _calls(source, _TEXTS)
  }
  compared = {
    node.value
    for call in _calls(path, ["check_paths"])
    for node in ast.walk(call)
    if isinstance(node, ast.Constant)
  }
  assert named - compared - _WORDS == set()
