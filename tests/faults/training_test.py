"""Experiments that are killed in each of their stages give the same results.

JAXMT_FAULTS=long adds 1,000 kills, failing system calls and flipped bits all
over the experiment, which takes half an hour of processor time.
"""

import json
import os
import subprocess
import sys
import tempfile

import pytest

from tests import util


def run(*arguments):
  done = subprocess.run(
    [sys.executable, "-m", "tests.faults.training_faults", *arguments],
    env={
      **os.environ,
      "PYTHONPATH": str(util.ROOT),
      "TMPDIR": util.fast_folder() or tempfile.gettempdir(),
    },
    cwd=util.ROOT,
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  return json.loads(done.stdout)


def test_killed_in_every_stage_and_in_the_report():
  found = run("each")
  assert found["wrong"] == []
  for stage in (
    *("corpus", "align", "lm", "grammar", "tune-primary", "decode-primary"),
    *(f"{kind}-augmented-forest" for kind in ("theta", "mix", "tune")),
    *("decode-augmented-forest", "gloss", "evaluate-tune", "evaluate-test"),
    *("describe", "report"),
  ):
    assert found["stages"].get(stage, 0) >= 1, stage


long = pytest.mark.skipif(
  os.environ.get("JAXMT_FAULTS") != "long", reason="takes half an hour"
)


@long
def test_a_flipped_bit_in_every_file():
  found = run("flips")
  assert found["wrong"] == []
  assert found["faults"] > 100


@long
def test_a_thousand_faults(tmp_path):
  found = run("1000", str(tmp_path / "faults"))
  assert found["wrong"] == []
  assert found["faults"] >= 1000
