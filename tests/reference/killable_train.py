"""`launch/train.py`, told to die when it is about to keep something.

    python killable_train.py PREFIX ARGUMENTS

It sends itself SIGKILL before it writes the first artefact whose name starts
with PREFIX, e.g. `iteration1-shard` or `evaluate-test`.
"""

import os
import pathlib
import runpy
import signal
import sys

from jaxmt.runtime import checkpoint

_LAUNCH = pathlib.Path(__file__).resolve().parents[2] / "launch"


def die_at(prefix):
  """Makes the next attempt to write such an artefact the process's last."""
  write = checkpoint.write

  def deadly(directory, *args, **kwargs):
    if directory.name.startswith(prefix):
      os.kill(os.getpid(), signal.SIGKILL)
    return write(directory, *args, **kwargs)

  checkpoint.write = deadly


if __name__ == "__main__":
  die_at(sys.argv.pop(1))
  sys.argv[0] = str(_LAUNCH / "train.py")
  runpy.run_path(sys.argv[0], run_name="__main__")
