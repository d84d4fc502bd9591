"""Statistics of searched sentences: ranks, fill, search errors, features."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.chart import search_report
from jaxmt.decode.chart.chart_layout import POSSIBLE
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.phrase.phrase_decoder import PhraseResult
from jaxmt.grammar.match.matching import ORDINARY
from jaxmt.inspection import derivation_views, phrase_views
from jaxmt.inspection.derivation_views import ComparedModels
from jaxmt.inspection.searched import TIE, Searched, SearchedBatch


def rank_rows(
  searched: Searched, good: Derivations, inside: np.ndarray
) -> list[dict[str, Any]]:
  """Returns, for each system, where good derivations stand in its beams.

  Args:
    searched: S sentences.
    good: a derivation of each, see `searched.good_derivations`.
    inside: the sentences to count, bool `[S]`.

  Returns:
    Rows of a table. "figure" of each has numbers to draw: ranks of the parts
    that are kept, lengths of spans whose part was lost, and of the span where
    each derivation lies furthest below; mean fill of cells by length.
  """
  lengths = np.diff(good.offsets)
  row = np.repeat(np.arange(len(lengths)), lengths)
  words = searched.words(good)
  have, some = inside & (lengths > 0), inside[row]
  out = []
  for name in searched.compared.names:
    ranks = searched.ranks(name, good)
    reached = ranks.found
    lost = np.bincount(row, ~reached, minlength=len(lengths)) > 0
    worst = []
    for sentence in np.flatnonzero(have).tolist():
      nodes = slice(*good.offsets[sentence : sentence + 2].tolist())
      gap = np.nan_to_num(ranks.gap[nodes], nan=-np.inf)
      if gap.max() > TIE:
        worst.append(int(words[nodes][gap.argmax()]))
    out.append(
      {
        "system": name,
        "sample": int(inside.sum()),
        "with a good derivation": int(have.sum()),
        "kept whole by the beam": int((have & ~lost).sum()),
        "parts lost %": _percent((~reached)[some]),
        "mean rank of parts kept": _mean(ranks.rank[some & reached]),
        "figure": {
          "ranks": ranks.rank[some & reached].tolist(),
          "lost": words[some & ~reached].tolist(),
          "violations": worst,
          "fill": beam_fill(searched.batches[name], np.flatnonzero(inside)),
        },
      }
    )
  return out


def _percent(flags: np.ndarray) -> float | None:
  return round(100 * float(flags.mean()), 2) if len(flags) else None


def _mean(values: np.ndarray) -> float | None:
  return round(float(values.mean()), 3) if len(values) else None


def beam_fill(
  batches: Sequence[SearchedBatch], rows: np.ndarray
) -> list[list[float]]:
  """Returns pairs of words in a span and mean hypotheses of its cells.

  Of stacks: pairs of covered words and mean hypotheses.

  Args:
    batches: a search.
    rows: the sentences to count.
  """
  spans, fills = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
  for batch in batches:
    result = batch.result
    if isinstance(result, PhraseResult):
      size, fill = phrase_views.stack_fills(result, rows).T
      spans.append(size)
      fills.append(fill)
      continue
    matches = result.matches
    some = np.isin(result.rows[matches.sentence], rows)
    some &= matches.category == ORDINARY
    spans.append((matches.end - matches.begin)[some])
    score = np.asarray(result.beams.score)[matches.place[some]]
    fills.append((score > POSSIBLE).sum(1))
  length, fill = np.concatenate(spans), np.concatenate(fills)
  total, count = np.bincount(length, fill), np.bincount(length)
  return [
    [size, round(float(total[size] / count[size]), 2)]
    for size in np.flatnonzero(count).tolist()
  ]


def beam_errors(
  compared: ComparedModels,
  rows: np.ndarray,
  *,
  sizes: Sequence[tuple[int, int]],
  configs: Mapping[str, DecodeConfig],
) -> list[dict[str, Any]]:
  """Returns search errors of several beams against the widest of them.

  Args:
    compared: the models.
    rows: the sentences to decode.
    sizes: pairs of beam and candidates, rising.
    configs: how each system decodes; the sizes of its search do not matter.
  """
  if len(sizes) < 2 or not len(rows):
    return []
  out = []
  for name in compared.names:
    model = compared.model(name)
    source = models.rescore_source(model, compared.source)
    report = search_report.wide_error_report(
      model,
      models.select_source(source, rows),
      sizes=sizes[:-1],
      wide=sizes[-1],
      config=configs[name],
    )
    for row in search_report.as_rows(report):
      out.append({"system": name, **row})
  return out


def proven_errors(
  compared: ComparedModels, known: Mapping[str, Derivations], name: str
) -> np.ndarray:
  """Returns which sentences a system is proven to search wrongly, bool `[N]`.

  That is, a derivation is known that it scores higher than its own.

  Args:
    compared: the models, with N sentences.
    known: derivations of them; those of the systems under their names.
    name: the system.
  """
  model = compared.model(name)
  source = models.rescore_source(model, compared.source)
  scores = derivation_views.score(model, source, known[name])
  out = np.zeros(len(scores), bool)
  for other, derivations in known.items():
    if other == name:
      continue
    exists = np.diff(derivations.offsets) > 0
    score = derivation_views.score(model, source, derivations)
    out |= exists & (score > scores + TIE)
  return out


def importance(searched: Searched) -> list[dict[str, Any]]:
  """Returns, for each system, how much each feature decides.

  That is its weight times its standard deviation among the translations of a
  sentence, the mean over sentences.
  """
  compared = searched.compared
  names = compared.models[0].feature_names
  place = {name: number for number, name in enumerate(names)}
  out = []
  for number, system in enumerate(compared.names):
    total, count = np.zeros(len(names)), 0
    for batch in searched.batches[system]:
      lists = batch.lists
      rows = lists.features
      column = np.array([place.get(name, -1) for name in lists.names], int)
      values = np.zeros((len(lists), len(names) + 1))
      row = np.repeat(np.arange(len(lists)), np.diff(rows.offsets))
      values[row, column[rows.ids]] = rows.values  # the last column: others
      for low, high in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
        if high - low > 1:
          total += values[low:high, :-1].std(0)
          count += 1
    value = total / max(count, 1) * compared.weights[number]
    order = np.argsort(-np.abs(value), kind="stable").tolist()
    rows = [
      {"name": names[one], "value": round(float(value[one]), 5)}
      for one in order
      if value[one]
    ]
    out.append({"system": system, "rows": rows})
  return out
