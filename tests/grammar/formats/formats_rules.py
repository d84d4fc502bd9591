"""Tables for the tests of formats: random ones, and rules as plain tuples."""

import numpy as np
from hypothesis import strategies

from jaxmt.grammar import table as table_lib
from jaxmt.grammar.table import CLOSE, LABELS, Kind
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import SPECIALS, Vocabulary

WORDS = (
  *("a", "ß", "回答", "a\u00a0b", "#", "@", "&#91;", "&amp;", "x0:X", "x0"),
  *("[X,1]", "[X]", "[1]", "[", "]", "[]", "[X][X]", "[,]", "[X,1", "X,1]"),
  *("|||", "||||", "a|||b", "|", "a|b", "||", "(", ")", "((", "-LRB-", '"'),
  *('"a"', "\\u005b", "\\u005c", "\\", "\\u00", "\\u005", "=", "a=1", ";"),
)
SYNTAX = ("NP", "NP-SBJ", "PRP$", ",", "[", "]", "a,b", "[X]", "(", ")", "@NP")
SYNTAX += ("|||", "x0", "x0:X", '"', "@", "``", "\\u0028", "GOAL", "-LRB-")
FEATURES = ("egfp", "P_0", "tm_pt_0", "PhraseModel_0", "TranslationModel0_0")


@strategies.composite
def rules(draw, *, trees):
  """One rule's symbols: lhs, source, target, links, fragment."""
  labels = range(len(LABELS) + len(SYNTAX))
  label = strategies.sampled_from(labels)
  word = strategies.integers(len(SPECIALS), len(SPECIALS) + len(WORDS) - 1)
  source = draw(
    strategies.lists(
      strategies.one_of(word, label.map(lambda number: -1 - number)),
      min_size=1,
      max_size=5,
    )
  )
  if not trees and all(symbol < 0 for symbol in source):
    source.append(draw(word))  # no accidental glue
  sites = sum(symbol < 0 for symbol in source)
  order = draw(strategies.permutations(range(sites)))
  target = draw(strategies.lists(word, max_size=4))
  for site in order:
    place = draw(strategies.integers(0, len(target)))
    target.insert(place, -1 - site)
  words = [
    (s, t)
    for s, one in enumerate(source)
    for t, other in enumerate(target)
    if one >= 0 and other >= 0
  ]
  links = draw(strategies.sets(strategies.sampled_from(words))) if words else []
  lhs = draw(label)
  fragment = draw(_fragments(lhs, source, label)) if trees else []
  return lhs, source, target, sorted(links), fragment


@strategies.composite
def _fragments(draw, lhs, source, label):
  """Brackets over a source side: words in preterminals, some nesting."""
  leaves = [
    [symbol - 1, CLOSE] if symbol < 0 else [-2 - draw(label), symbol, CLOSE]
    for symbol in source
  ]
  while len(leaves) > 1 and draw(strategies.booleans()):
    start = draw(strategies.integers(0, len(leaves) - 2))
    inner = [-2 - draw(label), *leaves[start], *leaves[start + 1], CLOSE]
    leaves[start : start + 2] = [inner]
  return [-2 - lhs, *(code for leaf in leaves for code in leaf), CLOSE]


@strategies.composite
def tables(draw, *, trees=False, names=None):
  """A random table; labels, words and feature names look like markup."""
  chosen = draw(strategies.lists(rules(trees=trees), min_size=1, max_size=6))
  if names is None:
    names = draw(
      strategies.lists(strategies.sampled_from(FEATURES), unique=True)
    )
  value = strategies.floats(-20, 20, width=32) | strategies.just(0.0)
  rows = strategies.lists(value, min_size=len(names), max_size=len(names))
  values = [draw(rows) for _ in chosen]
  counts = draw(strategies.lists(strategies.integers(0, 9), min_size=6))
  lhs, source, target, links, fragments = zip(*chosen, strict=True)
  words = Vocabulary(words=(*SPECIALS, *WORDS))
  return table_lib.make_table(
    labels=(*LABELS, *SYNTAX),
    source_words=words,
    target_words=words,
    lhs=np.array(lhs),
    kind=Kind.TREE_TO_STRING if trees else Kind.HIERO,
    source=ragged.from_rows(source),
    target=ragged.from_rows(target),
    links=Ragged(
      flat=np.array([p for row in links for p in row], np.int16).reshape(-1, 2),
      offsets=np.cumsum([0, *map(len, links)]),
    ),
    counts=np.array(counts[: len(chosen)], float) / 4,
    features=np.array(values, np.float32).reshape(len(chosen), len(names)),
    feature_names=names,
    fragments=ragged.from_rows(fragments),
  )


def plain(table, *, fragments=True, counts=True, kinds=True):
  """Every rule of a table as a tuple that does not depend on ids."""
  found = []
  labels = table.labels
  for rule in range(len(table)):
    source = tuple(
      table.source_words.words[s] if s >= 0 else (labels[-1 - s],)
      for s in table.source[rule].tolist()
    )
    target = tuple(
      table.target_words.words[s] if s >= 0 else -1 - s
      for s in table.target[rule].tolist()
    )
    tree = tuple(
      table.source_words.words[code]
      if code >= 0
      else None
      if code == CLOSE
      else (labels[-2 - code],)
      for code in table.fragments[rule].tolist()
    )
    values = dict(
      zip(table.feature_names, table.features[rule].tolist(), strict=True)
    )
    found.append(
      (
        labels[table.lhs[rule]],
        source,
        target,
        tuple(map(tuple, table.links[rule].tolist())),
        tuple(sorted((k, v) for k, v in values.items() if v)),
        tree if fragments else None,
        float(table.counts[rule]) if counts else None,
        Kind(int(table.kind[rule])).name if kinds else None,
      )
    )
  return found
