"""Rules of an aligned bitext: what is collected, and where it matches."""

import numpy as np

from jaxmt import hypergraph
from jaxmt.align.itg import bispans, parse, rules, terminals
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged

# "ne X pas" is "not X": a discontiguous link, "chat noir" is "black cat".
SOURCE = [[1, 2, 3, 4, 5], [1, 7, 3, 6]]
TARGET = [[11, 12, 14, 13], [11, 17, 18]]
LINKS = [
  [(0, 0), (1, 1), (2, 0), (3, 3), (4, 2)],
  [(0, 0), (1, 1), (2, 0), (3, 2)],
]


def bitext():
  flat = np.array([link for row in LINKS for link in row], np.int32)
  return (
    ragged.from_rows(SOURCE),
    ragged.from_rows(TARGET),
    Ragged(flat=flat, offsets=np.array([0, 5, 9])),
  )


def table(**options):
  options = rules.RuleOptions(**options)
  return rules.table([rules.collect(*bitext(), options)], options)


def expected_rules(max_words):
  """All rules by trying every pair of bi-spans; counts by both sides."""
  found = {}
  for words, others, links in zip(SOURCE, TARGET, LINKS, strict=True):
    n, m = len(words), len(others)

    def consistent(i, k, j, l, links=links):
      inside = [(s, t) for s, t in links if i <= s < k and j <= t < l]
      touched = [(s, t) for s, t in links if i <= s < k or j <= t < l]
      edges = {s for s, _ in inside}, {t for _, t in inside}
      return (
        len(inside) == len(touched)
        and {i, k - 1} <= edges[0]
        and {j, l - 1} <= edges[1]
      )

    spans = [
      (i, k, j, l)
      for i in range(n)
      for k in range(i + 1, n + 1)
      for j in range(m)
      for l in range(j + 1, m + 1)
      if consistent(i, k, j, l)
    ]
    for i, k, j, l in spans:
      if max(k - i, l - j) <= max_words and k - i + l - j > 2:
        key = (tuple(words[i:k]), tuple(others[j:l]))
        found[key] = found.get(key, 0) + 1
      for a, b, c, d in spans:
        around = a - i + k - b, c - j + l - d
        if not (i <= a and b <= k and j <= c and d <= l) or min(around) < 1:
          continue
        if max(around) > max_words or not (
          (i < a and b < k) or (j < c and d < l)
        ):
          continue
        key = (
          (*words[i:a], "X", *words[b:k]),
          (*others[j:c], "X", *others[d:l]),
        )
        found[key] = found.get(key, 0) + 1
  return found


def test_collects_what_trying_all_bispans_finds():
  found = table(max_words=2)
  expected = expected_rules(2)
  assert len(found) == len(expected)
  assert sorted(found.count) == sorted(expected.values())
  gapped = ((1, "X", 3), (11, "X"))
  assert expected[gapped] == 2
  # ne X pas / not X: ne-not and pas-not are bits 0 and 4.
  (row,) = np.flatnonzero((found.links == 0b10001) & (found.count == 2))
  assert found.forward[row] == 0.0


def test_kinds_and_probabilities():
  both = table(max_words=2)
  phrases = table(max_words=2, hierarchical=False)
  assert 0 < len(phrases) < len(both)
  assert set(phrases.keys.tolist()) < set(both.keys.tolist())
  assert np.all(both.forward <= 0) and np.all(both.backward <= 0)


def test_parts_add_up():
  options = rules.RuleOptions()
  source, target, links = bitext()
  parts = [
    rules.collect(
      *(
        ragged.select(side, np.array([row])) for side in (source, target, links)
      ),
      options,
    )
    for row in range(2)
  ]
  whole = rules.table([rules.collect(source, target, links, options)], options)
  joined = rules.table(parts[::-1], options)
  for name in ("keys", "links", "count", "forward", "backward"):
    np.testing.assert_array_equal(getattr(whole, name), getattr(joined, name))


def test_matched_rules_reach_links_that_word_pairs_cannot():
  source, target, links = bitext()
  chart = bispans.every(source.lengths, target.lengths)
  found = table(max_words=2)
  parsed = parse.parse(chart, rules.match(chart, source, target, found))
  gold = terminals.statistics(parsed, found, links, links)
  hits = gold[:, 2][terminals.edge_rows(parsed)]
  best = hypergraph.viterbi(parsed.forest, hits)
  # Every gold link is reached; word pairs alone leave out one of "not".
  np.testing.assert_array_equal(best.score[parsed.forest.roots], [5, 4])
  plain = parse.parse(chart)
  gold = terminals.statistics(plain, rules.empty(), links, links)
  best = hypergraph.viterbi(
    plain.forest, gold[:, 2][terminals.edge_rows(plain)]
  )
  np.testing.assert_array_equal(best.score[plain.forest.roots], [4, 3])


def test_a_block_that_is_a_rule_is_matched_once():
  source, target = ragged.from_rows([[1, 2]]), ragged.from_rows([[3]])
  links = Ragged(
    flat=np.array([[0, 0], [1, 0]], np.int32), offsets=np.array([0, 2])
  )
  options = rules.RuleOptions(blocks=True)
  found = rules.table([rules.collect(source, target, links, options)], options)
  chart = bispans.every([2], [1])
  matched = rules.match(chart, source, target, found)
  assert len(found) == 1 and matched.rule.tolist() == [0]
  other = ragged.from_rows([[1, 4]])
  assert rules.match(chart, other, target, found).rule.tolist() == [
    1 + rules.SHAPES.index((2, 1))
  ]
