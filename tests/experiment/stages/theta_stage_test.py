"""Training θ as a stage: killed in its third iteration, in two processes."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import numpy as np
import pytest

from jaxmt.runtime import checkpoint
from tests import util
from tests.reference import killable_theta

PROGRAM = pathlib.Path(killable_theta.__file__)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
  """Processes that compile things once between them."""
  cache = str(tmp_path_factory.mktemp("compiled"))
  return {
    **os.environ,
    "PYTHONPATH": str(util.ROOT),
    "JAX_NUM_CPU_DEVICES": "1",
    "JAX_COMPILATION_CACHE_DIR": cache,
  }


def run(environment, *arguments):
  return subprocess.run(
    [sys.executable, str(PROGRAM), *map(str, arguments)],
    capture_output=True,
    text=True,
    cwd=util.ROOT,
    timeout=600,
    env=environment,
  )


def values(workdir):
  (folder,) = (workdir / "artefacts").glob("theta-*")
  return checkpoint.read(folder)[0]


def test_killed_in_iteration_3_it_resumes_to_the_same_bits(
  tmp_path, environment
):
  whole = run(environment, tmp_path / "whole")
  assert whole.returncode == 0, whole.stderr
  killed = run(environment, tmp_path / "killed", "iteration2-shard1")
  assert killed.returncode == -9
  partial = tmp_path / "killed" / "artefacts" / ".partial"
  (folder,) = partial.iterdir()
  kept = {entry.name for entry in folder.iterdir()}
  assert {"iteration0", "iteration1", "iteration2-shard0"} <= kept
  assert "iteration2" not in kept
  again = run(environment, tmp_path / "killed")
  assert again.returncode == 0, again.stderr
  one, two = values(tmp_path / "whole"), values(tmp_path / "killed")
  for name in ("theta", "counts"):
    np.testing.assert_array_equal(one[name], two[name])
  assert one["metrics"] == two["metrics"]
  assert not folder.exists()
  # The two iterations before were not done again.
  said = [line for line in again.stderr.splitlines() if "iteration" in line]
  assert len(said) == 4
  assert len(one["history"]) == 4
  assert one["theta"].shape[1] == 5


_PROCESS = """
import sys
from jaxmt.runtime import parallel
parallel.initialize(coordinator=sys.argv[1], num_processes=2,
                    process_id=int(sys.argv[2]))
import json
import jax
from jaxmt.experiment.stages import theta
from tests.reference import killable_theta as own
text = own.corpus(None)
given = dict(
  corpus=text,
  grammar=own.grammar.extract(
    own.GrammarStageConfig(kind="hiero"), corpus=text,
    links=own.links(None, corpus=text)),
  lm=own.lm.language_model(own.LmStageConfig(order=2), corpus=text),
  tuned=own.weights(own.tiny.WEIGHTS))
assert jax.process_count() == 2
made = theta.learn(own.CONFIG, **given)
print(json.dumps([made.counts.tolist(), made.theta.tolist(), made.metrics]))
"""


def test_two_processes_share_the_shards(tmp_path, environment):
  with socket.socket() as free:
    free.bind(("localhost", 0))
    port = free.getsockname()[1]
  started = [
    subprocess.Popen(
      [sys.executable, "-c", _PROCESS, f"localhost:{port}", str(number)],
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      cwd=util.ROOT,
      env=environment,
    )
    for number in range(2)
  ]
  try:
    done = []
    for process in started:
      out, err = process.communicate(timeout=600)
      assert process.returncode == 0, err.decode()
      done.append(json.loads(out.decode().splitlines()[-1]))
  finally:
    for process in started:
      process.kill()
  assert done[0] == done[1]
  alone = run(environment, tmp_path)
  assert alone.returncode == 0, alone.stderr
  want = values(tmp_path)
  assert done[0][0] == want["counts"].tolist()
  assert done[0][1] == want["theta"].tolist()
  assert done[0][2] == want["metrics"]
