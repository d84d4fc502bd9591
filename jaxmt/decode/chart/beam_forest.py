"""Forests of a chart search: the hyperedges that survived in the beams.

A node is a hypothesis: a cell, a label and a language model state. Its edges
are all candidates that became it or were merged into it, so the forest holds
every derivation the beam represents, not just the best of each state. What the
stateful features add at an edge depends on the states of its tails only.
Derivations therefore score as sums over their edges. The root is one node for
all hypotheses of the goal cell.
"""

from typing import NamedTuple

import numpy as np

from jaxmt.decode.chart import search
from jaxmt.decode.chart.chart_layout import POSSIBLE
from jaxmt.decode.chart.decoder import Result
from jaxmt.decode.model import Model, rule_column
from jaxmt.decode.translation_forest import RuleUses, Spans
from jaxmt.grammar.match.matching import GOAL
from jaxmt.hypergraph.forest import Forest
from jaxmt.text.kernels import njit

_TIE = np.float32(search.TIE)


def extract(model: Model, result: Result) -> Forest:
  """Returns the forests of a search that was run with `forest=True`.

  Raises:
    ValueError: if the search kept no candidates.
  """
  candidates = result.beams.candidates
  if candidates is None:
    raise ValueError("search with SearchConfig(forest=True) to get forests")
  matches = result.matches
  plain = candidates.augmented is None
  cells = _Cells(
    place=matches.place,
    offsets=matches.offsets,
    rule=matches.rule,
    child=matches.child,
    begin=matches.begin,
    end=matches.end,
    sentence=matches.sentence,
  )
  searched = _HypothesisColumns(
    application=np.asarray(candidates.application),
    ranks=np.asarray(candidates.ranks),
    head=np.asarray(candidates.head),
    score=np.asarray(candidates.score),
    gain=np.asarray(candidates.gain),
    augmented=np.asarray(candidates.score if plain else candidates.augmented),
    best=np.asarray(result.beams.score),
    best_augmented=np.asarray(
      result.beams.score if plain else result.beams.augmented
    ),
  )
  nodes, edges, values, node_offsets, edge_offsets = _extract(
    cells, searched, matches.root, len(result.rows)
  )
  rule, tails = edges[:, 0].copy(), edges[:, 1:].copy()
  column = lambda pick: rule_column(model, result.source, rule, pick)
  label = column(lambda c: c.label)
  first = edge_offsets[:-1]
  node_label = label[first] if len(rule) else np.zeros(0, np.int32)
  site = column(lambda c: c.site)
  run = column(lambda c: c.inputs[0].values[:, 0])
  filled = (tails >= 0) & (site >= 0)
  same = filled & (node_label[np.maximum(tails, 0)] == site)
  return Forest(
    node_offsets=node_offsets,
    edge_offsets=edge_offsets,
    tails=tails,
    score=values[:, 0].copy(),
    nodes=Spans(
      begin=nodes[:, 0].copy(),
      end=nodes[:, 1].copy(),
      label=node_label,
      rank=nodes[:, 2].copy(),
    ),
    edges=RuleUses(
      rule=rule,
      lm=values[:, 1] + run,
      matched=same.sum(1).astype(np.int32),
      mismatched=(filled & ~same).sum(1).astype(np.int32),
      augmented=None if plain else values[:, 2].copy(),
    ),
  )


def hypotheses(model: Model, result: Result) -> tuple[Forest, np.ndarray]:
  """Returns every hypothesis of every beam with its best derivation.

  Unlike `extract`, hypotheses that no goal uses are there too, and each node
  has one edge: the candidate that it became. `Spans.rank` is the place in the
  beam. A sentence's root is its best goal hypothesis. What the language model
  says of edges is not annotated: it follows from the strings.

  Args:
    model: rules.
    result: a search, with `forest=True` or without.

  Returns:
    `(forest, category)`: N nodes and N edges; category as in `Matches`, int8
    `[N]`.
  """
  matches = result.matches
  nodes, rule, tails, scores, node_offsets = _hypotheses(
    (matches.offsets, matches.rule, matches.child),
    (matches.begin, matches.end, matches.sentence, matches.category),
    matches.place,
    np.asarray(result.beams.score),
    np.asarray(result.beams.back),
    len(result.rows),
  )
  pick = lambda read: rule_column(model, result.source, rule, read)
  label = pick(lambda c: c.label)
  site = pick(lambda c: c.site)
  filled = (tails >= 0) & (site >= 0)
  same = filled & (label[np.maximum(tails, 0)] == site)
  forest = Forest(
    node_offsets=node_offsets,
    edge_offsets=np.arange(len(rule) + 1, dtype=np.int64),
    tails=tails,
    score=scores,
    nodes=Spans(
      begin=nodes[:, 0].copy(),
      end=nodes[:, 1].copy(),
      label=label,
      rank=nodes[:, 2].copy(),
    ),
    edges=RuleUses(
      rule=rule,
      lm=np.zeros(len(rule), np.float32),
      matched=same.sum(1).astype(np.int32),
      mismatched=(filled & ~same).sum(1).astype(np.int32),
    ),
  )
  return forest, nodes[:, 3].astype(np.int8)


@njit
def _hypotheses(matched, spans, cell, score, back, batch):
  offsets, rules, child = matched
  begin, end, sentence, category = spans
  arity, beam = child.shape[1], score.shape[1]
  # Number the hypotheses; those of a goal stand best last.
  number = np.full(score.shape, -1, np.int32)
  count = 0
  for item in range(len(cell)):
    row = cell[item]
    for place in range(beam):
      rank = beam - 1 - place if category[item] == GOAL else place
      if score[row, rank] > POSSIBLE:
        number[row, rank] = count
        count += 1
  # Write each with its back pointer.
  nodes = np.empty((count, 4), np.int32)
  rule = np.empty(count, np.int32)
  tails = np.full((count, arity), -1, np.int32)
  gains = np.empty(count, np.float32)
  node_offsets = np.zeros(batch + 1, np.int64)
  for item in range(len(cell)):
    row = cell[item]
    for rank in range(beam):
      node = number[row, rank]
      if node < 0:
        continue
      application = offsets[item] + back[row, rank, 0]
      nodes[node, 0], nodes[node, 1] = begin[item], end[item]
      nodes[node, 2], nodes[node, 3] = rank, category[item]
      rule[node] = rules[application]
      gain = score[row, rank]
      for part in range(arity):
        if child[application, part] >= 0:
          below = cell[child[application, part]]
          tails[node, part] = number[below, back[row, rank, 1 + part]]
          gain -= score[below, back[row, rank, 1 + part]]
      gains[node] = gain
      node_offsets[sentence[item] + 1] += 1
  for row in range(batch):
    node_offsets[row + 1] += node_offsets[row]
  return nodes, rule, tails, gains, node_offsets


class _Cells(NamedTuple):
  """Columns of `Matches`, by cell and by application."""

  place: np.ndarray
  offsets: np.ndarray
  rule: np.ndarray
  child: np.ndarray
  begin: np.ndarray
  end: np.ndarray
  sentence: np.ndarray


class _HypothesisColumns(NamedTuple):
  """Columns of `Candidates` and `Beams`, by row of the chart."""

  application: np.ndarray
  ranks: np.ndarray
  head: np.ndarray
  score: np.ndarray
  gain: np.ndarray
  augmented: np.ndarray
  best: np.ndarray
  best_augmented: np.ndarray


@njit
def _extract(cells, searched, root, batch):
  """Returns nodes, edges and their values, and offsets of both.

  Args:
    cells: cells and applications; children first within a sentence.
    searched: what the search returned.
    root: row of each sentence's goal, 0 for an empty one.
    batch: number of sentences.
  """
  is_root = np.zeros(len(searched.best), np.bool_)
  for row in root:
    if row > 0:
      is_root[row] = True
  number, num_edges = _mark(cells, searched, is_root)
  return _write(cells, searched, is_root, number, num_edges, batch)


@njit
def _mark(cells, searched, is_root):
  """Marks the hypotheses that some derivation uses with 0, others with -1.

  Returns:
    `(marks [C, K], number of edges)`. All hypotheses of a goal are one node.
  """
  head, child = searched.head, cells.child
  number = np.full(searched.best.shape, -1, np.int32)
  num_edges = 0
  # Children stand before their parents, so parents are seen first.
  for item in range(len(cells.place) - 1, -1, -1):
    row = cells.place[item]
    for entry in range(head.shape[1]):
      rank = head[row, entry]
      if rank < 0:
        continue
      if is_root[row]:
        number[row, 0] = 0
      elif number[row, rank] < 0:
        continue
      num_edges += 1
      applied = cells.offsets[item] + searched.application[row, entry]
      for part in range(child.shape[1]):
        if child[applied, part] >= 0:
          below = cells.place[child[applied, part]]
          number[below, searched.ranks[row, entry, part]] = 0
  return number, num_edges


@njit
def _by_head(head, together, entries, starts):
  """Sorts a cell's candidates by the hypothesis that they became.

  Args:
    head: ranks of the hypotheses, -1 for none, `[M]`.
    together: whether all are one hypothesis, of rank 0.
    entries: becomes the candidates, rank by rank, in their order.
    starts: becomes where those of each rank start, and where the last ones end.
  """
  starts[:] = 0
  for rank in head:
    if rank >= 0:
      starts[1 + (0 if together else rank)] += 1
  for rank in range(len(starts) - 1):
    starts[rank + 1] += starts[rank]
  # Each is put at its rank's start, which moves on.
  for entry in range(len(head)):
    if head[entry] >= 0:
      rank = 0 if together else head[entry]
      entries[starts[rank]] = entry
      starts[rank] += 1
  # Now a rank's start is where it ends.
  for rank in range(len(starts) - 1, 0, -1):
    starts[rank] = starts[rank - 1]
  starts[0] = 0


@njit
def _write(cells, searched, is_root, number, num_edges, batch):
  """Writes the marked nodes and their edges; marks become node numbers."""
  head, best, child = searched.head, searched.best, cells.child
  num_nodes = np.sum(number == 0)
  nodes = np.empty((num_nodes, 3), np.int32)
  edges = np.full((num_edges, 1 + child.shape[1]), -1, np.int32)
  values = np.empty((num_edges, 3), np.float32)
  node_offsets = np.zeros(batch + 1, np.int64)
  edge_offsets = np.zeros(num_nodes + 1, np.int64)
  node, edge = 0, 0
  entries = np.empty(head.shape[1], np.int32)
  starts = np.empty(best.shape[1] + 1, np.int32)
  for item in range(len(cells.place)):
    row = cells.place[item]
    _by_head(head[row], is_root[row], entries, starts)
    for rank in range(best.shape[1]):
      if number[row, rank] < 0:
        continue
      nodes[node, 0], nodes[node, 1] = cells.begin[item], cells.end[item]
      nodes[node, 2] = 0
      if not is_root[row]:
        limit, better = best[row, rank] + _TIE, np.int32(0)
        for other in range(best.shape[1]):
          better += best[row, other] > limit
        nodes[node, 2] = better
      # All candidates that became this hypothesis; at a goal, all there are.
      for place in range(starts[rank], starts[rank + 1]):
        entry = entries[place]
        applied = cells.offsets[item] + searched.application[row, entry]
        edges[edge, 0] = cells.rule[applied]
        score = searched.score[row, entry]
        augmented = searched.augmented[row, entry]
        # What the edge adds to the best derivations of its tails.
        for part in range(child.shape[1]):
          if child[applied, part] >= 0:
            below = cells.place[child[applied, part]]
            below_rank = searched.ranks[row, entry, part]
            edges[edge, 1 + part] = number[below, below_rank]
            score -= best[below, below_rank]
            augmented -= searched.best_augmented[below, below_rank]
        values[edge, 0], values[edge, 1] = score, searched.gain[row, entry]
        values[edge, 2] = augmented
        edge += 1
      number[row, rank] = node
      node += 1
      edge_offsets[node] = edge
    node_offsets[cells.sentence[item] + 1] = node
  for row in range(batch):
    node_offsets[row + 1] = max(node_offsets[row + 1], node_offsets[row])
  return nodes, edges, values, node_offsets, edge_offsets
