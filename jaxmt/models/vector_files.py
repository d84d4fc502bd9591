"""Word vectors in files: the text format of word2vec and GloVe, and .npz.

Text has one line a word: the word, then D numbers, separated by spaces. A first
line of two whole numbers, V and D, is optional when reading and written always.

A file NAME.npz has the array `vectors`, `[V, D]`, or `q` of whole numbers with
`scale`, a number for each row or for all, whose product the vectors are; its
words are the lines of NAME.words.gz beside it. It has no objects (no pickle).
"""

import io
import re
import zipfile
import zlib

import numpy as np

from jaxmt.errors import InputError
from jaxmt.models.word_vectors import WordVectors
from jaxmt.text import files

_SIZE = re.compile("[0-9]{1,18}")


def read(path: str) -> WordVectors:
  """Reads word vectors: text, plain or gzipped, or .npz.

  Raises:
    InputError: naming the line, for numbers that are none or not finite, rows
      of different sizes, a word that stands twice, or a wrong header.
  """
  if path.endswith(".npz"):
    return _read_arrays(path)
  words: dict[str, int] = {}
  rows: list[np.ndarray] = []
  header = None
  for number, line in files.stream_lines(path):
    parts = line.rstrip(" ").split(" ")
    if number == 1 and len(parts) == 2 and all(map(_SIZE.fullmatch, parts)):
      header = tuple(map(int, parts))
      continue
    word, row = parts[0], _numbers(parts[1:], path, number)
    if not word:
      raise InputError("no word", path=path, line=number)
    if rows and len(row) != len(rows[0]):
      raise InputError(
        f"{len(row)} numbers, not {len(rows[0])}", path=path, line=number
      )
    if word in words:
      raise InputError(f"'{word}' stands twice", path=path, line=number)
    words[word] = len(rows)
    rows.append(row)
  if not rows:
    raise InputError("no word vectors", path=path)
  shape = (len(rows), len(rows[0]))
  if header is not None and header != shape:
    raise InputError(
      f"the header says {header[0]} words of {header[1]} numbers, there are"
      f" {shape[0]} of {shape[1]}",
      path=path,
      line=1,
    )
  return WordVectors(words=tuple(words), vectors=np.stack(rows))


def _read_arrays(path: str) -> WordVectors:
  """Reads vectors from .npz, and their words from the file beside it."""
  known = ("vectors", "q", "scale")
  try:
    data = io.BytesIO(files.read_bytes(path))
    with np.load(data, allow_pickle=False) as found:
      arrays = {name: found[name] for name in known if name in found.files}
  except (
    EOFError,
    OSError,
    ValueError,
    KeyError,
    zipfile.BadZipFile,
    zlib.error,
  ) as error:
    raise InputError(f"no arrays: {error}", path=path) from error
  rows = arrays.get("vectors", arrays.get("q"))
  if rows is None or not {"vectors", "scale"} & {*arrays}:
    raise InputError("has neither 'vectors' nor 'q' and 'scale'", path=path)
  numbers = all(array.dtype.kind in "fiu" for array in arrays.values())
  if not numbers or rows.ndim != 2 or not rows.shape[1]:
    raise InputError("its vectors are no rows of numbers", path=path)
  vectors = rows.astype(np.float32)
  if "vectors" not in arrays:
    scale = arrays["scale"].astype(np.float32).reshape(-1, 1)
    if len(scale) not in (1, len(rows)):
      raise InputError("'scale' is not one number for each row", path=path)
    vectors = vectors * scale
  if not np.isfinite(vectors).all():
    raise InputError("a word needs one or more finite numbers", path=path)
  beside = path.removesuffix(".npz") + ".words.gz"
  words = files.read_lines(beside)
  if len(words) != len(vectors):
    raise InputError(
      f"{len(words)} words, the arrays have {len(vectors)}", path=beside
    )
  seen: set[str] = set()
  for number, word in enumerate(words, start=1):
    if not word or word in seen:
      cause = f"'{word}' stands twice" if word else "no word"
      raise InputError(cause, path=beside, line=number)
    seen.add(word)
  return WordVectors(words=tuple(words), vectors=vectors)


def _numbers(parts: list[str], path: str, line: int) -> np.ndarray:
  try:
    row = np.array([float(part) for part in parts], np.float32)
  except ValueError as error:
    raise InputError("not a number", path=path, line=line) from error
  if not len(row) or not np.isfinite(row).all():
    raise InputError(
      "a word needs one or more finite numbers", path=path, line=line
    )
  return row


def write(path: str, vectors: WordVectors) -> None:
  """Writes word vectors."""
  lines = [f"{len(vectors)} {vectors.vectors.shape[1]}"]
  for word, row in zip(vectors.words, vectors.vectors.tolist(), strict=True):
    lines.append(" ".join([word, *(f"{value:.6g}" for value in row)]))
  files.write_lines(path, lines)
