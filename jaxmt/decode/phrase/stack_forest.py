"""Phrase lattices: what the search over stacks explored, as a forest.

A node is a hypothesis; its edges are all candidates that became it or were
merged into it, each a phrase pair with one tail, or none at the start of the
sentence. The root is one node for all hypotheses that cover the sentence. Every
path is a derivation, and all features sit on edges.
"""

import numpy as np

from jaxmt.decode.chart.chart_layout import POSSIBLE
from jaxmt.decode.model import Model
from jaxmt.decode.phrase.phrase_decoder import PhraseResult
from jaxmt.decode.phrase.stack_beams import AugmentedScores
from jaxmt.decode.translation_forest import RuleUses, Spans
from jaxmt.grammar.match.applications import GLUE, GOAL
from jaxmt.grammar.table import X
from jaxmt.hypergraph.forest import Forest
from jaxmt.text.kernels import njit


def extract(model: Model, result: PhraseResult) -> Forest:
  """Returns the phrase lattices of a search."""
  beams, chart = result.beams, result.chart
  size = len(model.table)
  augmented = beams.augmented or AugmentedScores(
    hypotheses=beams.score,
    candidates=beams.values[..., 0],
    final=beams.final[..., 0],
  )
  nodes, edges, values, node_offsets, edge_offsets = _extract(
    chart.length,
    chart.rule,
    chart.longest,
    size,
    (beams.score, beams.head, beams.back, beams.option),
    (beams.values, beams.final),
    (augmented.hypotheses, augmented.candidates, augmented.final),
  )
  rule = edges[:, 0].copy()
  # The language model's share: the gain and what the rule's words say alone.
  own = model.columns.inputs[0].values[:, 0]
  alone = own[np.minimum(rule, size)].astype(np.float32)
  copied = rule > size
  alone[copied] = result.source.columns.inputs[0].values[
    rule[copied] - size - 1, 0
  ]
  zeros = np.zeros(len(rule), np.int32)
  return Forest(
    node_offsets=node_offsets,
    edge_offsets=edge_offsets,
    tails=edges[:, 1:].copy(),
    score=values[:, 0].copy(),
    nodes=Spans(
      begin=nodes[:, 0].copy(),
      end=nodes[:, 1].copy(),
      label=np.full(len(nodes), X, np.int32),
      rank=nodes[:, 2].copy(),
    ),
    edges=RuleUses(
      rule=rule,
      lm=values[:, 1] + alone,
      matched=zeros,
      mismatched=zeros,
      augmented=None if beams.augmented is None else values[:, 2].copy(),
    ),
  )


def hypotheses(model: Model, result: PhraseResult) -> tuple[Forest, np.ndarray]:
  """Returns every hypothesis of every stack with its best derivation.

  Unlike in `extract`, hypotheses that no complete one uses are there too, and
  each node has one edge. Every complete hypothesis has a goal of its own; the
  best one stands last. What the language model says of edges is not annotated.

  Args:
    model: the phrases.
    result: a search.

  Returns:
    `(forest, category)`: N nodes and N edges; `GLUE`, since all begin the
    sentence, or `GOAL`, int8 `[N]`.
  """
  beams, chart = result.beams, result.chart
  nodes, edges, scores, node_offsets = _hypotheses(
    chart.length,
    chart.rule,
    chart.longest,
    len(model.table),
    beams.score,
    beams.head,
    beams.back,
    beams.option,
    beams.values,
    beams.final,
  )
  zeros = np.zeros(len(nodes), np.int32)
  forest = Forest(
    node_offsets=node_offsets,
    edge_offsets=np.arange(len(nodes) + 1, dtype=np.int64),
    tails=edges[:, 1:].copy(),
    score=scores,
    nodes=Spans(
      begin=nodes[:, 0].copy(),
      end=nodes[:, 1].copy(),
      label=np.full(len(nodes), X, np.int32),
      rank=nodes[:, 2].copy(),
    ),
    edges=RuleUses(
      rule=edges[:, 0].copy(),
      lm=np.zeros(len(nodes), np.float32),
      matched=zeros,
      mismatched=zeros,
    ),
  )
  goal = forest.edges.rule == len(model.table)
  return forest, np.where(goal, GOAL, GLUE).astype(np.int8)


@njit
def _hypotheses(
  lengths, rule, longest, size, best, head, back, option, values, final
):
  """Nodes (begin, end, rank), edges (rule, tail), scores, node offsets."""
  batch, stacks, beam = best.shape
  pop, width = head.shape[2], rule.shape[2]
  room = 0
  for sentence in range(batch):
    for stack in range(1, lengths[sentence] + 1):
      for rank in range(beam):
        room += best[sentence, stack, rank] > POSSIBLE
    for rank in range(beam):
      room += lengths[sentence] > 0 and final[sentence, rank, 0] > POSSIBLE
  nodes = np.zeros((room, 3), np.int32)
  edges = np.full((room, 2), -1, np.int32)
  scores = np.zeros(room, np.float32)
  node_offsets = np.zeros(batch + 1, np.int64)
  number = np.full((stacks, beam), -1, np.int32)
  node = 0
  for sentence in range(batch):
    length = lengths[sentence]
    number[:] = -1
    for stack in range(1, length + 1):
      # A hypothesis is the first candidate that has it as head.
      for place in range(pop):
        rank = head[sentence, stack, place]
        if rank < 0 or number[stack, rank] >= 0:
          continue
        span = option[sentence, stack, place] // width
        item = option[sentence, stack, place] % width
        before = back[sentence, stack, place, 0]
        below = back[sentence, stack, place, 1]
        nodes[node, 0] = span // longest
        nodes[node, 1] = span // longest + span % longest + 1
        nodes[node, 2] = rank
        edges[node, 0] = rule[sentence, span, item]
        scores[node] = values[sentence, stack, place, 0]
        if before > 0:
          edges[node, 1] = number[before, below]
          scores[node] -= best[sentence, before, below]
        number[stack, rank] = node
        node += 1
    # Goals, the best one last.
    if length > 0:
      order = np.argsort(final[sentence, :, 0], kind="mergesort")
      for rank in order:
        if final[sentence, rank, 0] > POSSIBLE:
          nodes[node, 1], nodes[node, 2] = length, rank
          edges[node, 0], edges[node, 1] = size, number[length, rank]
          scores[node] = final[sentence, rank, 0] - best[sentence, length, rank]
          node += 1
    node_offsets[sentence + 1] = node
  return nodes[:node], edges[:node], scores[:node], node_offsets


@njit
def _extract(lengths, rule, longest, size, searched, scores, augmented):
  best, head, back, option = searched
  values, final = scores
  best_augmented, values_augmented, final_augmented = augmented
  batch, stacks, beam = best.shape
  pop, width = head.shape[2], rule.shape[2]
  number = np.full((batch, stacks, beam), -1, np.int32)
  # From the end: mark what complete hypotheses come from, and count.
  num_nodes, num_edges = 0, 0
  for sentence in range(batch):
    length = lengths[sentence]
    complete = 0
    for rank in range(beam):
      if length > 0 and final[sentence, rank, 0] > POSSIBLE:
        number[sentence, length, rank] = 0
        complete += 1
    if complete:
      num_nodes += 1
      num_edges += complete
    for stack in range(length, 0, -1):
      for rank in range(beam):
        num_nodes += number[sentence, stack, rank] == 0
      for place in range(pop):
        rank = head[sentence, stack, place]
        if rank < 0 or number[sentence, stack, rank] < 0:
          continue
        num_edges += 1
        before = back[sentence, stack, place, 0]
        if before > 0:
          number[sentence, before, back[sentence, stack, place, 1]] = 0
  # Write what was marked, stack after stack.
  nodes = np.zeros((num_nodes, 3), np.int32)
  edges = np.full((num_edges, 2), -1, np.int32)
  out = np.zeros((num_edges, 3), np.float32)
  node_offsets = np.zeros(batch + 1, np.int64)
  edge_offsets = np.zeros(num_nodes + 1, np.int64)
  node, edge = 0, 0
  starts = np.zeros(beam + 1, np.int64)
  for sentence in range(batch):
    length = lengths[sentence]
    for stack in range(1, length + 1):
      # Candidates of a hypothesis are scattered: count, then place them.
      starts[:] = 0
      for place in range(pop):
        rank = head[sentence, stack, place]
        if rank >= 0 and number[sentence, stack, rank] >= 0:
          starts[rank + 1] += 1
      # Number the stack's hypotheses.
      first = edge
      for rank in range(beam):
        if number[sentence, stack, rank] >= 0:
          number[sentence, stack, rank] = node
          nodes[node, 2] = rank
          node += 1
          edge_offsets[node] = first + starts[rank] + starts[rank + 1]
        starts[rank + 1] += starts[rank]
      edge = first + starts[beam]
      # Candidates become edges of the hypotheses they were merged into.
      for place in range(pop):
        rank = head[sentence, stack, place]
        if rank < 0 or number[sentence, stack, rank] < 0:
          continue
        at = first + starts[rank]
        starts[rank] += 1
        span = option[sentence, stack, place] // width
        item = option[sentence, stack, place] % width
        edges[at, 0] = rule[sentence, span, item]
        own = number[sentence, stack, rank]
        nodes[own, 0] = span // longest
        nodes[own, 1] = span // longest + span % longest + 1
        before = back[sentence, stack, place, 0]
        rank = back[sentence, stack, place, 1]
        out[at, 0] = values[sentence, stack, place, 0]
        out[at, 1] = values[sentence, stack, place, 1]
        out[at, 2] = values_augmented[sentence, stack, place]
        if before > 0:
          edges[at, 1] = number[sentence, before, rank]
          out[at, 0] -= best[sentence, before, rank]
          out[at, 2] -= best_augmented[sentence, before, rank]
    # The goal, over all complete hypotheses.
    complete = False
    for rank in range(beam):
      if length > 0 and final[sentence, rank, 0] > POSSIBLE:
        complete = True
        edges[edge, 0] = size
        edges[edge, 1] = number[sentence, length, rank]
        out[edge, 0] = final[sentence, rank, 0] - best[sentence, length, rank]
        out[edge, 1] = final[sentence, rank, 1]
        out[edge, 2] = (
          final_augmented[sentence, rank]
          - best_augmented[sentence, length, rank]
        )
        edge += 1
    if complete:
      nodes[node, 1] = length
      node += 1
      edge_offsets[node] = edge
    node_offsets[sentence + 1] = node
  return nodes, edges, out, node_offsets, edge_offsets
