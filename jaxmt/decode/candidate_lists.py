"""Candidate lists: translations of sentences with their features.

One type for what a decoder writes, what a k-best file holds and what a tuner
learns from. N: candidates of all sentences. B: sentences. D: dense features.
F: sparse features. S: statistics of a metric.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.features import selection, sparse
from jaxmt.features.sparse import SparseRows
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged

MOST_SENTENCES = 10_000_000  # that a file may number


@dataclasses.dataclass(frozen=True, kw_only=True)
class CandidateLists:
  """Candidates of B sentences, those of a sentence together.

  A weight vector is `[D + F]`, dense features first. Fields from `score` on may
  be absent.

  Attributes:
    sentence: the sentence of each candidate, from 0, rising; int64 `[N]`.
    sentences: B; a sentence may have no candidate.
    lines: texts, N strings.
    dense: float64 `[N, D]`.
    sparse: N sparse vectors; id f is feature D + f.
    names: dense names, then sparse names, D + F.
    score: model scores, float64 `[N]`.
    links: word links, (source position, target position) in N rows.
    derivations: written derivations, see `Translation.derivation`.
    statistics: by name of metric, `[N, S]`.
    forests: a `forest_pool.ForestPool` of the same sentences, for methods that
      tune on forests.
    dropped: candidates left out because a feature was NaN or infinite.
  """

  sentence: np.ndarray
  sentences: int
  lines: list[str]
  dense: np.ndarray
  sparse: SparseRows
  names: tuple[str, ...]
  score: np.ndarray | None = None
  links: Ragged | None = None
  derivations: list[tuple[Any, ...]] | None = None
  statistics: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
  forests: Any = None
  dropped: int = 0

  def __len__(self) -> int:
    return len(self.lines)

  @functools.cached_property
  def offsets(self) -> np.ndarray:
    """Sentence b has rows `offsets[b] : offsets[b + 1]`; int64 `[B + 1]`."""
    places = np.searchsorted(self.sentence, np.arange(self.sentences + 1))
    return places.astype(np.int64)

  @property
  def width(self) -> int:
    """The length of the longest list."""
    return int(np.diff(self.offsets).max(initial=0))

  @functools.cached_property
  def features(self) -> SparseRows:
    """All features as N sparse vectors; id f is `names[f]`."""
    width = self.dense.shape[1]
    if not width:
      return self.sparse
    rows = sparse.from_dense(self.dense)
    return _side_by_side(rows, self.sparse, width)


def _side_by_side(
  first: SparseRows, second: SparseRows, width: int
) -> SparseRows:
  """Rows of `first`, each followed by the row of `second`, ids + width."""
  counts, extra = np.diff(first.offsets), np.diff(second.offsets)
  offsets = first.offsets + second.offsets
  ids = np.empty(offsets[-1], np.int32)
  values = np.empty(offsets[-1], np.float64)
  places = np.repeat(second.offsets[:-1], counts) + np.arange(len(first.ids))
  ids[places], values[places] = first.ids, first.values
  other = np.repeat(first.offsets[1:], extra) + np.arange(len(second.ids))
  ids[other], values[other] = second.ids + width, second.values
  return SparseRows(ids=ids, values=values, offsets=offsets)


def to_vector(weights: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
  """Returns the weights of `names`, 0 for those without one; float64."""
  return np.array([weights.get(name, 0.0) for name in names], np.float64)


def from_vector(
  vector: np.ndarray, names: Sequence[str], *, keep: int | None = None
) -> dict[str, float]:
  """Returns the mapping from names to weights.

  Args:
    vector: one weight per name.
    names: feature names.
    keep: from this place on, zeros are left out; all are kept when None.
  """
  keep = len(names) if keep is None else keep
  pairs = zip(names, np.asarray(vector, float).tolist(), strict=True)
  return {
    name: value
    for place, (name, value) in enumerate(pairs)
    if place < keep or value != 0.0
  }


def check_numbers(
  numbers: np.ndarray, lines: np.ndarray | None = None, path: str | None = None
) -> None:
  """Refuses sentence numbers of a file that no text has.

  Args:
    numbers: the sentence of each candidate, int64 `[N]`. Lists take memory for
      every number up to the largest.
    lines: the line of the file each stands in, from 0, int64 `[N]`.
    path: the file.

  Raises:
    InputError: naming the first one.
  """
  wrong = np.flatnonzero((numbers < 0) | (numbers >= MOST_SENTENCES))
  if len(wrong):
    row = wrong[0]
    line = None if lines is None else int(lines[row]) + 1
    cause = f"sentence {numbers[row]} is not from 0 to {MOST_SENTENCES - 1}"
    raise InputError(cause, path=path, line=line)


def from_rows(
  sentence: np.ndarray,
  lines: Sequence[str],
  features: SparseRows,
  names: Sequence[str],
  *,
  sentences: int | None = None,
  **more: Any,
) -> CandidateLists:
  """Returns lists without dense features.

  Args:
    sentence: the sentence of each candidate, in any order, int `[N]`.
    lines: their texts.
    features: one sparse vector each.
    names: the name of each feature id.
    sentences: B; one more than the largest sentence number when None.
    **more: other fields, in the same order of candidates.

  Raises:
    ValueError: if a sentence is not below `sentences`.
  """
  sentence = np.asarray(sentence, np.int64)
  last = int(sentence.max(initial=-1))
  sentences = last + 1 if sentences is None else sentences
  if last >= sentences:
    raise ValueError(f"sentence {last} of {sentences}")
  lists = CandidateLists(
    sentence=sentence,
    sentences=sentences,
    lines=list(lines),
    dense=np.zeros((len(sentence), 0)),
    sparse=features,
    names=tuple(names),
    **more,
  )
  if (np.diff(sentence) >= 0).all():
    return lists
  return take(lists, np.argsort(sentence, kind="stable"))


def from_dense(
  sentence: np.ndarray,
  lines: Sequence[str],
  values: np.ndarray,
  names: Sequence[str],
) -> CandidateLists:
  """Returns lists with the feature values `[N, F]`; see `from_rows`."""
  return from_rows(sentence, lines, sparse.from_dense(values), names)


def take(lists: CandidateLists, rows: np.ndarray) -> CandidateLists:
  """Returns some candidates; their sentences must rise. Forests stay."""
  rows = np.asarray(rows, np.int64)
  places = rows.tolist()
  change: dict[str, Any] = {
    "sentence": lists.sentence[rows],
    "lines": [lists.lines[row] for row in places],
    "dense": lists.dense[rows],
    "sparse": sparse.select(lists.sparse, rows),
    "statistics": {k: v[rows] for k, v in lists.statistics.items()},
  }
  if lists.score is not None:
    change["score"] = lists.score[rows]
  if lists.links is not None:
    change["links"] = ragged.select(lists.links, rows)
  if lists.derivations is not None:
    change["derivations"] = [lists.derivations[row] for row in places]
  return dataclasses.replace(lists, **change)


def take_sentences(lists: CandidateLists, chosen: np.ndarray) -> CandidateLists:
  """Returns the lists of some sentences, numbered from 0 in that order."""
  chosen = np.asarray(chosen, np.int64)
  lengths = np.diff(lists.offsets)[chosen]
  ends = np.cumsum(lengths)
  within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(
    ends - lengths, lengths
  )
  some = take(lists, np.repeat(lists.offsets[:-1][chosen], lengths) + within)
  return dataclasses.replace(
    some,
    sentence=np.repeat(np.arange(len(chosen)), lengths),
    sentences=len(chosen),
    forests=None if lists.forests is None else lists.forests.take(chosen),
  )


def shorten(lists: CandidateLists, size: int) -> CandidateLists:
  """Returns the first `size` candidates of each sentence."""
  rank = np.arange(len(lists)) - lists.offsets[lists.sentence]
  return take(lists, np.flatnonzero(rank < size))


def concatenate(parts: Sequence[CandidateLists]) -> CandidateLists:
  """Returns all candidates by sentence, with one numbering of features.

  Candidates of a sentence keep the order of the parts. A field that some part
  does not have is left out, and so are forests.
  """
  features, names = renumbered(parts)
  metrics = [
    name
    for name in parts[0].statistics
    if all(name in part.statistics for part in parts)
  ]
  return from_rows(
    np.concatenate([part.sentence for part in parts]),
    [line for part in parts for line in part.lines],
    features,
    names,
    sentences=max(part.sentences for part in parts),
    score=_joined([part.score for part in parts], np.concatenate),
    links=_joined([part.links for part in parts], ragged.concatenate),
    derivations=_joined(
      [part.derivations for part in parts],
      lambda values: list(itertools.chain.from_iterable(values)),
    ),
    statistics={
      name: np.concatenate([part.statistics[name] for part in parts])
      for name in metrics
    },
    dropped=sum(part.dropped for part in parts),
  )


def _joined(values: list[Any], join: Callable[[list[Any]], Any]) -> Any:
  """The values of all parts; None if one has none."""
  return None if any(value is None for value in values) else join(values)


def renumbered(
  parts: Sequence[CandidateLists],
) -> tuple[SparseRows, tuple[str, ...]]:
  """Returns the features of all parts with one numbering, and its names."""
  names = tuple(dict.fromkeys(name for part in parts for name in part.names))
  index = {name: number for number, name in enumerate(names)}
  rows = []
  for part in parts:
    table = np.array([index[name] for name in part.names], np.int32)
    rows.append(sparse.renumber(part.features, table))
  return sparse.concatenate(rows), names


def with_features(
  lists: CandidateLists, parts: Sequence[tuple[SparseRows, Sequence[str]]]
) -> CandidateLists:
  """Returns the lists with further sparse features, N rows in each part.

  Features of one name are added: a word may be spelled as two words are.

  Raises:
    ValueError: if a name is that of a dense feature, or the rows are not N.
  """
  dense = lists.names[: lists.dense.shape[1]]
  for rows, names in parts:
    if len(rows) != len(lists):
      raise ValueError(f"{len(rows)} rows for {len(lists)} candidates")
    if {*names} & {*dense}:
      raise ValueError("a dense feature of that name is there already")
  thin = lists.names[len(dense) :]
  joined, names = selection.join([(lists.sparse, thin), *parts])
  index: dict[str, int] = {}
  table = [index.setdefault(name, len(index)) for name in names]
  return dataclasses.replace(
    lists,
    sparse=sparse.renumber(joined, np.array(table, np.int32)),
    names=(*dense, *index),
  )


def decoded(
  lists: CandidateLists,
) -> tuple[np.ndarray, Ragged, list[tuple[Any, ...]]]:
  """Returns score, links and derivations of lists that a decoder wrote.

  Raises:
    ValueError: if one of them is absent.
  """
  score, links, derivations = lists.score, lists.links, lists.derivations
  if score is None or links is None or derivations is None:
    raise ValueError("lists without scores, links or derivations")
  return score, links, derivations
