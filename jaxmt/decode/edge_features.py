"""Feature values of forest edges: what each edge adds to a derivation's."""

import numpy as np

from jaxmt.decode import feature_values
from jaxmt.decode.model import Model, Source, word_features
from jaxmt.hypergraph.forest import Forest
from jaxmt.lm import tables as lm_tables
from jaxmt.text import ragged, vocabulary
from jaxmt.text.ragged import Ragged


def edge_features(model: Model, source: Source, forest: Forest) -> np.ndarray:
  """Returns the feature values of each edge, float64 `[E, F]`.

  Columns are `model.feature_names`. Their product with the weights is
  `forest.score`; summed over the edges of a derivation they are
  `derivation.features`. What the language model says of `</s>` stands at the
  goal's edges.

  Args:
    model: rules and units; its weights do not matter.
    source: the sentences of the forests (`Result.source`).
    forest: E edges.
  """
  names, units = model.feature_names, model.units
  size = len(model.table)
  column = lambda name: names.index(name)
  # Rules that occur at all, the copied words' one for each of its edges.
  occurs = np.zeros(size + 1, bool)
  base = np.where(forest.edges.rule > size, model.copy_rule, forest.edges.rule)
  occurs[base] = True
  rules = np.flatnonzero(occurs[:size])
  place = np.full(size + 1, len(rules), np.int32)  # the goal: a row of zeros
  place[rules] = np.arange(len(rules), dtype=np.int32)
  table = np.zeros((len(rules) + 1, len(names)))
  for number, name in enumerate(model.table.feature_names):
    if name in names:
      table[:-1, column(name)] += model.table.features[rules, number]
  counts = _word_counts(model, rules)
  table[:-1, column(units.unknown)] += counts[:, 0]
  table[:-1, column(units.words)] += counts[:, 1]
  out = table[place[base]]
  copied = np.flatnonzero(forest.edges.rule > size)
  if len(copied):
    own = _copied_counts(model, source)[forest.edges.rule[copied] - size - 1]
    own = own - counts[place[model.copy_rule]]
    out[copied, column(units.unknown)] += own[:, 0]
    out[copied, column(units.words)] += own[:, 1]
  lm = forest.edges.lm.astype(np.float64)
  out[:, column(units.lm)] += units.lm_scale * lm
  out[:, column(units.match)] += forest.edges.matched
  out[:, column(units.mismatch)] += forest.edges.mismatched
  if model.extra:
    added = feature_values.edge_values(
      model,
      source,
      edge_offsets=forest.edge_offsets,
      rule=forest.edges.rule,
      tails=forest.tails,
    )
    out[:, len(names) - added.shape[1] :] = added
  return out


def _word_counts(model: Model, rules: np.ndarray) -> np.ndarray:
  """Unknown words and word penalty of rules' target sides, `[N, 2]`."""
  target = ragged.select(model.table.target, rules)
  words = np.unique(target.flat[target.flat >= 0])
  names = model.table.target_words.words
  known = lm_tables.word_map(model.lm, [names[word] for word in words.tolist()])
  known[words < len(vocabulary.SPECIALS)] = lm_tables.UNK_WORD
  number = np.full(len(names) + 1, lm_tables.UNK_WORD, np.int32)
  number[words] = known
  flat = np.where(target.flat >= 0, number[target.flat], target.flat)
  return word_features(Ragged(flat=flat, offsets=target.offsets), model.units)


def _copied_counts(model: Model, source: Source) -> np.ndarray:
  """The same of copied source words, `[P, 2]`."""
  known = lm_tables.word_map(model.lm, source.words)
  sign = (known == lm_tables.BOS_WORD) | (known == lm_tables.EOS_WORD)
  known[sign] = lm_tables.UNK_WORD
  offsets = np.arange(len(known) + 1, dtype=np.int64)
  return word_features(Ragged(flat=known, offsets=offsets), model.units)
