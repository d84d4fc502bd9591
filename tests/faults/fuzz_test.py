"""Damaged files with bounds checks on: told in one line, or read.

JAXMT_FUZZ sets the number of inputs for each reader: 60 if it is not set, half
a minute when kernels are compiled; 25,000 for 10^6 in all.
"""

import json
import os
import subprocess
import sys

from tests import util


def test_no_input_ends_otherwise_than_in_one_line():
  count = os.environ.get("JAXMT_FUZZ", "60")
  done = subprocess.run(
    [sys.executable, "-m", "tests.faults.fuzz", count, "0"],
    env={
      **os.environ,
      "NUMBA_BOUNDSCHECK": "1",
      "PYTHONPATH": str(util.ROOT),
    },
    cwd=util.ROOT,
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-2000:]
  found = json.loads(done.stdout)
  print(json.dumps(found))
  assert len(found) > 25
  for name, facts in found.items():
    assert facts["findings"] == [], name
    assert facts["endings"] > 1, name  # the inputs differ in more than one way
