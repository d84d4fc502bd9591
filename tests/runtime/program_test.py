"""Programs: flags, help, one-line errors, exit code 2."""

import subprocess
import sys

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


def main(argv):
  program.required(file=_FILE.value)
  for line in files.read_lines(_FILE.value):
    print(line)


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
