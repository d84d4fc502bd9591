"""Artefacts on disk: folders that are complete or absent, never in between.

An artefact holds named values: arrays (memory-mapped when loaded), lists of
strings and JSON values, as a folder of `jaxmt.text.array_folder`: written under
a temporary name, flushed to disk, renamed, and checked when read.
"""

import contextlib
import fcntl
import glob
import hashlib
import os
import pathlib
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from jaxmt import errors
from jaxmt.errors import InputError
from jaxmt.text import array_folder, files

Values = dict[str, Any]

_SECONDS = ".seconds"  # beside the artefacts: how long the stage took so far
_NAME = re.compile(r"[A-Za-z0-9_@-]+")


class Damaged(Exception):
  """An artefact does not agree with its manifest; the text says how."""


def write(directory: pathlib.Path, values: Mapping[str, Any], meta: dict):
  """Writes values as the artefact `directory`, atomically.

  The caller holds the artefact's lock: what earlier writers of the same
  artefact left over when they were killed is removed.

  Args:
    directory: the final folder. An older artefact of that name is replaced at
      once: there is always a whole one. Its parent must exist.
    values: arrays, lists of strings without newline, or JSON values.
    meta: kept in the manifest under "meta".
  """
  for stale in directory.parent.glob(f".{glob.escape(directory.name)}.*"):
    remove(stale)
  with array_folder.open_writer(str(directory)) as folder:
    folder.meta = {"meta": meta}
    for name in sorted(values):
      _write_value(folder, name, values[name])


def remove(path: pathlib.Path) -> None:
  """Removes a folder, a file or a link, if there is one."""
  if path.is_dir() and not path.is_symlink():
    shutil.rmtree(path)
  else:
    path.unlink(missing_ok=True)


def _write_value(folder: array_folder.FolderWriter, name: str, value: Any):
  if not _NAME.fullmatch(name):
    raise ValueError(f"'{name}' cannot name a value of an artefact")
  if isinstance(value, np.ndarray):
    if value.dtype.hasobject or not value.ndim:
      raise ValueError(f"'{name}': {value.dtype} {value.shape} is no column")
    folder.append(name, value)
  elif isinstance(value, list) and all(isinstance(x, str) for x in value):
    folder.write_lines(name, value)
  else:
    folder.write_json(name, value)


def read(directory: pathlib.Path) -> tuple[Values, dict]:
  """Returns `(values, meta)` of an artefact after checking every file.

  Raises:
    Damaged: if a file is missing, cut short or changed.
  """
  values = {}
  try:
    folder = array_folder.open_folder(str(directory), verify=True)
    for file in sorted(folder.names):
      name, _, kind = file.partition(".")
      take = {"npy": folder.array, "txt": folder.lines, "json": folder.json}
      values[name] = take[kind](name)
    return values, folder.meta["meta"]
  except InputError as error:
    file = pathlib.Path(error.path or directory).name
    raise Damaged(f"{file}: {error.cause}") from error
  except KeyError as error:
    raise Damaged(f"unknown entry {error}") from error


class Store(Protocol):
  """Named values, each complete or absent; `Partial` is one."""

  def get(self, name: str) -> Mapping[str, Any] | None:
    """Returns the values of a name, None if there are none."""

  def put(self, name: str, values: Mapping[str, Any]) -> None:
    """Stores arrays, lists of strings and JSON values under a name."""

  def drop(self, name: str) -> None:
    """Removes the values of a name, if there are any."""


class Partial:
  """A folder of artefacts by name: what an unfinished stage has done so far.

  One process at a time writes to it. A damaged artefact counts as absent.
  """

  def __init__(self, folder: pathlib.Path):
    """Uses `folder`, which is made if it is not there."""
    self._folder = folder
    files.make_folder(str(folder))
    self._start = time.perf_counter()
    self._before = self._time_before()

  @property
  def seconds(self) -> float:
    """Time spent since the stage first began, as far as it was kept.

    What a killed process did after it last put something is not counted; it
    is done again, and counted then.
    """
    return self._before + time.perf_counter() - self._start

  def _keep_time(self) -> None:
    files.write_text(str(self._folder / _SECONDS), f"{self.seconds:.3f}\n")

  def _time_before(self) -> float:
    try:
      value = float((self._folder / _SECONDS).read_text())
    except (OSError, ValueError):
      return 0.0
    return value if 0 <= value < float("inf") else 0.0

  def get(self, name: str) -> Values | None:
    """Returns the values written under a name, None if there are none."""
    directory = self._folder / name
    if not os.path.lexists(directory):
      return None
    try:
      return read(directory)[0]
    except Damaged:
      remove(directory)
      return None

  def put(self, name: str, values: Mapping[str, Any]) -> None:
    """Writes values under a name, atomically, in place of older ones."""
    if not array_folder.is_folder(str(self._folder / name)):
      self.drop(name)
    write(self._folder / name, values, {})
    self._keep_time()

  def drop(self, name: str) -> None:
    """Removes what was written under a name, if anything was."""
    directory = self._folder / name
    if not os.path.lexists(directory):
      return
    # Renamed first: a half-removed folder must not look like an artefact.
    doomed = directory.with_name(f".{name}.dropped")
    remove(doomed)
    os.rename(directory, doomed)
    remove(doomed)


def file_digest(path: pathlib.Path | str) -> str:
  """Returns the SHA-256 of a file's bytes."""
  try:
    with open(path, "rb") as stream:
      return hashlib.file_digest(stream, "sha256").hexdigest()
  except OSError as error:
    raise errors.system_failure(error, str(path)) from error


@contextlib.contextmanager
def lock(path: pathlib.Path, *, wait: bool, what: str) -> Iterator[None]:
  """Holds an exclusive lock; the kernel releases it even after SIGKILL.

  Args:
    path: the lock file; it stays there, with the holder's process id inside.
      A link is refused: it could lead to a file of others.
    wait: wait for another holder to finish, or raise.
    what: what is locked, for the message.

  Raises:
    InputError: if another process holds it and `wait` is False.
  """
  no_link = lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o666)
  with open(path, "a+", errors="replace", opener=no_link) as handle:
    try:
      fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
      handle.seek(0)
      holder = handle.read().strip() or "unknown"
      if not wait:
        raise InputError(
          f"{what} is in use by process {holder}; "
          "wait for it to end, or choose another"
        ) from error
      fcntl.flock(handle, fcntl.LOCK_EX)
    handle.seek(0)
    handle.truncate()
    handle.write(str(os.getpid()))
    handle.flush()
    yield
