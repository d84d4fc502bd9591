"""The cache of compiled host kernels.

numba reloads a compiled kernel until the file it is written in changes. A
kernel that calls one in another file would then go on calling the old one
after an update, and crash. So a kernel is stamped with a hash of its own file,
of the files that it imports (whose constants are compiled in) and of all
kernel files that can be reached from there.

What is in the cache is run, so its folder must be ours alone: if it is not
owned by this user, or others may write to it, kernels are compiled again in
every process. Nothing is created or read before the first kernel runs.
"""

import contextlib
import functools
import hashlib
import os
import pathlib
import re
import shutil
import stat
from collections.abc import Callable
from typing import Any

from numba.core import caching, config

_PACKAGE = pathlib.Path(__file__).resolve().parent.parent
_IMPORT = re.compile(
  rb"^[ \t]*(?:from[ \t]+(jaxmt[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)"
  rb"|import[ \t]+(jaxmt[\w.]*))",
  re.MULTILINE,
)
_VERSIONS = 8  # of a module's kernels that are kept


def private_folder(path: pathlib.Path | str) -> pathlib.Path | None:
  """Creates a folder only this user can write to.

  Returns:
    The folder, or None if it cannot be created, belongs to another user, is a
    link, or lets other users write.
  """
  path = pathlib.Path(path)
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    usable = os.access(path, os.W_OK | os.X_OK)
  except OSError:
    return None
  mine = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
  shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
  return path if mine and not shared and usable else None


def cache_folder(name: str) -> pathlib.Path | None:
  """Returns a private folder in the user's cache, None if there can be none."""
  cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
  return private_folder(pathlib.Path(cache) / "jaxmt" / name)


@functools.cache
def _kernel_folder() -> pathlib.Path | None:
  """Where kernels are kept: NUMBA_CACHE_DIR if given, else the user's cache."""
  folder = os.environ.get("NUMBA_CACHE_DIR")
  return private_folder(folder) if folder else cache_folder("kernels")


class _Locator(caching.UserProvidedCacheLocator):
  """Tells numba where a kernel is kept and which version of it is current.

  Kernels of this package are kept by module and stamp, wherever the package
  lies, so copies of it share what they have in common. Those that check bounds
  (NUMBA_BOUNDSCHECK) are kept apart: numba would take one for the other.
  """

  def __init__(self, py_func, py_file):
    self._py_file = py_file
    self._lineno = py_func.__code__.co_firstlineno
    path = pathlib.Path(py_file).resolve()
    self._own = path.is_relative_to(_PACKAGE)
    folder = self.get_suitable_cache_subpath(py_file)
    if self._own:
      module = ".".join(path.relative_to(_PACKAGE).with_suffix("").parts)
      checked = "-checked" if config.BOUNDSCHECK else ""  # pyrefly: ignore
      folder = os.path.join(module, stamp(path)[:16] + checked)
    self._cache_path = os.path.join(str(_kernel_folder()), folder)

  def ensure_cache_path(self):
    """Creates the folder; of older versions the newest few are kept."""
    path = pathlib.Path(self._cache_path)
    if self._own and not path.exists():
      _drop_old_versions(path.parent)
    super().ensure_cache_path()

  def get_source_stamp(self):
    path = pathlib.Path(self._py_file).resolve()
    return stamp(path).encode() if self._own else super().get_source_stamp()

  @classmethod
  def from_function(cls, py_func, py_file):
    return cls(py_func, py_file) if os.path.exists(py_file) else None


def _drop_old_versions(folder: pathlib.Path) -> None:
  """Removes all but the newest versions of a module's kernels."""
  if not folder.is_dir():
    return
  ages = []
  for path in folder.iterdir():
    with contextlib.suppress(OSError):  # another process has dropped it
      ages.append((path.stat().st_mtime, path))
  for _, path in sorted(ages)[:-_VERSIONS]:
    shutil.rmtree(path, ignore_errors=True)


class _Implementation(caching.CompileResultCacheImpl):
  _locator_classes = (_Locator,)  # pyrefly: ignore


class _FunctionCache(caching.FunctionCache):
  _impl_class = _Implementation


class KernelCache(caching._Cache):
  """numba's cache of one function, opened when the function first runs."""

  def __init__(self, function: Callable[..., Any]):
    self._function = function

  @functools.cached_property
  def _cache(self):
    if _kernel_folder() is None:
      return caching.NullCache()
    try:
      return _FunctionCache(self._function)
    except OSError:  # no room for a folder
      return caching.NullCache()

  @property
  def cache_path(self):
    """The folder of this function's files, None without a cache."""
    return self._cache.cache_path

  def load_overload(self, sig, target_context):
    """Returns the compiled function for a signature, None if not kept.

    Damaged files count as not kept.
    """
    try:
      return self._cache.load_overload(sig, target_context)
    except Exception:  # whatever unpickling damaged files raises
      with contextlib.suppress(Exception):
        self._cache.flush()
      return None

  def save_overload(self, sig, data):
    """Keeps the compiled function for a signature, if the disk allows it."""
    with contextlib.suppress(OSError):
      self._cache.save_overload(sig, data)

  def enable(self):
    """Starts using the cache."""
    self._cache.enable()

  def disable(self):
    """Stops using the cache."""
    self._cache.disable()

  def flush(self):
    """Forgets what is kept of this function."""
    self._cache.flush()


@functools.cache
def _read(path: pathlib.Path) -> tuple[bytes, bool, tuple[pathlib.Path, ...]]:
  """Hash of a file, whether it has kernels, and the files it imports."""
  source = path.read_bytes()
  names = set()
  for module, members, whole in _IMPORT.findall(source):
    if whole:
      names.add(whole.decode())
      continue
    names.add(module.decode())
    for member in re.findall(rb"\w+", members):
      names.add(f"{module.decode()}.{member.decode()}")
  modules = {_PACKAGE.joinpath(*name.split(".")[1:]) for name in names}
  files = (place.with_suffix(".py") for place in sorted(modules))
  return (
    hashlib.sha256(source).digest(),
    b"njit" in source,
    tuple(file for file in files if file.is_file() and file != path),
  )


@functools.cache
def stamp(path: pathlib.Path) -> str:
  """Returns the version of the kernels in a file of this package."""
  reached, frontier = {path}, list(_read(path)[2])
  relevant = {path, *frontier}
  while frontier:
    file = frontier.pop()
    if file in reached:
      continue
    reached.add(file)
    _, kernels, imports = _read(file)
    if kernels:
      relevant.add(file)
    frontier.extend(imports)
  digest = hashlib.sha256()
  for file in sorted(relevant):
    digest.update(str(file.relative_to(_PACKAGE)).encode() + _read(file)[0])
  return digest.hexdigest()
