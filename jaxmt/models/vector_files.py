"""Word vectors in files: the text format of word2vec and GloVe.

One line a word: the word, then D numbers, separated by spaces. A first line of
two whole numbers, V and D, is optional when reading and written always.
"""

import re

import numpy as np

from jaxmt.errors import InputError
from jaxmt.models.word_vectors import WordVectors
from jaxmt.text import files

_SIZE = re.compile("[0-9]{1,18}")


def read(path: str) -> WordVectors:
  """Reads word vectors, plain or gzipped.

  Raises:
    InputError: naming the line, for numbers that are none or not finite, rows
      of different sizes, a word that stands twice, or a wrong header.
  """
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
