"""The folder of compiled kernels changes with any file that holds one."""

import pathlib

from jaxmt import kernel_cache


def test_version_follows_kernels_only(tmp_path, monkeypatch):
  package = tmp_path / "jaxmt"
  package.mkdir()
  monkeypatch.setattr(kernel_cache, "__file__", str(package / "k.py"))
  (package / "kernel.py").write_text("@njit\ndef f(): pass\n")
  (package / "other.py").write_text("x = 1\n")
  first = kernel_cache._version()
  (package / "other.py").write_text("x = 2\n")
  assert kernel_cache._version() == first
  (package / "kernel.py").write_text("@njit\ndef f(): return 1\n")
  assert kernel_cache._version() != first


def test_configure_keeps_few_folders_and_a_users_choice(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  monkeypatch.delenv("NUMBA_CACHE_DIR")
  monkeypatch.setattr(kernel_cache.sys, "modules", {})
  for number in range(9):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(kernel_cache, "_version", lambda n=number: f"v{n}")
    kernel_cache.configure()
    chosen = pathlib.Path(kernel_cache.os.environ["NUMBA_CACHE_DIR"])
    assert chosen.name == f"v{number}" and chosen.is_dir()
  left = sorted(p.name for p in (tmp_path / "jaxmt" / "kernels").iterdir())
  assert left == ["v4", "v5", "v6", "v7", "v8"]
  monkeypatch.setenv("NUMBA_CACHE_DIR", "mine")
  kernel_cache.configure()
  assert kernel_cache.os.environ["NUMBA_CACHE_DIR"] == "mine"


def test_an_unwritable_home_is_no_obstacle(tmp_path, monkeypatch):
  (tmp_path / "file").write_text("")
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
  monkeypatch.delenv("NUMBA_CACHE_DIR")
  monkeypatch.setattr(kernel_cache.sys, "modules", {})
  kernel_cache.configure()
  assert "jaxmt-" in kernel_cache.os.environ["NUMBA_CACHE_DIR"]
