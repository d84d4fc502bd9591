"""The walk of one sentence through a tuning round: modules and types it meets.

    python tools/walk.py
    python tools/walk.py --tree=../other_checkout

Two numbers that say how far a reader has to go. A small experiment on the
embedded corpus is prepared (`launch/train.py`), then tuned with kbmira for one
round with every host kernel interpreted (`NUMBA_DISABLE_JIT`), while a profiler
watches the rounds of `jaxmt.tune.loop`, in all threads, but not what the caller
does between them (checkpoints, progress):

* modules: files of `jaxmt` in which a function ran, kernels and what JAX traces
  included; importing a module does not count, nor do `__init__` files.
* types: classes of `jaxmt`, private ones and configs left out, of which a
  function in one of these modules returned an instance to another module.

`--tree` measures another checkout, if it has that loop and that program.
"""

import argparse
import collections
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import threading
from typing import Any

_FLAGS = (
  "--config=configs/quickstart.py",
  "--config.data.synthetic.train=120",
  "--config.data.synthetic.tune=4",
  "--config.data.synthetic.test=4",
  "--config.data.synthetic.max_length=12",
  "--config.align.model=given",
  "--config.grammar.hiero.max_words=3",
  "--config.grammar.trees.max_size=2",
  "--config.search.beam=8",
  "--config.search.pop=30",
  "--config.search.span=6",
  "--config.tune.nbest=20",
  "--config.tune.method=kbmira",
  "--config.systems=('primary',)",
)


class Walk:
  """What the loop ran: functions by module, types that changed hands."""

  def __init__(self, root: pathlib.Path):
    """Watches the package in the folder `root`."""
    self.root = str(root) + os.sep
    self.functions: dict[str, set[str]] = collections.defaultdict(set)
    self.types: dict[str, set[str]] = collections.defaultdict(set)

  def _module(self, frame) -> str | None:
    """The frame's module below the package, None for any other code."""
    path = frame.f_code.co_filename
    name = path.removeprefix(self.root)
    if name == path or name in ("lazy.py",) or name.endswith("__init__.py"):
      return None
    return name

  def __call__(self, frame, event: str, value: Any) -> None:
    """Takes the events of `sys.setprofile`."""
    if event not in ("call", "return"):
      return
    module = self._module(frame)
    if module is None or frame.f_code.co_name == "<module>":
      return
    if event == "call":
      self.functions[module].add(frame.f_code.co_qualname)
      return
    back = frame.f_back
    while back is not None and self._module(back) is None:
      back = back.f_back
    if back is not None and self._module(back) != module:
      for one in value if type(value) in (tuple, list) else (value,):
        self._note(type(one), module)

  def _note(self, kind: type, module: str) -> None:
    own = kind.__module__.startswith("jaxmt.")
    if (
      own
      and not kind.__name__.startswith("_")
      and "Config" not in kind.__name__
    ):
      self.types[kind.__qualname__].add(module)


def measure(tree: pathlib.Path, workdir: str) -> dict[str, Any]:
  """Runs the tuning stage of the experiment in this process, watched."""
  sys.path.insert(0, str(tree))
  from jaxmt.tune import loop  # of the tree that was asked for

  walk = Walk(tree / "jaxmt")
  inner = loop._one_round

  def watched(*args, **kwargs):
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
      return inner(*args, **kwargs)
    finally:
      sys.setprofile(None)
      threading.setprofile(None)

  loop._one_round = watched
  os.chdir(tree)
  sys.argv = ["launch/train.py", *_FLAGS, f"--workdir={workdir}"]
  sys.argv.append("--config.tune.rounds=1")
  try:
    runpy.run_path("launch/train.py", run_name="__main__")
  except SystemExit as end:
    if end.code:
      raise
  return {
    "modules": {name: sorted(walk.functions[name]) for name in walk.functions},
    "types": {name: sorted(walk.types[name]) for name in walk.types},
  }


def main() -> None:
  """Prints modules and types."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  here = pathlib.Path(__file__).resolve().parent.parent
  parser.add_argument("--tree", default=here, type=pathlib.Path)
  parser.add_argument("--functions", action="store_true")
  parser.add_argument("--workdir", help="(internal) measure on this workdir")
  flags = parser.parse_args()
  tree = flags.tree.resolve()
  if flags.workdir:
    report = measure(tree, flags.workdir)
    pathlib.Path(flags.workdir, "walk.json").write_text(json.dumps(report))
    return
  environment = {**os.environ, "PYTHONPATH": str(tree), "JAX_PLATFORMS": "cpu"}
  with tempfile.TemporaryDirectory() as workdir:
    run = lambda *command, **more: subprocess.run(
      [sys.executable, *command],
      check=True,
      cwd=tree,
      env=environment | more,
      stdout=subprocess.DEVNULL,
    )
    place = f"--workdir={workdir}"
    run("launch/train.py", *_FLAGS, place, "--config.tune.rounds=0")
    run(__file__, f"--tree={tree}", place, NUMBA_DISABLE_JIT="1")
    report = json.loads(pathlib.Path(workdir, "walk.json").read_text())
  for kind, entries in report.items():
    print(f"{len(entries)} {kind}")
    for name in sorted(entries):
      print(
        f"  {name}"
        + (
          f": {', '.join(entries[name])}"
          if flags.functions or kind == "types"
          else ""
        )
      )


if __name__ == "__main__":
  main()
