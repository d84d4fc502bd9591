"""N-best lists of texts, whatever batches and pieces they were decoded in.

A line that was cut into pieces has the best combinations of its pieces' lists:
pieces are translated independently, so scores, features and words add up.
"""

import dataclasses
import heapq
from collections.abc import Sequence

import numpy as np

from jaxmt.chart import derivation, forest, kbest
from jaxmt.chart.decoder import Result
from jaxmt.chart.model import Model
from jaxmt.chart.spelled_forest import SPARSE
from jaxmt.chart.translate import Pieces
from jaxmt.data import ragged
from jaxmt.data.ragged import Ragged


@dataclasses.dataclass(frozen=True, kw_only=True)
class NBest:
  """N translations, those of a sentence together and best first.

  Attributes:
    sentence: the sentence each translates, int64 `[N]`.
    lines: their text.
    score: model scores, float64 `[N]`.
    features: feature values, float64 `[N, F]`.
    names: `Model.feature_names`; with sparse features also `SPARSE`, which is
      their sum with weights.
    links: (source position, target position) in N rows, int32 `[L, 2]`.
  """

  sentence: np.ndarray
  lines: list[str]
  score: np.ndarray
  features: np.ndarray
  names: tuple[str, ...]
  links: Ragged

  def __len__(self) -> int:
    return len(self.lines)


def lists(
  model: Model,
  result: Result,
  *,
  size: int,
  unique: bool = False,
  diversity: float = 0.0,
  forests: forest.Forest | None = None,
) -> NBest:
  """Returns the lists of a decoded part, searched with `forest=True`.

  An empty sentence has one empty translation of score 0.

  Args:
    model: the model.
    result: the part.
    size: translations per sentence.
    unique: see `kbest.best`.
    diversity: see `kbest.best`.
    forests: the part's forests, if they are there already.
  """
  made = forest.extract(model, result) if forests is None else forests
  found = kbest.best(
    model, result.source, made, size=size, unique=unique, diversity=diversity
  )
  every = kbest.derivations(made, found)
  nothing = np.flatnonzero(np.diff(found.offsets) == 0)
  names = model.feature_names
  values = derivation.features(model, result.source, every, found.words)
  if model.templates is not None:
    weights = np.array([model.weights.get(name, 0.0) for name in names])
    values = np.column_stack([values, found.score - values @ weights])
    names = (*names, SPARSE)
  links = derivation.read_off(model, every).links
  sentence = np.concatenate([found.sentence, nothing])
  order = np.argsort(sentence, kind="stable")
  lines = kbest.strings(model, result.source, found) + [""] * len(nothing)
  rows = len(found.score)
  longer = np.append(links.offsets, np.full(len(nothing), links.offsets[-1]))
  padded = np.zeros((rows + len(nothing), values.shape[1]))
  padded[:rows] = values
  return NBest(
    sentence=result.rows[sentence[order]],
    lines=[lines[place] for place in order.tolist()],
    score=np.append(found.score, np.zeros(len(nothing)))[order],
    features=padded[order],
    names=names,
    links=ragged.select(Ragged(flat=links.flat, offsets=longer), order),
  )


def collect(
  parts: Sequence[NBest], pieces: Pieces, *, size: int, unique: bool = False
) -> NBest:
  """Orders the lists of all pieces by line and joins those of cut lines.

  Args:
    parts: lists of pieces, each piece in one of them.
    pieces: how lines were cut.
    size: translations per line.
    unique: whether all strings of a line differ.
  """
  whole = concatenate(parts)
  if not pieces.cut:
    return whole
  cut = set(pieces.cut)
  of_cut = np.isin(pieces.row[whole.sentence], pieces.cut)
  simple = take(whole, np.flatnonzero(~of_cut))
  out = [dataclasses.replace(simple, sentence=pieces.row[simple.sentence])]
  for line in sorted(cut):
    rows = [
      take(whole, np.flatnonzero(whole.sentence == piece))
      for piece in np.flatnonzero(pieces.row == line)
    ]
    firsts = pieces.first[pieces.row == line]
    out.append(_combine(rows, firsts, line=line, size=size, unique=unique))
  return concatenate(out)


def concatenate(parts: Sequence[NBest]) -> NBest:
  """Returns all lists by sentence; those of a sentence keep their order."""
  sentence = np.concatenate([part.sentence for part in parts])
  order = np.argsort(sentence, kind="stable")
  shifts = np.cumsum([0] + [len(part.links.flat) for part in parts])
  links = Ragged(
    flat=np.concatenate([part.links.flat for part in parts]),
    offsets=np.concatenate(
      [
        np.zeros(1, np.int64),
        *(
          part.links.offsets[1:] + shift
          for part, shift in zip(parts, shifts[:-1], strict=True)
        ),
      ]
    ),
  )
  lines = [line for part in parts for line in part.lines]
  return NBest(
    sentence=sentence[order],
    lines=[lines[place] for place in order.tolist()],
    score=np.concatenate([part.score for part in parts])[order],
    features=np.concatenate([part.features for part in parts])[order],
    names=parts[0].names,
    links=ragged.select(links, order),
  )


def take(whole: NBest, rows: np.ndarray) -> NBest:
  """Returns some of the translations."""
  return NBest(
    sentence=whole.sentence[rows],
    lines=[whole.lines[row] for row in rows.tolist()],
    score=whole.score[rows],
    features=whole.features[rows],
    names=whole.names,
    links=ragged.select(whole.links, rows),
  )


def _combine(
  parts: list[NBest],
  firsts: np.ndarray,
  *,
  line: int,
  size: int,
  unique: bool,
) -> NBest:
  """The best combinations of one list per piece."""
  score, lines, features, links = [], [], [], []
  seen: set[str] = set()
  for total, ranks in _best_sums([part.score for part in parts]):
    if len(lines) == size:
      break
    chosen = [part.lines[k] for part, k in zip(parts, ranks, strict=True)]
    text = " ".join(one for one in chosen if one)
    if unique and text in seen:
      continue
    seen.add(text)
    lines.append(text)
    score.append(total)
    both = list(zip(parts, ranks, strict=True))
    features.append(np.sum([part.features[k] for part, k in both], axis=0))
    own, words = [], 0
    for (part, k), first, one in zip(
      both, firsts.tolist(), chosen, strict=True
    ):
      own.append(part.links[k] + np.array([first, words], np.int32))
      words += len(one.split(" ")) if one else 0
    links.append(np.concatenate(own))
  return NBest(
    sentence=np.full(len(lines), line, np.int64),
    lines=lines,
    score=np.array(score),
    features=np.array(features),
    names=parts[0].names,
    links=Ragged(
      flat=np.concatenate(links),
      offsets=np.cumsum([0] + [len(one) for one in links]),
    ),
  )


def _best_sums(scores: list[np.ndarray]):
  """Yields (sum, one rank per list), best first, each choice once."""
  start = (0,) * len(scores)
  total = lambda ranks: float(
    sum(column[k] for column, k in zip(scores, ranks, strict=True))
  )
  queue = [(-total(start), start)]
  while queue:
    value, ranks = heapq.heappop(queue)
    yield -value, ranks
    # Only lists up to the first that has advanced may advance: no repetition.
    for place, rank in enumerate(ranks):
      if rank + 1 < len(scores[place]):
        more = (*ranks[:place], rank + 1, *ranks[place + 1 :])
        heapq.heappush(queue, (-total(more), more))
      if rank:
        break
