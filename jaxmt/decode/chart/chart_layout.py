"""The layout of a chart on the device: cells in processing order, padded.

Cells are numbered so that children precede parents and equally long spans of
all sentences stand together (a *level*); within a level the cells with the
most applications come first. The search walks over *tiles*, runs of `tile`
cells of one level. A tile that reaches into the next level writes wrong values
there, which the next tiles overwrite. So levels need no padding between them.

Cell 0 is the *null cell*: its one hypothesis is empty and costs nothing. It
stands in for children beyond an application's arity.

Static scores are those of the rules. `score_chart` adds what depends on span or
sentence: Word-Edges, and the features that `features.local_features` describes.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxmt.decode.model import Model, Source
from jaxmt.features import feature_keys, rule_templates
from jaxmt.features.rule_templates import Applications, RuleTemplates, Text
from jaxmt.features.stateful import RuleColumns
from jaxmt.grammar.match.matching import GLUE, GOAL, Matches
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, bucket

NONE = np.float32(-1e30)  # finite, so that sums of several stay numbers
POSSIBLE = np.float32(-1e29)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Chart:
  """C cells with up to E applications of arity up to A, B sentences.

  Attributes:
    rule: row of each application in the local rule columns, int32 `[C, E]`.
    child: child cells in source order, 0 for none, int32 `[C, E, A]`.
    static: static scores, `NONE` where there is no application, `[C, E]`.
    tile_start: first cell of each tile, int32 `[G]`.
    tile_width: which of the search's widths a tile needs, int32 `[G]`.
    num_tiles: tiles in use, int32 scalar.
    slots: what stands in each place of the target sides of the L local rules,
      int32 `[L, 2A + 1]`.
    inputs: for each stateful feature, what it needs of the local rules: a tree
      of arrays with first axis L.
    sentence: sentence of each cell, int32 `[C]`.
    root: goal cell of each sentence, 0 for an empty one, int32 `[B]`.
    first_goal: the first goal cell; the rest are goal cells too, int32 scalar.
  """

  rule: jax.Array | np.ndarray
  child: jax.Array | np.ndarray
  static: jax.Array | np.ndarray
  tile_start: jax.Array | np.ndarray
  tile_width: jax.Array | np.ndarray
  num_tiles: jax.Array | np.ndarray
  slots: jax.Array | np.ndarray
  inputs: tuple[Any, ...]
  sentence: jax.Array | np.ndarray
  root: jax.Array | np.ndarray
  first_goal: jax.Array | np.ndarray


def build_chart(
  matches: Matches,
  *,
  rules: RuleColumns,
  copies: RuleColumns,
  scores: np.ndarray,
  tile: int,
  widths: tuple[int, ...],
  sizes: tuple[int, int, int] | None = None,
  sentences: int | None = None,
) -> tuple[Chart, Matches]:
  """Lays out matched applications for the search.

  Args:
    matches: cells and applications of B sentences; at most `widths[-1]` per
      cell.
    rules: what the search knows of the table's rules and the goal.
    copies: and of the P pass-through words, which follow them.
    scores: static scores of all of them, float32 `[R + 1 + P]`.
    tile: cells per tile.
    widths: applications per cell the search is compiled for, rising.
    sizes: padded numbers of (cells, tiles, local rules); the smallest buckets
      if None.
    sentences: padded number of sentences; B if None.

  Returns:
    The chart, and the matches with the rows of their cells in it.

  Raises:
    ValueError: if the sizes given do not suffice.
  """
  counts = np.diff(matches.offsets)
  if counts.max(initial=0) > widths[-1]:
    raise ValueError(f"{counts.max()} applications in a cell of {widths[-1]}")
  order, place = _number_cells(matches, counts)
  starts, width = _tiles(_level(matches)[order], counts[order], tile, widths)
  local = matches.rules
  matches = dataclasses.replace(matches, place=place)
  mark = np.zeros(len(scores), np.int32)
  mark[local] = np.arange(len(local), dtype=np.int32)
  needed = (len(matches) + 1 + tile, len(starts), len(local))
  if sizes is None:
    sizes = (bucket(needed[0]), bucket(needed[1]), bucket(needed[2]))
  if any(have < need for have, need in zip(sizes, needed, strict=True)):
    raise ValueError(f"a chart of sizes {needed} does not fit {sizes}")
  listed, copied = np.split(local, [np.searchsorted(local, len(rules.score))])
  copied = copied - len(rules.score)
  take = lambda one, two, fill: _padded(
    np.concatenate([one[listed], two[copied]]), sizes[2], 0, fill
  )
  return (
    Chart(
      **_applications(matches, mark, scores[local], sizes[0], widths[-1]),
      tile_start=_padded(starts, sizes[1], 0, 0),
      tile_width=_padded(width, sizes[1], 0, 0),
      num_tiles=np.array(len(starts), np.int32),
      slots=take(rules.slots, copies.slots, -1),
      inputs=tuple(
        jax.tree.map(
          lambda one, two: take(one, two, 0), mine.arrays, copy.arrays
        )
        for mine, copy in zip(rules.inputs, copies.inputs, strict=True)
      ),
      sentence=_padded(matches.sentence[order], sizes[0], 1, 0),
      root=_padded(matches.root, sentences or len(matches.goal), 0, 0),
      first_goal=np.array(1 + np.sum(matches.category != GOAL), np.int32),
    ),
    matches,
  )


def needed_sizes(matches: Matches, *, tile: int) -> tuple[int, int, int]:
  """Returns the least numbers of cells, tiles and local rules of a chart."""
  _, counts = np.unique(_level(matches), return_counts=True)
  return (
    len(matches) + 1 + tile,
    int(np.sum(-(-counts // tile))),
    len(matches.rules),
  )


def _level(matches: Matches) -> np.ndarray:
  """Processing level of each cell: ordinary ones, then glue, then goals."""
  level = matches.level.astype(np.int64)
  level += (matches.category == GLUE) * (1 << 30)
  level += (matches.category == GOAL) * (1 << 31)
  return level


def _number_cells(matches: Matches, counts: np.ndarray):
  """`(order, place)`: matched cells in processing order; chart row of each."""
  order = np.lexsort((-counts, _level(matches))).astype(np.int32)
  place = np.empty(len(order), np.int32)
  place[order] = np.arange(1, len(order) + 1, dtype=np.int32)
  return order, place


def _tiles(level, counts, tile, widths):
  """First cell and width class of each tile."""
  change = np.flatnonzero(np.diff(level)) + 1
  begins = np.concatenate([[0], change]) if len(level) else change
  ends = np.append(change, len(level)) if len(level) else change
  starts = [np.arange(b, e, tile) for b, e in zip(begins, ends, strict=True)]
  starts = np.concatenate(starts) if starts else np.zeros(0, np.int64)
  width = np.searchsorted(widths, counts[starts]) if len(starts) else starts
  return (starts + 1).astype(np.int32), width.astype(np.int32)


def _padded(rows, size, offset, fill):
  """`rows` from `offset` on in an array of `size` rows of `fill`."""
  out = np.full((size, *rows.shape[1:]), fill, _device_type(rows.dtype))
  out[offset : offset + len(rows)] = rows
  return out


def _device_type(dtype: np.dtype) -> type:
  """float32 for floating point numbers, int32 for all others."""
  return np.float32 if np.issubdtype(dtype, np.floating) else np.int32


def _applications(matches, mark, static_of, size, width):
  """The padded application columns of `Chart`."""
  arity = matches.child.shape[1]
  rule = np.zeros((size, width), np.int32)
  child = np.zeros((size, width, arity), np.int32)
  static = np.full((size, width), NONE, np.float32)
  _spread(
    matches.offsets,
    matches.rule,
    matches.child,
    matches.place,
    mark,
    static_of,
    (rule, child, static),
  )
  return {"rule": rule, "child": child, "static": static}


@njit
def _spread(offsets, rules, children, cell, mark, static_of, out):
  rule, child, static = out
  for item in range(len(cell)):
    row = cell[item]
    for number in range(offsets[item], offsets[item + 1]):
      column = number - offsets[item]
      local = mark[rules[number]]
      rule[row, column] = local
      static[row, column] = static_of[local]
      for part in range(children.shape[1]):
        if children[number, part] >= 0:
          child[row, column, part] = cell[children[number, part]]


def need_sentences(model: Model) -> bool:
  """Whether the model has features that depend on span or sentence."""
  return model.templates is not None and model.templates.need_sentences


def make_text(templates: RuleTemplates, source: Source) -> Text:
  """Returns the sentences as the templates read them."""
  tokens = Ragged(flat=source.copies, offsets=source.ids.offsets)
  return rule_templates.make_text(templates, tokens, source.words)


def of_matches(matches: Matches) -> Applications:
  """Returns the N applications of a chart."""
  counts = np.diff(matches.offsets)
  spread = lambda column: np.repeat(column, counts)
  return Applications(
    rule=matches.rule,
    begin=spread(matches.begin),
    end=spread(matches.end),
    sentence=spread(matches.sentence),
  )


def score_chart(
  model: Model, source: Source, matches: Matches, chart: Chart
) -> Chart:
  """Returns the chart with these scores added to its static scores.

  Which applications a cell has was decided before, without them.

  Args:
    model: rules and weights.
    source: the chart's sentences.
    matches: its applications, as `build_chart` returns them.
    chart: the chart.
  """
  if model.templates is None or not need_sentences(model):
    return chart
  extra = rule_templates.application_scores(
    model.templates,
    make_text(model.templates, source),
    of_matches(matches),
    feature_keys.make_table(model.weights),
  )
  counts = np.diff(matches.offsets)
  row = np.repeat(matches.place, counts)
  column = np.arange(len(row)) - np.repeat(matches.offsets[:-1], counts)
  static = np.array(chart.static)
  static[row, column] += extra.astype(np.float32)
  return dataclasses.replace(chart, static=static)
