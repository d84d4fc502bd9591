"""Damaged files with bounds checks on: told in one line, or read.

JAXMT_FUZZ sets the number of inputs for each reader: 150 if it is not set, a
minute when kernels are compiled; 100,000 for a night.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests import util

_PROGRAM = pathlib.Path(__file__).with_name("fuzz.py")
_GROUPS = (
  ("text", "links", "trees", "weights", "kbest", "mert", "arpa"),
  ("cdec", "moses", "joshua", "travatar", "native", "forest", "moses_forest"),
)


@pytest.mark.parametrize("group", range(len(_GROUPS)))
def test_no_input_ends_otherwise_than_in_one_line(group):
  count = os.environ.get("JAXMT_FUZZ", "150")
  done = subprocess.run(
    [sys.executable, str(_PROGRAM), count, "0", *_GROUPS[group]],
    env={
      **os.environ,
      "NUMBA_BOUNDSCHECK": "1",
      "PYTHONPATH": str(util.ROOT),
    },
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-2000:]
  found = json.loads(done.stdout)
  print(json.dumps(found))
  assert set(found) == set(_GROUPS[group])
  for name, facts in found.items():
    assert facts["findings"] == [], name
    assert facts["endings"] > 2, name  # the inputs differ in more than one way
