"""Writing k-best lists: jaxmt (which is cdec's), Moses, Joshua, Travatar.

    jaxmt, cdec   0 ||| text ||| a=1 b=-2.5 ||| -4.5
    Joshua        0 ||| text ||| a=1 b=-2.5 ||| -4.5
    Moses         0 ||| text  ||| LM0= -43.7 TM0= -62.0 -94.6 ||| -14.68 ||| 0-0
    Travatar      0 ||| text ||| -12.3 ||| a=-4.5 w=3

Moses' last field, the word links, is there if links are given. Values that are
0 are left out, except in Moses' groups: features `name_0`, `name_1`, ... whose
name ends in a digit, as those of its feature functions do, stand together with
all their values. A `|||` among the words is written `&#124;&#124;&#124;`, as
Moses escapes bars. Numbers are written so that reading gives back the same.
"""

import re

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.features import sparse
from jaxmt.text import links as link_lines
from jaxmt.text.ragged import Ragged, row_offsets
from jaxmt.tune.formats.kbest_files import FORMATS

_ESCAPED = "&#124;" * 3
_GROUPED = re.compile(r"(.*\d)_(\d+)")


def format_kbest(
  candidates: CandidateLists,
  scores: np.ndarray,
  *,
  format: str = "jaxmt",
  links: Ragged | None = None,
) -> list[str]:
  """Returns the lines of a k-best list.

  Args:
    candidates: N of them, in the order they are to be written.
    scores: model scores, `[N]`.
    format: one of `FORMATS`.
    links: (source position, target position) in N rows, for Moses' list; other
      formats have no place for them.

  Raises:
    ValueError: for an unknown format, or if the numbers do not fit.
  """
  if format not in FORMATS:
    raise ValueError(f"k-best format '{format}' is none of {FORMATS}")
  if len(scores) != len(candidates):
    raise ValueError(f"{len(scores)} scores for {len(candidates)} candidates")
  if links is not None and len(links) != len(candidates):
    raise ValueError(f"{len(links)} rows of links for {len(candidates)}")
  moses = format == "moses"
  features = _moses_features if moses else _plain_features
  fields = [
    list(map(str, candidates.sentence.tolist())),
    [_escaped(line) + " " * moses for line in candidates.lines],
    features(candidates),
    list(map(repr, np.asarray(scores, np.float64).tolist())),
  ]
  if format == "travatar":
    fields[2], fields[3] = fields[3], fields[2]
  if moses and links is not None:
    fields.append(link_lines.format_links(links))
  return [" ||| ".join(row) for row in zip(*fields, strict=True)]


def _escaped(text: str) -> str:
  return text.replace("|||", _ESCAPED) if "|||" in text else text


def _plain_features(candidates: CandidateLists) -> list[str]:
  """`name=value` of everything that is not 0."""
  return _cells(candidates.features, candidates.names, "=")


def _cells(rows: sparse.SparseRows, names: tuple[str, ...], glue: str):
  cells = [
    f"{names[number]}{glue}{value!r}"
    for number, value in zip(
      rows.ids.tolist(), rows.values.tolist(), strict=True
    )
  ]
  offsets = rows.offsets.tolist()
  return [
    " ".join(cells[offsets[row] : offsets[row + 1]])
    for row in range(len(offsets) - 1)
  ]


def _groups(names: tuple[str, ...]) -> dict[str, list[int]]:
  """Feature ids of each group, in the order of their numbers."""
  groups: dict[str, dict[int, int]] = {}
  for number, name in enumerate(names):
    match = _GROUPED.fullmatch(name)
    if match and str(int(match[2])) == match[2]:
      groups.setdefault(match[1], {})[int(match[2])] = number
  return {
    base: [parts[k] for k in range(len(parts))]
    for base, parts in groups.items()
    if len(parts) > 1
    and base not in names
    and set(parts) == {*range(len(parts))}
  }


def _moses_features(candidates: CandidateLists) -> list[str]:
  """Groups first, then `name= value` of the rest that is not 0."""
  groups = _groups(candidates.names)
  grouped = np.array(
    [number for ids in groups.values() for number in ids], np.int64
  )
  rows = candidates.features
  column = np.full(len(candidates.names), -1, np.int64)
  column[grouped] = np.arange(len(grouped))
  place = column[rows.ids]
  batch = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
  dense = np.zeros((len(rows), len(grouped)))
  inside = place >= 0
  dense[batch[inside], place[inside]] = rows.values[inside]
  counts = np.bincount(batch[~inside], minlength=len(rows))
  others = sparse.SparseRows(
    ids=rows.ids[~inside],
    values=rows.values[~inside],
    offsets=row_offsets(counts),
  )
  rest = _cells(others, candidates.names, "= ")
  if not groups:
    return rest
  ends = np.cumsum([len(ids) for ids in groups.values()]).tolist()
  out = []
  for values, tail in zip(dense.tolist(), rest, strict=True):
    first, parts = 0, []
    for base, end in zip(groups, ends, strict=True):
      parts.append(f"{base}= {' '.join(map(repr, values[first:end]))}")
      first = end
    out.append(" ".join([*parts, tail] if tail else parts))
  return out
