"""Programs: flags, help, one-line errors, exit code 2."""

import subprocess
import sys
import time

import pytest

from tests import util

SCRIPT = '''"""A test program.

    python p.py --file=F
"""

import sys

from absl import flags
from ml_collections import config_flags

from jaxmt.runtime import program
from jaxmt.text import files

_CONFIG = config_flags.DEFINE_config_file("config", None, "the config")
_FILE = flags.DEFINE_string("file", None, "the file to read")
_OUTPUT = flags.DEFINE_string("output", "-", "what to write")
_OTHER = flags.DEFINE_string("other", None, "what else to write")
_RATE = flags.DEFINE_float("rate", 1.0, "a rate", lower_bound=0.0)
_SIZE = flags.DEFINE_integer("size", 1, "a size")
_PARTS = flags.DEFINE_string("parts", None, "start of names to write")


def main(argv):
  program.required(file=_FILE.value)
  program.check_paths(
    outputs=("output", "other", "parts"),
    inputs=("file",),
    endings={"parts": (".a", ".b")},
  )
  if _FILE.value == "locked":
    open("/proc/self/nothing")
  lines = files.read_lines(_FILE.value)
  if _OUTPUT.value == "-":
    for line in lines:
      print(line)
  else:
    files.write_lines(_OUTPUT.value, lines)


if __name__ == "__main__":
  program.run(main)
'''
CONFIG = """import ml_collections
def get_config(variant=""):
  return ml_collections.ConfigDict({"search": {"beam": 1}})
"""


@pytest.fixture
def script(tmp_path):
  (tmp_path / "p.py").write_text(SCRIPT)
  (tmp_path / "c.py").write_text(CONFIG)

  def call(*args, stdin=b""):
    return subprocess.run(
      [sys.executable, "p.py", *args],
      input=stdin,
      capture_output=True,
      cwd=tmp_path,
      env={"PYTHONPATH": str(util.ROOT), "PATH": "/usr/bin:/bin"},
      timeout=600,
    )

  return call


@pytest.mark.parametrize(
  ("args", "message"),
  [
    ([], "p.py: --file is required"),
    (["--fiel=x"], "Unknown command line flag 'fiel'. Did you mean: file"),
    (["--file=p.py", "--rate=nan"], "p.py: --rate: not a number"),
    (["--file=p.py", "--rate=inf"], "p.py: --rate: not a finite number"),
    (["--file=p.py", "--size=" + "9" * 30], "p.py: --size: too large"),
    (["--file=p.py", "--size=-" + "9" * 30], "p.py: --size: too large"),
    (["--file=p.py", "--rate=-1"], "p.py: flag --rate=-1: -1.0 is not"),
    (["--file=none.txt"], "p.py: none.txt: no such file or directory"),
    (["word"], "unexpected argument 'word'"),
    (["--config=c.py", "--config.sarch.beam=2"], "did you mean 'search'?"),
    (["--config=c.py", "--config.search.bem=2"], "did you mean 'beam'?"),
    (["--config=c.py", "--config.search.beam=x"], "invalid literal"),
  ],
)
def test_bad_calls_say_why_in_one_line(script, args, message):
  done = script(*args)
  assert done.returncode == 2
  assert done.stdout == b""
  assert message in done.stderr.decode()
  assert done.stderr.count(b"\n") == 1


def shell(tmp_path, command):
  return subprocess.run(
    ["sh", "-c", command.replace("PY", f"{sys.executable} p.py")],
    capture_output=True,
    cwd=tmp_path,
    env={"PYTHONPATH": str(util.ROOT), "PATH": "/usr/bin:/bin"},
    timeout=600,
  )


@pytest.mark.parametrize(
  ("command", "message"),
  [
    ("PY --file=t > /dev/full", "no space left on device"),
    ("PY --file=t --output=/dev/full", "/dev/full: no space left on device"),
    ("PY --file=- <&-", "-: standard input is closed"),
    ("PY --file=locked", "/proc/self/nothing: no such file"),
    ("PY --file=t --output=t", "t: --file and --output are the same"),
    ("PY --file=t --output=./t", "./t: --file and --output are the same"),
    ("PY --file=t --output=l", "l: --file and --output are the same"),
    ("PY --file=t --output=n --other=n", "n: --output and --other are"),
    ("PY --file=t --output=n.b --parts=n", "n.b: --output and --parts are"),
    ("PY --file=none --output=no/n", "/no: --output: no such folder"),
    ("PY --file=none --output=t/n", "/t: --output: no such folder"),
    ("PY --file=none --parts=no/n", "/no: --parts: no such folder"),
    (f"PY --file=none --output={'n' * 256}", "nnn: file name too long"),
  ],
)
def test_failed_calls_and_lost_outputs_are_one_line(
  script, tmp_path, command, message
):
  (tmp_path / "t").write_text("one\n")
  (tmp_path / "l").symlink_to("t")
  done = shell(tmp_path, command)
  assert done.returncode == 2, done.stderr.decode()
  assert message in done.stderr.decode()
  assert done.stderr.count(b"\n") == 1
  assert (tmp_path / "t").read_text() == "one\n"


def test_closed_streams_take_no_files_number(script, tmp_path):
  """What is printed to a closed stream must not land in the output."""
  (tmp_path / "t").write_text("one\n")
  done = shell(tmp_path, "PY --file=t --output=o <&- >&- 2>&-")
  assert done.returncode == 0
  assert (tmp_path / "o").read_text() == "one\n"
  assert shell(tmp_path, "PY --file=none <&- >&- 2>&-").returncode == 2
  assert shell(tmp_path, "PY --file=t >&-").returncode == 0


# Sends SIGINT before the n-th module that is loaded after the handler is.
INTERRUPTER = """import os, signal, sys
class Interrupter:
  number = 0
  def find_spec(self, name, path, target=None):
    if self.number or name == "jaxmt.runtime.program":
      self.number += 1
    if self.number == 1 + int(os.environ["MODULES"]):
      os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupter())
"""


@pytest.fixture
def interrupted(tmp_path):
  """Returns what a program says that is interrupted as it loads."""
  (tmp_path / "sitecustomize.py").write_text(INTERRUPTER)

  def call(file, modules):
    return subprocess.run(
      [sys.executable, str(file)],
      capture_output=True,
      cwd=tmp_path,
      env={
        "PYTHONPATH": f"{tmp_path}:{util.ROOT}",
        "PATH": "/usr/bin:/bin",
        "MODULES": str(modules),
      },
      timeout=600,
    )

  return call


PROGRAMS = sorted(
  path
  for path in (util.ROOT / "launch").glob("*.py")
  if path.name != "example.py"
)


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda path: path.name)
def test_every_program_answers_an_interrupt_from_the_start(interrupted, file):
  done = interrupted(file, 1)
  assert done.stderr == f"{file.name}: interrupted\n".encode()
  assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("modules", [2, 8, 30, 100, 200, 300, 500])
def test_an_interrupt_while_loading_is_one_line(interrupted, modules):
  """Libraries that are written in C lose exceptions, or rename them."""
  done = interrupted(util.ROOT / "launch" / "translate.py", modules)
  assert done.stderr == b"translate.py: interrupted\n"
  assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("seconds", [0.05, 0.3])
def test_an_interrupt_after_the_work_is_one_line(tmp_path, seconds):
  (tmp_path / "p.py").write_text(
    "from jaxmt.runtime import program\n"
    "import atexit, threading, time\n"
    f"threading.Thread(target=time.sleep, args=({seconds} + 1,)).start()\n"
    "atexit.register(time.sleep, 60)\n"
    "import os, signal\n"
    f"wait = threading.Timer({seconds}, os.kill, (os.getpid(), signal.SIGINT))"
    "\nprogram.run(lambda argv: wait.start())\n"
  )
  done = shell(tmp_path, "PY")
  assert (done.returncode, done.stderr) == (2, b"p.py: interrupted\n")


def test_a_background_job_ignores_interrupts(tmp_path):
  (tmp_path / "p.py").write_text(
    "from jaxmt.runtime import program\n"
    "import os, signal\n"
    "os.kill(os.getpid(), signal.SIGINT)\n"
    "program.run(lambda argv: os.kill(os.getpid(), signal.SIGINT))\n"
  )
  done = shell(tmp_path, "trap '' INT; PY")
  assert (done.returncode, done.stderr) == (0, b"")


def test_an_interrupt_that_python_drops_is_raised_again(tmp_path):
  (tmp_path / "p.py").write_text(
    "from jaxmt.runtime import program\n"
    "import os, signal, time\n"
    "class Last:\n"
    "  def __del__(self):\n"
    "    os.kill(os.getpid(), signal.SIGINT)\n"
    "    time.sleep(0.01)\n"
    "def main(argv):\n"
    "  Last()\n"
    "  time.sleep(60)\n"
    "program.run(main)\n"
  )
  start = time.monotonic()
  done = shell(tmp_path, "PY")
  assert (done.returncode, done.stderr) == (2, b"p.py: interrupted\n")
  assert time.monotonic() - start < 30


def test_bad_text_is_named_by_file_and_line(script, tmp_path):
  (tmp_path / "t").write_bytes(b"one\ntw\xff\n")
  done = script("--file=t")
  assert (done.returncode, done.stdout) == (2, b"")
  assert done.stderr == b"p.py: t:2: not UTF-8: byte 0xff\n"


def test_reads_standard_input(script):
  done = script("--file=-", stdin="α\n\u2028 β\n".encode())
  assert (done.returncode, done.stderr) == (0, b"")
  assert done.stdout == "α\n\u2028 β\n".encode()


def test_help_is_short_and_complete(script):
  done = script("--help")
  assert done.returncode == 0
  text = done.stdout.decode()
  assert "python p.py --file=F" in text
  assert "--file" in text and "the file to read" in text
  assert len(text.splitlines()) < 30


def test_a_reader_that_goes_away_is_no_error(tmp_path, script):
  (tmp_path / "long").write_text("word\n" * 200_000)
  with subprocess.Popen(
    [sys.executable, "p.py", "--file=long"],
    cwd=tmp_path,
    env={"PYTHONPATH": str(util.ROOT)},
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
  ) as running:
    assert running.stdout is not None and running.stderr is not None
    running.stdout.readline()
    running.stdout.close()
    assert running.stderr.read() == b""
    assert running.wait(60) == 0


@pytest.mark.parametrize(
  "file",
  [path for path in PROGRAMS if '"seed", ' in path.read_text()],
  ids=lambda path: path.name,
)
def test_seeds_are_not_negative(file):
  done = util.run_program(f"launch/{file.name}", "--seed=-1")
  assert (done.returncode, done.stdout) == (2, "")
  assert done.stderr.startswith(f"{file.name}: flag --seed=-1: ")
  assert done.stderr.count("\n") == 1
