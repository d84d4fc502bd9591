r"""Text files in and out: plain or gzipped UTF-8, `-` for standard streams.

Lines end at `\n` only, so that characters which Python also takes for line
breaks (form feed, U+2028, ...) stay inside their line, byte for byte. A final
`\r` is kept for the same reason. Writing is atomic: a reader sees the old file
or the new one, never a part.
"""

import contextlib
import gzip
import os
import pathlib
import sys
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from jaxmt.errors import InputError

_GZIP_MAGIC = b"\x1f\x8b"


def read_bytes(path: str) -> bytes:
  """Returns the uncompressed content of a file, or of standard input for `-`.

  Gzip is recognised by its first bytes, not by the file's name.
  """
  try:
    if path == "-":
      data = sys.stdin.buffer.read()
    else:
      data = pathlib.Path(path).read_bytes()
    if data[:2] == _GZIP_MAGIC:
      data = gzip.decompress(data)
  except (OSError, EOFError, zlib.error) as error:
    raise InputError(_reason(error), path=path) from error
  return data


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
      for number, raw in enumerate(_open_binary(path, stack), start=1):
        yield number, raw.rstrip(b"\n").decode("utf-8")
  except UnicodeDecodeError as error:
    bad = error.object[error.start]
    raise InputError(
      f"not UTF-8: byte 0x{bad:02x}", path=path, line=number
    ) from error
  except (OSError, EOFError, zlib.error) as error:
    raise InputError(_reason(error), path=path) from error


def stream_blocks(path: str, *, size: int = 1 << 22) -> Iterator[bytes]:
  """Yields the uncompressed content in blocks of about `size` bytes."""
  try:
    with contextlib.ExitStack() as stack:
      source = _open_binary(path, stack)
      while block := source.read(size):
        yield block
  except (OSError, EOFError, zlib.error) as error:
    raise InputError(_reason(error), path=path) from error


def _open_binary(path: str, stack: contextlib.ExitStack) -> BinaryIO:
  """Opens for reading; looks through gzip when the first bytes say so."""
  if path == "-":
    raw = sys.stdin.buffer
  else:
    raw = stack.enter_context(open(path, "rb"))
  if raw.peek(2)[:2] == _GZIP_MAGIC:  # pyrefly: ignore
    return stack.enter_context(gzip.open(raw, "rb"))  # pyrefly: ignore
  return raw


def _reason(error: Exception) -> str:
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
    sys.stdout.flush()  # what was printed before comes first
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()
    return
  if os.path.exists(path) and not os.path.isfile(path):  # /dev/null, a pipe
    with _open_special(path) as raw:
      yield raw
    return
  target = pathlib.Path(os.path.realpath(path))  # write through links
  temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
  try:
    with open(temporary, "wb") as raw:
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
  except OSError as error:
    raise InputError(_reason(error), path=path) from error
  finally:
    temporary.unlink(missing_ok=True)


def _open_special(path: str) -> BinaryIO:
  try:
    return open(path, "wb")
  except OSError as error:
    raise InputError(_reason(error), path=path) from error


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
