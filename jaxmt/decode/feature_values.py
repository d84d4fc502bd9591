"""Values of added stateful features at the edges of any forest.

Search reports values with its candidates. Derivations and forests that come
from elsewhere are evaluated here: states bottom-up, then values from them.
"""

import operator

import jax
import numpy as np

from jaxmt.decode.chart import feature_states
from jaxmt.decode.chart.chart_layout import rule_column
from jaxmt.decode.model import Model, Source, device_parameters
from jaxmt.text.kernels import njit


def edge_values(
  model: Model,
  source: Source,
  *,
  edge_offsets: np.ndarray,
  rule: np.ndarray,
  tails: np.ndarray,
) -> np.ndarray:
  """Returns what each edge adds to the added features, float64 `[E, X]`.

  Columns are the names of `model.extra`. All edges of a node must lead to the
  same state, as they do in the forests of a search with these features.

  Args:
    model: the model.
    source: its sentences.
    edge_offsets: node n's edges are `edge_offsets[n] : edge_offsets[n + 1]`;
      nodes stand tails first, int `[N + 1]`.
    rule: rule of each edge as in `Matches.rule`, int `[E]`.
    tails: tail nodes, -1 for none, int `[E, A]`.
  """
  features, first = model.extra, len(model.features) - len(model.extra)
  parameters = device_parameters(model)[first:]
  pick = lambda read: rule_column(model.columns, source.columns, rule, read)
  slots = pick(lambda c: c.slots)
  inputs = pick(lambda c: tuple(one.arrays for one in c.inputs[first:]))
  alone = pick(lambda c: tuple(one.values for one in c.inputs[first:]))
  out = np.concatenate([np.zeros((len(rule), 0)), *alone], axis=1)
  nodes = len(edge_offsets) - 1
  states = [np.zeros((nodes + 1, f.columns), np.int32) for f in features]
  level = _levels(np.asarray(edge_offsets), np.ascontiguousarray(tails))
  heads = np.repeat(np.arange(nodes), np.diff(edge_offsets))
  # Level by level: all edges whose tails are known. Row -1 has no state.
  for number in range(int(level.max(initial=-1)) + 1):
    edges = np.flatnonzero(level[heads] == number)
    below = tuple(table[tails[edges]] for table in states)
    found, values = feature_states.apply_rules(
      features,
      parameters,
      jax.tree.map(operator.itemgetter(edges), inputs),
      slots[edges],
      below,
    )
    for table, own in zip(states, found, strict=True):
      table[heads[edges]] = own
    out[edges] += np.stack([one for own in values for one in own], axis=1)
  scales = [f.scale for f in features for _ in f.names]
  return out * np.array(scales)


@njit
def _levels(edge_offsets, tails):
  """Height of each node, 0 without children."""
  level = np.zeros(len(edge_offsets) - 1, np.int32)
  for node in range(len(level)):
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      for tail in tails[edge]:
        if tail >= 0:
          level[node] = max(level[node], level[tail] + 1)
  return level
