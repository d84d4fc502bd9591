"""Forests of a chart search: the hyperedges that survived in the beams.

A node is a hypothesis: a cell, a label and a language model state. Its edges
are all candidates that became it or were merged into it, so the forest holds
every derivation the beam represents, not just the best of each state. What the
stateful features add at an edge depends on the states of its tails only.
Derivations therefore score as sums over their edges. The root is one node for
all hypotheses of the goal cell.
"""

import numpy as np

from jaxmt.decode.chart import search_step
from jaxmt.decode.chart.chart_layout import rule_column
from jaxmt.decode.chart.decoder import Result
from jaxmt.decode.forest_annotation import RuleUses, Spans
from jaxmt.decode.model import Model
from jaxmt.hypergraph.forest import Forest
from jaxmt.text.kernels import njit

_TIE = np.float32(search_step.TIE)


def extract(model: Model, result: Result) -> Forest:
  """Returns the forests of a search that was run with `forest=True`.

  Raises:
    ValueError: if the search kept no candidates.
  """
  candidates = result.beams.candidates
  if candidates is None:
    raise ValueError("search with SearchConfig(forest=True) to get forests")
  matches, layout = result.matches, result.layout
  plain = candidates.augmented is None
  root = np.asarray(result.chart.root)[: len(result.rows)]
  nodes, edges, values, node_offsets, edge_offsets = _extract(
    (matches.offsets, matches.rule, matches.child),
    (matches.begin, matches.end, matches.sentence),
    layout.cell,
    np.asarray(candidates.application),
    np.asarray(candidates.ranks),
    np.asarray(candidates.head),
    np.asarray(candidates.score),
    np.asarray(candidates.gain),
    np.asarray(candidates.score if plain else candidates.augmented),
    np.asarray(result.beams.score),
    np.asarray(result.beams.score if plain else result.beams.augmented),
    root,
    len(result.rows),
  )
  rule, tails = edges[:, 0].copy(), edges[:, 1:].copy()
  column = lambda pick: rule_column(
    model.columns, result.source.columns, rule, pick
  )
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


@njit
def _extract(
  matched,
  spans,
  cell,
  application,
  ranks,
  head,
  score,
  gain,
  augmented,
  best,
  best_augmented,
  root,
  batch,
):
  offsets, rules, child = matched
  begin, end, sentence = spans
  arity = child.shape[1]
  beam = best.shape[1]
  number = np.full(best.shape, -1, np.int32)  # first a mark, then the node
  cells = len(cell)
  is_root = np.zeros(len(best), np.bool_)
  for place in root:
    if place > 0:
      is_root[place] = True
  # Matched cells stand children first within a sentence: mark from the end.
  num_nodes, num_edges = 0, 0
  for item in range(cells - 1, -1, -1):
    row = cell[item]
    for entry in range(head.shape[1]):
      rank = head[row, entry]
      if rank < 0:
        continue
      if is_root[row]:
        number[row, 0] = 0
      elif number[row, rank] < 0:
        continue
      num_edges += 1
      made = offsets[item] + application[row, entry]
      for part in range(arity):
        if child[made, part] >= 0:
          number[cell[child[made, part]], ranks[row, entry, part]] = 0
    for rank in range(beam):
      num_nodes += number[row, rank] == 0
  nodes = np.empty((num_nodes, 3), np.int32)
  edges = np.full((num_edges, 1 + arity), -1, np.int32)
  values = np.empty((num_edges, 3), np.float32)
  node_offsets = np.zeros(batch + 1, np.int64)
  edge_offsets = np.zeros(num_nodes + 1, np.int64)
  node, edge = 0, 0
  for item in range(cells):
    row = cell[item]
    for rank in range(beam):
      if number[row, rank] < 0:
        continue
      nodes[node, 0], nodes[node, 1], nodes[node, 2] = (
        begin[item],
        end[item],
        0 if is_root[row] else np.sum(best[row] > best[row, rank] + _TIE),
      )
      for entry in range(head.shape[1]):
        if head[row, entry] < 0 or (
          head[row, entry] != rank and not is_root[row]
        ):
          continue
        made = offsets[item] + application[row, entry]
        edges[edge, 0] = rules[made]
        total, both = score[row, entry], augmented[row, entry]
        for part in range(arity):
          if child[made, part] >= 0:
            below = cell[child[made, part]]
            edges[edge, 1 + part] = number[below, ranks[row, entry, part]]
            total -= best[below, ranks[row, entry, part]]
            both -= best_augmented[below, ranks[row, entry, part]]
        values[edge, 0], values[edge, 1] = total, gain[row, entry]
        values[edge, 2] = both
        edge += 1
      number[row, rank] = node
      node += 1
      edge_offsets[node] = edge
    node_offsets[sentence[item] + 1] = node
  for row in range(batch):
    node_offsets[row + 1] = max(node_offsets[row + 1], node_offsets[row])
  return nodes, edges, values, node_offsets, edge_offsets
