"""The compiled scanner of `kbest_files`: bytes to numbers."""

import numpy as np

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
      low = place
      last = -1
      while place < limit and not is_space(data[place]):
        if data[place] == _EQUALS:
          last = place
        place += 1
      if low == place:
        break
      if last == place - 1 or (last < 0 and data[place - 1] == _COLON):
        name_low, name_high, index = low, place - 1, 0
        continue
      if last >= 0:
        starts[count], ends[count] = low, last
        low = last + 1
      else:
        starts[count], ends[count], part[count] = name_low, name_high, index
        index += 1
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
