"""Disks that fill up while programs write: one line, exit code 2, no scraps.

The disk is a small one in memory, mounted where only the program sees it.
"""

import shlex
import subprocess
import sys

import pytest

from tests import util
from tests.grammar import rule_strategies

_MOUNT = ["unshare", "-Urm", "sh", "-c"]


def on_disk(folder, size, *command):
  """Runs a command with a disk of `size` kB at `folder`.

  Returns:
    What it did, and which files it left there.
  """
  script = (
    f"mount -t tmpfs -o size={size}k none {folder} || exit 77\n"
    f"{shlex.join(command)}\n"
    "code=$?\n"
    f"ls -A {folder}\n"
    "exit $code"
  )
  done = subprocess.run(
    [*_MOUNT, script], capture_output=True, text=True, cwd=util.ROOT
  )
  if done.returncode == 77 or "unshare" in done.stderr:
    pytest.skip("cannot mount a small disk")
  return done, done.stdout.split()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  """A bitext whose grammar takes a few MB."""
  folder = tmp_path_factory.mktemp("corpus")
  pairs = rule_strategies.random_corpus(1500)
  for name, lines in (
    ("s", [" ".join(pair[0]) for pair in pairs]),
    ("t", [" ".join(pair[1]) for pair in pairs]),
    ("a", [" ".join(f"{i}-{j}" for i, j in pair[2]) for pair in pairs]),
  ):
    (folder / name).write_text("".join(line + "\n" for line in lines))
  return folder


@pytest.mark.parametrize("size", [500, 3000, 5000, 40_000])
def test_extraction(tmp_path, corpus, size):
  done, left = on_disk(
    tmp_path,
    size,
    sys.executable,
    "launch/extract.py",
    f"--source={corpus / 's'}",
    f"--target={corpus / 't'}",
    f"--links={corpus / 'a'}",
    "--provenance",
    "--memory=1",
    f"--output={tmp_path / 'g'}",
  )
  if size == 40_000:
    assert (done.returncode, left) == (0, ["g"]), done.stderr
    return
  assert done.returncode == 2, (done.returncode, done.stderr)
  assert left == []
  news = [line for line in done.stderr.splitlines() if "extract:" not in line]
  assert len(news) == 1 and "no space left on device" in news[0]


def test_a_language_model(tmp_path, corpus):
  done, left = on_disk(
    tmp_path,
    8,
    sys.executable,
    "launch/lm.py",
    f"--text={corpus / 't'}",
    "--order=4",
    "--discount_fallback",
    f"--output={tmp_path / 'lm'}",
  )
  assert (done.returncode, left) == (2, []), done.stderr
  assert done.stderr.count("\n") == 1
  assert "no space left on device" in done.stderr
