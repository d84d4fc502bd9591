"""Scores of forced forests."""

import dataclasses

import numpy as np

from jaxmt.decode import translation_forest
from jaxmt.decode.chart import feature_states
from jaxmt.decode.model import Model, Source, rescore_source, rule_column
from jaxmt.decode.phrase import chains
from jaxmt.errors import InputError
from jaxmt.grammar.match.applications import GOAL, ORDINARY
from jaxmt.hypergraph.forest import Forest
from jaxmt.lm.tables import EOS_WORD, ROOT, advance
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged


def scored(
  model: Model,
  source: Source,
  forest: Forest,
  *,
  reference: Ragged,
  states: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> Forest:
  """Returns the forest with the model's scores.

  Args:
    model: rules, language model, weights.
    source: B sentences.
    forest: nodes, rules and tails; N nodes, E edges.
    reference: their language model word ids, B rows.
    states: category, first and last reference word of each node, `[N]`.

  Raises:
    InputError: see `edge_scores`.
  """
  source = rescore_source(model, source)
  column = lambda pick: rule_column(model, source, forest.edges.rule, pick)
  site = column(lambda c: c.site)
  filled = (forest.tails >= 0) & (site >= 0)
  same = filled & (forest.nodes.label[np.maximum(forest.tails, 0)] == site)
  matched = same.sum(1).astype(np.int32)
  mismatched = (filled & ~same).sum(1).astype(np.int32)
  lm = model.lm
  said = _interval_scores(
    forest.node_offsets,
    states,
    (np.require(reference.flat, np.int32), reference.offsets),
    lm.columns,
    (lm.begin, ROOT),
  )
  below = np.where(forest.tails >= 0, said[np.maximum(forest.tails, 0)], 0.0)
  gain = said[forest.heads] - below.sum(1)
  forest = dataclasses.replace(
    forest,
    edges=dataclasses.replace(
      forest.edges,
      lm=gain.astype(np.float32),
      matched=matched,
      mismatched=mismatched,
    ),
  )
  return dataclasses.replace(forest, score=edge_scores(model, source, forest))


def edge_scores(model: Model, source: Source, forest: Forest) -> np.ndarray:
  """Returns the model's scores of edges whose annotation is known, float32.

  Forced forests do not depend on weights. Under other weights only these
  scores are recomputed.

  Args:
    model: rules and weights.
    source: the B sentences of the forest.
    forest: E edges, annotated with what the language model and the labels say.

  Raises:
    InputError: if the model has stateful features besides the language model
      and label match whose states the strings of a node do not tell.
  """
  lost = [one for one in model.extra if not one.follows_from_strings]
  if lost:
    names = ", ".join(name for one in lost for name in one.names)
    raise InputError(f"forced decoding cannot score the features {names}")
  source = rescore_source(model, source)
  column = lambda pick: rule_column(model, source, forest.edges.rule, pick)
  # The static score holds the rule's words without context; `lm` has them.
  alone = column(lambda c: c.inputs[0].values[:, 0])
  match, mismatch = model.label_weights
  score = (
    column(lambda c: c.score).astype(np.float64)
    + model.lm_weight * (forest.edges.lm - alone)
    + match * forest.edges.matched
    + mismatch * forest.edges.mismatched
    + translation_forest.application_scores(model, source, forest)
  )
  if model.order is not None:
    weights = [model.weights.get(name, 0.0) for name in model.order.names]
    score += chains.edge_values(model, forest) @ np.array(weights)
  if model.extra:
    score += _extra_scores(model, source, forest)
  return score.astype(np.float32)


def _extra_scores(model: Model, source: Source, forest: Forest) -> np.ndarray:
  """What joining adds to the features that were added, weighed, `[E]`."""
  values = feature_states.edge_values(
    model,
    source,
    edge_offsets=forest.edge_offsets,
    rule=forest.edges.rule,
    tails=forest.tails,
  )
  first = len(model.features) - len(model.extra)
  # The static scores hold the values of the rules alone.
  alone = rule_column(
    model,
    source,
    forest.edges.rule,
    lambda c: tuple(one.values for one in c.inputs[first:]),
  )
  scales = [one.scale for one in model.extra for _ in one.names]
  names = [name for one in model.extra for name in one.names]
  weights = np.array([model.weights.get(name, 0.0) for name in names])
  return (values - np.concatenate(alone, axis=1) * scales) @ weights


@njit
def _interval_scores(node_offsets, states, reference, table, begins):
  """Natural log p of each node's words, float64 `[N]`.

  Without context for ordinary nodes, after `<s>` for glue, with `</s>` for the
  goal.
  """
  category, first, last = states
  flat, offsets = reference
  out = np.zeros(len(first))
  for sentence in range(len(node_offsets) - 1):
    low, high = node_offsets[sentence], node_offsets[sentence + 1]
    if low == high:
      continue
    words = flat[offsets[sentence] : offsets[sentence + 1]]
    size = len(words)
    # Row b: ln p of words b to e by e; row `size`: after <s>, from 0.
    sums = np.zeros((size + 1, size + 1))
    done = np.zeros(size + 1, np.bool_)
    end_state = np.int32(begins[0])
    for node in range(low, high):
      ordinary = category[node] == ORDINARY
      if ordinary and first[node] < 0:
        continue
      row = first[node] if ordinary else size
      if not done[row]:
        done[row] = True
        state = np.int32(begins[1] if ordinary else begins[0])
        total = 0.0
        for place in range(first[node] if ordinary else 0, size):
          gain, state = advance(table, state, words[place])
          total += gain
          sums[row, place + 1] = total
        if not ordinary:
          end_state = state
      out[node] = sums[row, max(last[node], 0)]
      if category[node] == GOAL:
        gain, _ = advance(table, end_state, EOS_WORD)
        out[node] = sums[row, size] + gain
  return out
