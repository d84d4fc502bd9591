"""The program launch/align.py from outside."""

import gzip
import os

import pytest

from jaxmt.align import symmetrize
from tests import util
from tests.align import em_test

EXPECTED = [
  "0-0 1-1 2-2 3-3 4-4 5-5",
  "0-0 1-1 2-2 3-3 4-4",
  "0-0 1-1 2-2 3-3 4-4 5-5",
  "0-0 1-1 2-2 3-3",
]


@pytest.fixture(name="files")
def _files(tmp_path):
  source, target = tmp_path / "s", tmp_path / "t.gz"
  source.write_text("\n".join(["", *em_test.GERMAN, "x"]) + "\n")
  with gzip.open(target, "wt", encoding="utf-8") as out:
    out.write("\n".join(["a", *em_test.ENGLISH, " "]) + "\n")
  return source, target, tmp_path / "links"


def run(source, target, output, *args, **kwargs):
  # Programs see one device; compiled programs do not go to the user's cache.
  environment = {
    **os.environ,
    "JAX_NUM_CPU_DEVICES": "1",
    "JAX_COMPILATION_CACHE_DIR": os.path.join(os.path.dirname(source), "cache"),
  }
  return util.run_program(
    "launch/align.py",
    f"--source={source}",
    f"--target={target}",
    f"--output={output}",
    *args,
    env=environment,
    **kwargs,
  )


def test_links_and_lexicon(files, tmp_path):
  done = run(*files, "--iterations=6", f"--lexicon={tmp_path}/lex")
  assert done.returncode == 0, done.stderr
  assert done.stdout == ""
  lines = files[2].read_text().split("\n")
  assert len(lines) == len(em_test.GERMAN) + 3 and lines[-1] == ""
  assert lines[0] == lines[-2] == ""  # a side without words
  assert lines[1:5] == EXPECTED
  assert "diagonal 6/6: forward ln p" in done.stderr
  assert "tension 2.22" in done.stderr
  lexicon = (tmp_path / "lex.f2e").read_text().splitlines()
  totals: dict[str, float] = {}
  for line in lexicon:
    _, source, value = line.split(" ")
    totals[source] = totals.get(source, 0.0) + float(value)
  assert all(abs(total - 1) < 1e-5 for total in totals.values())
  assert "mann man 1.0000000" in (tmp_path / "lex.e2f").read_text()


def test_several_devices_and_standard_output(files):
  one = run(*files, "--model=model1", "--noreport")
  two = run(files[0], files[1], "-", "--model=model1", "--devices=2")
  assert one.returncode == two.returncode == 0, one.stderr + two.stderr
  assert two.stdout == files[2].read_text()
  assert one.stderr == ""


def test_one_direction_and_posteriors(files):
  done = run(
    *files,
    "--symmetrize=backward",
    "--decoder=posterior",
    "--threshold=0.9",
    "--model=model1",
  )
  assert done.returncode == 0, done.stderr
  assert "backward" in done.stderr and "forward" not in done.stderr
  assert 0 < files[2].read_text().count("-") < 60


def test_uneven_sides(files, tmp_path):
  short = tmp_path / "short"
  short.write_text("a\nb\n")
  done = run(files[0], short, files[2])
  assert done.returncode == 2
  assert f"{short}:2: uneven" in done.stderr
  assert done.stderr.count("\n") == 1
  assert not files[2].exists()


@pytest.mark.parametrize(
  "flag, text",
  [
    ("--iterations=0", "--iterations"),
    ("--alpha=-1", "--alpha"),
    ("--model=ibm5", "--model"),
    ("--symmetrize=grow", "--symmetrize"),
    ("--output=", "--output"),
    ("--devices=-3", "--devices"),
  ],
)
def test_bad_flags(files, flag, text):
  done = run(*files, flag)
  assert done.returncode == 2
  assert text in done.stderr and done.stderr.count("\n") == 1
  assert not files[2].exists()


def test_missing_and_undecodable_files(files, tmp_path):
  done = run(tmp_path / "none", files[1], files[2])
  assert done.returncode == 2 and f"{tmp_path}/none" in done.stderr
  bad = tmp_path / "bad"
  bad.write_bytes(b"a\n\xff\n")
  done = run(bad, files[1], files[2])
  assert done.returncode == 2 and f"{bad}:2: not UTF-8" in done.stderr


def test_long_pairs_are_left_out_and_counted(files, tmp_path):
  """A pair of 60,000 words would need 13 GB, and all others with it."""
  done = run(*files)
  assert done.returncode == 0, done.stderr
  expected = files[2].read_text().split("\n")
  for path, opened in zip(files[:2], (open, gzip.open), strict=True):
    with opened(path, "rt", encoding="utf-8") as out:
      lines = out.read()
    with opened(path, "wt", encoding="utf-8") as out:
      out.write("haus " * 60_000 + "\n" + lines)
  done = run(*files)
  assert done.returncode == 0, done.stderr
  assert "1 of 16 pairs left out: over 1000 words" in done.stderr
  assert "first in line 1" in done.stderr
  assert files[2].read_text().split("\n") == ["", *expected]


def test_empty_bitext(tmp_path):
  (tmp_path / "s").write_text("")
  done = run(tmp_path / "s", tmp_path / "s", tmp_path / "links")
  assert done.returncode == 0, done.stderr
  assert (tmp_path / "links").read_text() == ""


def test_help_names_the_methods():
  done = util.run_program("launch/align.py", "--help")
  assert done.returncode == 0
  for method in symmetrize.METHODS:
    assert method in done.stdout
