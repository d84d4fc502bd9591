"""Gives bad values to every flag of the programs in launch/.

    python -m tests.faults.bad_flags FOLDER [PROGRAM ...]

Every command of `program_commands.py` is run as it is, then again and again
with one of its program's flags changed: values of the wrong type, out of range
or not a number; for what is read, files that are missing, empty, of other bytes
or folders; for what is written, names that nobody can write to, standard
output, and the names of what is read. A run may succeed, where the value can
make sense, or print its reason as the last line and exit with 2. It changes
nothing that was there, and leaves no scraps. Anything else is a finding.

Runs are forks of a process that has imported the program but has not begun.
FOLDER keeps what the right commands have written, for the next time. Prints one
JSON object: how many runs of each program ended how; the findings, which
standard error gets at once; and what refused runs had written before. With
JAXMT_FAULTS=long numbers are very large, too.
"""

import collections
import contextlib
import importlib
import itertools
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence

from tests import util
from tests.faults import program_commands
from tests.faults.program_commands import COMMANDS, OUT, Command

_SECONDS = int(os.environ.get("FLAGS_SECONDS", "20"))  # of the processor
_LONG = os.environ.get("JAXMT_FAULTS") == "long"
_MEMORY = 4 << 30
_BUSY = "busy"  # how a run ended that took too long
_BAD = "bad"  # folder of what no program reads or writes
_FOLDERS = ("workdir",)  # flags that name a folder which may be there
_PREFIXES = ("lexicon", "filtered", "train_gold")

# Bad values of numbers, with whether they must be refused.
_WHOLE = (
  *(("", True), ("1.5", True), ("-7", True), ("1" + "0" * 30, True)),
  *(("0", False), *((("2147483647", False),) if _LONG else ())),
)
_REAL = (
  *(("", True), ("nan", True), ("-inf", True), ("inf", True), ("-7", True)),
  *(("0", False), ("1e308", False)),
)
_WORDS = ("no-such-thing", ",", "\udcff", "a=b")

Changes = dict[str, str]
Case = tuple[Changes, bool]  # changed flags; whether that must be refused


def flags_of(program: str):
  """Returns the flags of a program that has been imported, by name."""
  from absl import flags

  listed = flags.FLAGS.get_key_flags_for_module(f"launch.{program}")
  return {flag.name: flag for flag in listed}


def kind_of(flag) -> str:
  """Returns whether a flag is integer, float, boolean, enum, list or string."""
  name = type(flag.parser).__name__.lower()
  kinds = ("integer", "float", "boolean", "enum", "list", "config")
  return next((kind for kind in kinds if kind in name), "string")


def value_cases(name: str, flag) -> Iterator[Case]:
  """Values of the wrong type, or that no flag of that type can have."""
  values = {
    "integer": _WHOLE,
    "float": _REAL,
    "boolean": (("maybe", True), ("2", True)),
    "enum": (("no-such-thing", True), ("", True)),
    "string": tuple((word, False) for word in _WORDS),
    "list": tuple((word, False) for word in _WORDS),
  }.get(kind_of(flag), ())
  for value, refused in values:
    yield {name: value}, refused


def input_cases(command: Command, name: str) -> Iterator[Case]:
  """Files that are not there, or are not what they should be."""
  folder = os.path.isdir(command.flags[name])
  yield {name: "no/such/file"}, True
  yield {name: f"{_BAD}/file" if folder else f"{_BAD}/folder"}, True
  yield {name: f"{_BAD}/folder"}, True
  yield {name: f"{_BAD}/empty"}, folder
  yield {name: f"{_BAD}/bytes"}, True
  yield {name: f"{_BAD}/bytes.gz"}, True
  yield {name: f"{_BAD}/loop"}, True
  yield {name: "x" * 5000}, True
  yield {name: "/dev/null"}, folder
  yield {name: ""}, False
  yield {name: "-"}, False


def output_cases(command: Command, name: str) -> Iterator[Case]:
  """Names that cannot be written to, or that are taken."""
  prefix = name in _PREFIXES
  folder = name in _FOLDERS or command.program == "synthesize"
  yield {name: f"{_BAD}/file/x"}, True
  yield {name: "/proc/x"}, False  # found out when it is written, maybe late
  yield {name: "x" * 300}, True
  yield {name: "no/such/folder/x"}, False
  yield {name: f"{_BAD}/loop"}, False
  yield {name: ""}, False
  yield {name: "-"}, False
  if prefix:
    return
  yield {name: f"{_BAD}/folder"}, not folder
  yield {name: f"{_BAD}/file"}, folder
  yield {name: "/dev/full"}, True
  for other, value in command.flags.items():
    taken = value.startswith(f"{OUT}/") or os.path.exists(value)
    if other != name and taken and other not in _PREFIXES:
      yield {name: value}, True


def cases(command: Command, *, first: bool) -> Iterator[Case]:
  """Returns what is changed in a command, and whether it must be refused.

  Args:
    command: the command.
    first: whether it is the first one of its program: then all flags are
      changed, and only those that the command has otherwise.
  """
  for name, flag in flags_of(command.program).items():
    value = command.flags.get(name)
    if value is not None and value.startswith(f"{OUT}/"):
      yield from output_cases(command, name)
    elif value is not None and (os.path.exists(value) or name in _PREFIXES):
      yield from input_cases(command, name)
    elif value is not None or first:
      yield from value_cases(name, flag)


def write_bad_files() -> None:
  """Writes what no program reads or writes."""
  folder = pathlib.Path(_BAD)
  (folder / "folder").mkdir(parents=True)
  (folder / "folder/x").write_text("something else\n")
  (folder / "file").write_text("something else\n")
  (folder / "empty").write_bytes(b"")
  (folder / "bytes").write_bytes(bytes(range(255, 0, -1)) * 9)
  (folder / "bytes.gz").write_bytes(b"\x1f\x8b" + bytes(range(255)) * 9)
  (folder / "loop").symlink_to("loop")


def state() -> dict[str, tuple[int, int]]:
  """Returns what is in the working directory, but for what commands write."""
  out = {}
  for path in pathlib.Path().rglob("*"):
    if path.parts[0] != OUT and not path.is_dir():
      facts = path.lstat()
      out[str(path)] = (facts.st_size, facts.st_mtime_ns)
  return out


def _arguments(flags: Changes) -> list[str]:
  return [f"--{name}={value}" for name, value in flags.items()]


def _begin(program: str, flags: Changes, news: str) -> None:
  """Runs a program in this process, which it ends."""
  code = 1
  try:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_SECONDS if program == "serve" else 10 * _SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(news, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.argv = [f"{program}.py", *_arguments(flags)]
    module = sys.modules[f"launch.{program}"]
    from jaxmt.runtime import program as programs

    programs.run(module.main)
    code = 0
  except SystemExit as end:
    code = int(end.code or 0)
  except BaseException:
    traceback.print_exc()
  finally:
    with contextlib.suppress(Exception):
      sys.stderr.flush()
    os._exit(code)


def run(program: str, flags: Changes, news: str) -> tuple[int | str, str]:
  """Runs a program in a fork; returns its exit code and what it said.

  The code is negative for a signal, and `_BUSY` if it took too long.
  """
  child = os.fork()
  if child == 0:
    _begin(program, flags, news)
  code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
  said = pathlib.Path(news).read_text(errors="replace")
  late = code in (-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL)
  return (_BUSY if late else code), said


def wrong(program: str, code: int | str, said: str, refused: bool) -> str:
  """Returns what is wrong with how a run ended; empty if nothing is."""
  lines = said.splitlines()
  if "Traceback" in said or code not in (0, 2, _BUSY):
    return f"exit code {code}"
  if code == 2 and not (lines and lines[-1].startswith(f"{program}.py: ")):
    return "no reason"
  if refused and code != 2:
    return "accepted" if code == 0 else "busy"
  return ""


def written(flags: Changes) -> list[str]:
  """Returns what is in `OUT`, but for the state of a run."""
  own = flags.get("workdir", "")
  return [
    str(path)
    for path in sorted(pathlib.Path(OUT).rglob("*"))
    if path.is_file() and not (own and str(path).startswith(f"{own}/"))
  ]


def strayed(before: dict[str, tuple[int, int]], allowed: str) -> list[str]:
  """Returns what has changed outside `OUT`; removes what is new there.

  Args:
    before: what there was.
    allowed: a name that a run may have written, if it was given that.
  """
  after = state()
  new = sorted(after.keys() - before.keys())
  for path in new:
    pathlib.Path(path).unlink()
  shutil.rmtree("no", ignore_errors=True)
  changed = sorted(path for path in before if after.get(path) != before[path])
  shutil.rmtree(_BAD)
  write_bad_files()
  return [path for path in changed + new if not path.startswith(allowed)]


def sweep(program: str, news: str) -> dict:
  """Changes every flag of a program; returns how that ended."""
  endings: collections.Counter[str] = collections.Counter()
  findings, partial = [], []
  own = [one for one in COMMANDS if one.program == program]
  for command in own:
    for changes, refused in cases(command, first=command is own[0]):
      flags = {**command.flags, **changes}
      shutil.rmtree(OUT, ignore_errors=True)
      os.makedirs(OUT)
      before = state()
      code, said = run(program, flags, news)
      endings[str(code)] += 1
      about = {"command": command.name, "flags": " ".join(_arguments(changes))}
      how = wrong(program, code, said, refused)
      value = next(iter(changes.values()))
      stray = strayed(before, value if code == 0 else "\0")
      if how or stray:
        told = said[-3000:] if "Traceback" in said else said[-300:]
        findings.append({**about, "how": how, "stray": stray, "said": told})
        print(json.dumps({program: findings[-1]}), file=sys.stderr, flush=True)
      if code == 2 and written(flags):
        partial.append({**about, "written": written(flags), "said": said})
  return {"endings": endings, "findings": findings, "partial": partial}


def prepare(program: str, names: Sequence[str], news: str) -> None:
  """Runs right commands of a program, and keeps what they write."""
  for command in COMMANDS:
    if command.program == program and command.name in names:
      shutil.rmtree(OUT, ignore_errors=True)
      os.makedirs(OUT)
      code, said = run(program, command.flags, news)
      if code != (0 if command.ends else _BUSY):
        raise RuntimeError(f"{command.name}: {code}: {said[-3000:]}")
      os.rename(OUT, command.name)


def _in_a_process(folder: pathlib.Path, *arguments: str) -> str:
  """Runs this module in a process of its own, in the folder."""
  done = subprocess.run(
    [sys.executable, "-m", "tests.faults.bad_flags", *arguments],
    env={
      **os.environ,
      "PYTHONPATH": str(util.ROOT),
      "JAX_COMPILATION_CACHE_DIR": str(folder / ".." / "compiled"),
      "OMP_NUM_THREADS": "1",
    },
    cwd=folder,
    stdout=subprocess.PIPE,
    text=True,
  )
  if done.returncode:
    raise RuntimeError(f"{arguments}: exit code {done.returncode}")
  return done.stdout


def make_folder(base: pathlib.Path, programs: Sequence[str]) -> pathlib.Path:
  """Makes the working directory of commands, if it is not there.

  Args:
    base: what it is in.
    programs: of the commands. What the commands before the last one of them
      write is there, too.
  """
  folder = base / "work"
  if not folder.is_dir():
    folder.mkdir(parents=True)
    program_commands.write_inputs(folder)
    os.symlink(util.ROOT / "configs", folder / "configs")
    with contextlib.chdir(folder):
      write_bad_files()
  last = max(n for n, one in enumerate(COMMANDS) if one.program in programs)
  groups = itertools.groupby(COMMANDS[: last + 1], lambda one: one.program)
  for program, group in groups:
    missing = [one.name for one in group if not (folder / one.name).is_dir()]
    if missing:
      _in_a_process(folder, "prepare", program, *missing)
  return folder


def main(arguments: list[str]) -> None:
  """Sweeps each program in a process of its own."""
  if arguments[0] in ("prepare", "sweep"):
    importlib.import_module(f"launch.{arguments[1]}")
    news = os.path.abspath("../news")
    if arguments[0] == "prepare":
      prepare(arguments[1], arguments[2:], news)
    else:
      print(json.dumps(sweep(arguments[1], news)))
    return
  programs = arguments[1:] or list(dict.fromkeys(c.program for c in COMMANDS))
  folder = make_folder(pathlib.Path(arguments[0]).resolve(), programs)
  found = {
    name: json.loads(_in_a_process(folder, "sweep", name)) for name in programs
  }
  print(json.dumps(found, indent=1))


if __name__ == "__main__":
  main(sys.argv[1:])
