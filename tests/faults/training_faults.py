"""Kills and failing system calls all over a whole, small experiment.

    python -m tests.faults.training_faults each
    python -m tests.faults.training_faults flips
    python -m tests.faults.training_faults COUNT FOLDER [SEED [KIND ...]]

The first form dies in each stage, before its artefact is written, and before
each file of the report, is started again each time, and compares the results
with those of an undisturbed run.

The second form flips a bit in every file of the finished folder, one after the
other, and starts the experiment again: what was spoilt is made anew, or the
results are the same.

The third form goes on, from the records in FOLDER, until there were COUNT
faults: SIGKILL before a random system call that writes or at a random moment,
a system call that fails (disk full, input/output error), files that become too
large, and flipped bits in a finished folder. Then the same folder is started
again, until it has finished; the next one begins before a random stage. KINDS
has the names of the faults; "write" and "moment" are the kills. Without a KIND,
there are all of them.

Runs are forks of a process that has imported everything and read the code's
versions, but has not started JAX. Prints a JSON object: faults by stage and
kind, and what went wrong.
"""

import collections
import errno
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback

import jaxmt
from configs import quickstart
from jaxmt.errors import InputError
from jaxmt.experiment import experiment, pipeline
from jaxmt.runtime import checkpoint, code_versions, parallel
from jaxmt.text import files

KINDS = ("write", "moment", "ENOSPC", "EIO", "size", "flip")
REPORT = ("statistics.npz", "results.json", "report.html")
_HIT = "[fault]\n"
_CALLS = ("open", "mkdir", "fsync", "rename", "replace", "unlink", "rmdir")


def tiny_config() -> experiment.ExperimentConfig:
  """Small in every respect, but with every kind of stage."""
  config = quickstart.get_config("small")
  config.data.synthetic.update(
    train=60, tune=8, test=8, monolingual=60, max_length=9
  )
  config.align.model = "given"
  config.lm.order = 2
  config.grammar.hiero.max_words = 3
  config.grammar.trees.max_size = 2
  config.search.update(beam=4, pop=10, span=5)
  config.tune.update(rounds=2, nbest=10)
  config.theta.update(train_beam=8, train_pop=16, k=4, margin=3, iterations=2)
  config.evaluate.metrics = ("bleu",)
  return experiment.freeze(config)


def run(workdir: pathlib.Path) -> None:
  """Runs the experiment, or what is left of it."""
  parallel.initialize()
  config = tiny_config()
  with pipeline.open_run(str(workdir), config=config) as opened:
    experiment.run(opened, config)


def outcome(workdir: pathlib.Path) -> tuple[dict, bytes]:
  """What must be equal: all results but times."""
  results = json.loads((workdir / "results.json").read_text())
  del results["measures"]
  return results, (workdir / "statistics.npz").read_bytes()


def leftovers(workdir: pathlib.Path) -> list[str]:
  """Temporary files and folders."""
  found = [*workdir.rglob(".*.tmp"), *workdir.glob("artefacts/.partial/*")]
  return [str(path.relative_to(workdir)) for path in found]


def in_child(workdir: pathlib.Path, prepare=lambda: None) -> tuple[int, str]:
  """Runs in a child process.

  Returns:
    Its exit code, 2 for an `InputError`, negative for a signal; and what it
    said.
  """
  reader, writer = os.pipe()
  child = os.fork()
  if child == 0:
    code = 1
    try:
      os.dup2(writer, 1)
      os.dup2(writer, 2)
      prepare()
      run(workdir)
      code = 0
    except InputError as error:
      print(f"error: {error}", file=sys.stderr, flush=True)
      code = 2
    except OSError as error:  # `program.run` makes one line of it
      print(f"error: {error}", file=sys.stderr, flush=True)
      code = 2
    except BaseException:
      traceback.print_exc()
    finally:
      os._exit(code)
  os.close(writer)
  with open(reader, errors="replace") as stream:
    said = stream.read()
  return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def stage_of(said: str) -> str:
  """The stage in which a process ended."""
  news = re.findall(r"^\[([\w-]+)\] (running|done|reused)", said, re.MULTILINE)
  if not news:
    return "start"
  name, state = news[-1]
  if state == "running":
    return name
  return f"after {name}"


def die_before(name: str) -> None:
  """The process ends when it is about to write an artefact or a file."""
  write, open_file = checkpoint.write, files.atomic_writer

  def write_artefact(directory, *args):
    if re.fullmatch(rf"{name}-[0-9a-f]+", directory.name):
      os.kill(os.getpid(), signal.SIGKILL)
    write(directory, *args)

  def write_file(path):
    if os.path.basename(path) == name:
      os.kill(os.getpid(), signal.SIGKILL)
    return open_file(path)

  checkpoint.write, files.atomic_writer = write_artefact, write_file


def undisturbed(base: pathlib.Path) -> list[str]:
  """Runs the experiment in `base/whole`; returns its stages."""
  for source in pathlib.Path(jaxmt.__file__).parent.rglob("*.py"):
    code_versions.direct_imports(
      source
    )  # which is half the work of a short run
  code, said = in_child(base / "whole")
  if code:
    raise RuntimeError(said)
  names = re.findall(r"^\[([\w-]+)\] (?:running|reused)", said, re.MULTILINE)
  (base / "stages").write_text("\n".join(names))
  return names


def kill_in_each_stage(base: pathlib.Path) -> dict:
  """Dies in every stage and in the report; returns what happened."""
  names = [*undisturbed(base), *REPORT]
  stages, wrong = collections.Counter(), []
  workdir = base / "killed"
  for name in names:
    code, said = in_child(workdir, lambda name=name: die_before(name))
    stages["report" if name in REPORT else stage_of(said)] += 1
    if code != -signal.SIGKILL:
      wrong.append(f"{name}: exit code {code}: {said[-300:]}")
  wrong += finish(base, workdir)
  return {"faults": len(names), "stages": stages, "wrong": wrong}


def finish(base: pathlib.Path, workdir: pathlib.Path) -> list[str]:
  """Runs to the end; returns what differs from the undisturbed run."""
  code, said = in_child(workdir)
  if code:
    return [f"not resumed: {said[-2000:]}"]
  wrong = [f"left: {name}" for name in leftovers(workdir)]
  if outcome(workdir) != outcome(base / "whole"):
    wrong.append("other results")
  return wrong


def count_calls(number: int, code: int = 0) -> None:
  """Makes the n-th system call that writes fail; or the last, without code.

  The process says `_HIT` when it comes to that.
  """
  state = {"count": 0}

  def counted(function):
    def call(*args, **kwargs):
      state["count"] += 1
      if state["count"] == number:
        os.write(2, _HIT.encode())
        if code:
          raise OSError(code, os.strerror(code), str(args[0]))
        os.kill(os.getpid(), signal.SIGKILL)
      return function(*args, **kwargs)

    return call

  for name in _CALLS:
    setattr(os, name, counted(getattr(os, name)))


def die_after(seconds: float) -> None:
  """The process ends at a moment, whatever it is doing then."""
  signal.signal(signal.SIGALRM, signal.SIG_DFL)
  signal.setitimer(signal.ITIMER_REAL, seconds)


def limit_size(size: int) -> None:
  """Writing fails in files of more bytes, as on a full disk."""
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def files_of(workdir: pathlib.Path) -> list[pathlib.Path]:
  """All files but empty ones, sorted."""
  every = sorted(path for path in workdir.rglob("*") if path.is_file())
  return [path.relative_to(workdir) for path in every if path.stat().st_size]


def flip(
  base: pathlib.Path, name: pathlib.Path, rng: random.Random
) -> list[str]:
  """Flips a bit in a file of a finished run; returns what went wrong."""
  workdir = base / "flipped"
  shutil.rmtree(workdir, ignore_errors=True)
  shutil.copytree(base / "whole", workdir)
  data = bytearray((workdir / name).read_bytes())
  data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
  (workdir / name).write_bytes(data)
  return [f"{name}: {text}" for text in finish(base, workdir)]


def flip_in_each_file(base: pathlib.Path) -> dict:
  """Flips a bit in every file; returns what happened."""
  undisturbed(base)
  rng, wrong, names = random.Random(0), [], files_of(base / "whole")
  for name in names:
    wrong += flip(base, name, rng)
  return {"faults": len(names), "wrong": wrong}


def begin(base: pathlib.Path, workdir: pathlib.Path, rng) -> None:
  """Makes a folder as a run leaves it that was stopped before some stage."""
  shutil.rmtree(workdir, ignore_errors=True)
  shutil.copytree(base / "whole", workdir)
  for name in (*REPORT, "metrics.jsonl", "run.json"):
    (workdir / name).unlink()
  stages = (base / "stages").read_text().split()
  for stage in stages[rng.randrange(len(stages) + 1) :]:
    for artefact in workdir.glob(f"artefacts/{stage}-*"):
      if artefact.name.rpartition("-")[0] == stage:
        shutil.rmtree(artefact)


def fault(base: pathlib.Path, workdir: pathlib.Path, rng, kinds):
  """One fault; returns (kind, stage, what went wrong)."""
  if not workdir.exists():
    begin(base, workdir, rng)
  kind = rng.choice(kinds)
  if kind == "flip":  # of a finished run
    name = rng.choice(files_of(base / "whole"))
    return kind, str(name).split("-")[0], flip(base, name, rng)
  # A stage takes some 25 such calls, the report too.
  stages = (base / "stages").read_text().split()
  done = len(list(workdir.glob("artefacts/*-*")))
  number = rng.randrange(1, 25 * max(1, len(stages) + 1 - done))
  prepare = {
    "write": lambda: count_calls(number),
    "moment": lambda: die_after(2 ** rng.uniform(-4, 3)),
    "ENOSPC": lambda: count_calls(number, errno.ENOSPC),
    "EIO": lambda: count_calls(number, errno.EIO),
    "size": lambda: limit_size(int(2 ** rng.uniform(3, 24))),
  }[kind]
  code, said = in_child(workdir, prepare)
  stage, wrong = stage_of(said), []
  if code in (1, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT):
    wrong.append(f"{kind} in {stage}: exit code {code}: {said[-3000:]}")
  if code == 0:  # the fault came too late, or did no harm
    wrong += finish(base, workdir)
    shutil.rmtree(workdir)
    stage = stage if _HIT in said else "none"
  return kind, stage, wrong


def go_on(base: pathlib.Path, count: int, seed: int, kinds=KINDS) -> dict:
  """Adds faults until there are `count`; returns all that happened."""
  undisturbed(base)
  # Left by another version of the code, it would keep that one's parts.
  shutil.rmtree(base / "disturbed", ignore_errors=True)
  log = base / "log.jsonl"
  log.touch()
  records = [json.loads(line) for line in log.read_text().splitlines()]
  with open(log, "a") as out:
    while sum(one["stage"] != "none" for one in records) < count:
      rng = random.Random(f"{seed} {len(records)}")
      kind, stage, wrong = fault(base, base / "disturbed", rng, kinds)
      records.append({"kind": kind, "stage": stage, "wrong": wrong})
      print(json.dumps(records[-1]), file=out, flush=True)
  real = [one for one in records if one["stage"] != "none"]
  return {
    "faults": len(real),
    "kinds": collections.Counter(one["kind"] for one in real),
    "stages": collections.Counter(one["stage"] for one in real),
    "wrong": [text for one in records for text in one["wrong"]],
  }


if __name__ == "__main__":
  forms = {"each": kill_in_each_stage, "flips": flip_in_each_file}
  if sys.argv[1] in forms:
    with tempfile.TemporaryDirectory() as folder:
      print(json.dumps(forms[sys.argv[1]](pathlib.Path(folder)), indent=1))
  else:
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    kinds = sys.argv[4:] or KINDS
    print(json.dumps(go_on(folder, int(sys.argv[1]), seed, kinds), indent=1))
