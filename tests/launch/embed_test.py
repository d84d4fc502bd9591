"""The program that learns word vectors."""

import pytest

from jaxmt.models import vector_files
from tests import util


def run(*args):
  return util.run_program("launch/embed.py", *args)


def test_vectors_of_a_text(tmp_path):
  (tmp_path / "t").write_text("the cat sleeps\nthe dog sleeps\n" * 5)
  flags = [f"--text={tmp_path / 't'}", "--size=4", "--epochs=2", "--batch=8"]
  flags.append(f"--workdir={tmp_path / 'work'}")
  done = run(*flags, f"--output={tmp_path / 'v'}")
  assert done.returncode == 0, done.stderr
  found = vector_files.read(str(tmp_path / "v"))
  assert found.vectors.shape == (8, 4) and "cat" in found.words
  again = run(*flags, "--epochs=2", f"--output={tmp_path / 'w'}")
  assert again.returncode == 0, again.stderr
  assert (tmp_path / "v").read_bytes() == (tmp_path / "w").read_bytes()


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (("--size=0",), "option 'size' must be at least 1"),
    (("--rate=-1",), "option 'rate'"),
    (("--min_count=0",), "--min_count must be at least 1"),
    (("--text=missing",), "missing"),
  ],
)
def test_bad_flags_are_one_line(tmp_path, flags, message):
  (tmp_path / "t").write_text("a b\n")
  done = run(f"--text={tmp_path / 't'}", f"--output={tmp_path / 'v'}", *flags)
  assert done.returncode == 2 and message in done.stderr
  assert not (tmp_path / "v").exists()
