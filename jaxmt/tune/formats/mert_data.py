"""Moses' tuning data: `FEATURES_TXT` and `SCORES_TXT` files.

    FEATURES_TXT_BEGIN_0 <sentence> <candidates> <features> <names ...>
    <values> [name=value ...]
    FEATURES_TXT_END_0

    SCORES_TXT_BEGIN_0 <sentence> <candidates> <statistics> BLEU
    m1 c1 m2 c2 m3 c3 m4 c4 r
    SCORES_TXT_END_0

BLEU's numbers are interleaved there; ours are `m1..m4 c1..c4 r`. Sparse
features stand as `name=value` after the dense ones.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxmt.decode import candidate_lists
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.features import sparse
from jaxmt.text.ragged import row_offsets
from jaxmt.tune.pool import make_pool

_ORDER = 4
_FEW = 100  # values of a row that may be missing before their number is absurd
# Place in our statistics of each number in a Moses row.
_OURS = np.array([n // 2 + _ORDER * (n % 2) for n in range(2 * _ORDER)] + [8])


def format_features(pool: CandidateLists) -> list[str]:
  """Returns the lines of a FEATURES_TXT file; empty lists are left out."""
  width = pool.dense.shape[1]
  names = pool.names[:width]
  thin = pool.names[width:]
  places = pool.sparse.offsets.tolist()
  extra = [
    f"{thin[number]}={value:.9g}"
    for number, value in zip(
      pool.sparse.ids.tolist(), pool.sparse.values.tolist(), strict=True
    )
  ]
  rows = [" ".join(f"{v:.9g}" for v in row) for row in pool.dense.tolist()]
  lines = []
  for sentence in range(pool.sentences):
    low, high = pool.offsets[sentence], pool.offsets[sentence + 1]
    if low == high:
      continue
    head = [f"{sentence}", f"{high - low}", f"{width}", *names]
    lines.append("FEATURES_TXT_BEGIN_0 " + " ".join(head))
    for row in range(low, high):
      cells = extra[places[row] : places[row + 1]]
      lines.append(" ".join([rows[row], *cells]))
    lines.append("FEATURES_TXT_END_0")
  return lines


def format_scores(pool: CandidateLists, metric: str = "bleu") -> list[str]:
  """Returns the lines of a SCORES_TXT file with BLEU's statistics."""
  statistics = np.asarray(pool.statistics[metric])
  if statistics.shape[1] != len(_OURS):
    raise ValueError(f"statistics of {metric} are not those of BLEU")
  table = statistics[:, _OURS].astype(np.int64).tolist()
  lines = []
  for sentence in range(pool.sentences):
    low, high = pool.offsets[sentence], pool.offsets[sentence + 1]
    if low == high:
      continue
    head = f"{sentence} {high - low} {len(_OURS)} BLEU"
    lines.append(f"SCORES_TXT_BEGIN_0 {head}")
    lines += [" ".join(map(str, row)) for row in table[low:high]]
    lines.append("SCORES_TXT_END_0")
  return lines


def _blocks(lines: Sequence[str], kind: str, path: str | None):
  """Yields `(sentence, header words, first row's line number, rows)`."""
  begin, end = f"{kind}_TXT_BEGIN_0", f"{kind}_TXT_END_0"
  place = 0
  while place < len(lines):
    words = lines[place].split()
    if not words:
      place += 1
      continue
    if words[0] != begin or len(words) < 4:
      raise InputError(f"expected {begin}", path=path, line=place + 1)
    try:
      sentence, count, width = map(int, words[1:4])
    except ValueError as error:
      raise InputError("bad header", path=path, line=place + 1) from error
    last = place + 1 + count
    if count < 0 or last >= len(lines) or lines[last].split() != [end]:
      line = min(last, len(lines) - 1) + 1
      raise InputError(f"expected {end}", path=path, line=line)
    longest = max([len(line.split()) for line in lines[place + 1 : last]] + [0])
    if not 0 <= width <= max(longest, len(words) - 4, _FEW):
      cause = f"{width} values a row, but no row has that many"
      raise InputError(cause, path=path, line=place + 1)
    candidate_lists.check_numbers(
      np.array([sentence], object), np.array([place]), path
    )
    yield sentence, width, words[4:], place + 2, lines[place + 1 : last]
    place = last + 1


def parse_features(
  lines: Sequence[str], *, path: str | None = None
) -> CandidateLists:
  """Reads FEATURES_TXT; the candidates have no text."""
  index: dict[str, int] = {}
  sentences: list[int] = []
  ids: list[int] = []
  values: list[float] = []
  counts: list[int] = []
  for sentence, width, names, first, rows in _blocks(lines, "FEATURES", path):
    if len(names) != width:
      names = [f"F{number}" for number in range(width)]
    dense = [index.setdefault(name, len(index)) for name in names]
    for shift, row in enumerate(rows):
      words = row.split()
      try:
        numbers = [float(word) for word in words[:width]]
        if len(numbers) != width:
          raise ValueError
        pairs = [word.rpartition("=") for word in words[width:]]
        extra = [float(value) for _, _, value in pairs]
        if not np.isfinite(numbers + extra).all():
          raise ValueError
      except ValueError as error:
        cause = f"expected {width} numbers, then name=value"
        raise InputError(cause, path=path, line=first + shift) from error
      ids += dense
      ids += [index.setdefault(name, len(index)) for name, _, _ in pairs]
      values += numbers + extra
      counts.append(width + len(extra))
      sentences.append(sentence)
  offsets = row_offsets(counts)
  return candidate_lists.from_rows(
    np.array(sentences, np.int64),
    [""] * len(sentences),
    sparse.canonical(
      np.array(ids, np.int32), np.array(values, np.float64), offsets
    ),
    tuple(index),
  )


def parse_scores(
  lines: Sequence[str], *, path: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
  """Reads SCORES_TXT with BLEU statistics.

  Returns:
    `(sentence int64 [N], statistics int32 [N, 9])`, in our order of columns.
  """
  sentences: list[int] = []
  table: list[list[float]] = []
  for sentence, width, kind, first, rows in _blocks(lines, "SCORES", path):
    if kind[:1] not in (["BLEU"], []) or width != len(_OURS):
      cause = f"expected {len(_OURS)} statistics of BLEU"
      raise InputError(cause, path=path, line=first - 1)
    for shift, row in enumerate(rows):
      try:
        numbers = [float(word) for word in row.split()]
        if len(numbers) != width or not all(0 <= n < 2**31 for n in numbers):
          raise ValueError
      except ValueError as error:
        cause = f"expected {width} numbers"
        raise InputError(cause, path=path, line=first + shift) from error
      table.append(numbers)
      sentences.append(sentence)
  theirs = np.array(table, np.float64).reshape(-1, len(_OURS))
  ours = np.empty(theirs.shape, np.int32)
  ours[:, _OURS] = theirs.astype(np.int32)
  return np.array(sentences, np.int64), ours


def parse_pool(
  feature_lines: Sequence[str],
  score_lines: Sequence[str],
  *,
  feature_path: str | None = None,
  score_path: str | None = None,
) -> CandidateLists:
  """Reads a pair of files into a pool with statistics of "bleu".

  Without text, candidates with equal features and statistics are the same.

  Raises:
    InputError: also if the files do not have the same candidates.
  """
  candidates = parse_features(feature_lines, path=feature_path)
  sentence, statistics = parse_scores(score_lines, path=score_path)
  order = np.argsort(sentence, kind="stable")  # as lists are
  sentence, statistics = sentence[order], statistics[order]
  if not np.array_equal(sentence, candidates.sentence):
    raise InputError(
      f"candidates differ from those of {feature_path}", path=score_path
    )
  # The statistics stand for the text when looking for duplicates.
  keys = [" ".join(map(str, row)) for row in statistics.tolist()]
  keyed = dataclasses.replace(
    candidates, lines=keys, statistics={"bleu": statistics}
  )
  return make_pool(keyed)
