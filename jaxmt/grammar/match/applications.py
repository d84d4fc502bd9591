"""Rule applications of sentences under some weights.

Patterns are known (`source_trie.find_patterns`); weights say which of their
rules stay (`rank_rules`) and which applications a cell keeps (`select`). See
`matching` for what that means.

The kernels are written to be compiled fast, since that is much of a cold start:
loops instead of assignments to slices, a sort of our own, and counters that
begin as `np.int64(0)` (a literal 0 would have the functions they are passed to
compiled twice).
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from jaxmt.grammar.match import tree_kernel
from jaxmt.grammar.match.source_trie import LEXICAL, TREE, Trie
from jaxmt.text.kernels import (
  by_falling_value,
  clear_row,
  copy_row,
  grown,
  grown_rows,
  largest,
  njit,
  offer,
)

ORDINARY, GLUE, GOAL = 0, 1, 2
_NONE = -np.inf


@dataclasses.dataclass(frozen=True, kw_only=True)
class Patterns:
  """All that matching some sentences takes beside weights.

  Attributes:
    sentences: source word ids and offsets of B sentences.
    copies: which copied word each token is, int32.
    spans: constituents (begin, end, label) and their offsets.
    places: rows and offsets of `source_trie.find_patterns`.
    trie: keys and children of the trie.
    lhs: left-hand sides of the R rules, int32 `[R]`.
    glue: glue rules of arity 1, those of arity 2, and whether they join only
      where no rule covers all words.
    width: A.
    copy_all: whether known words are copied, too.
    joins: rules that join children where trees are matched exactly, int32.
  """

  sentences: tuple[np.ndarray, np.ndarray]
  copies: np.ndarray
  spans: tuple[np.ndarray, np.ndarray]
  places: tuple[np.ndarray, np.ndarray]
  trie: tuple[np.ndarray, np.ndarray]
  lhs: np.ndarray
  glue: tuple[np.ndarray, np.ndarray, bool]
  width: int
  copy_all: bool
  joins: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class Matches:
  """The applications of B sentences: C cells, N applications.

  Cells stand in an order in which children precede parents within a sentence.
  Rule `R` (one past the table) is the goal `GOAL -> S </s>`; rule `R + 1 + c`
  copies the c-th pass-through word.

  Attributes:
    sentence: sentence of each cell, int32 `[C]`.
    begin: first word of each cell, int32 `[C]`.
    end: one past its last word, int32 `[C]`.
    category: `ORDINARY`, `GLUE` or `GOAL`, int8 `[C]`.
    level: rises from children to parents of one category, int32 `[C]`.
    offsets: cell c's applications are `offsets[c] : offsets[c + 1]`, `[C + 1]`,
      by falling bound.
    rule: rule of each application, int32 `[N]`.
    child: child cells in source order, -1 beyond the arity, int32 `[N, A]`.
    goal: goal cell of each sentence, -1 for an empty sentence, int32 `[B]`.
    dropped: applications that fell to the per-cell limit, int64 `[B]`.
    place: row of each cell in a chart, from 1, int32 `[C]`; until a chart is
      laid out, in the order of the cells.
  """

  sentence: np.ndarray
  begin: np.ndarray
  end: np.ndarray
  category: np.ndarray
  level: np.ndarray
  offsets: np.ndarray
  rule: np.ndarray
  child: np.ndarray
  goal: np.ndarray
  dropped: np.ndarray
  place: np.ndarray

  def __len__(self) -> int:
    return len(self.sentence)

  @functools.cached_property
  def rules(self) -> np.ndarray:
    """The rules that are applied anywhere, int32, rising."""
    used = np.zeros(self.rule.max(initial=-1) + 1, bool)
    used[self.rule] = True
    return np.flatnonzero(used).astype(np.int32)

  @functools.cached_property
  def root(self) -> np.ndarray:
    """Row of each sentence's goal in a chart, 0 for an empty one, `[B]`."""
    root = np.zeros(len(self.goal), np.int32)
    root[self.goal >= 0] = self.place[self.goal[self.goal >= 0]]
    return root


def rank_rules(
  trie: Trie, scores: np.ndarray, *, limit: int
) -> tuple[np.ndarray, np.ndarray]:
  """Lists each node's rules, best first, at most `limit` per source pattern.

  Args:
    trie: N nodes.
    scores: static score of each rule, `[R]`.
    limit: target sides kept per pattern; those with different left-hand sides
      are limited apart.

  Returns:
    `(rules, offsets)`: node n's rules are `rules[offsets[n] : offsets[n + 1]]`,
    by falling score, ties by rule. int32, int64 `[N + 1]`.
  """
  rules = np.flatnonzero(trie.end >= 0)
  best_first = rules[np.argsort(-np.asarray(scores)[rules], kind="stable")]
  groups = int(trie.group.max(initial=-1)) + 1
  return _best_of_patterns(
    best_first, trie.group, trie.end, trie.num_nodes, groups, limit
  )


@njit
def _best_of_patterns(rules, group, end, num_nodes, num_groups, limit):
  """Deals rules, best first, out to their nodes; see `rank_rules`.

  Args:
    rules: best first, int64 `[M]`.
    group: of every rule of the table.
    end: node of every rule.
    num_nodes: N.
    num_groups: one more than the largest group.
    limit: rules of one group at most.
  """
  # Which rules stay, and how many each node has.
  taken = np.zeros(num_groups, np.int64)
  stays = np.zeros(len(rules), np.bool_)
  offsets = np.zeros(num_nodes + 1, np.int64)
  for item in range(len(rules)):
    rule = rules[item]
    if taken[group[rule]] < limit:
      taken[group[rule]] += 1
      stays[item] = True
      offsets[end[rule] + 1] += 1
  for node in range(num_nodes):
    offsets[node + 1] += offsets[node]
  # Rules go to their nodes in the order they come in.
  free = offsets[:-1].copy()
  out = np.empty(offsets[-1], np.int32)
  for item in range(len(rules)):
    if stays[item]:
      node = end[rules[item]]
      out[free[node]] = rules[item]
      free[node] += 1
  return out, offsets


def select(
  patterns: Patterns,
  ranked: tuple[np.ndarray, np.ndarray],
  scores: np.ndarray,
  *,
  limit: int,
) -> Matches:
  """Returns the best applications of every cell of some sentences.

  Args:
    patterns: of the sentences, see `matching.find_patterns`.
    ranked: rules of each trie node, best first, and their offsets.
    scores: static scores `[R + 1 + P]`: rules, the goal, P copied words.
    limit: applications of a cell.
  """
  cells, ends, rows, (goal, dropped) = _select(
    patterns.sentences,
    patterns.copies,
    patterns.spans,
    patterns.places,
    _Rules(
      (*patterns.trie, *ranked),
      patterns.lhs,
      np.ascontiguousarray(scores, np.float32),
      patterns.glue,
      patterns.copy_all,
    ),
    (limit, patterns.width),
    patterns.joins,
  )
  sentence, begin, end, category, level, _ = np.ascontiguousarray(cells.T)
  return Matches(
    sentence=sentence,
    begin=begin,
    end=end,
    category=category.astype(np.int8),
    level=level,
    offsets=ends.copy(),
    rule=rows[:, 0].copy(),
    child=rows[:, 1:].copy(),
    goal=goal,
    dropped=dropped,
    place=np.arange(1, len(sentence) + 1, dtype=np.int32),
  )


class _Rules(NamedTuple):
  """The grammar as kernels take it."""

  grammar: Any  # the trie and its ranked rules
  lhs: np.ndarray  # labels of the rules, int32 [R]
  scores: np.ndarray  # of rules, goal and copied words, float32 [R + 1 + P]
  glue: Any  # rules of arity 1, of 2; whether only where no rule covers all
  copy_all: bool  # whether words that rules translate are copied, too


@njit
def has_label(spans, item, links, label):
  """Whether one of the constituents of a span has the label.

  Args:
    spans: begin, end, label of the sentence's constituents.
    item: the first constituent of the span, -1 for none.
    links: the next one of the same span, -1 for none.
    label: the label.
  """
  while item >= 0:
    if spans[item, 2] == label:
      return True
    item = links[item]
  return False


@njit
def _ordinary(item, pattern, labels, inside, table, heap, items):
  """Offers every pattern application of one cell to its heap.

  Returns:
    `(kept, offered)`.
  """
  places, links, side = pattern
  spans, span_item, span_links = labels
  _, _, rules, offsets = table.grammar
  lhs, scores = table.lhs, table.scores
  size, offered = np.int64(0), np.int64(0)
  while item >= 0:
    total = np.float64(0.0)
    for site in range(places[item, 4]):
      total += inside[
        places[item, 5 + 2 * site] * side + places[item, 6 + 2 * site]
      ]
    if total > _NONE:
      tree = places[item, 3] == TREE
      node = places[item, 2]
      offered += offsets[node + 1] - offsets[node]
      for entry in range(offsets[node], offsets[node + 1]):
        rule = rules[entry]
        bound = total + np.float64(scores[rule])
        if size == len(heap) and bound <= heap[0]:
          break  # rules stand best first: none of the rest gets in
        if tree and not has_label(spans, span_item, span_links, lhs[rule]):
          offered -= 1
          continue
        size = offer(heap, items, size, bound, rule, item)
    item = links[item]
  return size, offered


@njit
def _is_known(item, places, links, offsets):
  """Whether a rule without sites matches one of the patterns of a span."""
  while item >= 0:
    node = places[item, 2]
    if places[item, 3] == LEXICAL and places[item, 4] == 0:
      return offsets[node + 1] > offsets[node]
    item = links[item]
  return False


@njit
def _glued(end, side, inside, glue_inside, glue, scores, heap, items):
  """Offers S[0, end) -> X[0, end) and S[0, i) X[i, end).

  Returns:
    `(kept, offered)`.
  """
  size, offered = np.int64(0), np.int64(0)
  for begin in range(end):
    total = inside[begin * side + end]
    if begin > 0:
      if glue[2] and inside[end] > _NONE:
        break  # a rule covers all the words
      total += glue_inside[begin]
    if total == _NONE:
      continue
    for rule in glue[0] if begin == 0 else glue[1]:
      bound = total + np.float64(scores[rule])
      size = offer(heap, items, size, bound, rule, np.int32(begin))
      offered += 1
  return size, offered


@njit
def _chains(rows, count, side):
  """Linked lists of rows by the pair in their first columns, in row order."""
  heads = np.full(side * side, -1, np.int32)
  links = np.full(max(count, 1), -1, np.int32)
  for item in range(count - 1, -1, -1):
    place = rows[item, 0] * side + rows[item, 1]
    links[item] = heads[place]
    heads[place] = item
  return heads, links


@njit
def _write_ordinary(out, filled, size, heap, items, places, side, cell_of):
  """Appends a cell's applications, best first; returns the new fill."""
  for rank in by_falling_value(heap, size):
    clear_row(out, filled)
    out[filled, 0] = items[rank, 0]
    item = items[rank, 1]
    if item >= 0:
      for site in range(places[item, 4]):
        out[filled, 1 + site] = cell_of[
          places[item, 5 + 2 * site] * side + places[item, 6 + 2 * site]
        ]
    filled += 1
  return filled


@njit
def _write_glue(out, filled, size, best, end, side, cell_of, glue_cell):
  """Appends a glue cell's applications, best first; returns the new fill."""
  heap, items = best
  for rank in by_falling_value(heap, size):
    clear_row(out, filled)
    split = items[rank, 1]
    out[filled, 0] = items[rank, 0]
    out[filled, 1 + (split > 0)] = cell_of[split * side + end]
    if split > 0:
      out[filled, 1] = glue_cell[split]
    filled += 1
  return filled


@njit
def _write_cell(cells, number, begin, end, category, filled):
  """Writes a cell whose applications end at row `filled`."""
  cells[number, 0], cells[number, 1] = begin, end
  cells[number, 2] = category
  cells[number, 3] = end - begin  # its level
  cells[number, 4] = filled


@njit
def _glue_cells(cells, out, spans, table, best, base):
  """Appends the glue cells of a sentence and its goal to the other cells.

  Args:
    cells: the ordinary cells, and how many there are.
    out: their applications, and how many there are.
    spans: by span, the best score inside and the cell; their side.
    table: the rules.
    best: heap and items, room for the applications of a cell.
    base: the number of the first cell.

  Returns:
    `(cells, applications, dropped)`.
  """
  (rows, num_cells), (lines, filled) = cells, out
  inside, cell_of, side = spans
  heap, items = best
  glue_inside = np.full(side, _NONE, np.float64)
  glue_cell = np.full(side, -1, np.int32)
  dropped = np.int64(0)
  # Glue cells: the words up to `end`, cut at every place.
  for end in range(1, side):
    rows = grown_rows(rows, num_cells + 2)
    lines = grown_rows(lines, filled + len(heap) + 1)
    size, offered = _glued(
      end, side, inside, glue_inside, table.glue, table.scores, heap, items
    )
    dropped += offered - size
    glue_inside[end] = largest(heap, size)
    glue_cell[end] = base + num_cells
    filled = _write_glue(
      lines, filled, size, best, end, side, cell_of, glue_cell
    )
    _write_cell(rows, num_cells, 0, end, GLUE, filled)
    num_cells += 1
  # The goal: the glue cell of the whole sentence.
  clear_row(lines, filled)
  lines[filled, 0], lines[filled, 1] = len(table.lhs), glue_cell[side - 1]
  filled += 1
  _write_cell(rows, num_cells, 0, side - 1, GOAL, filled)
  num_cells += 1
  return rows[:num_cells], lines[:filled], dropped


@njit
def _sentence(text, copies, spans, places, table, limits, base):
  """Returns one sentence's cells and applications.

  A span (begin, end) is number `begin * side + end`.

  Args:
    text: word ids.
    copies: which copied word each token is.
    spans: constituents: begin, end, label.
    places: pattern matches, see `source_trie.find_patterns`.
    table: the rules.
    limits: most applications of a cell, most sites.
    base: the number of the first cell.

  Returns:
    `(cells, applications, dropped)`: begin, end, category, level and end of
    the applications of each cell; rule and cells of the sites of each
    application; how many applications did not fit.
  """
  limit, width = limits
  length = len(text)
  side = length + 1
  # Pattern matches and constituents, chained by their span.
  heads, links = _chains(places, len(places), side)
  span_heads, span_links = _chains(spans, len(spans), side)
  # By span: the best score inside, and the cell.
  inside = np.full(side * side, _NONE, np.float64)
  cell_of = np.full(side * side, -1, np.int32)
  # The applications of the cell at hand, and all cells and applications.
  heap = np.empty(limit, np.float64)
  items = np.empty((limit, 2), np.int32)
  cells = np.empty((64, 5), np.int32)  # begin, end, category, level, filled
  out = np.empty((4096, 1 + width), np.int32)
  num_cells, filled, dropped = np.int64(0), np.int64(0), np.int64(0)
  # Ordinary cells, short spans first.
  for words in range(1, length + 1):
    for begin in range(length - words + 1):
      # Rules whose patterns match the span, best first.
      place = begin * side + begin + words
      size, offered = _ordinary(
        heads[place],
        (places, links, side),
        (spans, span_heads[place], span_links),
        inside,
        table,
        heap,
        items,
      )
      # A single word that no rule translates is copied.
      if words == 1:
        known = _is_known(heads[place], places, links, table.grammar[3])
        if table.copy_all or not known:
          rule = len(table.lhs) + 1 + copies[begin]
          bound = np.float64(table.scores[rule])
          size = offer(heap, items, size, bound, np.int32(rule), np.int32(-1))
          offered += 1
      if size == 0:
        continue  # no cell
      dropped += offered - size
      inside[place] = largest(heap, size)
      out = grown_rows(out, filled + limit)
      filled = _write_ordinary(
        out, filled, size, heap, items, places, side, cell_of
      )
      cells = grown_rows(cells, num_cells + 1)
      _write_cell(cells, num_cells, begin, begin + words, ORDINARY, filled)
      cell_of[place] = base + num_cells
      num_cells += 1
  cells, out, more = _glue_cells(
    (cells, num_cells),
    (out, filled),
    (inside, cell_of, side),
    table,
    (heap, items),
    base,
  )
  return cells, out, dropped + more


@njit
def _select(sentences, copies, all_spans, places, table, limits, joins):
  """Returns the cells and applications of a batch; see `select`.

  With rules `joins` (`tree_kernel.match_tree`) sentences with a tree are
  matched node by node.
  """
  # What the batch has, and room for cells and applications.
  words, offsets = sentences
  spans, span_offsets = all_spans
  pattern_rows, pattern_offsets = places
  batch = len(offsets) - 1
  goal = np.full(batch, -1, np.int32)
  dropped = np.zeros(batch, np.int64)
  all_cells = np.empty((1024, 6), np.int32)
  ends = np.zeros(1025, np.int64)
  out = np.empty((8192, 1 + limits[1]), np.int32)
  num_cells, filled = np.int64(0), np.int64(0)
  for sentence in range(batch):
    if offsets[sentence + 1] == offsets[sentence]:
      continue
    # The cells of one sentence, by its tree or by spans.
    text = words[offsets[sentence] : offsets[sentence + 1]]
    copied = copies[offsets[sentence] : offsets[sentence + 1]]
    nodes = spans[span_offsets[sentence] : span_offsets[sentence + 1]]
    if len(joins) and len(nodes):
      cells, rows, lost = tree_kernel.match_tree(
        text,
        copied,
        nodes,
        table.grammar,
        table.scores,
        (len(table.lhs), table.glue[0], joins),
        limits,
        num_cells,
      )
    else:
      cells, rows, lost = _sentence(
        text,
        copied,
        nodes,
        pattern_rows[pattern_offsets[sentence] : pattern_offsets[sentence + 1]],
        table,
        limits,
        num_cells,
      )
    # Append them to those of the sentences before it.
    after = num_cells + len(cells)
    all_cells = grown_rows(all_cells, after)
    ends = grown(ends, after + 1)
    out = grown_rows(out, filled + len(rows))
    for cell in range(len(cells)):
      all_cells[num_cells + cell, 0] = sentence
      for column in range(5):
        all_cells[num_cells + cell, 1 + column] = cells[cell, column]
      ends[num_cells + cell + 1] = filled + cells[cell, 4]
    for row in range(len(rows)):
      copy_row(out, filled + row, rows, row)
    filled += len(rows)
    dropped[sentence] = lost
    goal[sentence] = after - 1
    num_cells = after
  return (
    all_cells[:num_cells],
    ends[: num_cells + 1],
    out[:filled],
    (goal, dropped),
  )
