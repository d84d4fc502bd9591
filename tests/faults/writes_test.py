"""Runs `write_faults.py` in a process without JAX, which forks safely."""

import pathlib
import subprocess
import sys
import tempfile

from tests import util


def test_writes_that_fail_leave_nothing_half_written(tmp_path):
  cases = pathlib.Path(__file__).with_name("write_faults.py")
  with tempfile.TemporaryDirectory(dir=util.fast_folder()) as folder:
    done = subprocess.run(
      [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("-p", "no:xdist", f"--basetemp={folder}/tests", str(cases)),
      ],
      cwd=util.ROOT,
      capture_output=True,
      text=True,
    )
  assert done.returncode == 0, done.stdout[-4000:]
  assert " passed" in done.stdout
