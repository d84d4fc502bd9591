"""From lines of text to the integers that metric kernels compare.

Tokenisers are sacreBLEU's own. Words are then what stands between white space
in the sense of `str.split`, in all of Unicode, as they are for sacreBLEU. They
are looked up among the references' words while they are being read, on all
cores, since k-best lists are long.
"""

import concurrent.futures
import dataclasses
import functools
import importlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxmt.metrics import base
from jaxmt.text import kernels, porter, scan
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets

# Shorter texts are not worth a thread.
_CHUNK_BYTES = 1 << 18


class WordTable(NamedTuple):
  """V distinct words; a hash finds a word's place, its bytes decide.

  Attributes:
    data: a text as UTF-8 bytes, uint8 `[B]`.
    starts: where in it each word begins, int64 `[V]`.
    ends: where it ends, exclusive, int64 `[V]`.
    hashes: uint64 `[V]`.
    slots: open table of word numbers, -1 where free; int32 `[Z]`.
  """

  data: np.ndarray
  starts: np.ndarray
  ends: np.ndarray
  hashes: np.ndarray
  slots: np.ndarray


@njit
def _space(data, position):
  r"""How many bytes of white space, one character of it, begin here; or 0.

  ASCII 9-13, 28-32; U+0085, U+00A0, U+1680, U+2000-200A, U+2028, U+2029,
  U+202F, U+205F and U+3000. Text ends in `\n`, so looking ahead is safe.
  """
  byte = data[position]
  if byte <= 32:
    return int(9 <= byte <= 13 or byte >= 28)
  if byte < 0xC2 or byte > 0xE3:
    return 0
  second = data[position + 1]
  if byte == 0xC2:
    return 2 if second == 0x85 or second == 0xA0 else 0
  if byte < 0xE1:
    return 0
  third = data[position + 2]
  if byte == 0xE2:
    if second == 0x80:
      wide = third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF
    else:
      wide = second == 0x81 and third == 0x9F
  elif byte == 0xE1:
    wide = second == 0x9A and third == 0x80
  else:
    wide = second == 0x80 and third == 0x80
  return 3 if wide else 0


@njit
def _spans(data, lines):
  """The words' spans and for each line the number of its first word."""
  starts = np.empty(len(data) // 2 + 1, np.int64)
  ends = np.empty(len(data) // 2 + 1, np.int64)
  offsets = np.zeros(lines + 1, np.int64)
  words = line = position = 0
  inside = False
  while position < len(data):
    width = _space(data, position)
    if width == 0:
      if not inside:
        starts[words] = position
        inside = True
      position += 1
      continue
    if inside:
      ends[words] = position
      words += 1
      inside = False
    if data[position] == scan.NEWLINE:
      line += 1
      offsets[line] = words
    position += width
  return starts[:words].copy(), ends[:words].copy(), offsets


@njit
def _mixed(value):
  value ^= value >> np.uint64(32)
  value *= np.uint64(0xD6E8FEB86659FD93)
  return value ^ (value >> np.uint64(32))


@njit
def _fill_table(data, starts, ends):
  size = 64
  while size < 4 * len(starts):
    size *= 2
  mask = np.uint64(size - 1)
  slots = np.full(size, -1, np.int32)
  hashes = np.empty(len(starts), np.uint64)
  for word in range(len(starts)):
    value = np.uint64(0xCBF29CE484222325)
    for position in range(starts[word], ends[word]):
      value = (value ^ np.uint64(data[position])) * np.uint64(0x100000001B3)
    hashes[word] = _mixed(value)
    slot = hashes[word] & mask
    while slots[slot] >= 0:
      slot = (slot + np.uint64(1)) & mask
    slots[slot] = word
  return hashes, slots


@njit
def _equal(data, start, end, known, known_start, known_end):
  if end - start != known_end - known_start:
    return False
  for shift in range(end - start):
    if data[start + shift] != known[known_start + shift]:
      return False
  return True


@njit
def _look_up(table, data, low, high, lengths):
  """Numbers the words in `data[low:high]`; words per line go to `lengths`."""
  known, starts, ends = table.data, table.starts, table.ends
  hashes, slots = table.hashes, table.slots
  mask = np.uint64(len(slots) - 1)
  one = np.uint64(1)
  ids = np.empty((high - low) // 2 + 1, np.int32)
  words = line = before = 0
  start = np.int64(-1)
  position = low
  value = np.uint64(0)
  while position < high:
    width = _space(data, position)
    if width == 0:
      if start < 0:
        start = position
        value = np.uint64(0xCBF29CE484222325)
      value = (value ^ np.uint64(data[position])) * np.uint64(0x100000001B3)
      position += 1
      continue
    if start >= 0:
      value = _mixed(value)
      slot = value & mask
      word = slots[slot]
      while word >= 0 and not (
        hashes[word] == value
        and _equal(data, start, position, known, starts[word], ends[word])
      ):
        slot = (slot + one) & mask
        word = slots[slot]
      ids[words] = word if word >= 0 else len(starts)
      words += 1
      start = np.int64(-1)
    if data[position] == scan.NEWLINE:
      lengths[line] = words - before
      before = words
      line += 1
    position += width
  return ids[:words]


def _joined(lines: Sequence[str]) -> bytes:
  r"""The lines as UTF-8, each ended by `\n`; there is no other `\n`."""
  text = "\n".join(lines)
  if text.count("\n") >= max(1, len(lines)):
    text = "\n".join([line.replace("\n", " ") for line in lines])
  return (text + "\n").encode("utf-8") if len(lines) else b""


def number(lines: Sequence[str]) -> tuple[Ragged, WordTable]:
  """Returns the ids of all words, by first occurrence, and the words."""
  data = np.frombuffer(_joined(lines), np.uint8)
  starts, ends, offsets = _spans(data, len(lines))
  ids, first = scan.intern_spans(data, starts, ends)
  starts, ends = starts[first], ends[first]
  hashes, slots = _fill_table(data, starts, ends)
  table = WordTable(data, starts, ends, hashes, slots)
  return Ragged(flat=ids, offsets=offsets), table


def look_up(table: WordTable, lines: Sequence[str]) -> Ragged:
  """Returns the ids of all words; words the table lacks get the id V."""
  text = _joined(lines)
  data = np.frombuffer(text, np.uint8)
  parts = min(kernels.available_threads(), len(text) // _CHUNK_BYTES + 1)
  cuts = [0]
  for part in range(1, parts):
    cuts.append(text.find(b"\n", max(cuts[-1], part * len(text) // parts)) + 1)
  cuts.append(len(text))

  def work(low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.empty(text.count(b"\n", low, high), np.int64)
    return _look_up(table, data, low, high, lengths), lengths

  if parts == 1:
    done = [work(0, len(text))]
  else:
    with concurrent.futures.ThreadPoolExecutor(parts) as pool:
      done = list(pool.map(work, cuts[:-1], cuts[1:]))
  lengths = np.concatenate([np.zeros(1, np.int64), *(part[1] for part in done)])
  return Ragged(
    flat=np.concatenate([part[0] for part in done]), offsets=np.cumsum(lengths)
  )


TOKENIZERS = {
  "none": None,
  "13a": ("tokenizer_13a", "Tokenizer13a"),
  "zh": ("tokenizer_zh", "TokenizerZh"),
  "intl": ("tokenizer_intl", "TokenizerV14International"),
  "char": ("tokenizer_char", "TokenizerChar"),
  "ja-mecab": ("tokenizer_ja_mecab", "TokenizerJaMecab"),
  "ko-mecab": ("tokenizer_ko_mecab", "TokenizerKoMecab"),
}

Lines = Sequence[str]
# For each sentence its references; None stands for a missing one.
ReferenceLines = Sequence[Sequence[str | None]]


@functools.cache
def _tokenizer(name: str) -> Callable[[str], str]:
  module, kind = TOKENIZERS[name]  # pyrefly: ignore
  module = importlib.import_module(f"sacrebleu.tokenizers.{module}")
  return getattr(module, kind)()


def tokenized(
  lines: Lines, *, tokenize: str = "none", lowercase: bool = False
) -> list[str]:
  """Returns the lines with tokens between white space, as sacreBLEU has them.

  Args:
    lines: as written.
    tokenize: a name in `TOKENIZERS`.
    lowercase: whether to fold case first.

  Raises:
    ValueError: for an unknown tokeniser.
  """
  if tokenize not in TOKENIZERS:
    raise ValueError(f"no tokenizer '{tokenize}'")
  if lowercase:
    lines = [line.lower() for line in lines]
  if tokenize == "none":
    return list(lines)
  split = _tokenizer(tokenize)
  return [split(line.rstrip()) for line in lines]


def tercom_tokenized(
  lines: Lines,
  *,
  normalized: bool = False,
  no_punct: bool = False,
  asian_support: bool = False,
  case_sensitive: bool = False,
) -> list[str]:
  """Returns the lines as TER compares them; options as in sacreBLEU's TER."""
  if not (normalized or no_punct):
    return list(lines) if case_sensitive else [line.lower() for line in lines]
  module = importlib.import_module("sacrebleu.tokenizers.tokenizer_ter")
  split = module.TercomTokenizer(
    normalized=normalized,
    no_punct=no_punct,
    asian_support=asian_support,
    case_sensitive=case_sensitive,
  )
  return [split(line.rstrip()) for line in lines]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncodedReferences:
  """References as ids, and what is needed to encode hypotheses alike.

  Attributes:
    references: word ids, or code points.
    table: the reference's words; None for code points.
    stems: the stems of its words, if the unit is `base.STEMMED`; else None.
  """

  references: base.References
  table: WordTable | None
  stems: WordTable | None = None

  def encode(self, lines: Lines) -> Ragged:
    """Returns hypotheses as ids; words no reference has share one id."""
    if self.table is None:
      return code_points(lines)
    words = look_up(self.table, lines)
    if self.stems is None:
      return words
    return _paired(words, look_up(self.stems, _stemmed(lines)))


def _stemmed(lines: Lines) -> list[str]:
  return [porter.stem_line(line) for line in lines]


def _paired(words: Ragged, stems: Ragged) -> Ragged:
  """Words and stems in turn."""
  both = np.stack([words.flat, stems.flat], axis=1).astype(np.int32)
  return Ragged(flat=both.reshape(-1), offsets=2 * words.offsets)


def without_stems(tokens: Ragged) -> Ragged:
  """Returns the words of tokens whose unit is `base.STEMMED`."""
  return Ragged(
    flat=np.ascontiguousarray(tokens.flat[::2]), offsets=tokens.offsets // 2
  )


def encode_references(
  references: ReferenceLines,
  *,
  unit: str = base.WORD,
  tokenizer: Callable[[Lines], list[str]] = list,
) -> EncodedReferences:
  """Numbers the tokens of references.

  Args:
    references: for each of N sentences one or more lines; None is left out.
    unit: `base.WORD`, `base.CHARACTER` or `base.STEMMED`.
    tokenizer: applied to all lines, and by the caller to hypotheses too.

  Raises:
    ValueError: if a sentence has no reference.
  """
  groups = [[line for line in row if line is not None] for row in references]
  counts = np.array([len(row) for row in groups], np.int64)
  lines = tokenizer([line for row in groups for line in row])
  table = stems = None
  if unit == base.CHARACTER:
    tokens = code_points(lines)
  else:
    tokens, table = number(lines)
  if unit == base.STEMMED:
    second, stems = number(_stemmed(lines))
    tokens = _paired(tokens, second)
  return EncodedReferences(
    references=base.make_references(tokens, counts), table=table, stems=stems
  )


# (lines, the sentence of each) -> statistics `[N, S]`
Measure = Callable[[Lines, np.ndarray], np.ndarray]


def make_measure(references: ReferenceLines, metric: base.Metric) -> Measure:
  """Returns the statistics of a metric as a function of translations.

  References are read here, once for all that is measured.

  Args:
    references: for each of B sentences its references, tokenised like the
      translations.
    metric: whose statistics.
  """
  known = encode_references(references, unit=metric.unit)
  prepared = metric.prepare(known.references)

  def measure(lines: Lines, sentence: np.ndarray) -> np.ndarray:
    return metric.statistics(prepared, known.encode(lines), sentence)

  return measure


def code_points(lines: Lines) -> Ragged:
  """Returns each line's code points with its white space, int32."""
  lengths = np.array([len(line) for line in lines], np.int64)
  offsets = row_offsets(lengths)
  data = "".join(lines).encode("utf-32-le")
  return Ragged(flat=np.frombuffer(data, np.int32), offsets=offsets)
