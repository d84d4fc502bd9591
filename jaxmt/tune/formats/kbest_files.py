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
from jaxmt.tune.formats import kbest_scan

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
  fields, numbers, lines, bad = kbest_scan.scan_fields(buffer)
  if bad >= 0:
    cause = "expected 'number ||| text ||| features ...'"
    raise InputError(cause, path=path, line=int(bad) + 1)
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
  starts, ends, part, values, kinds, offsets = kbest_scan.scan_features(
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
