"""How training changes a sentence's derivations, the rules and the search.

Figure 1 of the paper: a derivation of the reference is useless if the beam
drops one of its parts. `ranks` returns, for every span of such a derivation,
how many competing hypotheses of the span have a better model score, under any
model. A part beyond the beam width is lost. So is one that the search does not
build, or merges into a better one of the same state.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import node_features
from jaxmt.decode.chart import decoder, search_report
from jaxmt.decode.chart.decoder import DecodeConfig, Result
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source
from jaxmt.grammar import estimate
from jaxmt.grammar import table as tables
from jaxmt.grammar.match.matching import GLUE, ORDINARY
from jaxmt.grammar.table import RuleTable
from jaxmt.train.reference_derivations import ReferenceDerivations


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ranks:
  """Where the parts of derivations stand in a search; N nodes.

  Attributes:
    rank: 1 + the hypotheses of the part's cell that score better, int64 `[N]`.
    competing: how many hypotheses the cell has, int64 `[N]`; 0 if the search
      has no such cell.
    gap: score of the cell's best minus that of the part, float64 `[N]`;
      negative if the part is better than all of them, nan without a cell.
    found: whether the search can have kept it, bool `[N]`: one hypothesis
      scores no better, and one no worse.
  """

  rank: np.ndarray
  competing: np.ndarray
  gap: np.ndarray
  found: np.ndarray

  def lost(self, beam: int) -> np.ndarray:
    """Parts that a beam of this width does not keep, bool `[N]`."""
    return ~self.found | (self.rank > beam)


def ranks(
  model: Model,
  source: Source,
  derivations: Derivations,
  *,
  config: DecodeConfig,
  tolerance: float = 1e-3,
) -> Ranks:
  """Ranks every part of derivations among the hypotheses of a plain search.

  Args:
    model: whose scores count.
    source: B sentences.
    derivations: one for each.
    config: how to search; its beam is how far ranks can be told.
    tolerance: smaller differences of scores are rounding.
  """
  searched = decoder.decode(model, source, config=config)
  return ranks_in(
    model,
    source,
    derivations,
    (result for results in searched for result in results),
    tolerance=tolerance,
  )


def ranks_in(
  model: Model,
  source: Source,
  derivations: Derivations,
  searched: Iterable[Result],
  *,
  tolerance: float = 1e-3,
) -> Ranks:
  """Ranks every part of derivations in a search that is done; see `ranks`.

  Args:
    model: whose scores count.
    source: B sentences.
    derivations: one for each.
    searched: the search of the B sentences.
    tolerance: smaller differences of scores are rounding.
  """
  scores = node_features.partial_scores(model, source, derivations)
  number = len(scores)
  rank, competing = np.ones(number, np.int64), np.zeros(number, np.int64)
  gap = np.full(number, np.nan)
  glue = node_features.is_glue(model, derivations.rule)
  for result in searched:
    cells = cells_by_span(result)
    for place, row in enumerate(result.rows.tolist()):
      for node in range(derivations.offsets[row], derivations.offsets[row + 1]):
        span = (derivations.begin[node], derivations.end[node])
        category = GLUE if glue[node] else ORDINARY
        cell = cells.get((place, *span, category))
        if cell is None:
          continue
        scores_of_cell = result.beams.score[cell]
        scores_of_cell = scores_of_cell[scores_of_cell > -1e29]
        if len(scores_of_cell):
          rank[node] = 1 + int(
            np.sum(scores_of_cell > scores[node] + tolerance)
          )
          competing[node] = len(scores_of_cell)
          gap[node] = scores_of_cell.max() - scores[node]
  reached = (rank <= competing) & (gap >= -tolerance)
  return Ranks(rank=rank, competing=competing, gap=gap, found=reached)


def cells_by_span(result: Result) -> dict[tuple[int, int, int, int], int]:
  """Chart cells by (sentence, begin, end, category)."""
  matches = result.matches
  keys = zip(
    matches.sentence.tolist(),
    matches.begin.tolist(),
    matches.end.tolist(),
    matches.category.tolist(),
    strict=True,
  )
  return dict(zip(keys, matches.place.tolist(), strict=True))


def story(
  model: Model,
  source: Source,
  row: int,
  wanted: Derivations,
  seen: dict[str, Ranks],
  *,
  beam: int,
) -> list[dict[str, Any]]:
  """One row for every rule of a sentence's derivation, short spans first.

  Args:
    model: names the rules.
    source: the sentences.
    row: which one.
    wanted: their derivations.
    seen: ranks under each model, by a name for it.
    beam: the width of decoding; parts beyond it are marked as lost.
  """
  nodes = range(wanted.offsets[row], wanted.offsets[row + 1])
  order = sorted(nodes, key=lambda n: (wanted.end[n] - wanted.begin[n], -n))
  size = len(model.table)
  base = source.ids.offsets[row]
  words = [
    source.words[number]
    for number in source.copies[base : source.ids.offsets[row + 1]].tolist()
  ]
  out = []
  for node in order:
    rule = int(wanted.rule[node])
    begin, end = int(wanted.begin[node]), int(wanted.end[node])
    out.append(
      {
        "span": f"{begin}-{end}",
        "source": " ".join(words[begin:end]),
        "rule": tables.rule_text(model.table, rule) if rule < size else "copy",
        **{name: _mark(one, node, beam) for name, one in seen.items()},
      }
    )
  return out


def _mark(one: Ranks, node: int, beam: int) -> str:
  rank, competing = int(one.rank[node]), int(one.competing[node])
  if rank > competing:
    return f"> {competing} (lost)"
  if not one.found[node]:
    return "not found (lost)"
  return f"{rank} of {competing}" + (" (lost)" if rank > beam else "")


def summary(
  near: ReferenceDerivations, seen: dict[str, Ranks], *, beam: int
) -> list[dict[str, Any]]:
  """Returns how often the beam keeps all of a derivation, for each model.

  Mean ranks are of the parts that the search has found.
  """
  derivations = near.derivations
  lengths = np.diff(derivations.offsets)
  row = np.repeat(np.arange(len(lengths)), lengths)
  out = []
  for name, one in seen.items():
    lost = one.lost(beam)
    some = np.bincount(row, lost, minlength=len(lengths)) > 0
    best = one.found & (one.rank == 1)
    out.append(
      {
        "model": name,
        "sentences": len(lengths),
        "reference reached": int(near.exact.sum()),
        "kept whole by the beam": int((~some & (lengths > 0)).sum()),
        "parts lost %": round(100 * float(lost.mean()), 2) if len(row) else 0.0,
        "mean rank": round(float(one.rank[one.found].mean()), 2)
        if one.found.any()
        else None,
        "at the best %": round(100 * float(best.mean()), 2)
        if len(row)
        else 0.0,
      }
    )
  return out


def moved_rules(
  table: RuleTable, before: np.ndarray, after: np.ndarray, *, number: int
) -> list[dict[str, Any]]:
  """Returns the rules that gained and lost most of P(r | source side).

  Changes are weighed with how often the source side was extracted.

  Args:
    table: R rules with counts.
    before: ln θ, `[R, 5]`.
    after: ln θ, `[R, 5]`.
    number: how many to list each way.
  """
  groups = estimate.group_rules(table)
  column = estimate.THETA.index("rule_given_source")
  old, new = np.exp(before[:, column]), np.exp(after[:, column])
  counts = np.where(groups.member, table.counts, 0.0)
  mass = np.bincount(groups.source, counts, minlength=groups.sizes[1])
  change = np.where(groups.member, (new - old) * mass[groups.source], 0.0)
  order = np.argsort(change, kind="stable")
  chosen = [*order[::-1][:number].tolist(), *order[:number][::-1].tolist()]
  return [
    {
      "rule": tables.rule_text(table, rule),
      "count": float(table.counts[rule]),
      "before": round(float(old[rule]), 4),
      "after": round(float(new[rule]), 4),
      "moved": round(float(change[rule]), 2),
    }
    for rule in chosen
    if change[rule]
  ]


def search_errors(
  models: dict[str, Model],
  sources: dict[str, Source],
  *,
  sizes: Sequence[tuple[int, int]],
  wide: tuple[int, int] | None = None,
  limit: int = 1 << 22,
) -> list[dict[str, Any]]:
  """Search errors of beam search, for each model.

  Args:
    models: by name.
    sources: the sentences for each of them.
    sizes: pairs of beam and candidates.
    wide: the pair of a wider search to compare with; None for exact search.
    limit: candidates a sentence may take in exact search.
  """
  out = []
  for name, model in models.items():
    if wide is None:
      report = search_report.search_error_report(
        model, sources[name], sizes=sizes, limit=limit
      )
    else:
      report = search_report.wide_error_report(
        model, sources[name], sizes=sizes, wide=wide
      )
    for beam, pop, errors in report:
      out.append(
        {
          "model": name,
          "beam": beam,
          "pop": pop,
          "sentences": errors.sentences,
          "errors %": round(100 * errors.errors, 2),
          "mean shortfall": round(errors.mean, 4),
          "worst": round(errors.worst, 4),
        }
      )
  return out
