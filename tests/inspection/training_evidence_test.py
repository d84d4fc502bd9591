"""What training saw of rules: counts by hand, pairs by trying all of them."""

import random

import numpy as np

from jaxmt.grammar import filter as filtering
from jaxmt.grammar import table as tables
from jaxmt.inspection import training_evidence
from jaxmt.report.views import RuleView
from jaxmt.text import vocabulary
from tests.reference import tiny_training


def all_ways(words, side):
  """Whether a side occurs, trying every length of every site."""
  if not side:
    return True
  first, rest = side[0], side[1:]
  if isinstance(first, str):
    return bool(words) and words[0] == first and starts(words[1:], rest)
  return any(starts(words[n:], rest) for n in range(1, len(words) + 1))


def starts(words, side):
  """Whether a side occurs at the beginning of words."""
  return not side or all_ways(words, side)


def occurs(words, side):
  return any(starts(words[n:], side) for n in range(len(words) + 1))


def test_sides_occur_as_when_all_ways_are_tried():
  random.seed(5)
  seen = set()
  for _ in range(3000):
    words = random.choices("ab", k=random.randint(0, 6))
    side = random.choices(["a", "b", 0, 1], k=random.randint(1, 4))
    expected = occurs(words, side)
    assert training_evidence.holds(words, side) == expected, (words, side)
    seen.add(expected)
  assert seen == {True, False}


def test_the_shortest_pairs_with_both_sides_are_quoted():
  source = ["x a y a", "a", "b a", "a b"]
  target = ["c d", "d", "c", "c"]
  rules = [
    RuleView(left="X", source=["a"], target=["c"]),
    RuleView(left="X", source=[0], target=[0]),  # holds for any pair
    RuleView(left="X", source=["b", 0], target=["c"]),
    RuleView(left="X", source=["never"], target=["c"]),
  ]
  index = training_evidence.PairIndex(source, target)
  assert [index.find(rule, 2) for rule in rules] == [[2, 3], [], [2], []]
  nodes = lambda *numbers: [[number, 0, 1, -1, []] for number in numbers]
  found = training_evidence.pairs(
    rules,
    [[nodes(0, 1), nodes(1, 2)], [nodes(3), nodes(3)], [None, None]],
    source,
    target,
    number=1,
    limit=4,
  )
  assert found == [[0, [2]], [2, [2]]]


def test_uses_are_counts_of_the_rule_and_of_its_source_side():
  table = tiny_training.extracted().table
  lines = ["das kleine haus ist alt"]
  uses = training_evidence.rule_uses(
    table, {"one": table.counts, "two": 2 * table.counts}, lines=lines
  )
  np.testing.assert_allclose(uses["two"], 2 * uses["one"])
  # Shares of the extracted counts are the table's own probabilities.
  part = filtering.filter_table(
    table, vocabulary.encode(table.source_words, lines)
  )
  known = ~np.isnan(uses["one"][:, 0])
  assert known.tolist() == (part.kind == tables.Kind.HIERO).tolist()
  share = uses["one"][:, 0] / uses["one"][:, 1]
  chance = np.exp(tables.feature(part, "rule_given_source"))
  np.testing.assert_allclose(share[known], chance[known], rtol=1e-5)
