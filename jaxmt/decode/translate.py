"""Translating text: lines in, translations and their explanations out."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxmt.decode import (
  decoding,
  derivation,
  derivation_text,
  translation_forest,
)
from jaxmt.decode.chart import chart_layout
from jaxmt.decode.chart import exact as exact_decoder
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.decoding import AnyResult
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source, make_source, select_source
from jaxmt.decode.phrase.markup import Marks
from jaxmt.errors import InputError
from jaxmt.features import rule_templates, selection
from jaxmt.features.rule_templates import Applications, RuleTemplates
from jaxmt.features.sparse import SparseRows
from jaxmt.text.ragged import Ragged, row_offsets
from jaxmt.text.vocabulary import intern

_EXACT_STACK = 1 << 17  # most candidates of a stack of exact search


@dataclasses.dataclass(frozen=True, kw_only=True)
class Translation:
  """The translation of a piece of a line.

  Attributes:
    text: target words with spaces between.
    score: model score.
    features: values that are not 0 by name, dense and sparse ones.
    links: (source position, target position), int32 `[L, 2]`.
    derivation: see `derivation_text`: a tree for each piece, as a line or as a
      `Node`, or a line for each rule; empty if not asked for.
  """

  text: str
  score: float
  features: Mapping[str, float]
  links: np.ndarray
  derivation: tuple[Any, ...] = ()

  @property
  def tree(self) -> str:
    """The trees as one line."""
    return " ".join(map(str, self.derivation))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pieces:
  """Lines cut into pieces short enough to decode.

  Attributes:
    lines: the pieces.
    row: the line each comes from, int64 `[P]`.
    first: position of its first word in that line, int64 `[P]`.
    cut: the lines that were cut, rising.
  """

  lines: list[str]
  row: np.ndarray
  first: np.ndarray
  cut: tuple[int, ...]


def cut_lines(lines: Sequence[str], *, longest: int) -> Pieces:
  """Cuts lines of more than `longest` words into pieces of about equal size."""
  ids, words = intern(lines)
  lengths = ids.lengths
  count = np.maximum(-(-lengths // longest), 1)
  if (count == 1).all():
    rows = np.arange(len(lines))
    return Pieces(
      lines=list(lines), row=rows, first=np.zeros_like(rows), cut=()
    )
  out, row, first = [], [], []
  for number, line in enumerate(lines):
    if count[number] == 1:
      out.append(line)
      row.append(number)
      first.append(0)
      continue
    edges = np.linspace(0, lengths[number], count[number] + 1).astype(int)
    for begin, end in itertools.pairwise(edges):
      out.append(" ".join(words[k] for k in ids[number][begin:end]))
      row.append(number)
      first.append(int(begin))
  return Pieces(
    lines=out,
    row=np.array(row),
    first=np.array(first),
    cut=tuple(np.flatnonzero(count > 1).tolist()),
  )


def cut_spans(spans: Ragged, pieces: Pieces, source: Ragged) -> Ragged:
  """Gives each piece the constituents that lie within it, shifted."""
  rows = []
  for piece, row in enumerate(pieces.row):
    first, length = pieces.first[piece], source.lengths[piece]
    of_sentence = spans[row]
    inside = (of_sentence[:, 0] >= first) & (
      of_sentence[:, 1] <= first + length
    )
    shift = np.array([first, first, 0], np.int32)
    rows.append(of_sentence[inside] - shift)
  lengths = [len(row) for row in rows]
  return Ragged(
    flat=np.concatenate(rows) if rows else spans.flat[:0],
    offsets=row_offsets(lengths),
  )


def piece_source(
  model: Model,
  pieces: Pieces,
  spans: Ragged | None = None,
  marks: Marks | None = None,
) -> Source:
  """Returns the pieces as sentences.

  Args:
    model: the model.
    pieces: of some lines.
    spans: constituents of the whole lines.
    marks: markup of the whole lines.

  Raises:
    InputError: if lines with marks were cut.
  """
  source = make_source(model, pieces.lines)
  if marks is not None:
    if pieces.cut:
      raise InputError(f"line {pieces.cut[0] + 1} is too long to have markup")
    source = dataclasses.replace(source, marks=marks)
  if spans is None:
    return source
  return dataclasses.replace(source, spans=cut_spans(spans, pieces, source.ids))


def stream(
  model: Model,
  pieces: Pieces,
  *,
  config: DecodeConfig,
  mesh: Mesh | None = None,
  spans: Ragged | None = None,
  marks: Marks | None = None,
  derivations: str = "",
) -> Iterator[tuple[AnyResult, list[Translation]]]:
  """Translates pieces of text, longest first.

  Args:
    model: rules, language model, weights.
    pieces: what to translate.
    config: how.
    mesh: devices, or None for one.
    spans: constituents of the whole lines, for tree-to-string rules.
    marks: markup of the whole lines, for phrases.
    derivations: one of `derivation_text.FORMATS`, or empty for none.

  Yields:
    Parts of the text when they are done: the search's result, whose `rows` are
    pieces, and their translations.
  """
  source = piece_source(model, pieces, spans, marks)
  for parts in decoding.decode(model, source, config=config, mesh=mesh):
    for part in parts:
      read = explain(
        model,
        part.source,
        part.best(),
        text=derivations,
        shift=pieces.first[part.rows],
      )
      yield part, read


def translate(model: Model, pieces: Pieces, **options) -> list[Translation]:
  """Returns one translation per piece; see `stream` for the options."""
  out: list[Translation | None] = [None] * len(pieces.lines)
  for part, read in stream(model, pieces, **options):
    for row, one in zip(part.rows.tolist(), read, strict=True):
      out[row] = one
  return [one for one in out if one is not None]


def translate_exactly(
  model: Model,
  pieces: Pieces,
  *,
  spans: Ragged | None = None,
  limit: int,
  derivations: str = "",
) -> list[Translation | None]:
  """Translates without pruning; None where that takes over `limit` steps.

  Target sides per pattern are as many as the model has; see
  `exact_decoder.without_limits`.
  """
  source = piece_source(model, pieces, spans)
  if model.order is not None:
    return _exact_phrases(model, source, pieces, limit, derivations)
  out: list[Translation | None] = []
  for row in range(len(source)):
    one = select_source(source, np.array([row]))
    matches, result, _ = exact_decoder.search_exactly(model, one, limit=limit)
    best = derivation.best(
      matches, score=result.beams.score, back=result.beams.back
    )
    first = pieces.first[row : row + 1]
    read = explain(model, one, best, text=derivations, shift=first)
    out.append(read[0] if result.complete[0] else None)
  return out


def _exact_phrases(
  model: Model, source: Source, pieces: Pieces, limit: int, derivations: str
) -> list[Translation | None]:
  """The same of a phrase-based model; `limit` counts candidates of a stack."""
  from jaxmt.decode.phrase import (
    phrase_decoder as phrase_decoder,  # seldom needed
  )

  out: list[Translation | None] = []
  for row in range(len(source)):
    one = select_source(source, np.array([row]))
    result, complete = phrase_decoder.search_exactly(
      model, one, limit=min(limit, _EXACT_STACK)
    )
    first = pieces.first[row : row + 1]
    read = explain(model, one, result.best(), text=derivations, shift=first)
    out.append(read[0] if complete[0] else None)
  return out


def assemble(
  done: Sequence[Translation], pieces: Pieces, *, size: int
) -> list[Translation]:
  """Joins the translations of the pieces of each of `size` lines."""
  if not pieces.cut:
    return list(done)
  out: list[list[tuple[int, Translation]]] = [[] for _ in range(size)]
  for one, row, first in zip(
    done, pieces.row.tolist(), pieces.first.tolist(), strict=True
  ):
    out[row].append((first, one))
  return [_joined(parts) for parts in out]


def _joined(parts: list[tuple[int, Translation]]) -> Translation:
  if len(parts) == 1:
    return parts[0][1]
  links, words = [], 0
  for first, one in parts:
    links.append(one.links + np.array([first, words], np.int32))
    words += len(one.text.split(" ")) if one.text else 0
  return Translation(
    text=" ".join(one.text for _, one in parts if one.text),
    score=sum(one.score for _, one in parts),
    features=_added([one.features for _, one in parts]),
    links=np.concatenate(links),
    derivation=tuple(line for _, one in parts for line in one.derivation),
  )


def _added(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
  """Sums of features by name."""
  out: dict[str, float] = {}
  for part in parts:
    for name, value in part.items():
      out[name] = out.get(name, 0.0) + value
  return out


def explain(
  model: Model,
  source: Source,
  derived: Derivations,
  *,
  text: str = "",
  shift: np.ndarray | None = None,
) -> list[Translation]:
  """Reads everything off derivations.

  Args:
    model: the model.
    source: the sentences.
    derived: their derivations.
    text: how to write them, one of `derivation_text.FORMATS`; empty: not.
    shift: where each sentence begins in its line, int `[B]`.
  """
  yields = derivation.read_off(model, derived)
  texts = translation_forest.spell(model, source, yields.words)
  rows, names = feature_rows(model, source, derived, yields.words)
  values = by_name(rows, names)
  written: Sequence[Sequence[Any]] = [()] * len(texts)
  if text:
    written = derivation_text.write(
      model, source, derived, format=text, shift=shift
    )
  return [
    Translation(
      text=texts[row],
      score=float(derived.score[row]),
      features=values[row],
      links=yields.links[row],
      derivation=tuple(written[row]),
    )
    for row in range(len(derived))
  ]


def feature_rows(
  model: Model,
  source: Source,
  derived: Derivations,
  words: Ragged,
  sentence: np.ndarray | None = None,
) -> tuple[SparseRows, tuple[str, ...]]:
  """Returns all features of D derivations, dense and sparse ones.

  Args:
    model: the model.
    source: the sentences.
    derived: the derivations.
    words: what they say (`Yields.words`).
    sentence: which sentence each derives, int `[D]`; one after the other if
      None.

  Returns:
    D sparse vectors, and the names of their ids. Their products with the
    weights are the model scores, up to rounding.
  """
  values = translation_forest.derivation_features(model, source, derived, words)
  row, column = np.nonzero(values)
  counts = np.bincount(row, minlength=len(values))
  dense = SparseRows(
    ids=column.astype(np.int32),
    values=values[row, column],
    offsets=row_offsets(counts),
  )
  if model.templates is None:
    return dense, model.feature_names
  if sentence is None:
    sentence = np.arange(len(derived))
  sparse_values = _sparse_rows(model.templates, source, derived, sentence)
  return selection.join([(dense, model.feature_names), sparse_values])


def _sparse_rows(
  templates: RuleTemplates,
  source: Source,
  derived: Derivations,
  sentence: np.ndarray,
) -> tuple[SparseRows, tuple[str, ...]]:
  """The sparse features of derivations; equal applications are read once."""
  every = Applications(
    rule=derived.rule,
    begin=derived.begin,
    end=derived.end,
    sentence=np.repeat(sentence, np.diff(derived.offsets)),
  ).stacked()
  once, place = np.unique(every, axis=0, return_inverse=True)
  rows, names = rule_templates.extract(
    templates,
    chart_layout.make_text(templates, source),
    Applications(
      rule=once[:, 0], begin=once[:, 1], end=once[:, 2], sentence=once[:, 3]
    ),
  )
  members = Ragged(flat=place.reshape(-1), offsets=derived.offsets)
  return rule_templates.sum_rows(rows, members), names


def by_name(rows: SparseRows, names: Sequence[str]) -> list[dict[str, float]]:
  """Returns each row as values by name."""
  pairs = [
    (names[number], value)
    for number, value in zip(
      rows.ids.tolist(), rows.values.tolist(), strict=True
    )
  ]
  offsets = rows.offsets.tolist()
  return [dict(pairs[a:b]) for a, b in itertools.pairwise(offsets)]


def feature_text(values: Mapping[str, float]) -> str:
  """Writes the features that are not 0 as `name=value`."""
  return " ".join(
    f"{name}={value:.6g}" for name, value in values.items() if value
  )


def score_lines(translations: Sequence[Translation]) -> list[str]:
  """Writes `number ||| translation ||| features ||| score`."""
  return [
    f"{row} ||| {one.text} ||| {feature_text(one.features)} ||| {one.score:.6g}"
    for row, one in enumerate(translations)
  ]


def derivation_lines(
  translations: Sequence[Translation], *, format: str
) -> list[str]:
  """Writes a tree a line; or `number ||| rule`, a rule a line."""
  if format == "tree":
    return [one.tree for one in translations]
  return [
    f"{row} ||| {line}"
    for row, one in enumerate(translations)
    for line in one.derivation
  ]


def link_lines(translations: Sequence[Translation]) -> list[str]:
  """Writes word links in Pharaoh format, one line for each translation."""
  return [
    " ".join(f"{one}-{two}" for one, two in item.links.tolist())
    for item in translations
  ]
