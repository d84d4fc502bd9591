"""Folders of memory-mapped arrays, written in pieces, whole or absent.

    manifest.json      what it is, and size and CRC-32 of every other file
    NAME.npy           an array
    NAME.txt           strings, one a line
    NAME.json          anything else that JSON can say

A folder is written under a temporary name, flushed to disk and renamed.
Arrays grow by appending, so what does not fit into memory can be written part
by part. Opening maps the arrays; it reads them only to check their sums, which
can be left out.
"""

import concurrent.futures
import contextlib
import ctypes
import dataclasses
import errno
import io
import json
import math
import os
import pathlib
import shutil
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from jaxmt import errors
from jaxmt.errors import InputError
from jaxmt.text import files

MANIFEST = "manifest.json"
# What NumPy raises for a file of arrays with a damaged header.
DAMAGED_ARRAY = (
  ValueError,
  TypeError,
  KeyError,
  IndexError,
  AttributeError,
  OverflowError,
  EOFError,
  SyntaxError,
  tokenize.TokenError,
  RecursionError,
)
_ENDINGS = (".npy", ".txt", ".json")
_OLD = ".old"  # ending of the hidden name of a folder that is being replaced
_ATTEMPTS = 10
_LARGEST_UNPACKED = 1 << 28  # bytes that any npz file may unpack to
_PACKED_AT_MOST = 100  # how many times its size a larger one may unpack to
_LONGEST_NAME = 255  # bytes
_HERE = -100  # AT_FDCWD of <fcntl.h>
_RENAME_EXCHANGE = 2  # of <linux/fs.h>

# (name, size, type) -> an array of zeros, in memory or on disk.
Allocate = Callable[[str, int, type], np.ndarray]


def in_memory(name: str, size: int, dtype: type) -> np.ndarray:
  """Returns an array of zeros in memory; an `Allocate`."""
  del name
  return np.zeros(size, dtype)


class ColumnFile:
  """A `.npy` file that grows by appending rows."""

  def __init__(self, path: pathlib.Path, first: np.ndarray):
    """Makes the file with the type and row shape of `first`, no rows yet."""
    self.path = path
    self.rows = 0
    self._dtype = first.dtype.newbyteorder("<")
    self._shape = first.shape[1:]
    self._out: BinaryIO = open(path, "wb")
    self._write_header()

  def _write_header(self) -> None:
    # NumPy pads the header so that it keeps its size while the array grows.
    np.lib.format.write_array_header_1_0(
      self._out,
      {
        "descr": np.lib.format.dtype_to_descr(self._dtype),
        "fortran_order": False,
        "shape": (self.rows, *self._shape),
      },
    )

  def append(self, rows: np.ndarray) -> None:
    """Writes more rows, `[n, ...]`."""
    if rows.shape[1:] != self._shape or rows.dtype != self._dtype:
      raise ValueError(
        f"{self.path.name}: {rows.dtype} {rows.shape} after"
        f" {self._dtype} {self._shape}"
      )
    if rows.size:
      self._out.write(np.ascontiguousarray(rows, self._dtype).data.cast("B"))
    self.rows += len(rows)

  def finish(self, *, durable: bool = True) -> None:
    """Completes the header and flushes, to the disk itself if `durable`."""
    if not self._out.closed:
      self._out.seek(0)
      self._write_header()
      self._out.flush()
      if durable:
        os.fsync(self._out.fileno())
      self._out.close()

  def close(self) -> None:
    """Gives the file up; what has not reached the disk is lost."""
    with contextlib.suppress(OSError):
      self._out.close()


def _load(path: pathlib.Path) -> np.ndarray:
  array = np.load(path, mmap_mode="r", allow_pickle=False)
  # A plain array over the map: no subclass inside kernels.
  return np.asarray(array) if array.size else np.array(array)


class FolderWriter:
  """A folder in the making; see `open_writer`."""

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    self._columns: dict[str, ColumnFile] = {}
    self._names: list[str] = []
    self.meta: dict[str, Any] = {}

  def append(self, name: str, rows: np.ndarray) -> None:
    """Appends rows to the array `name`, which begins with the first call."""
    if name not in self._columns:
      path = self._folder / f"{name}.npy"
      self._columns[name] = ColumnFile(path, rows)
    self._columns[name].append(rows)

  def rows(self, name: str) -> int:
    """Returns how many rows the array has so far."""
    return self._columns[name].rows if name in self._columns else 0

  def array(self, name: str) -> np.ndarray:
    """Ends an array and returns it, memory-mapped."""
    self._columns[name].finish()
    return _load(self._columns[name].path)

  def write_lines(self, name: str, lines: Sequence[str]) -> None:
    """Writes strings without newline."""
    if any("\n" in line for line in lines):
      raise ValueError(f"{name}: a string holds a newline")
    files.write_lines(str(self._folder / f"{name}.txt"), list(lines))
    self._names.append(f"{name}.txt")

  def write_json(self, name: str, value: Any) -> None:
    """Writes a JSON value."""
    text = json.dumps(value, ensure_ascii=False)
    files.write_text(str(self._folder / f"{name}.json"), text)
    self._names.append(f"{name}.json")

  def finish(self) -> None:
    """Completes the files and writes the manifest."""
    for column in self._columns.values():
      column.finish()
    names = sorted([*self._names, *(f"{name}.npy" for name in self._columns)])
    sums = _checksums(self._folder, names)
    entries = {
      name: {"bytes": (self._folder / name).stat().st_size, "crc32": value}
      for name, value in zip(names, sums, strict=True)
    }
    text = json.dumps({**self.meta, "files": entries}, indent=1) + "\n"
    files.write_text(str(self._folder / MANIFEST), text)

  def close(self) -> None:
    """Closes every file."""
    for column in self._columns.values():
      column.close()


@contextlib.contextmanager
def open_writer(path: str) -> Iterator[FolderWriter]:
  """Makes a folder that appears, whole, only on success.

  An older folder with a manifest is replaced, if it has nothing but files of
  the kinds that are written here; anything else at `path` is not.

  Raises:
    InputError: if something else is there, or writing fails.
  """
  with new_folder(path, mark=MANIFEST, own=_ENDINGS) as temporary:
    writer = FolderWriter(temporary)
    try:
      yield writer
      writer.finish()
    finally:
      writer.close()


@contextlib.contextmanager
def new_folder(
  path: str, *, mark: str, own: Sequence[str]
) -> Iterator[pathlib.Path]:
  """Gives an empty folder that gets the name `path` on success.

  Args:
    path: the name. Something else than such a folder is not replaced.
    mark: the file by which such a folder is known, and which is written last.
    own: how the names of all that is in such a folder end.

  Raises:
    InputError: if something else is there, or writing fails.
  """
  recover(path, mark=mark)
  target = pathlib.Path(os.path.realpath(path))  # write through links
  _check_replaceable(target, mark, tuple(own), path)
  temporary = files.hidden_name(target)
  try:
    temporary.mkdir()
    yield temporary
    _put_in_place(temporary, target)
  except OSError as error:
    raise errors.system_failure(error, path) from error
  finally:
    shutil.rmtree(temporary, ignore_errors=True)


def _check_replaceable(
  target: pathlib.Path, mark: str, own: tuple[str, ...], path: str
) -> None:
  """Raises if there is something that is not ours to remove."""
  if not os.path.lexists(target):
    return
  if not (target / mark).is_file():
    raise InputError("exists already and is something else", path=path)
  for name in sorted(os.listdir(target)):
    if not name.endswith(own):
      cause = f"exists already and has '{name}', which would be lost"
      raise InputError(cause, path=path)


def _put_in_place(temporary: pathlib.Path, target: pathlib.Path) -> None:
  """Gives a folder its name; an old one of that name is then removed.

  At every moment there is an old or a new folder of that name, where the file
  system can exchange two names. Where it cannot (some network disks), a kill
  between two renames leaves the old folder under a hidden name, and whoever
  opens it next gives it its name back: see `recover`.
  """
  files.sync_directory(temporary)
  if not target.exists():
    os.rename(temporary, target)
  elif not _exchange(temporary, target):
    _replace(temporary, target)
  files.sync_directory(target.parent)  # what was exchanged, the caller removes


def _replace(temporary: pathlib.Path, target: pathlib.Path) -> None:
  """Puts a folder in the place of another in two steps."""
  old = files.hidden_name(target, _old_ending(target))
  os.rename(target, old)
  for attempt in range(_ATTEMPTS):
    try:
      os.rename(temporary, target)
      break
    except OSError as error:
      # A reader has come in between and has given the old one its name back.
      recovered = error.errno in (errno.ENOTEMPTY, errno.EEXIST)
      if not recovered or attempt == _ATTEMPTS - 1:
        if old.exists() and not target.exists():
          os.rename(old, target)
        raise
      os.rename(target, old)
  shutil.rmtree(old, ignore_errors=True)


def _old_ending(target: pathlib.Path) -> str:
  """Ends the hidden name; that has only the start of a long name in it."""
  return f".{zlib.crc32(os.fsencode(target.name)):08x}{_OLD}"


def recover(path: str, *, mark: str = MANIFEST) -> None:
  """Gives a folder its name back that a killed writer had moved away."""
  target = pathlib.Path(os.path.realpath(path))
  if os.path.lexists(target):
    return
  ending = _old_ending(target)
  with contextlib.suppress(OSError):  # then there is none
    for old in sorted(target.parent.iterdir()):
      whole = (old / mark).is_file()
      if whole and files.is_hidden_name(old, target, ending):
        os.rename(old, target)
        return


def _exchange(one: pathlib.Path, other: pathlib.Path) -> bool:
  """Exchanges two names at once; returns whether the system can."""
  try:
    rename = ctypes.CDLL(None, use_errno=True).renameat2
  except (OSError, AttributeError):
    return False
  names = (os.fsencode(one), os.fsencode(other))
  if rename(_HERE, names[0], _HERE, names[1], _RENAME_EXCHANGE) == 0:
    return True
  code = ctypes.get_errno()
  if code in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
    return False
  raise OSError(code, os.strerror(code))


def _checksums(folder: pathlib.Path, names: Sequence[str]) -> list[int]:
  """The CRC-32 of files, several at once."""
  with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    return list(pool.map(lambda name: _checksum(folder / name), names))


def _checksum(path: pathlib.Path) -> int:
  value = 0
  with open(path, "rb") as stream:
    while block := stream.read(1 << 22):
      value = zlib.crc32(block, value)
  return value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Folder:
  """An opened folder.

  Attributes:
    path: where it is.
    meta: what else the manifest says.
    names: its files.
  """

  path: str
  meta: Mapping[str, Any]
  names: frozenset[str]

  def array(self, name: str) -> np.ndarray:
    """Returns an array, memory-mapped and read-only."""
    file = self._file(f"{name}.npy")
    try:
      array = _load(pathlib.Path(file))
    except (OSError, *DAMAGED_ARRAY) as error:
      raise InputError("not an array", path=file) from error
    if not array.ndim:
      raise InputError("a single value, not an array", path=file)
    return array

  def lines(self, name: str) -> list[str]:
    """Returns strings."""
    return files.read_lines(self._file(f"{name}.txt"))

  def json(self, name: str) -> Any:
    """Returns a JSON value."""
    return files.read_json(self._file(f"{name}.json"))

  def _file(self, name: str) -> str:
    if name not in self.names:
      raise InputError(f"lacks {name}", path=os.path.join(self.path, MANIFEST))
    return os.path.join(self.path, name)


def is_folder(path: str) -> bool:
  """Whether `path` is a folder with a manifest."""
  recover(path)
  return (pathlib.Path(path) / MANIFEST).is_file()


def open_folder(path: str, *, verify: bool) -> Folder:
  """Opens a folder and compares its files with the manifest.

  Args:
    path: the folder.
    verify: compare checksums too, which reads every file once.

  Raises:
    InputError: naming the file that is missing, cut short or changed.
  """
  recover(path)
  folder = pathlib.Path(path)
  manifest_path = str(folder / MANIFEST)
  text = files.read_text(manifest_path)
  try:
    manifest = json.loads(text)
    entries = {
      name: (int(entry["bytes"]), int(entry["crc32"]))
      for name, entry in manifest.pop("files").items()
    }
  except (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
  ) as error:
    raise InputError("not a manifest", path=manifest_path) from error
  for name, (size, _) in entries.items():
    if os.path.basename(name) != name:
      raise InputError(f"'{name}' is in another folder", path=manifest_path)
    if not name.isprintable() or len(os.fsencode(name)) > _LONGEST_NAME:
      raise InputError("a name that no file can have", path=manifest_path)
    file = folder / name
    if not file.is_file():
      raise InputError("missing", path=str(file))
    actual = file.stat().st_size
    if actual != size:
      raise InputError(f"has {actual} bytes, not {size}", path=str(file))
  if verify:
    sums = _checksums(folder, list(entries))
    for name, value in zip(entries, sums, strict=True):
      if value != entries[name][1]:
        raise InputError("has been changed", path=str(folder / name))
  return Folder(path=path, meta=manifest, names=frozenset(entries))


def read_npz(path: str, data: bytes | None = None) -> dict[str, np.ndarray]:
  """Returns the arrays of an npz file by name.

  Only as much memory is taken as the arrays that are there need: a file cannot
  name a size that it does not have, or unpack to thousands of times its size.

  Args:
    path: the file.
    data: its content, if it has been read already.

  Raises:
    InputError: if it is no such file, or is damaged.
  """
  data = files.read_bytes(path) if data is None else data
  if data[:2] != b"PK":
    raise InputError("not a file of arrays", path=path)
  most = max(_LARGEST_UNPACKED, _PACKED_AT_MOST * len(data))
  try:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
      members = packed.infolist()
      if sum(member.file_size for member in members) > most:
        raise InputError(f"unpacks to over {most >> 20} MiB", path=path)
      return {
        member.filename.removesuffix(".npy"): _unpacked(packed.read(member))
        for member in members
      }
  except InputError:
    raise
  except DAMAGED_ARRAY as error:
    raise InputError("not a file of arrays", path=path) from error
  except (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,  # another kind of compression
    OSError,
    RuntimeError,  # encrypted
  ) as error:
    raise InputError(f"damaged: {error}", path=path) from error


def _unpacked(data: bytes) -> np.ndarray:
  """The array of a file; its header may not promise more than there is."""
  stream = io.BytesIO(data)
  version = np.lib.format.read_magic(stream)
  if version not in ((1, 0), (2, 0)):
    raise ValueError(f"version {version}")
  header = (
    np.lib.format.read_array_header_1_0
    if version == (1, 0)
    else np.lib.format.read_array_header_2_0
  )
  shape, _, kind = header(stream)
  size = math.prod(shape) * kind.itemsize
  if kind.hasobject or size != len(data) - stream.tell():
    raise ValueError(f"{shape} of {kind} in {len(data)} bytes")
  stream.seek(0)
  return np.lib.format.read_array(stream, allow_pickle=False)


@contextlib.contextmanager
def scratch(near: str) -> Iterator[str]:
  """Makes a temporary folder beside `near` and removes it afterwards."""
  parent = os.path.dirname(os.path.abspath(near))
  try:
    name = tempfile.mkdtemp(prefix=".scratch.", dir=parent)
  except OSError as error:
    raise errors.system_failure(error, parent) from error
  try:
    yield name
  finally:
    shutil.rmtree(name, ignore_errors=True)


def spill(
  scratch_folder: str, name: str, arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
  """Writes arrays into a scratch folder and returns them memory-mapped."""
  folder = pathlib.Path(scratch_folder) / name
  mapped = {}
  try:
    folder.mkdir()
    for key, array in arrays.items():
      path = folder / f"{key}.npy"
      _save(path, array)
      mapped[key] = _load(path)
  except OSError as error:
    raise errors.system_failure(error, str(folder)) from error
  return mapped


def _save(path: pathlib.Path, array: np.ndarray) -> None:
  """Like `np.save`, but a full disk is told as such."""
  column = ColumnFile(path, array)
  try:
    column.append(array)
    column.finish(durable=False)
  finally:
    column.close()


@contextlib.contextmanager
def scratch_writer(scratch_folder: str, name: str) -> Iterator[FolderWriter]:
  """Gives a writer of growing arrays in a scratch folder."""
  folder = pathlib.Path(scratch_folder) / name
  folder.mkdir()
  writer = FolderWriter(folder)
  try:
    yield writer
  finally:
    writer.close()


def scratch_array(
  scratch_folder: str, name: str, size: int, dtype: type
) -> np.ndarray:
  """Returns an array of zeros that lies in a scratch folder, not in memory."""
  if not size:  # an empty file cannot be mapped
    return np.zeros(size, dtype)
  path = pathlib.Path(scratch_folder) / f"{name}.raw"
  try:
    with open(path, "wb") as out:
      # Space that is missing shows here, not as a signal when a page is
      # written.
      os.posix_fallocate(out.fileno(), 0, size * np.dtype(dtype).itemsize)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r+", shape=(size,)))
  except OSError as error:
    raise errors.system_failure(error, str(path)) from error
