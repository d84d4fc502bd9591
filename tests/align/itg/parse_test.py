"""ITG forests against the counting laws and enumeration."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt import hypergraph
from jaxmt.align.itg import bispans, parse, rules, terminals
from jaxmt.hypergraph import inside_outside, semirings
from jaxmt.text import ragged
from tests.reference import itg as reference

SEPARABLE = [1, 1, 2, 6, 22, 90]
SIZES = [(1, 1), (1, 3), (2, 2), (3, 2), (3, 3), (4, 3), (4, 4)]


def count(parsed):
  return np.exp(hypergraph.log_totals(parsed.forest))


def test_counts_without_nulls():
  lengths = np.arange(1, 6)
  parsed = parse.parse(bispans.every(lengths, lengths), nulls=False)
  np.testing.assert_allclose(count(parsed), SEPARABLE[1:])


def test_counts_with_nulls():
  source, target = np.array(SIZES).T
  parsed = parse.parse(bispans.every(source, target))
  expected = [
    sum(
      math.comb(n, k) * math.comb(m, k) * SEPARABLE[k]
      for k in range(min(n, m) + 1)
    )
    for n, m in SIZES
  ]
  np.testing.assert_allclose(count(parsed), expected)


def test_counting_semiring_on_the_device():
  parsed = parse.parse(bispans.every([3, 2], [3, 4]))
  levels = hypergraph.lay_out(parsed.forest)
  ones = jnp.ones(parsed.forest.num_edges)
  total = inside_outside.total(levels, ones, semirings.COUNTING)
  np.testing.assert_allclose(np.asarray(total)[:2], [34, 1 + 8 + 6 * 2])


def test_a_sentence_without_words_has_one_derivation():
  parsed = parse.parse(bispans.every([0, 2, 1], [3, 0, 1]))
  np.testing.assert_allclose(count(parsed), [1, 1, 2])


def test_no_derivation_without_nulls_and_unequal_lengths():
  parsed = parse.parse(bispans.every([2, 1], [1, 1]), nulls=False)
  assert (parsed.forest.roots >= 0).tolist() == [False, True]


def random_arrays(n, m, seed, *, width=2):
  """Features of links and words of one sentence pair."""
  rng = np.random.default_rng(seed)
  normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
  return terminals.FeatureArrays(
    link=normal(n * m, width),
    source=normal(n, 4, 2),
    target=normal(m, 4, 1),
    cell_offsets=np.array([0, n * m]),
    source_offsets=np.array([0, n]),
    target_offsets=np.array([0, m]),
  )


def expected_features(links, arrays, n, m):
  """Features of an alignment by word pairs, summed one by one."""
  link = sum((arrays.link[s * m + t] for s, t in links), np.zeros(2))
  source = np.zeros(2)
  for s in range(n):
    source += arrays.source[s, min(3, sum(a == s for a, _ in links))]
  target = np.zeros(1)
  for t in range(m):
    target += arrays.target[t, min(3, sum(b == t for _, b in links))]
  return np.concatenate([link, source, target])


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_viterbi_equals_brute_force(n, m):
  arrays = random_arrays(n, m, 10 * n + m)
  size = 5 + len(terminals.RULE_FEATURES) + 2
  weights = np.random.default_rng(n + m).normal(size=size)
  parsed = parse.parse(bispans.every([n], [m]))
  table = terminals.features(parsed, arrays, rules.empty())
  scores = (table @ weights)[terminals.edge_rows(parsed)]
  best = hypergraph.viterbi(parsed.forest, scores)
  top = best.back[parsed.forest.roots]
  found = terminals.derivation_links(
    parsed,
    rules.empty(),
    hypergraph.best_derivations(parsed.forest, best, top)[0],
  )
  choices = []
  for links in reference.alignments(n, m):
    order = reference.ranked(links)
    if not reference.separable(order):
      continue
    values = np.concatenate(
      [
        expected_features(links, arrays, n, m),
        np.zeros(len(terminals.RULE_FEATURES)),
        reference.inversions(order),
      ]
    )
    choices.append((float(values @ weights), links))
  score, links = max(choices)
  assert best.score[parsed.forest.roots[0]] == pytest.approx(score, abs=1e-4)
  assert [tuple(link) for link in found[0].tolist()] == list(links)


# Bi-spans of rules in a pair of 3 and 3 words, with gaps and without.
RULES = [
  ((0, 2, 0, 1), None, ((0, 0), (1, 0)), 0),
  ((1, 3, 1, 3), None, ((1, 2), (2, 1)), 1),
  ((0, 3, 0, 2), (1, 2, 1, 2), ((0, 0), (2, 0)), 2),
  ((0, 3, 0, 3), (1, 2, 1, 2), ((0, 2), (2, 0)), 3),
]


def cores_of(chart, table):
  """The rules above as `Cores`, numbered by their names."""
  index = {tuple(span): row for row, span in enumerate(chart.spans.tolist())}
  rows = sorted(
    (index[outer], name, -1 if gap is None else index[gap])
    for outer, gap, _, name in table
  )
  bispan, rule, gap = np.array(rows).T
  return parse.Cores(bispan=bispan, rule=rule.astype(np.int32), gap=gap)


def masks():
  """The links of the rules above in the table's form."""
  found = []
  for outer, gap, links, _ in RULES:
    hole = gap or (9, 9, 9, 9)
    mask = 0
    for s, t in links:
      p = s - outer[0] - (hole[1] - hole[0] if s >= hole[1] else 0)
      q = t - outer[2] - (hole[3] - hole[2] if t >= hole[3] else 0)
      mask |= 1 << (4 * p + q)
    found.append(mask)
  return np.array(found, np.int32)


def rule_table():
  """The rules above with probabilities."""
  return rules.ItgRuleTable(
    keys=np.arange(4, dtype=np.uint64),
    sources=np.arange(4, dtype=np.uint64),
    targets=np.arange(4, dtype=np.uint64),
    links=masks(),
    count=np.array([1, 2, 1, 3]),
    forward=np.log(np.array([0.5, 0.3, 0.9, 0.2], np.float32)),
    backward=np.log(np.array([0.1, 1.0, 0.4, 0.6], np.float32)),
    options=rules.RuleOptions(),
  )


@pytest.mark.parametrize("nulls", [False, True])
def test_phrase_and_hierarchical_pairs_equal_enumeration(nulls):
  chart = bispans.every([3], [3])
  parsed = parse.parse(chart, cores_of(chart, RULES), nulls=nulls)
  expected = reference.derivations(3, 3, RULES, nulls=nulls)
  np.testing.assert_allclose(count(parsed), [len(expected)])
  lists = hypergraph.kbest(parsed.forest, size=10_000)
  table = rule_table()
  links = terminals.derivation_links(parsed, table, lists.edges)
  found = sorted(
    tuple(map(tuple, links[row].tolist())) for row in range(len(links))
  )
  assert found == sorted(links for links, _ in expected)


@pytest.mark.parametrize("seed", range(4))
def test_viterbi_with_rules_equals_brute_force(seed):
  arrays, table = random_arrays(3, 3, seed), rule_table()
  chart = bispans.every([3], [3])
  parsed = parse.parse(chart, cores_of(chart, RULES))
  features = terminals.features(parsed, arrays, table)
  weights = np.random.default_rng(50 + seed).normal(size=features.shape[1])
  weights[-2:] = 0.0  # enumeration does not count combinations
  scores = (features @ weights)[terminals.edge_rows(parsed)]
  best = hypergraph.viterbi(parsed.forest, scores)
  choices = []
  for links, used in reference.derivations(3, 3, RULES):
    own = np.zeros(len(terminals.RULE_FEATURES))
    for rule in used:
      own[:2] += table.forward[rule], table.backward[rule]
      own[2] += table.count[rule] == 1
      own[3 if RULES[rule][1] is None else 4] += 1
    values = np.concatenate([expected_features(links, arrays, 3, 3), own])
    choices.append((float(values @ weights[:-2]), links))
  score, links = max(choices)
  assert best.score[parsed.forest.roots[0]] == pytest.approx(score, abs=1e-4)
  top = best.back[parsed.forest.roots]
  found = terminals.derivation_links(
    parsed, table, hypergraph.best_derivations(parsed.forest, best, top)[0]
  )
  assert [tuple(link) for link in found[0].tolist()] == list(links)


def test_no_rules_is_word_itg():
  chart = bispans.every([3], [4])
  words = ragged.from_rows([[5, 6, 7]]), ragged.from_rows([[1, 2, 3, 4]])
  matched = rules.match(chart, *words, rules.empty())
  with_rules = parse.parse(chart, matched)
  without = parse.parse(chart)
  np.testing.assert_array_equal(with_rules.forest.tails, without.forest.tails)
  np.testing.assert_array_equal(with_rules.places, without.places)


def test_a_shorter_list_has_a_part_of_the_derivations():
  chart = bispans.every([4], [4])
  keep = np.random.default_rng(0).random(len(chart.spans)) < 0.6
  part = bispans.from_rows(
    ragged.Ragged(
      flat=chart.spans[keep][::-1], offsets=np.array([0, keep.sum()])
    ),
    [4],
    [4],
  )
  assert 1 <= count(parse.parse(part))[0] < count(parse.parse(chart))[0]


def test_blocks_equal_enumeration_with_one_derivation_each():
  chart = bispans.every([3], [4])
  words = ragged.from_rows([[5, 6, 7]]), ragged.from_rows([[1, 2, 3, 4]])
  options = rules.RuleOptions(blocks=True)
  none = ragged.from_rows([[]])
  table = rules.table([rules.collect(*words, none, options)], options)
  assert len(table) == 0 and len(table.links) == len(rules.SHAPES)
  parsed = parse.parse(chart, rules.match(chart, *words, table))
  blocks = [
    (
      (i, i + a, j, j + b),
      None,
      tuple((s, t) for s in range(i, i + a) for t in range(j, j + b)),
      (a, b),
    )
    for a, b in rules.SHAPES
    if a <= 3
    for i in range(3 - a + 1)
    for j in range(4 - b + 1)
  ]
  expected = reference.derivations(3, 4, blocks)
  np.testing.assert_allclose(count(parsed), [len(expected)])
  assert len({links for links, _ in expected}) == len(expected)
  lists = hypergraph.kbest(parsed.forest, size=100_000)
  links = terminals.derivation_links(parsed, table, lists.edges)
  found = {tuple(map(tuple, links[row].tolist())) for row in range(len(links))}
  assert found == {links for links, _ in expected}
  # The feature "blocks" counts them.
  arrays = random_arrays(3, 4, 0)
  column = 5 + terminals.RULE_FEATURES.index("blocks")
  number = terminals.features(parsed, arrays, table)[:, column]
  rows = terminals.edge_rows(parsed)[lists.edges.flat]
  used = np.add.reduceat(number[rows], lists.edges.offsets[:-1])
  assert sorted(used) == sorted(len(names) for _, names in expected)
