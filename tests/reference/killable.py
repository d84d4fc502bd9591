"""A small pipeline that can be told to die at its n-th write to disk.

    python killable.py WORKDIR        runs it
    python killable.py WORKDIR each   for n = 1, 2, ...: runs it in WORKDIR/n,
                                      dying at write n; then runs it there again

Counts every fsync, rename and replace; before number n it sends itself SIGKILL.
Prints, in the second form, how many runs died. The runs are forks of a process
that has imported everything, which saves most of the time.
"""

import os
import signal
import sys

import numpy as np

from jaxmt.experiment import pipeline

_calls = {"count": 0}


def numbers(config):
  rng = np.random.default_rng(config["seed"])
  return {"values": rng.normal(size=100), "words": ["a", "", "c\r"]}


def total(config, numbers):
  result = float(np.sum(numbers["values"]) * config["scale"])
  return {"result": result, "metrics": {"result": result}}


def _counted(function, kill_at):
  def call(*args, **kwargs):
    _calls["count"] += 1
    if _calls["count"] == kill_at:
      os.kill(os.getpid(), signal.SIGKILL)
    return function(*args, **kwargs)

  return call


def run(workdir: str, kill_at: int = 0, store: str | None = None) -> None:
  for name in ("fsync", "rename", "replace"):
    setattr(os, name, _counted(getattr(os, name), kill_at))
  config = {"seed": 3, "scale": 2.0}
  with pipeline.open_run(workdir, config=config, store=store) as run:
    made = run.stage("numbers", numbers, config={"seed": 3})
    done = run.stage("total", total, config={"scale": 2.0}, numbers=made)
    run.write_json("results.json", {"result": done.value["result"]})


def forked(workdir: str, kill_at: int = 0) -> int:
  """Runs in a child process; returns its exit code, -9 if it was killed."""
  child = os.fork()
  if child == 0:
    run(workdir, kill_at)
    os._exit(0)
  return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at_each_write(base: str) -> int:
  """Returns the number of runs that died, each of which was resumed."""
  kill_at = 1
  while True:
    workdir = os.path.join(base, str(kill_at))
    if forked(workdir, kill_at) == 0:  # fewer writes than that: all are tried
      return kill_at - 1
    if forked(workdir) != 0:
      raise RuntimeError(f"not resumed after dying at write {kill_at}")
    kill_at += 1


if __name__ == "__main__":
  if sys.argv[2:] == ["each"]:
    print(kill_at_each_write(sys.argv[1]))
  else:
    run(sys.argv[1])
