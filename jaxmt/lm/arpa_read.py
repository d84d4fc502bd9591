r"""Reads ARPA files: KenLM's, SRILM's and their like, plain or gzipped.

    \data\
    ngram 1=37
    ...
    \1-grams:
    -1.383514 word -0.30103
    ...
    \end\

Spaces and tabs both separate. A missing back-off weight is 0, `-inf` is -99.
The file is read in blocks and goes straight into arrays. What is accepted is
what KenLM accepts, and every n-gram's context must be there.
"""

import dataclasses
import re

import numpy as np

from jaxmt.errors import InputError
from jaxmt.lm import arpa_parse
from jaxmt.lm import ngram_model as model_lib
from jaxmt.lm.ngram_model import Level, NgramModel
from jaxmt.text import files, scan

_COUNT = re.compile(r"ngram\s+([0-9]{1,3})\s*=\s*([0-9]{1,15})\s*$")
_FIRST_CAPACITY = 1 << 16  # the header's counts are not believed beforehand


def read_arpa(path: str) -> NgramModel:
  """Reads a model.

  Raises:
    InputError: naming file and line, if the file is not a whole ARPA file.
  """
  source = _Source(path)
  counts = _read_counts(source)
  order = len(counts)
  text, starts, columns, line = _read_unigrams(source, counts[0], order == 1)
  hashes, slots, twice = arpa_parse.index_words(text, starts)
  if twice >= 0:
    raise InputError(
      "duplicate word in the unigrams", path=path, line=line + twice
    )
  words = _decode(text, starts, path=path, line=line)
  for marker in (model_lib.BEGIN, model_lib.END):
    if marker not in words:
      raise InputError(f"no {marker} among the unigrams", path=path, line=line)
  linker = _Linker(counts[0])
  levels = [linker.level(0, columns)]
  for k in range(2, order + 1):
    ids, columns, line = _read_ngrams(
      source, k, counts[k - 1], k == order, (text, starts, hashes, slots)
    )
    code, row = linker.add(ids)
    if code != arpa_parse.DONE:
      cause = f"{k}-gram: {arpa_parse.FAULTS[code]}"
      raise InputError(cause, path=path, line=line + row)
    levels.append(linker.level(k - 1, columns))
  _read_end(source)
  return NgramModel(words=tuple(words), levels=tuple(levels))


class _Source:
  """A file as a buffer of whole lines, with a place in it."""

  def __init__(self, path: str):
    self.path = path
    self.blocks = files.stream_blocks(path)
    self.buffer = b""  # whole lines, read up to `at`
    self.rest = b""  # the beginning of a line
    self.at = 0
    self.line = 0  # lines read

  def more(self) -> bool:
    """Replaces a buffer that is used up; False at the end of the file."""
    parts = [self.rest]
    for block in self.blocks:
      cut = block.rfind(b"\n") + 1
      if cut:
        parts.append(block[:cut])
        self.rest = block[cut:]
        break
      parts.append(block)
    else:
      self.rest = b""
      parts.append(b"\n" if parts[-1] else b"")
    self.buffer = b"".join(parts)
    self.at = 0
    return bool(self.buffer)

  def next_line(self) -> str | None:
    """Returns the next line without its end, or None after the last."""
    if self.at == len(self.buffer) and not self.more():
      return None
    end = self.buffer.index(b"\n", self.at)
    line = self.buffer[self.at : end].decode("utf-8", "replace")
    self.at = end + 1
    self.line += 1
    return line.strip(" \t\r")

  def next_text(self) -> str | None:
    """Returns the next line that is not blank, or None."""
    line = self.next_line()
    while line == "":
      line = self.next_line()
    return line

  def error(self, cause: str) -> InputError:
    """An error at the line last read."""
    return InputError(cause, path=self.path, line=max(self.line, 1))


def _read_counts(source: _Source) -> list[int]:
  r"""Reads the header up to the line `\1-grams:`, which is used up too."""
  line = source.next_text()
  while line is not None and line.startswith("#"):
    line = source.next_text()
  if line != "\\data\\":
    raise source.error("not an ARPA file: no \\data\\ line at its start")
  counts: list[int] = []
  line = source.next_text()
  while line is not None and not line.startswith("\\"):
    match = _COUNT.match(line)
    if not match or int(match[1]) != len(counts) + 1:
      raise source.error(f"expected 'ngram {len(counts) + 1}=COUNT'")
    counts.append(int(match[2]))
    line = source.next_text()
  if not counts:
    raise source.error("the header has no 'ngram' lines")
  if len(counts) > model_lib.MAX_ORDER:
    raise source.error(
      f"order {len(counts)} is more than the {model_lib.MAX_ORDER} supported"
    )
  _expect(source, line, "\\1-grams:")
  return counts


def _expect(source: _Source, line: str | None, expected: str) -> None:
  """Raises unless the line just read is the wanted one."""
  if line is None:
    raise source.error(f"the file ends where {expected} should be")
  if line != expected:
    raise source.error(f"expected {expected}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _SectionScores:
  """What a section's lines hold besides the words."""

  probability: np.ndarray
  backoff: np.ndarray


def _sections(source: _Source, order: int, count: int, parse):
  """Feeds whole lines to `parse(data, at, wanted)` until a section is read.

  `parse` returns `(code, at, lines)` and keeps what it has read.

  Returns:
    The number of the section's first line.
  """
  first = source.line + 1
  read = 0
  while read < count:
    if source.at == len(source.buffer) and not source.more():
      raise source.error(f"the file ends after {read} of {count} {order}-grams")
    data = np.frombuffer(source.buffer, np.uint8)
    most = min(count - read, max(_FIRST_CAPACITY, read))
    code, source.at, lines = parse(data, source.at, most)
    read += lines
    source.line += lines
    if code == arpa_parse.STOP:
      source.line += 1
      raise source.error(
        f"the section ends after {read} {order}-grams; the header says {count}"
      )
    if code != arpa_parse.DONE:
      source.line += 1
      raise source.error(f"{order}-gram: {arpa_parse.FAULTS[code]}")
  return first


def _next_section(
  source: _Source, order: int, count: int, expected: str
) -> None:
  """Reads the title of the next section."""
  line = source.next_text()
  if line is not None and not line.startswith("\\"):
    raise source.error(f"more {order}-grams than the header's {count}")
  _expect(source, line, expected)


def _read_unigrams(source: _Source, count: int, highest: bool):
  """Returns `(text, starts, columns, first line)`."""
  texts, lengths, columns = [], [], []

  def parse(data, at, count):
    probability = np.empty(count, np.float32)
    backoff = np.empty(count, np.float32)
    sizes = np.empty(count, np.int64)
    text = np.empty(len(data) - at, np.uint8)
    code, at, lines, used = arpa_parse.parse_unigrams(
      data, at, highest, probability, backoff, sizes, text
    )
    columns.append((probability[:lines], backoff[:lines]))
    lengths.append(sizes[:lines])
    texts.append(text[:used])
    return code, at, lines

  line = _sections(source, 1, count, parse)
  _next_section(source, 1, count, "\\end\\" if highest else "\\2-grams:")
  sizes = np.concatenate([np.zeros(1, np.int64), *lengths])
  text = np.concatenate([np.zeros(0, np.uint8), *texts])
  return text, np.cumsum(sizes), _joined(columns), line


def _read_ngrams(
  source: _Source, order: int, count: int, highest: bool, vocabulary
):
  """Returns `(ids [n, order], columns, first line)`."""
  words = [np.zeros((0, order), np.int32)]
  columns = []

  def parse(data, at, count):
    probability = np.empty(count, np.float32)
    backoff = np.empty(count, np.float32)
    ids = np.empty((count, order), np.int32)
    code, at, lines = arpa_parse.parse_ngrams(
      data, at, highest, probability, backoff, ids, *vocabulary
    )
    columns.append((probability[:lines], backoff[:lines]))
    words.append(ids[:lines])
    return code, at, lines

  line = _sections(source, order, count, parse)
  _next_section(
    source, order, count, "\\end\\" if highest else f"\\{order + 1}-grams:"
  )
  return np.concatenate(words), _joined(columns), line


def _joined(columns) -> _SectionScores:
  nothing = np.zeros(0, np.float32)
  return _SectionScores(
    probability=np.concatenate([nothing, *(pair[0] for pair in columns)]),
    backoff=np.concatenate([nothing, *(pair[1] for pair in columns)]),
  )


def _read_end(source: _Source) -> None:
  r"""Only blank lines may follow `\end\`."""
  if source.next_text() is not None:
    raise source.error("text after \\end\\")


def _decode(
  text: np.ndarray, starts: np.ndarray, *, path: str, line: int
) -> list[str]:
  """Returns the words as strings."""
  try:
    return scan.strings(text, starts[:-1], starts[1:])
  except UnicodeDecodeError as error:
    # Newlines stand between the words: as many as there are words before.
    word = error.object.count(b"\n", 0, error.start)
    raise InputError("not UTF-8", path=path, line=line + word) from error


class _Linker:
  """Numbers the n-grams of all orders and finds contexts and suffixes."""

  def __init__(self, unigrams: int):
    self.firsts = [0, unigrams]
    self.contexts = np.zeros(unigrams, np.int32)
    self.words = np.arange(unigrams, dtype=np.int32)
    self.suffixes = np.zeros(unigrams, np.int32)
    self.slots = np.full(16, -1, np.int32)

  def add(self, ids: np.ndarray) -> tuple[int, int]:
    """Enters the next order; returns `(code, row)` of the first fault."""
    first = self.firsts[-1]
    total = first + len(ids)
    if total >= 2**30:
      raise ValueError(f"{total} n-grams are too many; the most is 2**30")
    self.contexts = np.resize(self.contexts, total)
    self.words = np.resize(self.words, total)
    self.suffixes = np.resize(self.suffixes, total)
    if len(self.slots) < 2 * total:
      size = 1 << (2 * total).bit_length()
      self.slots = np.full(size, -1, np.int32)
      arpa_parse.index_ngrams(
        self.firsts[1], self.contexts[:first], self.words[:first], self.slots
      )
    self.firsts.append(total)
    return arpa_parse.link_ngrams(
      ids, first, self.contexts, self.words, self.suffixes, self.slots
    )

  def level(self, k: int, columns: _SectionScores) -> Level:
    """The columns of order k + 1, numbered by order."""
    first, last = self.firsts[k], self.firsts[k + 1]
    below = self.firsts[k - 1] if k else 0
    suffix = self.suffixes[first:last]
    return Level(
      context=self.contexts[first:last] - np.int32(below),
      word=self.words[first:last].copy(),
      suffix=np.where(suffix < 0, suffix, suffix - np.int32(below)),
      probability=columns.probability,
      backoff=columns.backoff,
    )
