"""Word links in Pharaoh format: `0-0 1-2 2-1`, source-target, from 0.

One line per sentence pair; an empty line is a pair without links. In memory
the links of a corpus are one `Ragged` whose `flat` is int32 `[L, 2]`, each row
sorted by source, then target, without repetition.
"""

from collections.abc import Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.text import bitext, scan
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets

_LARGEST = np.iinfo(np.int32).max
_MALFORMED, _TOO_LARGE = 1, 2
_DASH, _ZERO, _SPACE = ord("-"), ord("0"), ord(" ")


def parse_links(
  lines: Sequence[str],
  *,
  path: str | None = None,
  source_lengths: np.ndarray | None = None,
  target_lengths: np.ndarray | None = None,
) -> Ragged:
  """Reads links.

  Args:
    lines: one line per sentence pair.
    path: the file the lines came from, for error messages.
    source_lengths: words per source sentence `[N]`; links must lie inside.
    target_lengths: likewise for the target.

  Returns:
    int32 pairs (source, target), sorted and unique in each row.

  Raises:
    InputError: naming file and line, at the first item that is not a link, at
      the first link outside its sentence pair, or where the lines end when
      their number is not that of the sentences.
  """
  data = scan.join_lines(lines)
  room = np.count_nonzero(data == _DASH)
  pairs, offsets, tidy, error, place = _parse(data, len(lines), room)
  if error:
    _fail(data, error, place, path)
  links = Ragged(flat=pairs, offsets=offsets)
  if not tidy:
    links = normalize(links)
  for side, lengths in enumerate((source_lengths, target_lengths)):
    if lengths is not None:
      _check_range(links, np.asarray(lengths), side=side, path=path)
  return links


def _fail(data: np.ndarray, error: int, place: int, path: str | None):
  """Raises for the item that begins at byte `place`."""
  raw = data.tobytes()
  line = raw.count(b"\n", 0, place) + 1
  item = raw[place : raw.index(b"\n", place)].split()[0]
  shown = item.decode("utf-8")
  shown = shown if len(shown) <= 40 else shown[:40] + "..."
  if error == _TOO_LARGE:
    cause = f"number too large in link '{shown}'"
  else:
    cause = f"not a link: '{shown}' (expected source-target, as in 0-1)"
  raise InputError(cause, path=path, line=line)


@njit
def _parse(data, number_of_lines, room):
  """Reads all lines.

  Returns:
    `(pairs int32 [L, 2], offsets [N + 1], tidy, error, place)`: `tidy` says
    that every row is sorted and unique already; a non-zero `error` happened in
    the item that begins at byte `place`.
  """
  pairs = np.empty((room, 2), np.int32)
  offsets = np.zeros(number_of_lines + 1, np.int64)
  tidy = True
  links = 0
  line = 0
  position = 0
  while position < len(data):
    byte = data[position]
    if byte == scan.NEWLINE:
      line += 1
      offsets[line] = links
    if scan.is_space(byte):
      position += 1
      continue
    place = position
    source, position = _number(data, position)
    if source < 0 or data[position] != _DASH:
      error = _TOO_LARGE if source == -_TOO_LARGE else _MALFORMED
      return pairs, offsets, tidy, error, place
    target, position = _number(data, position + 1)
    if target < 0 or not scan.is_space(data[position]):
      error = _TOO_LARGE if target == -_TOO_LARGE else _MALFORMED
      return pairs, offsets, tidy, error, place
    if links > offsets[line]:
      before_source = pairs[links - 1, 0]
      if source < before_source or (
        source == before_source and target <= pairs[links - 1, 1]
      ):
        tidy = False
    pairs[links, 0] = source
    pairs[links, 1] = target
    links += 1
  return pairs[:links].copy(), offsets, tidy, 0, 0


@njit
def _number(data, position):
  """Reads digits; returns the number, or minus the error, and what follows."""
  value = np.int64(0)
  start = position
  while 48 <= data[position] <= 57:
    value = 10 * value + (np.int64(data[position]) - _ZERO)
    if value > _LARGEST:
      return np.int64(-_TOO_LARGE), position
    position += 1
  if position == start:
    return np.int64(-_MALFORMED), position
  return value, position


def _check_range(
  links: Ragged, lengths: np.ndarray, *, side: int, path: str | None
) -> None:
  """Raises at the first link that leaves its sentence on one side."""
  bitext.check_line_count(len(links), path=path, expected=len(lengths))
  outside = links.flat[:, side] >= np.repeat(lengths, links.lengths)
  if outside.any():
    bad = int(np.argmax(outside))
    row = int(np.searchsorted(links.offsets, bad, side="right")) - 1
    source, target = links.flat[bad]
    raise InputError(
      f"link {source}-{target}: the {('source', 'target')[side]} has"
      f" {lengths[row]} words",
      path=path,
      line=row + 1,
    )


def normalize(links: Ragged) -> Ragged:
  """Returns the links sorted by (source, target) and unique in each row."""
  row = np.repeat(np.arange(len(links)), links.lengths)
  order = np.lexsort((links.flat[:, 1], links.flat[:, 0], row))
  flat, row = links.flat[order], row[order]
  fresh = np.ones(len(flat), np.bool_)
  fresh[1:] = (row[1:] != row[:-1]) | (flat[1:] != flat[:-1]).any(axis=1)
  counts = np.bincount(row[fresh], minlength=len(links))
  offsets = row_offsets(counts)
  return Ragged(flat=flat[fresh], offsets=offsets)


def reverse(links: Ragged) -> Ragged:
  """Returns the links with source and target exchanged."""
  swapped = np.ascontiguousarray(links.flat[:, ::-1])
  return normalize(Ragged(flat=swapped, offsets=links.offsets))


def format_links(links: Ragged) -> list[str]:
  """Returns one Pharaoh line per row, the links in the order they stand.

  Raises:
    ValueError: if a position is negative.
  """
  if not len(links):
    return []
  flat = np.asarray(links.flat, np.int64).reshape(-1, 2)
  if flat.size and flat.min() < 0:
    raise ValueError("negative position in a link")
  text = _spell(flat, np.asarray(links.offsets, np.int64))
  return text.tobytes().decode("ascii").split("\n")[:-1]


@njit
def _digits(value):
  count = 1
  while value >= 10:
    value //= 10
    count += 1
  return count


@njit
def _spell(pairs, offsets):
  size = len(offsets) - 1
  for link in range(len(pairs)):
    size += _digits(pairs[link, 0]) + _digits(pairs[link, 1]) + 2
  out = np.empty(size, np.uint8)
  position = 0
  for row in range(len(offsets) - 1):
    for link in range(offsets[row], offsets[row + 1]):
      if link > offsets[row]:
        out[position] = _SPACE
        position += 1
      for side in range(2):
        value = pairs[link, side]
        width = _digits(value)
        for place in range(width - 1, -1, -1):
          out[position + place] = _ZERO + value % 10
          value //= 10
        position += width
        if side == 0:
          out[position] = _DASH
          position += 1
    out[position] = scan.NEWLINE
    position += 1
  return out[:position]


def parse_gold(
  lines: Sequence[str],
  *,
  path: str | None = None,
  source_lengths: np.ndarray | None = None,
  target_lengths: np.ndarray | None = None,
) -> tuple[Ragged, Ragged]:
  """Reads hand-made links: `i-j` is sure, `i?j` is possible.

  Arguments and errors as for `parse_links`.

  Returns:
    `(sure, possible)`: the second has the sure links, too.
  """
  checks = {
    "path": path,
    "source_lengths": source_lengths,
    "target_lengths": target_lengths,
  }
  possible = parse_links([line.replace("?", "-") for line in lines], **checks)
  sure = [
    " ".join(item for item in line.split() if "?" not in item) for line in lines
  ]
  return parse_links(sure, path=path), possible
