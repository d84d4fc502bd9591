"""N-best lists of texts, whatever batches and pieces they were decoded in.

A line that was cut into pieces has the best combinations of its pieces' lists:
pieces are translated independently, so scores, features and words add up.
"""

import dataclasses
import heapq
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import (
  candidate_lists,
  derivation,
  derivation_text,
  translate,
  translation_forest,
)
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source
from jaxmt.decode.phrase import lattice_search
from jaxmt.decode.translate import Pieces, Translation
from jaxmt.errors import InputError
from jaxmt.features import (
  frequent_events,
  rule_bigrams,
  selection,
  sparse,
  string_templates,
)
from jaxmt.features.sparse import SparseRows
from jaxmt.hypergraph.derivations import DerivationLists
from jaxmt.hypergraph.forest import Forest
from jaxmt.text.ragged import Ragged

RERANKED = 100  # translations of a line that list features choose from


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListSettings:
  """Which lists are needed.

  Attributes:
    size: translations per line.
    unique: whether they differ.
    diversity: see `hypergraph.kbest`.
    templates: of features that re-rank them, from `string_templates.NAMES`;
      empty for none. The search does not know these features.
    events: frequent events with a weight, which a second pass over phrase
      lattices scores (`phrase.lattice_search`).
  """

  size: int
  unique: bool = False
  diversity: float = 0.0
  templates: tuple[str, ...] = ()
  events: tuple[str, ...] = ()

  @property
  def choose(self) -> bool:
    """Whether the best of a list is not what the search found best."""
    return bool(self.templates or self.events)


def list_settings(
  weights: Mapping[str, float],
  *,
  size: int = 0,
  unique: bool = False,
  diversity: float = 0.0,
) -> ListSettings | None:
  """Returns which lists are needed, None if the best translation will do.

  Args:
    weights: by feature name; those of whole candidates need lists.
    size: translations per line to give out; 0 for none.
    unique: whether they differ.
    diversity: see `hypergraph.kbest`; implies `unique`.
  """
  templates = string_templates.templates_of(weights)
  events = frequent_events.of_weights(weights)
  if templates or events:
    size = max(size, RERANKED)
  if not size:
    return None
  return ListSettings(
    size=size,
    unique=unique or diversity > 0 or bool(templates or events),
    diversity=diversity,
    templates=templates,
    events=events,
  )


def lists(
  model: Model,
  source: Source,
  forests: Forest,
  settings: ListSettings,
  *,
  rows: np.ndarray,
  text: str = "",
  shift: np.ndarray | None = None,
  scores: np.ndarray | None = None,
) -> CandidateLists:
  """Returns the best translations of B sentences.

  An empty sentence has one empty translation of score 0, without features.

  Args:
    model: the model.
    source: the sentences.
    forests: their forests, E edges.
    settings: which lists.
    rows: numbers that the sentences get, int64 `[B]`.
    text: how to write derivations, one of `derivation_text.FORMATS`; empty:
      not.
    shift: where each sentence begins in its line, int `[B]`.
    scores: of the edges, `[E]`; those of the forests if None.
  """
  derived = _best(model, source, forests, settings, scores)
  every = translation_forest.derivations(forests, derived)
  features, names = translate.feature_rows(
    model, source, every, derived.words, derived.sentence
  )
  if string_templates.RULE_BIGRAMS in settings.templates:
    pairs = bigram_rows(model, source, every)
    known = np.array([name in model.weights for name in pairs[1]], bool)
    features, names = selection.join(
      [(features, names), selection.select(*pairs, known)]
    )
  if settings.events:
    events = frequent_events.make_table(settings.events)
    event_part = lattice_search.event_rows(
      model, source, forests, derived, events
    )
    features, names = selection.join([(features, names), event_part])
  written: Sequence[Sequence[Any]] = [()] * len(derived.score)
  if text:
    moved = None if shift is None else shift[derived.sentence]
    written = derivation_text.write(
      model, source, every, format=text, shift=moved
    )
  some = candidate_lists.from_rows(
    sentence=rows[derived.sentence],
    lines=translation_forest.strings(model, source, derived),
    score=derived.score,
    features=features,
    names=names,
    links=derivation.read_off(model, every).links,
    derivations=[tuple(lines) for lines in written],
  )
  nothing = np.flatnonzero(np.diff(derived.offsets) == 0)
  return candidate_lists.concatenate([some, _nothing(rows[nothing], text)])


def _best(
  model: Model,
  source: Source,
  forests: Forest,
  settings: ListSettings,
  scores: np.ndarray | None,
) -> DerivationLists:
  """The best derivations, of a second pass if there are frequent events.

  Raises:
    InputError: for such events with charts, other scores or diverse lists.
  """
  if not settings.events:
    return translation_forest.kbest(
      model,
      source,
      forests,
      size=settings.size,
      unique=settings.unique,
      diversity=settings.diversity,
      scores=scores,
    )
  if settings.diversity or scores is not None:
    raise InputError("frequent events go with neither diversity nor new scores")
  return lattice_search.kbest(
    model,
    source,
    forests,
    frequent_events.make_table(settings.events),
    size=settings.size,
    unique=settings.unique,
  )


def bigram_rows(
  model: Model, source: Source, every: Derivations
) -> tuple[SparseRows, tuple[str, ...]]:
  """Returns the rule bigrams of derivations: `(rows, names)`."""
  return rule_bigrams.rule_bigrams(
    model.table,
    source.words,
    offsets=every.offsets,
    rule=every.rule,
    child=every.child,
  )


def _nothing(sentence: np.ndarray, text: str) -> CandidateLists:
  """The lists of empty sentences."""
  size = len(sentence)
  return candidate_lists.from_rows(
    sentence=sentence,
    lines=[""] * size,
    score=np.zeros(size),
    features=sparse.empty(size),
    names=(),
    links=Ragged(
      flat=np.zeros((0, 2), np.int32), offsets=np.zeros(size + 1, np.int64)
    ),
    derivations=[("()",) if text == "tree" else ()] * size,
  )


def collect(
  parts: Sequence[CandidateLists],
  pieces: Pieces,
  settings: ListSettings,
  weights: Mapping[str, float],
) -> CandidateLists:
  """Returns the lists of all lines, re-ranked if such features have weights.

  Args:
    parts: lists of pieces, each piece in one of them.
    pieces: how lines were cut.
    settings: which lists.
    weights: by feature name.
  """
  whole = _join_pieces(
    candidate_lists.concatenate(parts),
    pieces,
    size=settings.size,
    unique=settings.unique,
  )
  if not settings.templates:
    return whole
  more = string_templates.text_rows(
    settings.templates,
    whole.lines,
    source_lines=_whole_lines(pieces),
    sentence=whole.sentence,
  )
  return rerank(whole, more, weights)


def _whole_lines(pieces: Pieces) -> list[str]:
  """The lines that pieces were cut from."""
  rows: list[list[str]] = [[] for _ in range(pieces.row.max(initial=-1) + 1)]
  for row, piece in zip(pieces.row.tolist(), pieces.lines, strict=True):
    rows[row].append(piece)
  return [" ".join(row) for row in rows]


def _join_pieces(
  whole: CandidateLists, pieces: Pieces, *, size: int, unique: bool
) -> CandidateLists:
  """The lists by line; a line that was cut has those of its pieces, joined."""
  if not pieces.cut:
    return whole
  cut = set(pieces.cut)
  of_cut = np.isin(pieces.row[whole.sentence], pieces.cut)
  simple = candidate_lists.take(whole, np.flatnonzero(~of_cut))
  out = [
    dataclasses.replace(
      simple,
      sentence=pieces.row[simple.sentence],
      sentences=int(pieces.row.max(initial=-1)) + 1,
    )
  ]
  for line in sorted(cut):
    rows = [
      candidate_lists.take(whole, np.flatnonzero(whole.sentence == piece))
      for piece in np.flatnonzero(pieces.row == line)
    ]
    firsts = pieces.first[pieces.row == line]
    out.append(_combine(rows, firsts, line=line, size=size, unique=unique))
  return candidate_lists.concatenate(out)


def best(whole: CandidateLists) -> list[Translation]:
  """Returns the first translation of each sentence."""
  first = candidate_lists.shorten(whole, 1)
  score, links, derivations = candidate_lists.decoded(first)
  values = translate.by_name(first.features, first.names)
  return [
    Translation(
      text=first.lines[row],
      score=float(score[row]),
      features=values[row],
      links=links[row],
      derivation=derivations[row],
    )
    for row in range(len(first))
  ]


def rerank(
  whole: CandidateLists,
  parts: Sequence[tuple[SparseRows, Sequence[str]]],
  weights: Mapping[str, float],
) -> CandidateLists:
  """Returns the translations with further features, by their score with them.

  Features without a weight are left out. Translations without any feature,
  those of empty sentences, get none. Ties stay as they were.

  Args:
    whole: N translations.
    parts: further features, each part N sparse vectors and their names.
    weights: by feature name.
  """
  real = np.diff(whole.features.offsets) > 0
  more = []
  for rows, names in parts:
    values = np.where(np.repeat(real, np.diff(rows.offsets)), rows.values, 0.0)
    rows = dataclasses.replace(rows, values=values)
    known = np.array([name in weights for name in names], bool)
    more.append(selection.select(rows, names, known))
  wide = candidate_lists.with_features(whole, more)
  vector = np.array([weights.get(name, 0.0) for name in wide.names])
  score = sparse.dot(wide.features, vector)
  scored = dataclasses.replace(wide, score=score)
  return candidate_lists.take(scored, np.lexsort((-score, whole.sentence)))


def _combine(
  parts: list[CandidateLists],
  firsts: np.ndarray,
  *,
  line: int,
  size: int,
  unique: bool,
) -> CandidateLists:
  """The best combinations of one list per piece."""
  score, lines, taken, links = [], [], [], []
  scores, part_links, derivations = zip(
    *map(candidate_lists.decoded, parts), strict=True
  )
  seen: set[str] = set()
  for total, ranks in _best_sums(list(scores)):
    if len(lines) == size:
      break
    chosen = [part.lines[k] for part, k in zip(parts, ranks, strict=True)]
    text = " ".join(one for one in chosen if one)
    if unique and text in seen:
      continue
    seen.add(text)
    lines.append(text)
    score.append(total)
    taken.append(ranks)
    chosen_rows, words = [], 0
    for rows, k, first, one in zip(
      part_links, ranks, firsts.tolist(), chosen, strict=True
    ):
      chosen_rows.append(rows[k] + np.array([first, words], np.int32))
      words += len(one.split(" ")) if one else 0
    links.append(np.concatenate(chosen_rows))
  every, names = candidate_lists.renumbered(parts)
  chosen = np.array(taken, np.int64).reshape(len(lines), len(parts))
  starts = np.cumsum([0] + [len(part) for part in parts[:-1]])
  return candidate_lists.from_rows(
    sentence=np.full(len(lines), line, np.int64),
    lines=lines,
    score=np.array(score),
    features=_summed(every, chosen + starts),
    names=names,
    links=Ragged(
      flat=np.concatenate(links),
      offsets=np.cumsum([0] + [len(one) for one in links]),
    ),
    derivations=[
      tuple(
        text
        for texts, k in zip(derivations, ranks, strict=True)
        for text in texts[k]
      )
      for ranks in taken
    ],
  )


def _summed(rows: SparseRows, chosen: np.ndarray) -> SparseRows:
  """Sums of P rows each, `chosen [N, P]`."""
  flat = sparse.select(rows, chosen.reshape(-1))
  return sparse.canonical(
    flat.ids, flat.values, flat.offsets[:: max(chosen.shape[1], 1)]
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
