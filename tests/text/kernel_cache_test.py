"""Compiled kernels are kept until something they are made of changes."""

import os
import pathlib
import subprocess
import sys

import pytest

from jaxmt.text import kernel_cache


@pytest.fixture
def package(tmp_path, monkeypatch):
  folder = tmp_path / "jaxmt"
  folder.mkdir()
  monkeypatch.setattr(kernel_cache, "_PACKAGE", folder)
  yield folder
  kernel_cache.stamp.cache_clear()
  kernel_cache._read.cache_clear()


def stamp(path):
  kernel_cache.stamp.cache_clear()
  kernel_cache._read.cache_clear()
  return kernel_cache.stamp(path)


@pytest.mark.parametrize(
  ("changed", "matters"),
  [
    ("outer.py", True),
    ("plain.py", True),  # imported: its constants are compiled in
    ("inner.py", True),  # kernels reached through another file
    ("far.py", False),  # no kernels, and not imported directly
    ("other.py", False),
  ],
)
def test_stamp_follows_what_is_compiled_in(package, changed, matters):
  (package / "outer.py").write_text(
    "from jaxmt import (\n  plain,\n)\n@njit\ndef f(): pass\n"
  )
  (package / "plain.py").write_text(
    "import jaxmt.far\nfrom jaxmt.inner import g\n"
  )
  (package / "inner.py").write_text("@njit\ndef g(): pass\n")
  (package / "far.py").write_text("x = 1\n")
  (package / "other.py").write_text("@njit\ndef h(): pass\n")
  before = stamp(package / "outer.py")
  with (package / changed).open("a") as out:
    out.write("# changed\n")
  assert (stamp(package / "outer.py") != before) == matters


def test_a_kernel_is_not_kept_when_one_it_calls_has_changed(tmp_path):
  """The real thing, in processes of their own.

  They keep no bytecode: Python tells versions of a file by its size and time,
  in whole seconds, and would run the old one here.
  """
  package = tmp_path / "jaxmt"
  (package / "text").mkdir(parents=True)
  source = pathlib.Path(kernel_cache.__file__).parent.parent
  for name in (
    "text/kernel_cache.py",
    "text/kernels.py",
    "lazy.py",
    "__init__.py",
  ):
    (package / name).write_bytes((source / name).read_bytes())
  (package / "outer.py").write_text(
    "from jaxmt.text.kernels import njit\nfrom jaxmt.inner import g\n"
    "@njit\ndef f():\n  return g() + 1\n"
  )
  inner = "from jaxmt.text.kernels import njit\n@njit\ndef g():\n  return {}\n"
  program = (
    "from jaxmt import outer; print(outer.f(), *outer.f.stats.cache_hits)"
  )
  seen = []
  for value in (1, 1, 5):
    (package / "inner.py").write_text(inner.format(value))
    os.utime(package / "inner.py", (1, 1))  # the content decides
    done = subprocess.run(
      [sys.executable, "-B", "-c", program],
      cwd=tmp_path,
      env={"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")},
      capture_output=True,
      text=True,
      check=True,
    )
    seen.append(done.stdout.split())
  assert [row[0] for row in seen] == ["2", "2", "6"]
  assert [len(row) for row in seen] == [1, 2, 1]  # compiled, kept, compiled


def test_a_private_folder_is_ours_alone(tmp_path):
  folder = kernel_cache.private_folder(tmp_path / "new" / "kernels")
  assert folder is not None and folder.stat().st_mode & 0o777 == 0o700
  assert kernel_cache.private_folder(folder) == folder
  folder.chmod(0o770)
  assert kernel_cache.private_folder(folder) is None


def test_folders_of_others_links_and_files_are_refused(tmp_path, monkeypatch):
  mine = kernel_cache.private_folder(tmp_path / "mine")
  (tmp_path / "link").symlink_to(mine)
  (tmp_path / "file").write_text("")
  assert kernel_cache.private_folder(tmp_path / "link") is None
  assert kernel_cache.private_folder(tmp_path / "file") is None
  assert kernel_cache.private_folder(tmp_path / "file" / "below") is None
  monkeypatch.setattr(kernel_cache.os, "getuid", lambda: -1)
  assert kernel_cache.private_folder(mine) is None


RUN_A_KERNEL = """
import numpy as np
from jaxmt.text import vocabulary
words = vocabulary.intern(["a b", "b"])
"""


def run_kernel(**environment):
  return subprocess.run(
    [sys.executable, "-c", RUN_A_KERNEL],
    env={**os.environ, **environment},
    check=True,
  )


def test_without_a_private_folder_nothing_is_kept(tmp_path):
  shared = tmp_path / "shared"
  shared.mkdir()
  shared.chmod(0o777)
  run_kernel(NUMBA_CACHE_DIR=str(shared))
  assert not list(shared.iterdir())


def test_a_users_choice_is_used(tmp_path):
  mine = tmp_path / "mine"
  run_kernel(NUMBA_CACHE_DIR=str(mine))
  assert list(mine.rglob("*.nbi"))


def test_importing_makes_no_file_and_sets_no_variable(tmp_path):
  program = (
    "import os, jax; before = dict(os.environ)  # JAX sets its own\n"
    "import jaxmt.decode.model, jaxmt.hypergraph.kbest_lists\n"
    "assert dict(os.environ) == before"
  )
  environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
  environment.pop("NUMBA_CACHE_DIR", None)
  subprocess.run([sys.executable, "-c", program], env=environment, check=True)
  assert not (tmp_path / "cache").exists()


def copy_of_package(folder):
  """The few modules that `KERNEL` needs, and one with a kernel."""
  package = folder / "jaxmt"
  (package / "text").mkdir(parents=True)
  source = pathlib.Path(kernel_cache.__file__).parent.parent
  for name in (
    "text/kernel_cache.py",
    "text/kernels.py",
    "lazy.py",
    "__init__.py",
  ):
    (package / name).write_bytes((source / name).read_bytes())
  (package / "inner.py").write_text(
    "from jaxmt.text.kernels import njit\n@njit\ndef g():\n  return 7\n"
  )
  return package


KERNEL = "from jaxmt import inner; print(inner.g(), *inner.g.stats.cache_hits)"


def run_copy(folder, cache, program=KERNEL):
  done = subprocess.run(
    [sys.executable, "-B", "-c", program],
    cwd=folder,
    env={"PATH": "", "XDG_CACHE_HOME": str(cache)},
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  return done.stdout.split()


def test_copies_of_the_package_share_kernels(tmp_path):
  for name in ("one", "two"):
    copy_of_package(tmp_path / name)
  assert run_copy(tmp_path / "one", tmp_path / "cache") == ["7"]
  hit = run_copy(tmp_path / "two", tmp_path / "cache")
  assert len(hit) > 1, "compiled again"


def test_old_versions_are_dropped(tmp_path):
  package = copy_of_package(tmp_path)
  kept = tmp_path / "cache" / "jaxmt" / "kernels" / "inner"
  run_copy(tmp_path, tmp_path / "cache")
  (first,) = kept.iterdir()
  os.utime(first, (1, 1))
  for number in range(20):
    (kept / f"old{number}").mkdir()
    os.utime(kept / f"old{number}", (2 + number, 2 + number))
  with (package / "inner.py").open("a") as out:
    out.write("# another version\n")
  assert run_copy(tmp_path, tmp_path / "cache") == ["7"]
  left = {path.name for path in kept.iterdir()}
  assert first.name not in left and "old19" in left
  assert len(left) == kernel_cache._VERSIONS + 1


@pytest.mark.parametrize(
  ("suffix", "damage"), [("nbi", "empty"), ("nbi", "text"), ("nbc", "cut")]
)
def test_a_damaged_cache_is_repaired(tmp_path, suffix, damage):
  copy_of_package(tmp_path)
  run_copy(tmp_path, tmp_path / "cache")
  (file,) = (tmp_path / "cache").rglob(f"*.{suffix}")
  data = file.read_bytes()
  cut = {"empty": b"", "cut": data[: len(data) // 2], "text": b"text"}
  file.write_bytes(cut[damage])
  assert run_copy(tmp_path, tmp_path / "cache") == ["7"]
  assert len(run_copy(tmp_path, tmp_path / "cache")) > 1  # kept again


def test_a_cache_without_room_is_done_without(tmp_path):
  copy_of_package(tmp_path)
  program = (
    "import resource; from jaxmt import inner\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)); print(inner.g())"
  )
  assert run_copy(tmp_path, tmp_path / "cache", program) == ["7"]
