r"""Words to ids and back.

A token is whatever stands between ASCII white space (space, \t, \r, \v, \f),
byte for byte. The four special words have fixed ids; the same strings written
in a text are not special: they are unknown words.
"""

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.text import scan
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")

_SPACE = re.compile(r"[ \t\n\r\v\f]")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Vocabulary:
  """A word list.

  Attributes:
    words: the word of each id; `SPECIALS` come first.
  """

  words: tuple[str, ...]

  def __post_init__(self):
    fault = _fault(self.words)
    if fault:
      raise ValueError(f"word {fault[0]}: {fault[1]}")

  def __len__(self) -> int:
    return len(self.words)

  @functools.cached_property
  def index(self) -> Mapping[str, int]:
    """The id of each word."""
    return {word: number for number, word in enumerate(self.words)}


def _fault(words: Sequence[str]) -> tuple[int, str] | None:
  """Returns the first word that may not stand where it does, and why."""
  if (
    tuple(words[: len(SPECIALS)]) == SPECIALS
    and len(set(words)) == len(words)
    and all(words)
    and not _SPACE.search("".join(words))
  ):
    return None
  seen: dict[str, int] = {}
  for number, word in enumerate(words):
    if number < len(SPECIALS) and word != SPECIALS[number]:
      return number, f"expected {SPECIALS[number]}, found {word!r}"
    if not word or _SPACE.search(word):
      return number, f"not one word: {word!r}"
    if word in seen:
      return number, f"duplicate word {word!r}"
    seen[word] = number
  missing = SPECIALS[len(words)]
  return len(words), f"expected {missing}, found the end"


def intern(lines: Sequence[str]) -> tuple[Ragged, list[str]]:
  """Tokenises lines and numbers their tokens.

  Returns:
    `(ids, tokens)`: int32 ids per line in order of first occurrence, and the
    distinct tokens, `tokens[id]`.
  """
  data = scan.join_lines(lines)
  starts, ends, offsets = scan.tokenize(data, len(lines))
  ids, first = scan.intern_spans(data, starts, ends)
  tokens = scan.strings(data, starts[first], ends[first])
  return Ragged(flat=ids, offsets=offsets), tokens


def build(
  corpora: Sequence[Sequence[str]], *, min_count: int = 1
) -> Vocabulary:
  """Makes the vocabulary of some texts.

  Args:
    corpora: texts, each a sequence of lines; counts are summed over them.
    min_count: words seen less often are left out.

  Returns:
    The vocabulary, ids by falling count, ties by UTF-8 bytes (which is the
    order of code points).
  """
  ids, tokens = intern([line for corpus in corpora for line in corpus])
  counts = np.bincount(ids.flat, minlength=len(tokens))
  by_word = sorted(range(len(tokens)), key=tokens.__getitem__)
  order = np.array(by_word, np.int64)
  order = order[np.argsort(-counts[order], kind="stable")]
  order = order[counts[order] >= min_count]
  chosen = [tokens[number] for number in order.tolist()]
  return Vocabulary(
    words=(*SPECIALS, *(word for word in chosen if word not in SPECIALS))
  )


def encode(vocabulary: Vocabulary, lines: Sequence[str]) -> Ragged:
  """Returns the int32 word ids of each line; unknown words become `UNK`."""
  ids, tokens = intern(lines)
  find = vocabulary.index.get
  table = np.array([find(token, UNK) for token in tokens], np.int32)
  table[table < len(SPECIALS)] = UNK
  return Ragged(flat=table[ids.flat], offsets=ids.offsets)


def decode(vocabulary: Vocabulary, ids: Ragged) -> list[str]:
  """Returns each row's words with single spaces between them.

  Special ids are written like any other word.

  Raises:
    ValueError: if an id is not in the vocabulary.
  """
  flat = np.asarray(ids.flat, np.int64)
  if flat.size and not 0 <= flat.min() <= flat.max() < len(vocabulary):
    raise ValueError(f"ids outside the vocabulary of {len(vocabulary)} words")
  if not len(ids):
    return []
  data, offsets = _bytes_of(vocabulary)
  text = _spell(data, offsets, flat, np.asarray(ids.offsets, np.int64))
  return text.tobytes().decode("utf-8").split("\n")[:-1]


def _bytes_of(vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
  """The words' UTF-8 bytes end to end, and where each begins, `[V + 1]`."""
  packed = [word.encode("utf-8") for word in vocabulary.words]
  lengths = np.array([len(word) for word in packed], np.int64)
  offsets = row_offsets(lengths)
  return np.frombuffer(b"".join(packed), np.uint8), offsets


@njit
def _spell(data, offsets, ids, rows):
  """The bytes of each row's words, spaces between, newlines at row ends."""
  size = len(ids) + len(rows) - 1
  for number in ids:
    size += offsets[number + 1] - offsets[number]
  out = np.empty(size, np.uint8)
  position = 0
  for row in range(len(rows) - 1):
    for item in range(rows[row], rows[row + 1]):
      if item > rows[row]:
        out[position] = 32
        position += 1
      number = ids[item]
      for byte in range(offsets[number], offsets[number + 1]):
        out[position] = data[byte]
        position += 1
    out[position] = scan.NEWLINE
    position += 1
  return out[:position]


def to_lines(vocabulary: Vocabulary) -> list[str]:
  """Returns the word list as lines of a file: line n is the word of id n-1."""
  return list(vocabulary.words)


def from_lines(lines: Sequence[str], *, path: str | None = None) -> Vocabulary:
  """Reads what `to_lines` wrote.

  Raises:
    InputError: naming file and line, if the special words do not come first,
      a word is empty, contains white space, or is a duplicate.
  """
  fault = _fault(lines)
  if fault:
    raise InputError(fault[1], path=path, line=fault[0] + 1)
  return Vocabulary(words=tuple(lines))
