"""Charts of a search as views: what every cell kept, and what fell out."""

import numpy as np

from jaxmt.decode.chart.chart_layout import POSSIBLE
from jaxmt.decode.chart.decoder import Result
from jaxmt.decode.model import Model
from jaxmt.grammar.match.matching import GLUE, GOAL
from jaxmt.report.views import CellView, ChartView


def chart_view(
  model: Model,
  result: Result,
  place: int,
  *,
  hypotheses: int = 10,
  pruned: int = 3,
) -> ChartView:
  """Returns the chart of one sentence.

  Args:
    model: the model of the search.
    result: a search; what was pruned is known if it was run with
      `forest=True`.
    place: the sentence's place in it.
    hypotheses: how many to spell of each cell.
    pruned: how many candidates that fell out.
  """
  matches, beams = result.matches, result.beams
  own_cells = np.flatnonzero(matches.sentence == place)
  own_cells = own_cells[matches.category[own_cells] != GOAL]
  spelling = _Spelling(model, result, own_cells)
  candidates = beams.candidates
  cells = []
  for item in own_cells.tolist():
    row = int(matches.place[item])
    score = beams.score[row]
    fill = int(np.sum(score > POSSIBLE))
    lost: list[tuple[str, float]] = []
    scored = fill
    if candidates is not None:
      values = candidates.score[row]
      scored = int(np.sum(values > POSSIBLE))
      fell = np.flatnonzero((candidates.head[row] < 0) & (values > POSSIBLE))
      fell = fell[np.argsort(-values[fell], kind="stable")][:pruned]
      lost = [
        (
          spelling.candidate(
            item, candidates.application[row, one], candidates.ranks[row, one]
          ),
          float(values[one]),
        )
        for one in fell.tolist()
      ]
    cells.append(
      CellView(
        begin=int(matches.begin[item]),
        end=int(matches.end[item]),
        glue=bool(matches.category[item] == GLUE),
        fill=fill,
        scored=scored,
        beam=[
          (spelling.text(item, rank), float(score[rank]))
          for rank in range(min(fill, hypotheses))
        ],
        pruned=lost,
      )
    )
  return ChartView(beam=beams.score.shape[1], cells=cells)


class _Spelling:
  """Spells the hypotheses of a sentence's cells, children first."""

  def __init__(self, model: Model, result: Result, cells: np.ndarray):
    self._model = model
    self._result = result
    self._texts: dict[tuple[int, int], str] = {}
    # Cells stand children first, so texts of children are there when needed.
    beams, place = result.beams, result.matches.place
    for item in cells.tolist():
      row = int(place[item])
      fill = int(np.sum(beams.score[row] > POSSIBLE))
      for rank, back in enumerate(beams.back[row, :fill].tolist()):
        self._texts[item, rank] = self.candidate(item, back[0], back[1:])

  def text(self, item: int, rank: int) -> str:
    """Returns the words of a hypothesis of a matched cell."""
    return self._texts[item, rank]

  def candidate(self, item: int, application, ranks) -> str:
    """Returns the words of an application with children of some ranks."""
    matches, table = self._result.matches, self._model.table
    number = int(matches.offsets[item]) + int(application)
    rule, size = int(matches.rule[number]), len(table)
    if rule > size:
      return self._result.source.words[rule - size - 1]
    words = []
    for symbol in table.target[rule].tolist():
      if symbol >= 0:
        words.append(table.target_words.words[symbol])
      else:
        child = int(matches.child[number, -1 - symbol])
        below = self._texts.get((child, int(ranks[-1 - symbol])), "")
        if below:
          words.append(below)
    return " ".join(words)
