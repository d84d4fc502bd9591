"""Sentence pairs from two files, and the filters that say what they drop."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.text import files, scan

REASONS = ("empty source", "empty target", "too long", "length ratio")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FilterReport:
  """What a filter did.

  Attributes:
    pairs: how many pairs there were.
    dropped: how many pairs went for each of `REASONS`; a pair is counted
      once, under the first reason that holds.
  """

  pairs: int
  dropped: Mapping[str, int]

  @property
  def kept(self) -> int:
    """How many pairs are left."""
    return self.pairs - sum(self.dropped.values())

  def summary(self) -> str:
    """One line for a human."""
    line = f"kept {self.kept:,} of {self.pairs:,} sentence pairs"
    parts = [f"{count:,} {why}" for why, count in self.dropped.items() if count]
    return f"{line} (dropped: {', '.join(parts)})" if parts else line


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bitext:
  """N sentence pairs.

  Attributes:
    source_lines: the source side, as read.
    target_lines: the target side, as read.
    kept: the 0-based line of each pair in its files, int64 `[N]`; with it
      trees, links and references are filtered alongside.
    report: what was dropped, and why.
  """

  source_lines: list[str]
  target_lines: list[str]
  kept: np.ndarray
  report: FilterReport

  def __len__(self) -> int:
    return len(self.source_lines)


def read_bitext(
  source_path: str,
  target_path: str,
  *,
  max_length: int | None = None,
  max_ratio: float | None = None,
  drop_empty: bool = True,
) -> Bitext:
  """Reads two files whose lines belong together, and filters the pairs.

  Args:
    source_path: source side, plain or gzipped UTF-8.
    target_path: target side.
    max_length: longest sentence allowed on either side, in words.
    max_ratio: largest allowed ratio of the longer side to the shorter.
    drop_empty: whether a pair with a side without words goes.

  Raises:
    InputError: if a file cannot be read, is not UTF-8 or the line counts
      differ; names the file and line.
  """
  source, target = read_parallel([source_path, target_path])
  pairs, report = filter_pairs(
    word_counts(source),
    word_counts(target),
    max_length=max_length,
    max_ratio=max_ratio,
    drop_empty=drop_empty,
  )
  return Bitext(
    source_lines=select_lines(source, pairs),
    target_lines=select_lines(target, pairs),
    kept=pairs,
    report=report,
  )


def read_parallel(paths: Sequence[str]) -> list[list[str]]:
  """Reads files that must have the same number of lines.

  Raises:
    InputError: naming the shortest file and the line where it ends.
  """
  sides = [files.read_lines(path) for path in paths]
  if sides:
    longest = max(range(len(sides)), key=lambda side: len(sides[side]))
    shortest = min(range(len(sides)), key=lambda side: len(sides[side]))
    check_line_count(
      len(sides[shortest]),
      path=paths[shortest],
      expected=len(sides[longest]),
      expected_path=paths[longest],
    )
  return sides


def check_line_count(
  count: int,
  *,
  path: str | None,
  expected: int,
  expected_path: str | None = None,
) -> None:
  """Checks the number of lines of a file against that of another.

  Raises:
    InputError: at the end of the shorter file; at the first line too many if
      the other file has no name.
  """
  if count == expected:
    return
  if expected_path is None:
    cause = f"has {count} lines, expected {expected}"
    line = count if count < expected else expected + 1
  else:
    if count > expected:
      count, expected = expected, count
      path, expected_path = expected_path, path
    cause = f"ends after {count} lines, {expected_path} has {expected}"
    line = count
  raise InputError(f"uneven: {cause}", path=path, line=max(1, line))


def word_counts(lines: Sequence[str]) -> np.ndarray:
  """Returns the number of words of each line, int64 `[N]`."""
  _, _, offsets = scan.tokenize(scan.join_lines(lines), len(lines))
  return np.diff(offsets)


def filter_pairs(
  source_lengths: np.ndarray,
  target_lengths: np.ndarray,
  *,
  max_length: int | None = None,
  max_ratio: float | None = None,
  drop_empty: bool = True,
) -> tuple[np.ndarray, FilterReport]:
  """Decides which pairs stay.

  Args:
    source_lengths: words per source sentence, `[N]`.
    target_lengths: words per target sentence, `[N]`.
    max_length: see `read_bitext`.
    max_ratio: see `read_bitext`; a pair with one empty side (when these are
      not dropped) has an infinite ratio, with two a ratio of one.
    drop_empty: see `read_bitext`.

  Returns:
    `(kept, report)`: indices of the pairs that stay, rising, and the counts.
  """
  if max_length is not None and max_length < 1:
    raise ValueError(f"max_length must be at least 1, not {max_length}")
  if max_ratio is not None and not max_ratio >= 1:
    raise ValueError(f"max_ratio must be at least 1, not {max_ratio}")
  longer = np.maximum(source_lengths, target_lengths)
  shorter = np.minimum(source_lengths, target_lengths)
  nothing = np.zeros(len(longer), np.bool_)
  tests = (
    source_lengths == 0 if drop_empty else nothing,
    target_lengths == 0 if drop_empty else nothing,
    nothing if max_length is None else longer > max_length,
    nothing if max_ratio is None else longer > max_ratio * shorter,
  )
  stays = ~nothing
  dropped = {}
  for reason, test in zip(REASONS, tests, strict=True):
    dropped[reason] = int(np.count_nonzero(test & stays))
    stays &= ~test
  report = FilterReport(pairs=len(longer), dropped=dropped)
  return np.flatnonzero(stays), report


def without_long_pairs(
  source_lines: Sequence[str], target_lines: Sequence[str], limit: int
) -> tuple[list[str], list[str], np.ndarray]:
  """Returns both sides with empty lines for pairs that are too long.

  Line numbers stay what they were.

  Args:
    source_lines: N lines.
    target_lines: N lines.
    limit: most words that either side of a pair may have.

  Returns:
    `(source lines, target lines, rows)`: the sides, and which pairs are empty
    now, rising.
  """
  longer = np.maximum(word_counts(source_lines), word_counts(target_lines))
  rows = np.flatnonzero(longer > limit)
  sides = list(source_lines), list(target_lines)
  for row in rows.tolist():
    sides[0][row] = sides[1][row] = ""
  return *sides, rows


def select_lines(lines: Sequence[str], rows: np.ndarray) -> list[str]:
  """Returns the lines at the indices `rows`."""
  return [lines[number] for number in rows.tolist()]
