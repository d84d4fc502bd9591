r"""Dependency treebanks: CoNLL-U, and `form TAB tag TAB head [TAB label]`.

    1	the	_	DET	_	_	2	det	_	_          the	DET	2	det
    2	dog	_	NOUN	_	_	0	root	_	_        dog	NOUN	0	root

One token a line, an empty line after each sentence. Head 0 is the root. Every
sentence is one tree: a single root, no cycles. A file may leave heads out
(`_`, or two columns only), for whole sentences. Of CoNLL-U, comments,
multi-word ranges (`1-2`) and empty nodes (`1.1`) are skipped, and the tag is
the universal one (column 4). Files are plain or gzipped. No sentence has over
`LONGEST` lines: a file that lacks its empty lines is one.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.text import files, ragged, vocabulary
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

LONGEST = 20_000  # lines of a sentence
LONGEST_PARSED = 1000  # parsing takes cubic time, and memory for n² arcs
ROOT, UNKNOWN = -1, -2  # heads that are no words
_CONLLU_COLUMNS = 10
# Universal tag, and the tags of the Penn Treebank for punctuation.
PUNCTUATION = frozenset(
  ("PUNCT", ",", ".", ":", "``", "''", "-LRB-", "-RRB-", "PU")
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Treebank:
  """N sentences of T tokens in all.

  Attributes:
    forms: the distinct words, by id.
    tag_names: the distinct tags, by id.
    label_names: the distinct arc labels, by id.
    words: word ids of each sentence, int32 rows.
    tags: tag id of each token, int32 `[T]`.
    heads: position of each token's head in its sentence, from 0; `ROOT`, or
      `UNKNOWN` where the file has none; int32 `[T]`.
    labels: label id of each token's arc, int32 `[T]`.
  """

  forms: tuple[str, ...]
  tag_names: tuple[str, ...]
  label_names: tuple[str, ...]
  words: Ragged
  tags: np.ndarray
  heads: np.ndarray
  labels: np.ndarray

  def __len__(self) -> int:
    """Returns N."""
    return len(self.words)

  @property
  def lengths(self) -> np.ndarray:
    """Tokens of each sentence, int64 `[N]`."""
    return self.words.lengths

  @property
  def has_trees(self) -> np.ndarray:
    """Which sentences have heads, bool `[N]`."""
    known = ragged.row_offsets(self.heads != UNKNOWN)
    offsets = self.words.offsets
    return known[offsets[1:]] - known[offsets[:-1]] == self.lengths


def read_treebank(path: str) -> Treebank:
  """Reads a treebank; the format is seen from the number of columns.

  Raises:
    InputError: naming the line that is wrong, or where a sentence that is no
      tree begins.
  """
  columns: list[tuple[str, str, int, str]] = []
  lengths: list[int] = []
  starts: list[int] = []
  for number, sentence in _sentences(path):
    tokens = [
      token for line, text in sentence for token in _token(path, line, text)
    ]
    starts.append(number)
    lengths.append(len(tokens))
    columns += tokens
  forms, words = _numbered([token[0] for token in columns])
  tag_names, tags = _numbered([token[1] for token in columns])
  label_names, labels = _numbered([token[3] for token in columns])
  bank = Treebank(
    forms=forms,
    tag_names=tag_names,
    label_names=label_names,
    words=Ragged(flat=words, offsets=ragged.row_offsets(lengths)),
    tags=tags,
    heads=np.array([token[2] for token in columns], np.int32),
    labels=labels,
  )
  _check_trees(bank, starts, path)
  return bank


def _sentences(path: str) -> Iterator[tuple[int, list[tuple[int, str]]]]:
  """Yields the first line's number and the lines of each sentence.

  Comments are dropped: lines that begin with `#` and have no tab.
  """
  lines: list[tuple[int, str]] = []
  for number, line in files.stream_lines(path):
    if len(lines) == LONGEST and line:
      cause = f"sentence of over {LONGEST} lines: are there empty ones?"
      raise InputError(cause, path=path, line=lines[0][0])
    line = line.removesuffix("\r")
    if line.startswith("#") and "\t" not in line:
      continue
    if line:
      lines.append((number, line))
    elif lines:
      yield lines[0][0], lines
      lines = []
  if lines:
    yield lines[0][0], lines


def _token(
  path: str, line: int, text: str
) -> Iterator[tuple[str, str, int, str]]:
  """Yields (form, tag, head, label) of a line, if it is a token."""
  parts = text.split("\t")
  if len(parts) == _CONLLU_COLUMNS:
    if not parts[0].isdigit():  # a range or an empty node
      return
    form, tag, head, label = parts[1], parts[3], parts[6], parts[7]
  elif 2 <= len(parts) <= 4:
    form, tag, head, label = (*parts, *("_",) * (4 - len(parts)))
  else:
    cause = f"{len(parts)} columns, not 2 to 4 or 10"
    raise InputError(cause, path=path, line=line)
  if not form or not tag:
    raise InputError("empty form or tag", path=path, line=line)
  if head == "_":
    yield form, tag, UNKNOWN, label
  elif head.isascii() and head.isdigit() and len(head) < 8:
    yield form, tag, int(head) - 1, label
  else:
    raise InputError(f"head '{head}' is no number", path=path, line=line)


def _numbered(values: Sequence[str]) -> tuple[tuple[str, ...], np.ndarray]:
  """Distinct strings in the order of their first use, and their ids."""
  index: dict[str, int] = {}
  ids = [index.setdefault(value, len(index)) for value in values]
  return tuple(index), np.array(ids, np.int32)


_FAULTS = {
  1: "a head outside the sentence, or a word that is its own head",
  2: "heads for some tokens only",
  3: "no root",
  4: "several roots",
  5: "heads in a circle",
}


def _check_trees(bank: Treebank, starts: Sequence[int], path: str) -> None:
  row, fault = _first_fault(bank.heads, bank.words.offsets)
  if row >= 0:
    cause = f"not a tree: {_FAULTS[fault]}"
    raise InputError(cause, path=path, line=starts[row])


def check_lengths(bank: Treebank, path: str | None = None) -> None:
  """Refuses sentences that are too long to be parsed.

  Raises:
    InputError: naming the first one.
  """
  long = np.flatnonzero(bank.lengths > LONGEST_PARSED)
  if len(long):
    cause = f"sentence {long[0] + 1} has {bank.lengths[long[0]]} tokens, over"
    raise InputError(f"{cause} {LONGEST_PARSED}", path=path)


def is_tree(heads: np.ndarray) -> bool:
  """Whether the heads of a sentence's words make one tree."""
  array = np.asarray(heads, np.int32)
  known = bool(np.all(array >= ROOT)) and len(array) > 0
  return known and _first_fault(array, np.array([0, len(array)]))[0] < 0


@njit
def _first_fault(heads, offsets):
  """(row, kind) of the first sentence that is no tree, row -1 if none is."""
  for row in range(len(offsets) - 1):
    start, end = offsets[row], offsets[row + 1]
    roots, unknown = 0, 0
    for token in range(start, end):
      if heads[token] >= end - start or start + heads[token] == token:
        return row, 1
      roots += heads[token] == -1
      unknown += heads[token] == -2
    if unknown:
      if unknown < end - start:
        return row, 2
      continue
    if roots != 1:
      return row, 3 if roots == 0 else 4
    # From each token up to one that was seen, which is on this way in a circle.
    way = np.full(end - start, -1, np.int32)
    for token in range(end - start):
      node = token
      while node >= 0 and way[node] < 0:
        way[node] = token
        node = heads[start + node]
      if node >= 0 and way[node] == token:
        return row, 5
  return -1, 0


def from_lines(lines: Sequence[str]) -> Treebank:
  """Returns tokenised sentences, one a line, with the tag `_` and no heads."""
  ids, forms = vocabulary.intern(lines)
  return Treebank(
    forms=tuple(forms),
    tag_names=("_",),
    label_names=("_",),
    words=ids,
    tags=np.zeros(len(ids.flat), np.int32),
    heads=np.full(len(ids.flat), UNKNOWN, np.int32),
    labels=np.zeros(len(ids.flat), np.int32),
  )


def select(bank: Treebank, rows: np.ndarray) -> Treebank:
  """Returns some sentences, given as numbers or as a mask, in that order."""
  take = lambda flat: (
    ragged.select(Ragged(flat=flat, offsets=bank.words.offsets), rows).flat
  )
  return dataclasses.replace(
    bank,
    words=ragged.select(bank.words, rows),
    tags=take(bank.tags),
    heads=take(bank.heads),
    labels=take(bank.labels),
  )


def is_punctuation(bank: Treebank) -> np.ndarray:
  """Returns which tokens are punctuation by their tags, bool `[T]`."""
  names = np.array([name in PUNCTUATION for name in bank.tag_names], bool)
  return names[bank.tags] if len(names) else np.zeros(0, bool)


def without_punctuation(bank: Treebank) -> tuple[Treebank, np.ndarray]:
  """Drops punctuation and attaches what hung below it to its ancestors.

  If the root itself is dropped, its first descendant takes its place.

  Returns:
    The treebank, which has as many sentences, and the token number in `bank`
    of each of its tokens, int64.
  """
  stays = ~is_punctuation(bank)
  offsets = ragged.row_offsets(stays)[bank.words.offsets]
  heads = _lifted(bank.heads, bank.words.offsets, stays)
  tokens = np.flatnonzero(stays)
  return dataclasses.replace(
    bank,
    words=Ragged(flat=bank.words.flat[tokens], offsets=offsets),
    tags=bank.tags[tokens],
    heads=heads[tokens],
    labels=bank.labels[tokens],
  ), tokens


@njit
def _lifted(heads, offsets, stays):
  """New heads of the tokens that stay, numbered among them, int32 `[T]`."""
  out = np.full(len(heads), -2, np.int32)
  for row in range(len(offsets) - 1):
    start, end = offsets[row], offsets[row + 1]
    place = np.zeros(end - start, np.int32)
    count = 0
    for token in range(end - start):
      place[token] = count
      count += stays[start + token]
    root = -1
    for token in range(end - start):
      if not stays[start + token] or heads[start + token] == -2:
        continue
      # Climb to the nearest ancestor that stays.
      node = heads[start + token]
      while node >= 0 and not stays[start + node]:
        node = heads[start + node]
      if node >= 0:
        out[start + token] = place[node]
      elif root < 0:
        root = place[token]
        out[start + token] = -1
      else:
        out[start + token] = root
  return out


def write_treebank(path: str, bank: Treebank) -> None:
  """Writes CoNLL-U; unknown heads become `_`."""
  lines = []
  offsets = bank.words.offsets.tolist()
  words, tags = bank.words.flat.tolist(), bank.tags.tolist()
  heads, labels = bank.heads.tolist(), bank.labels.tolist()
  for start, end in itertools.pairwise(offsets):
    for token in range(start, end):
      head = "_" if heads[token] == UNKNOWN else str(heads[token] + 1)
      lines.append(
        f"{token - start + 1}\t{bank.forms[words[token]]}\t_"
        f"\t{bank.tag_names[tags[token]]}\t_\t_\t{head}"
        f"\t{bank.label_names[labels[token]]}\t_\t_"
      )
    lines.append("")
  files.write_lines(path, lines)
