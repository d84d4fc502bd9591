"""Derivations: from back pointers to trees, words, links and features.

Derivations of B sentences are columns over all their nodes, a sentence's nodes
in preorder with children in source order. The goal is not a node: the root is
the glue rule that covers the sentence.
"""

import dataclasses

import numpy as np

from jaxmt.decode.chart.chart_layout import POSSIBLE
from jaxmt.decode.model import Model
from jaxmt.decode.phrase import chains
from jaxmt.grammar.match.matching import Matches
from jaxmt.text.kernels import grown_rows, njit
from jaxmt.text.ragged import Ragged


@dataclasses.dataclass(frozen=True, kw_only=True)
class Derivations:
  """B derivations with N nodes in all; empty for an empty sentence.

  Attributes:
    offsets: sentence b's nodes are `offsets[b] : offsets[b + 1]`, `[B + 1]`.
    rule: rule of each node as in `Matches.rule`, int32 `[N]`.
    begin: first source word under each node, int32 `[N]`.
    end: one past its last, int32 `[N]`.
    child: child nodes (rows of these columns), -1 for none, int32 `[N, A]`.
    score: model score of each derivation, float32 `[B]`.
  """

  offsets: np.ndarray
  rule: np.ndarray
  begin: np.ndarray
  end: np.ndarray
  child: np.ndarray
  score: np.ndarray

  def __len__(self) -> int:
    return len(self.offsets) - 1


def best(matches: Matches, *, score, back, rank=None) -> Derivations:
  """Follows back pointers from each sentence's goal.

  Args:
    matches: what was matched.
    score: `Beams.score`.
    back: `Beams.back`.
    rank: which of the goal's hypotheses, int `[B]`; 0 if None.
  """
  root = matches.root
  rank = np.zeros(len(root), np.int32) if rank is None else np.asarray(rank)
  score = np.asarray(score)
  columns, offsets = _follow(
    (matches.offsets, matches.rule, matches.child),
    (matches.begin, matches.end, matches.place),
    np.asarray(back),
    (matches.goal, root, rank.astype(np.int32)),
    score[root, rank] > POSSIBLE,
  )
  return Derivations(
    offsets=offsets,
    rule=columns[:, 0].copy(),
    begin=columns[:, 1].copy(),
    end=columns[:, 2].copy(),
    child=columns[:, 3:].copy(),
    score=np.where(root > 0, score[root, rank], 0.0).astype(np.float32),
  )


@njit
def _follow(applications, cells, back, goals, exists):
  """Follows back pointers: `(columns of nodes, offsets of derivations)`.

  Args:
    applications: offsets by cell, rules, children.
    cells: first word, end, row in the chart.
    back: application and child ranks of hypotheses.
    goals: cell, row in the chart and rank of each sentence's goal.
    exists: whether that hypothesis does.
  """
  offsets, rule, child = applications
  begin, end, cell = cells
  goal, root, rank = goals
  arity = child.shape[1]
  columns = np.empty((256, 3 + arity), np.int32)
  rows = np.zeros(len(root) + 1, np.int64)
  stack = np.empty((64, 3), np.int32)  # matched cell, rank, 1 + place to note
  notes = np.empty((64, 2), np.int32)
  filled = 0
  for sentence in range(len(root)):
    top = 0
    if root[sentence] > 0 and exists[sentence]:
      # The goal's one application has the sentence's last glue cell as child.
      stack[0, 0] = child[offsets[goal[sentence]], 0]
      stack[0, 1] = back[root[sentence], rank[sentence], 1]
      notes[0, 0] = -1
      top = 1
    while top:
      top -= 1
      item, place = stack[top, 0], stack[top, 1]
      parent, slot = notes[top, 0], notes[top, 1]
      columns = grown_rows(columns, filled + 1)
      if parent >= 0:
        columns[parent, 3 + slot] = filled
      application = offsets[item] + back[cell[item], place, 0]
      columns[filled, 0] = rule[application]
      columns[filled, 1] = begin[item]
      columns[filled, 2] = end[item]
      for part in range(arity):
        columns[filled, 3 + part] = -1
      if top + arity > len(stack):
        stack = grown_rows(stack, 2 * len(stack))
        notes = grown_rows(notes, 2 * len(notes))
      for part in range(arity - 1, -1, -1):
        if child[application, part] >= 0:
          stack[top, 0] = child[application, part]
          stack[top, 1] = back[cell[item], place, 1 + part]
          notes[top, 0] = filled
          notes[top, 1] = part
          top += 1
      filled += 1
    rows[sentence + 1] = filled
  return columns[:filled], rows


@dataclasses.dataclass(frozen=True, kw_only=True)
class Yields:
  """What B derivations say.

  Attributes:
    words: target word ids, B rows; `V + c` is the c-th pass-through word, V
      being the size of the table's target vocabulary.
    links: (source position, target position) in B rows, int32 `[L, 2]`, sorted.
  """

  words: Ragged
  links: Ragged


def read_off(model: Model, derivations: Derivations) -> Yields:
  """Reads words and word links off derivations."""
  table = model.table
  if model.order is not None:
    said, linked = chains.read_off(
      model, derivations.offsets, derivations.rule, derivations.begin
    )
    return Yields(words=said, links=linked)
  words, word_offsets, links, link_offsets = _expand(
    derivations.offsets,
    derivations.rule,
    derivations.begin,
    derivations.end,
    derivations.child,
    (table.source.flat, table.source.offsets),
    (table.target.flat, table.target.offsets),
    (
      np.ascontiguousarray(table.links.flat, np.int16).reshape(-1, 2),
      table.links.offsets,
    ),
    len(table.target_words),
  )
  return Yields(
    words=Ragged(flat=words, offsets=word_offsets),
    links=Ragged(flat=links, offsets=link_offsets),
  )


@njit
def _sort_pairs(pairs, low, high):
  """Sorts some rows in place; they are few, and nearly sorted."""
  for last in range(low + 1, high):
    one, two = pairs[last, 0], pairs[last, 1]
    place = last
    while place > low and (
      pairs[place - 1, 0] > one
      or (pairs[place - 1, 0] == one and pairs[place - 1, 1] > two)
    ):
      pairs[place, 0], pairs[place, 1] = (
        pairs[place - 1, 0],
        pairs[place - 1, 1],
      )
      place -= 1
    pairs[place, 0], pairs[place, 1] = one, two


@njit
def _expand(offsets, rule, begin, end, child, source, target, links, size):
  nodes = len(rule)
  num_rules = len(source[1]) - 1
  batch = len(offsets) - 1
  word_offsets = np.zeros(batch + 1, np.int64)
  link_offsets = np.zeros(batch + 1, np.int64)
  # Room for all words and links.
  room, seams = 0, 0
  for node in range(nodes):
    if rule[node] < num_rules:
      room += target[1][rule[node] + 1] - target[1][rule[node]]
      seams += links[1][rule[node] + 1] - links[1][rule[node]]
    else:
      room += 1
      seams += 1
  words = np.empty(room, np.int32)
  place = np.empty(room, np.int32)  # target position of each rule symbol
  # Where the symbols of each node stand in `place`.
  first = np.zeros(nodes + 1, np.int64)
  for node in range(nodes):
    size_of = 1
    if rule[node] < num_rules:
      size_of = target[1][rule[node] + 1] - target[1][rule[node]]
    first[node + 1] = first[node] + size_of
  pairs = np.empty((seams, 2), np.int32)
  stack = np.empty((nodes + 1, 2), np.int64)
  spots = np.empty(64, np.int32)
  filled, linked = np.int64(0), np.int64(0)
  for sentence in range(batch):
    start = filled
    top = 0
    if offsets[sentence + 1] > offsets[sentence]:
      stack[0, 0], stack[0, 1] = offsets[sentence], 0
      top = 1
    # Walk through target sides: write words, go down at sites.
    while top:
      node, symbol = stack[top - 1, 0], stack[top - 1, 1]
      if symbol == first[node + 1] - first[node]:
        top -= 1
        continue
      stack[top - 1, 1] += 1
      place[first[node] + symbol] = filled - start
      if rule[node] >= num_rules:
        words[filled] = size + rule[node] - num_rules - 1
        filled += 1
        continue
      value = target[0][target[1][rule[node]] + symbol]
      if value >= 0:
        words[filled] = value
        filled += 1
      else:
        stack[top, 0], stack[top, 1] = child[node, -1 - value], 0
        top += 1
    # Links of each rule, from its places to those of the sentence.
    before = linked
    for node in range(offsets[sentence], offsets[sentence + 1]):
      if rule[node] >= num_rules:
        pairs[linked, 0] = begin[node]
        pairs[linked, 1] = place[first[node]]
        linked += 1
        continue
      low, high = source[1][rule[node]], source[1][rule[node] + 1]
      if high - low > len(spots):
        spots = np.empty(2 * (high - low), np.int32)
      position, site = begin[node], 0
      for symbol in range(high - low):
        spots[symbol] = position
        if source[0][low + symbol] >= 0:
          position += 1
        else:
          position = end[child[node, site]]
          site += 1
      for item in range(links[1][rule[node]], links[1][rule[node] + 1]):
        pairs[linked, 0] = spots[links[0][item, 0]]
        pairs[linked, 1] = place[first[node] + links[0][item, 1]]
        linked += 1
    _sort_pairs(pairs, before, linked)
    word_offsets[sentence + 1] = filled
    link_offsets[sentence + 1] = linked
  return words[:filled], word_offsets, pairs[:linked], link_offsets
