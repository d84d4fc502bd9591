r"""Text files in and out: plain or gzipped UTF-8, `-` for standard streams.

A small file cannot fill the memory: what gzip unpacks, or what a pipe or device
gives, may have no line over `LONGEST_LINE` bytes, and what gzip unpacks to over
`LARGE` bytes may be no more than `LARGEST_RATIO` times what is packed. Lines
end at `\n` only, so that characters which Python also takes for line breaks
(form feed, U+2028, ...) stay inside their line, byte for byte. A final `\r` is
kept for the same reason. Writing is atomic: a reader sees the old file or the
new one, never a part.
"""

import contextlib
import gzip
import io
import json
import os
import pathlib
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from jaxmt.errors import InputError

LONGEST_LINE = 1 << 26  # bytes, in files that are read as lines
LARGE = 1 << 26
LARGEST_RATIO = 200  # repeated lines of text come to about a tenth of it
_GZIP_MAGIC = b"\x1f\x8b"
_BLOCK = 1 << 22
_TOKEN_BYTES = 8
_HIDDEN = re.compile(rf"\..*\.[0-9a-f]{{{2 * _TOKEN_BYTES}}}\.tmp")
_TOO_LONG = f"line of over {LONGEST_LINE >> 20} MiB"


def read_bytes(path: str) -> bytes:
  """Returns the uncompressed content of a file, or of standard input for `-`.

  Gzip is recognised by its first bytes, not by the file's name.
  """
  try:
    with contextlib.ExitStack() as stack:
      source, packed = _open_binary(path, stack)
      if not packed and _is_regular(source):
        return source.read()  # no larger than it is on disk
      data = io.BytesIO()
      for block in _bounded(source, path, _BLOCK):
        data.write(block)
      return data.getvalue()
  except (OSError, EOFError, zlib.error) as error:
    raise InputError(_reason(error), path=path) from error


def _is_regular(source: BinaryIO) -> bool:
  """Whether it is a file of a certain size: no pipe, no device."""
  try:
    return stat.S_ISREG(os.fstat(source.fileno()).st_mode)
  except OSError:  # a stream in memory
    return False


def _bounded(source: BinaryIO, path: str, size: int) -> Iterator[bytes]:
  """Yields blocks; refuses what no text unpacks to, give or take a block."""
  line, length, total = 1, 0, 0  # the line that goes on, its bytes so far
  while block := source.read(size):
    end = block.rfind(b"\n")
    line += block.count(b"\n")
    length = len(block) - end - 1 + (length if end < 0 else 0)
    total += len(block)
    if length > LONGEST_LINE:
      raise InputError(_TOO_LONG, path=path, line=line)
    if total > LARGE and total > LARGEST_RATIO * _bytes_packed(source, total):
      cause = f"unpacks to over {LARGEST_RATIO} times its size"
      raise InputError(cause, path=path)
    yield block


def _bytes_packed(source: BinaryIO, default: int) -> int:
  """How much of the packed file has been read; `default` if that is unknown."""
  raw = getattr(source, "fileobj", None)
  try:
    return default if raw is None else raw.tell()
  except OSError:  # a pipe
    return default


def read_text(path: str) -> str:
  """Returns the whole file as a string; bad UTF-8 is named with its line."""
  data = read_bytes(path)
  try:
    return data.decode("utf-8")
  except UnicodeDecodeError as error:
    line = data.count(b"\n", 0, error.start) + 1
    raise InputError(
      f"not UTF-8: byte 0x{data[error.start]:02x}", path=path, line=line
    ) from error


def read_lines(path: str) -> list[str]:
  r"""Returns the lines without their `\n`; the last one needs no newline."""
  return split_lines(read_text(path))


def split_lines(text: str) -> list[str]:
  r"""Splits at `\n` only; a final newline starts no further line."""
  lines = text.split("\n")
  if lines[-1] == "":
    lines.pop()
  return lines


def stream_lines(path: str) -> Iterator[tuple[int, str]]:
  """Yields `(line number from 1, line)` without holding the file in memory."""
  number = 0
  try:
    with contextlib.ExitStack() as stack:
      source, _ = _open_binary(path, stack)
      while raw := source.readline(LONGEST_LINE + 2):
        number += 1
        raw = raw.removesuffix(b"\n")
        if len(raw) > LONGEST_LINE:
          raise InputError(_TOO_LONG, path=path, line=number)
        yield number, raw.decode("utf-8")
  except UnicodeDecodeError as error:
    bad = error.object[error.start]
    raise InputError(
      f"not UTF-8: byte 0x{bad:02x}", path=path, line=number
    ) from error
  except (OSError, EOFError, zlib.error) as error:
    raise InputError(_reason(error), path=path) from error


def stream_blocks(path: str, *, size: int = _BLOCK) -> Iterator[bytes]:
  """Yields the uncompressed content in blocks of about `size` bytes."""
  try:
    with contextlib.ExitStack() as stack:
      source, _ = _open_binary(path, stack)
      yield from _bounded(source, path, size)
  except (OSError, EOFError, zlib.error) as error:
    raise InputError(_reason(error), path=path) from error


def _open_binary(
  path: str, stack: contextlib.ExitStack
) -> tuple[BinaryIO, bool]:
  """Opens for reading; looks through gzip, and says so, if it is gzip."""
  if path == "-":
    if sys.stdin is None:  # closed by the caller
      raise InputError("standard input is closed", path=path)
    raw = sys.stdin.buffer
  else:
    raw = stack.enter_context(open(path, "rb"))
  if raw.peek(2)[:2] == _GZIP_MAGIC:  # pyrefly: ignore
    packed = stack.enter_context(gzip.open(raw, "rb"))
    return packed, True  # pyrefly: ignore
  return raw, False  # pyrefly: ignore


def read_json(path: str) -> Any:
  """Returns what a JSON file says.

  Raises:
    InputError: if it is not JSON, or nested too deep.
  """
  try:
    return json.loads(read_text(path))
  except RecursionError as error:
    raise InputError("not JSON: nested too deep", path=path) from error
  except json.JSONDecodeError as error:
    cause = f"not JSON: {error.msg}"
    raise InputError(cause, path=path, line=error.lineno) from error
  except InputError:
    raise
  except ValueError as error:  # a number of thousands of digits
    raise InputError(f"not JSON: {error}", path=path) from error


def _reason(error: Exception) -> str:
  """What a system call, or unpacking, has failed for."""
  if isinstance(error, OSError) and error.strerror:
    return error.strerror.lower()
  return str(error) or type(error).__name__


@contextlib.contextmanager
def atomic_writer(path: str) -> Iterator[BinaryIO]:
  """Opens `path` for writing bytes; it appears, whole, only on success.

  Content goes to a temporary file beside the target, is flushed to disk and
  renamed. A name ending in `.gz` is compressed (with no time stamp, so equal
  content gives equal bytes). `-` writes to standard output; devices and pipes
  are written to directly, never replaced.
  """
  if path == "-":
    with _as_input_error(path):
      if sys.stdout is None:
        raise InputError("standard output is closed", path=path)
      sys.stdout.flush()  # what was printed before comes first
      yield sys.stdout.buffer
      sys.stdout.buffer.flush()
    return
  if os.path.exists(path) and not os.path.isfile(path):  # /dev/null, a pipe
    with _as_input_error(path), open(path, "wb") as raw:
      yield raw
    return
  target = pathlib.Path(os.path.realpath(path))  # write through links
  with _as_input_error(path):
    temporary, handle = _create_beside(target)
    try:
      with open(handle, "wb") as raw:
        if target.suffix == ".gz":
          with gzip.GzipFile(
            filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6
          ) as packed:
            yield packed  # pyrefly: ignore
        else:
          yield raw
        raw.flush()
        os.fsync(raw.fileno())
      os.replace(temporary, target)
      sync_directory(target.parent)
    finally:
      temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _as_input_error(path: str) -> Iterator[None]:
  """Turns failed system calls into `InputError`.

  A reader of our output that has gone is no error: see `runtime.program`.
  """
  try:
    yield
  except BrokenPipeError:
    raise
  except OSError as error:
    raise InputError(_reason(error), path=path) from error


def hidden_name(target: pathlib.Path, ending: str = ".tmp") -> pathlib.Path:
  """Returns a name beside `target` that nobody can guess."""
  return target.with_name(
    f".{_short(target)}.{secrets.token_hex(_TOKEN_BYTES)}{ending}"
  )


def is_hidden_name(path: pathlib.Path, target: pathlib.Path, ending: str):
  """Whether `hidden_name(target, ending)` could have given this path."""
  name, start = path.name, f".{_short(target)}."
  middle = name.removeprefix(start).removesuffix(ending)
  return (
    name == f"{start}{middle}{ending}"
    and len(middle) == 2 * _TOKEN_BYTES
    and path.parent == target.parent
  )


def _short(target: pathlib.Path) -> str:
  # A file's name has at most 255 bytes, a character at most 4.
  return target.name[:50]


def remove_stale(folder: str) -> None:
  """Removes files that killed writers have left in a folder.

  The caller makes sure that nobody is writing there now.
  """
  with contextlib.suppress(OSError):  # they do no harm
    for path in pathlib.Path(folder).iterdir():
      if _HIDDEN.fullmatch(path.name) and path.is_file():
        path.unlink(missing_ok=True)


def _create_beside(target: pathlib.Path) -> tuple[pathlib.Path, int]:
  """Creates a file of our own; nothing that exists, no link, is opened."""
  path = hidden_name(target)
  flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
  return path, os.open(path, flags, 0o666)


def write_text(path: str, text: str) -> None:
  """Writes a string atomically as UTF-8."""
  with atomic_writer(path) as out:
    out.write(text.encode("utf-8"))


def write_lines(path: str, lines: list[str]) -> None:
  r"""Writes lines atomically, each ended by `\n`.

  Raises:
    ValueError: if a line contains `\n`, since it would be read as two.
  """
  text = "".join([line + "\n" for line in lines])
  if text.count("\n") != len(lines):
    raise ValueError("a line contains a newline character")
  write_text(path, text)


def is_folder(path: str) -> bool:
  """Whether there is a folder of that name."""
  return os.path.isdir(path)


def make_folder(path: str) -> None:
  """Makes a folder and those it is in, unless it is there already."""
  try:
    pathlib.Path(path).mkdir(parents=True, exist_ok=True)
  except OSError as error:
    raise InputError(_reason(error), path=path) from error


def list_folder(path: str) -> list[str]:
  """Returns the names of the files in a folder, sorted."""
  try:
    with os.scandir(path) as entries:
      return sorted(entry.name for entry in entries if entry.is_file())
  except OSError as error:
    raise InputError(_reason(error), path=path) from error


def sync_directory(directory: pathlib.Path) -> None:
  """Makes a rename inside `directory` durable."""
  handle = os.open(directory, os.O_RDONLY)
  try:
    os.fsync(handle)
  finally:
    os.close(handle)
