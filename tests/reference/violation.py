"""Violation-fixing updates by enumeration: every derivation, one at a time.

A tree is (category, rule, begin, end, children); rules are numbered as in
`Matches.rule`. Words that no rule translates do not occur here.
"""

import collections

import numpy as np

from jaxmt.grammar.match.matching import GLUE, GOAL, ORDINARY
from jaxmt.grammar.table import Kind
from jaxmt.lm.tables import EOS_WORD, ROOT, UNK_WORD, advance, word_map
from tests.reference import rule_features


def matches(table, rule, words, begin, end):
  """All ways to match a source side: lists of the sites' spans."""

  def grow(place, symbols):
    if not symbols:
      if place == end:
        yield []
      return
    head, *rest = symbols
    if head >= 0:
      name = table.source_words.words[head]
      if place < end and words[place] == name:
        yield from grow(place + 1, rest)
      return
    for stop in range(place + 1, end + 1):
      for spans in grow(stop, rest):
        yield [(place, stop), *spans]

  yield from grow(begin, table.source[rule].tolist())


def product(parts):
  if not parts:
    yield ()
    return
  for first in parts[0]:
    for rest in product(parts[1:]):
      yield (first, *rest)


def trees(model, words):
  """Every complete derivation of a sentence, goal at the top."""
  table, cells = model.table, {}
  kinds = np.asarray(table.kind)
  one, two = (
    [
      rule
      for rule in np.flatnonzero(kinds == Kind.GLUE).tolist()
      if (table.source[rule] < 0).sum() == arity
    ]
    for arity in (1, 2)
  )

  def ordinary(begin, end):
    if (begin, end) not in cells:
      cells[begin, end] = found = []
      for rule in np.flatnonzero(kinds == Kind.HIERO).tolist():
        for spans in matches(table, rule, words, begin, end):
          if (begin, end) in spans:
            continue
          for below in product([ordinary(*span) for span in spans]):
            found.append((ORDINARY, rule, begin, end, below))
    return cells[begin, end]

  def glued(end):
    for rule in one:
      for below in ordinary(0, end):
        yield (GLUE, rule, 0, end, (below,))
    for rule in two:
      for middle in range(1, end):
        for left in glued(middle):
          for right in ordinary(middle, end):
            yield (GLUE, rule, 0, end, (left, right))

  size = len(words)
  return [(GOAL, len(table), 0, size, (top,)) for top in glued(size)]


def spell(model, tree):
  """The words of a tree."""
  _, rule, _, _, below = tree
  if rule == len(model.table):
    return spell(model, below[0])
  out = []
  for symbol in model.table.target[rule].tolist():
    if symbol >= 0:
      out.append(model.table.target_words.words[symbol])
    else:
      out += spell(model, below[-1 - symbol])
  return out


def subtrees(tree):
  """The tree and all below it."""
  yield tree
  for below in tree[4]:
    yield from subtrees(below)


def group(model, tree):
  """Category, span and label of a tree."""
  category, rule, begin, end, _ = tree
  label = 1 if rule == len(model.table) else int(model.table.lhs[rule])
  return category, begin, end, label


def good_trees(model, words, reference):
  """Partial derivations of those that yield the reference, by group."""
  out = collections.defaultdict(set)
  for tree in trees(model, words):
    if spell(model, tree) == reference:
      for part in subtrees(tree):
        out[group(model, part)].add(part)
  return out


def features(model, words, tree):
  """Names and values of all features of a partial derivation."""
  table, units = model.table, model.units
  out = collections.Counter()
  for category, rule, begin, end, below in subtrees(tree):
    if rule == len(table):
      continue
    for name, value in zip(
      table.feature_names, table.features[rule].tolist(), strict=True
    ):
      out[name] += value
    if model.templates is not None:
      config = model.templates.config
      out.update(rule_features.names(table, config, words, (rule, begin, end)))
    if category == ORDINARY:
      out[units.match] += len(below)  # Hiero rules know one label
  said = spell(model, tree)
  out[units.words] += units.per_word * len(said)
  ids = [int(i) for i in word_map(model.lm, said)] if said else []
  out[units.unknown] += sum(word == UNK_WORD for word in ids)
  arrays = (model.lm.check, model.lm.follow, model.lm.score)
  state = np.int32(ROOT if tree[0] == ORDINARY else model.lm.begin)
  for word in [*ids, *([EOS_WORD] if tree[0] == GOAL else [])]:
    gain, state = advance(arrays, state, np.int32(word))
    out[units.lm] += units.lm_scale * float(gain)
  return {name: value for name, value in out.items() if value}


def score(weights, values):
  """w·Φ; `weights` is any mapping."""
  return sum(weights.get(name, 0.0) * value for name, value in values.items())


def tree_of(partials, back, node):
  """A node's best derivation as a tree."""
  forest = partials.forest
  edge = back[node]
  return (
    int(partials.category[node]),
    int(forest.edges.rule[edge]),
    int(forest.nodes.begin[node]),
    int(forest.nodes.end[node]),
    tuple(
      tree_of(partials, back, tail)
      for tail in forest.tails[edge].tolist()
      if tail >= 0
    ),
  )
