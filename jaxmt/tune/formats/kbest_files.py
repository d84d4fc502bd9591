"""Reading k-best lists: cdec/jaxmt, Moses, Joshua, Travatar.

    cdec, Joshua  0 ||| text ||| a=1 b=-2.5 ||| -4.5
    Moses         0 ||| text ||| LM0= -43.7 TM0= -62.0 -94.6 ||| -14.68
    old Moses     0||| text  ||| d: 0 -7.66 lm: -41.3 ||| -14.6262
    Travatar      0 ||| text ||| -12.3 ||| a=-4.5 w=3

One compiled scanner reads all of them: `name=value` (split at the last `=`), a
name ended by `=` or `:` and followed by values, or bare numbers. Several values
under one name become `name_0`, `name_1`, ...; bare numbers `feature_0`, ...
"""

import numpy as np

from jaxmt.decode import candidate_lists
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.features import sparse
from jaxmt.text import scan
from jaxmt.text.kernels import njit
from jaxmt.text.scan import NEWLINE, is_space

FIELDS = 4
_BAR, _EQUALS, _COLON, _DOT = 124, 61, 58, 46
_PLUS, _MINUS, _ZERO, _NINE = 43, 45, 48, 57
# Powers of ten that doubles hold exactly: with a mantissa below 2^53 one
# multiplication or division by them rounds correctly.
_EXACT = 22
_POWERS = 10.0 ** np.arange(_EXACT + 1)


@njit
def _trim(data, low, high):
  while low < high and is_space(data[low]):
    low += 1
  while high > low and is_space(data[high - 1]):
    high -= 1
  return low, high


@njit
def scan_fields(data):
  """Splits lines at `|||`; blank lines are skipped.

  Args:
    data: newline-ended lines, uint8 `[B]`.

  Returns:
    `(fields int64 [N, 4, 2], numbers int64 [N], lines int64 [N], bad)`: the
    trimmed spans of the first fields (-1 where missing), the sentence numbers,
    the line each came from (from 0), and the first malformed line or -1.
  """
  count = 0
  for byte in data:
    if byte == NEWLINE:
      count += 1
  fields = np.full((count, FIELDS, 2), -1, np.int64)
  numbers = np.zeros(count, np.int64)
  lines = np.zeros(count, np.int64)
  row = 0
  line = 0
  start = 0
  for position in range(len(data)):
    if data[position] != NEWLINE:
      continue
    low, high = _trim(data, start, position)
    start = position + 1
    line += 1
    if low == high:
      continue
    field = 0
    begin = low
    place = low
    while place < high and field < FIELDS:
      if (
        data[place] == _BAR
        and place + 2 < high
        and data[place + 1] == _BAR
        and data[place + 2] == _BAR
      ):
        fields[row, field, 0], fields[row, field, 1] = _trim(data, begin, place)
        field += 1
        place += 3
        begin = place
      else:
        place += 1
    if field < FIELDS:
      # A trailing separator ends the line: an empty last field.
      begin = min(begin, high)
      fields[row, field, 0], fields[row, field, 1] = _trim(data, begin, high)
      field += 1
    number = _whole_number(data, fields[row, 0, 0], fields[row, 0, 1])
    if field < 3 or number < 0:
      return fields[:row], numbers[:row], lines[:row], line - 1
    numbers[row] = number
    lines[row] = line - 1
    row += 1
  return fields[:row].copy(), numbers[:row].copy(), lines[:row].copy(), -1


@njit
def _whole_number(data, low, high):
  """The number written at a span, or -1."""
  if low >= high or high - low > 12:
    return -1
  value = 0
  for place in range(low, high):
    if not _ZERO <= data[place] <= _NINE:
      return -1
    value = 10 * value + np.int64(data[place] - _ZERO)
  return value


@njit
def parse_number(data, low, high):
  """Returns `(value, exact)`; not exact means: let Python read the span."""
  place = low
  negative = place < high and data[place] == _MINUS
  if place < high and (data[place] == _MINUS or data[place] == _PLUS):
    place += 1
  mantissa = np.int64(0)
  digits = 0
  shift = 0
  seen = 0
  point = False
  while place < high:
    byte = data[place]
    if _ZERO <= byte <= _NINE:
      seen += 1
      if digits < 18:
        mantissa = 10 * mantissa + np.int64(byte - _ZERO)
        if mantissa > 0:
          digits += 1
        if point:
          shift -= 1
      else:
        return 0.0, False
    elif byte == _DOT and not point:
      point = True
    else:
      break
    place += 1
  if seen == 0:
    return 0.0, False
  if place < high and (data[place] == 101 or data[place] == 69):  # e, E
    place += 1
    down = place < high and data[place] == _MINUS
    if place < high and (data[place] == _MINUS or data[place] == _PLUS):
      place += 1
    exponent = _whole_number(data, place, high)
    if exponent < 0 or exponent > 400:
      return 0.0, False
    shift += -exponent if down else exponent
    place = high
  if place < high or mantissa >= 9007199254740992 or abs(shift) > _EXACT:
    return 0.0, False
  value = np.float64(mantissa)
  value = value * _POWERS[shift] if shift >= 0 else value / _POWERS[-shift]
  return (-value if negative else value), True


@njit
def scan_features(data, spans):
  """Reads the features of each field.

  Args:
    data: the file, uint8 `[B]`.
    spans: the feature field of each candidate, int64 `[N, 2]`.

  Returns:
    `(starts, ends, part, values, pending, offsets)`: for each of E features
    the span of its name, its place among values of the same name, its value;
    `pending` is 0, or, where Python must read the number, the end of its span,
    the start standing in `values`; offsets of rows, int64 `[N + 1]`.
  """
  # How many fields there are: room for as many features.
  size = 0
  for row in range(len(spans)):
    blank = True
    for place in range(spans[row, 0], spans[row, 1]):
      now = is_space(data[place])
      if blank and not now:
        size += 1
      blank = now
  starts = np.empty(size, np.int64)
  ends = np.empty(size, np.int64)
  part = np.zeros(size, np.int32)
  values = np.empty(size, np.float64)
  pending = np.zeros(size, np.int64)
  offsets = np.zeros(len(spans) + 1, np.int64)
  count = 0
  for row in range(len(spans)):
    place, limit = spans[row, 0], spans[row, 1]
    name_low = name_high = place
    index = 0
    while place < limit:
      while place < limit and is_space(data[place]):
        place += 1
      # A field without white space, and its last equals sign.
      low = place
      last = -1
      while place < limit and not is_space(data[place]):
        if data[place] == _EQUALS:
          last = place
        place += 1
      if low == place:
        break
      # `name=` or `name:` names the values that follow.
      if last == place - 1 or (last < 0 and data[place - 1] == _COLON):
        name_low, name_high, index = low, place - 1, 0
        continue
      if last >= 0:
        starts[count], ends[count] = low, last
        low = last + 1
      else:
        starts[count], ends[count], part[count] = name_low, name_high, index
        index += 1
      # The number; Python reads those that need more digits than a double.
      value, exact = parse_number(data, low, place)
      if exact:
        values[count] = value
      else:
        values[count] = low
        pending[count] = place
      count += 1
    offsets[row + 1] = count
  return (
    starts[:count],
    ends[:count],
    part[:count],
    values[:count],
    pending[:count],
    offsets,
  )


FORMATS = ("jaxmt", "cdec", "moses", "joshua", "travatar")


def parse_kbest(
  data: bytes, *, path: str | None = None, kind: str | None = None
) -> CandidateLists:
  """Returns the candidates of a k-best list.

  Args:
    data: the file's uncompressed content.
    path: for error messages.
    kind: one of `FORMATS`, or None to tell from the first line. Only
      "travatar" differs: its score stands before the features.

  Raises:
    InputError: naming file and line, for lines without a sentence number, text
      and features, or with a value that is no number.
  """
  if kind is not None and kind not in FORMATS:
    raise ValueError(f"k-best format '{kind}' is none of {FORMATS}")
  if data and data[-1:] != b"\n":
    data += b"\n"
  buffer = np.frombuffer(data, np.uint8)
  fields, numbers, lines, bad = scan_fields(buffer)
  if bad >= 0:
    cause = "expected 'number ||| text ||| features ...'"
    raise InputError(cause, path=path, line=int(bad) + 1)
  candidate_lists.check_numbers(numbers, lines, path)
  place = 2
  if kind == "travatar" or (
    kind is None and len(numbers) and _score_first(data, fields[0])
  ):
    place = 3
    missing = np.flatnonzero(fields[:, 3, 0] < 0)
    if len(missing):
      cause = "no features after the score"
      raise InputError(cause, path=path, line=int(lines[missing[0]]) + 1)
  try:
    names, features = _features(buffer, fields[:, place], lines, path)
    text = scan.strings(buffer, fields[:, 1, 0], fields[:, 1, 1])
  except UnicodeDecodeError as error:
    line = _line_of_bad_text(data)
    raise InputError("not UTF-8", path=path, line=line) from error
  return candidate_lists.from_rows(numbers, text, features, names)


def _line_of_bad_text(data: bytes) -> int:
  try:
    data.decode("utf-8")
  except UnicodeDecodeError as error:
    return data.count(b"\n", 0, error.start) + 1
  return 1


def _score_first(data: bytes, fields: np.ndarray) -> bool:
  """Whether the third field is one number and the fourth has `=`."""
  if fields[3, 0] < 0:
    return False
  third = data[fields[2, 0] : fields[2, 1]].split()
  fourth = data[fields[3, 0] : fields[3, 1]]
  try:
    return (
      len(third) == 1 and b"=" in fourth and float(third[0]) == float(third[0])
    )
  except ValueError:
    return False


def _features(buffer, spans, lines, path):
  """Feature names and canonical sparse rows of the feature fields."""
  starts, ends, part, values, kinds, offsets = scan_features(
    buffer, np.ascontiguousarray(spans)
  )
  for place in np.flatnonzero(kinds):
    text = buffer[int(values[place]) : int(kinds[place])].tobytes()
    try:
      if b"_" in text:
        raise ValueError
      values[place] = float(text)
    except ValueError as error:
      row = int(np.searchsorted(offsets, place, side="right")) - 1
      shown = text.decode("utf-8", "replace")
      raise InputError(
        f"no number: '{shown}'", path=path, line=int(lines[row]) + 1
      ) from error
  ids, first = scan.intern_spans(buffer, starts, ends)
  bases = scan.strings(buffer, starts[first], ends[first])
  parts = int(part.max(initial=0)) + 1
  if parts == 1 and "" not in bases:
    return tuple(bases), sparse.canonical(ids, values, offsets)
  several = np.zeros(len(bases), bool)
  several[ids[part > 0]] = True
  keys, ids = np.unique(
    ids.astype(np.int64) * parts + part, return_inverse=True
  )
  names = []
  for key in keys.tolist():
    base, index = bases[key // parts], key % parts
    if not base:
      names.append(f"feature_{index}")
    else:
      names.append(f"{base}_{index}" if several[key // parts] else base)
  if len(set(names)) < len(names):
    raise InputError("two features have the same name", path=path)
  return tuple(names), sparse.canonical(ids, values, offsets)
