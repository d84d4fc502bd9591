"""Compiled kernels are kept until something they are made of changes."""

import os
import pathlib
import subprocess
import sys

import pytest

from jaxmt import kernel_cache


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
  package.mkdir()
  source = pathlib.Path(kernel_cache.__file__).parent
  for name in ("kernel_cache.py", "kernel_locator.py", "__init__.py"):
    (package / name).write_bytes((source / name).read_bytes())
  (package / "outer.py").write_text(
    "from numba import njit\nfrom jaxmt.inner import g\n"
    "@njit(cache=True)\ndef f():\n  return g() + 1\n"
  )
  inner = "from numba import njit\n@njit(cache=True)\ndef g():\n  return {}\n"
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


def test_configure_keeps_a_users_choice(tmp_path, monkeypatch):
  monkeypatch.setattr(kernel_cache.sys, "modules", {})
  monkeypatch.setenv("NUMBA_CACHE_DIR", "mine")
  kernel_cache.configure()
  assert kernel_cache.os.environ["NUMBA_CACHE_DIR"] == "mine"
  monkeypatch.delenv("NUMBA_CACHE_DIR")
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  kernel_cache.configure()
  chosen = pathlib.Path(kernel_cache.os.environ["NUMBA_CACHE_DIR"])
  assert chosen == tmp_path / "jaxmt" / "kernels" and chosen.is_dir()


def test_an_unwritable_home_is_no_obstacle(tmp_path, monkeypatch):
  (tmp_path / "file").write_text("")
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
  monkeypatch.delenv("NUMBA_CACHE_DIR")
  monkeypatch.setattr(kernel_cache.sys, "modules", {})
  kernel_cache.configure()
  assert "jaxmt-" in kernel_cache.os.environ["NUMBA_CACHE_DIR"]
