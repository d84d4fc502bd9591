"""Searches over stacks as views: stacks, phrase lattices, ranks of prefixes.

Stack n holds hypotheses that cover n source words. A stack is shown as a cell
that covers the words 0 to n; it ranks its hypotheses by *totals*, their score
and the future cost of what they do not cover.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode import node_features
from jaxmt.decode.chart.chart_layout import POSSIBLE
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source
from jaxmt.decode.phrase import chains
from jaxmt.decode.phrase.phrase_decoder import PhraseResult
from jaxmt.hypergraph.forest import Forest
from jaxmt.report.views import CellView, ChartView, LatticeView
from jaxmt.train.explain import Ranks


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Hypothesis:
  """A hypothesis or a candidate of a stack.

  Attributes:
    text: its words.
    covered: bit mask of the source words it covers.
    total: its score and the future cost of the other words.
  """

  text: str
  covered: int
  total: float


def option_text(model: Model, source: Source, rule: int) -> str:
  """Returns the target words of an option, empty for none."""
  table, size = model.table, len(model.table)
  if rule > size:
    return source.words[rule - size - 1]
  words = table.target_words.words
  return " ".join(words[word] for word in table.target[rule].tolist())


def _future(future: np.ndarray, length: int, covered: int) -> float:
  """Future cost of the words that a mask leaves."""
  total, begin = 0.0, 0
  while begin < length:
    end = begin
    while end < length and not covered >> end & 1:
      end += 1
    total += float(future[begin, end]) if end > begin else 0.0
    begin = end + 1
  return total


def _stacks(
  model: Model, result: PhraseResult, place: int
) -> list[tuple[list[_Hypothesis], list[_Hypothesis], int]]:
  """Hypotheses, pruned candidates and number of candidates of each stack."""
  beams, chart = result.beams, result.chart
  length, width = int(chart.length[place]), chart.rule.shape[2]
  future = np.asarray(chart.future)[place]
  start = _Hypothesis(text="", covered=0, total=_future(future, length, 0))
  out = [([start], [], 1)]
  for stack in range(1, length + 1):
    values = np.asarray(beams.values)[place, stack, :, 0]
    heads = np.asarray(beams.head)[place, stack]
    survivors: dict[int, _Hypothesis] = {}
    fallen = []
    possible = np.flatnonzero(values > POSSIBLE).tolist()
    for item in possible:
      before, rank = np.asarray(beams.back)[place, stack, item].tolist()
      head = int(heads[item])
      if head in survivors:
        continue  # merged into a better one
      span, option = divmod(int(beams.option[place, stack, item]), width)
      begin, more = divmod(span, chart.longest)
      old = out[before][0][rank]
      rule = int(chart.rule[place, span, option])
      covered = old.covered | (((1 << (more + 1)) - 1) << begin)
      ahead = _future(future, length, covered)
      words = [old.text, option_text(model, result.source, rule)]
      new = _Hypothesis(
        text=" ".join(filter(None, words)),
        covered=covered,
        total=float(values[item]) + ahead,
      )
      if head >= 0:
        survivors[head] = new
      else:
        fallen.append(new)
    out.append(
      ([survivors[rank] for rank in sorted(survivors)], fallen, len(possible))
    )
  return out


def stack_view(
  model: Model,
  result: PhraseResult,
  place: int,
  *,
  hypotheses: int = 10,
  pruned: int = 3,
) -> ChartView:
  """Returns the stacks of one sentence.

  Args:
    model: the model of the search.
    result: a search.
    place: the sentence's place in it.
    hypotheses: how many to spell of each stack.
    pruned: how many candidates that fell out.
  """
  shown = lambda rows: [(one.text, one.total) for one in rows]
  return ChartView(
    beam=result.beams.score.shape[2],
    stacks=True,
    cells=[
      CellView(
        begin=0,
        end=stack,
        glue=True,
        fill=len(survivors),
        scored=scored,
        beam=shown(survivors[:hypotheses]),
        pruned=shown(sorted(fallen, key=lambda one: -one.total)[:pruned]),
      )
      for stack, (survivors, fallen, scored) in enumerate(
        _stacks(model, result, place)
      )
      if stack
    ],
  )


def lattice_view(
  model: Model,
  result: PhraseResult,
  forest: Forest,
  place: int,
  *,
  options: int = 60,
) -> LatticeView:
  """Returns the phrases that the search of one sentence has used.

  An edge is a phrase pair on a source span; its score is that of the best
  translation with it, less that of the best translation of all.

  Args:
    model: the model of the search.
    result: a search.
    forest: its phrase lattices, of `stack_forest.extract`.
    place: the sentence's place in it.
    options: how many phrases to show, the best ones.
  """
  source, size = result.source, len(model.table)
  words = source.ids.offsets[place : place + 2].tolist()
  names = [source.words[n] for n in source.copies[slice(*words)].tolist()]
  forest = forest[place]
  values = hypergraph.max_marginals(forest)
  rule, head = forest.edges.rule, forest.heads
  best: dict[tuple[int, int, int], float] = {}
  for edge in np.flatnonzero(rule != size).tolist():
    node = head[edge]
    key = (
      int(forest.nodes.begin[node]),
      int(forest.nodes.end[node]),
      int(rule[edge]),
    )
    best[key] = max(best.get(key, -np.inf), float(values[edge]))
  top = max(best.values(), default=0.0)
  chosen = sorted(best, key=lambda key: (-best[key], key))
  derivations = result.best()
  used = slice(*derivations.offsets[place : place + 2].tolist())
  path = set(
    zip(
      derivations.begin[used].tolist(),
      derivations.end[used].tolist(),
      derivations.rule[used].tolist(),
      strict=True,
    )
  )
  chosen = [
    *(key for key in chosen if key in path),
    *[key for key in chosen if key not in path][: max(options - len(path), 0)],
  ]
  return LatticeView(
    states=[str(number) for number in range(len(names) + 1)],
    edges=[
      (begin, end, option_text(model, source, number), best[key] - top)
      for key in chosen
      for begin, end, number in [key]
    ],
    best=[number for number, key in enumerate(chosen) if key in path],
    words=names,
    hidden=len(best) - len(chosen),
  )


def covered_words(derivations: Derivations) -> np.ndarray:
  """Returns how many words are covered after each phrase, int64 `[N]`."""
  nodes = chains.said_order(derivations.offsets)
  sizes = (derivations.end - derivations.begin).astype(np.int64)[nodes]
  total = np.cumsum(sizes)
  lengths = np.diff(derivations.offsets)
  first = np.repeat(derivations.offsets[:-1], lengths)
  before = np.concatenate([[0], total])[first]
  out = np.zeros(len(nodes), np.int64)
  out[nodes] = total - before
  return out


def ranks_in(
  model: Model,
  source: Source,
  derivations: Derivations,
  searched: Iterable[PhraseResult],
  *,
  tolerance: float,
) -> Ranks:
  """Ranks every prefix of chains in the stacks of a search that is done.

  Args:
    model: whose scores count.
    source: B sentences.
    derivations: a chain for each.
    searched: the search of the B sentences.
    tolerance: smaller differences of totals are rounding.
  """
  scores = node_features.partial_scores(model, source, derivations)
  number = len(scores)
  rank, competing = np.ones(number, np.int64), np.zeros(number, np.int64)
  gap = np.full(number, np.nan)
  stacks = covered_words(derivations)
  for result in searched:
    future = np.asarray(result.chart.future)
    for place, row in enumerate(result.rows.tolist()):
      low, high = derivations.offsets[row : row + 2].tolist()
      if low == high:
        continue
      length, covered = int(result.chart.length[place]), 0
      totals = [
        np.array([one.total for one in survivors])
        for survivors, *_ in _stacks(model, result, place)
      ]
      for node in range(high - 1, low - 1, -1):  # in the order they are said
        size = int(derivations.end[node] - derivations.begin[node])
        covered |= ((1 << size) - 1) << int(derivations.begin[node])
        scores_of_stack = totals[stacks[node]]
        if not len(scores_of_stack):
          continue
        score = scores[node] + _future(future[place], length, covered)
        rank[node] = 1 + int(np.sum(scores_of_stack > score + tolerance))
        competing[node] = len(scores_of_stack)
        gap[node] = scores_of_stack.max() - score
  reached = (rank <= competing) & (gap >= -tolerance)
  return Ranks(rank=rank, competing=competing, gap=gap, found=reached)


def stack_fills(result: PhraseResult, rows: np.ndarray) -> np.ndarray:
  """Returns pairs of covered words and hypotheses of stacks, int64 `[N, 2]`.

  Args:
    result: a search.
    rows: the sentences to count.
  """
  inside = np.isin(result.rows, rows)
  fill = (np.asarray(result.beams.score) > POSSIBLE).sum(2)
  place, stack = np.nonzero(
    inside[:, None]
    & (np.arange(fill.shape[1]) <= np.asarray(result.chart.length)[:, None])
  )
  pairs = np.stack([stack, fill[place, stack]], axis=1)
  return pairs[stack > 0]
