"""Measures speed and memory; compile or warm-up time stands apart.

    python tools/bench.py decode|tune|extract|lm|align|metrics [--json]

Each benchmark lives in `tools/bench_<name>.py` and returns rows. Real corpora
are found through the environment variable JAXMT_DATA; without it a benchmark
falls back on the embedded corpus and says so in its rows, or, where only real
data will do (decode), says what it needs.
"""

import importlib
import json
import os
import pathlib
import platform
import resource
import sys
import time
from collections.abc import Callable

from absl import flags

from jaxmt.errors import InputError
from jaxmt.report import text_tables
from jaxmt.runtime import program

POSITIONAL = "benchmark name"
_JSON = flags.DEFINE_bool("json", False, "print one JSON object, not a table")


def corpus(name: str) -> pathlib.Path | None:
  """The folder of a real corpus under JAXMT_DATA, or None."""
  base = os.environ.get("JAXMT_DATA")
  path = pathlib.Path(base) / name if base else None
  return path if path is not None and path.is_dir() else None


def timed(function: Callable[[], object], *, repeat: int = 3) -> float:
  """Returns the least wall time in seconds over `repeat` calls."""
  best = float("inf")
  for _ in range(repeat):
    start = time.perf_counter()
    function()
    best = min(best, time.perf_counter() - start)
  return best


def peak_memory_mb() -> float:
  """Returns the peak resident memory of this process in MB."""
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def names() -> list[str]:
  """Returns the benchmarks there are."""
  here = pathlib.Path(__file__).parent
  return sorted(p.stem.removeprefix("bench_") for p in here.glob("bench_*.py"))


def main(argv: list[str]) -> None:
  """Runs one benchmark."""
  if len(argv) != 2 or argv[1] not in names():
    raise InputError(f"name one benchmark of: {', '.join(names())}")
  sys.path.insert(0, str(pathlib.Path(__file__).parent))
  rows = importlib.import_module(f"bench_{argv[1]}").run()
  if _JSON.value:
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    print(json.dumps({"bench": argv[1], "machine": machine, "rows": rows}))
  else:
    print(text_tables.text(rows))


if __name__ == "__main__":
  sys.modules["bench"] = sys.modules["__main__"]  # `import bench` in modules
  program.run(main)
