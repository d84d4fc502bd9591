"""Feature values of the parts of derivations, as hypotheses have them."""

import numpy as np

from jaxmt.decode import derivation, translation_forest
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source
from jaxmt.grammar.table import Kind
from jaxmt.lm.tables import advance
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import row_offsets


def is_glue(model: Model, rule: np.ndarray) -> np.ndarray:
  """Returns which rules, numbered as in `Matches.rule`, are glue, bool."""
  kind = np.append(model.table.kind, [Kind.PASS_THROUGH] * 2)
  return kind[np.minimum(rule, len(model.table))] == Kind.GLUE


def partial_features(
  model: Model, source: Source, derivations: Derivations
) -> np.ndarray:
  """Returns the feature values of every subtree, float64 `[N, F]`.

  The language model reads a subtree's words without left context; what glue has
  joined begins the sentence, and so do the prefixes of a chain of phrases.

  Args:
    model: the model; columns are its `feature_names`.
    source: the B sentences.
    derivations: one of each, N nodes in all.
  """
  parts = _subtrees(derivations)
  words = derivation.read_off(model, parts).words
  # Node n roots subtree n: words that it copies are those of its sentence.
  values = translation_forest.derivation_features(model, source, parts, words)
  ids = translation_forest.lm_words(model, source, words)
  lm, units = model.lm, model.units
  starts = is_glue(model, derivations.rule) | (model.order is not None)
  begins = np.where(starts, lm.begin, 0)
  read = _read(
    ids.flat,
    ids.offsets,
    begins.astype(np.int32),
    lm.columns,
  )
  values[:, model.feature_names.index(units.lm)] = units.lm_scale * read
  return values


def partial_scores(
  model: Model, source: Source, derivations: Derivations
) -> np.ndarray:
  """Returns the model score of every subtree, float64 `[N]`."""
  weights = model.weights
  vector = np.array([weights.get(name, 0.0) for name in model.feature_names])
  return partial_features(model, source, derivations) @ vector


def node_features(
  model: Model, source: Source, derivations: Derivations
) -> tuple[np.ndarray, np.ndarray]:
  """Returns what every node adds to its derivation's feature values.

  Args:
    model: the model.
    source: the B sentences.
    derivations: one of each, N nodes in all.

  Returns:
    `(values [N, F], goal [B, F])`, float64. Summed over a sentence's nodes and
    goal they are `translation_forest.derivation_features`. The goal has what is
    known only of the whole: the language model's `</s>`.
  """
  below = partial_features(model, source, derivations)
  values = below.copy()
  for part in range(derivations.child.shape[1]):
    has_child = derivations.child[:, part] >= 0
    values[has_child] -= below[derivations.child[has_child, part]]
  words = derivation.read_off(model, derivations).words
  goal = translation_forest.derivation_features(
    model, source, derivations, words
  )
  filled = np.flatnonzero(np.diff(derivations.offsets) > 0)
  goal[filled] -= below[derivations.offsets[filled]]
  return values, goal


def _subtrees(derivations: Derivations) -> Derivations:
  """Every node as a derivation of its own; nodes stand in preorder."""
  number = len(derivations.rule)
  sizes = np.ones(number, np.int64)
  for node in range(number - 1, -1, -1):
    below = derivations.child[node]
    sizes[node] += sizes[below[below >= 0]].sum()
  offsets = row_offsets(sizes)
  shift = np.repeat(np.arange(number) - offsets[:-1], sizes)
  place = np.arange(offsets[-1]) + shift
  child = derivations.child[place]
  return Derivations(
    offsets=offsets,
    rule=derivations.rule[place],
    begin=derivations.begin[place],
    end=derivations.end[place],
    child=np.where(child >= 0, child - shift[:, None], -1).astype(np.int32),
    score=np.zeros(number, np.float32),
  )


@njit
def _read(words, offsets, states, table):
  out = np.zeros(len(offsets) - 1)
  for row in range(len(out)):
    state = states[row]
    for item in range(offsets[row], offsets[row + 1]):
      gain, state = advance(table, state, words[item])
      out[row] += gain
  return out
