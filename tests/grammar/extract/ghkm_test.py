import collections
import dataclasses
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from jaxmt.corpora import synthetic
from jaxmt.grammar.extract import ghkm, packed_rules, shards, sorted_runs
from jaxmt.grammar.extract.ghkm import GhkmOptions
from jaxmt.grammar.table import CLOSE, LABELS, Kind
from jaxmt.runtime.runner import Runner
from jaxmt.text import links as link_lib
from jaxmt.text import trees as tree_lib
from jaxmt.text import vocabulary
from jaxmt.text.binarize import binarize_left_heavy
from tests.reference import ghkm as reference

WIDE = GhkmOptions(
  max_size=3, max_sites=4, max_source=99, max_target=99, max_attach=10**6
)


def corpus(pairs, binarize=False):
  """Columns of (bracketed tree, target, links) triples."""
  bracketed, target_lines, link_lines = zip(*pairs, strict=True)
  trees = tree_lib.parse_trees(bracketed)
  if binarize:
    trees = binarize_left_heavy(trees)
  labels = (*LABELS, *sorted(set(trees.labels) - set(LABELS)))
  number = np.array([labels.index(label) for label in trees.labels], np.int32)
  trees = dataclasses.replace(trees, labels=labels, label=number[trees.label])
  source_lines = [
    " ".join(trees.vocabulary[word] for word in trees.words[row])
    for row in range(len(trees))
  ]
  words = [vocabulary.build([source_lines]), vocabulary.build([target_lines])]
  source = vocabulary.encode(words[0], source_lines)
  target = vocabulary.encode(words[1], target_lines)
  return source, target, link_lib.parse_links(link_lines), trees, words


def spelled(emission, labels, words):
  """Rules as in the reference, one per occurrence."""
  columns = packed_rules.unpack(emission.rows)
  found = []
  for rule in range(len(columns.lhs)):
    source = tuple(
      words[0].words[s] if s >= 0 else (labels[-1 - s],)
      for s in columns.source[rule]
    )
    target = tuple(
      words[1].words[s] if s >= 0 else int(-1 - s) for s in columns.target[rule]
    )
    links = tuple(map(tuple, columns.links[rule].tolist()))
    label = labels[columns.lhs[rule]]
    fragment = bracketed(columns.fragments[rule].tolist(), labels, words[0])
    found.append((label, source, target, fragment, links))
  return found


def bracketed(codes, labels, words):
  """A fragment column as brackets, sites as `[L]`."""
  stack = [[]]
  for code in codes:
    if code == CLOSE:
      parts = stack.pop()
      lone = f"[{parts[0]}]"
      stack[-1].append(f"({' '.join(parts)})" if len(parts) > 1 else lone)
    elif code >= 0:
      stack[-1].append(words.words[code])
    else:
      stack.append([labels[-2 - code]])
  return stack[0][0]


def extract(pairs, options, **kwargs):
  source, target, links, trees, words = corpus(pairs, **kwargs)
  emission = ghkm.extract_rows(source, target, links, trees, options)
  return spelled(emission, trees.labels, words)


def flat(rule):
  label, source, target, _, _ = rule
  sites = [symbol[0] for symbol in source if isinstance(symbol, tuple)]
  numbers = iter(range(len(sites)))
  left = [s if isinstance(s, str) else f"{s[0]}{next(numbers)}" for s in source]
  right = [s if isinstance(s, str) else f"{sites[s]}{s}" for s in target]
  return f"{label} -> {' '.join(left)} | {' '.join(right)}"


EXAMPLE = (
  "(IP (NP (PN 他)) (VP (PP (P 对) (NP (NN 回答))) (VP (VV 表示) (NN 满意))))",
  "he was satisfied with the answer",
  "0-0 1-3 2-4 2-5 3-1 4-2",
)


def test_worked_example():
  # Fig. 2 of the loss-augmented training paper, its rules r1 to r5.
  found = {flat(rule) for rule in extract([EXAMPLE], GhkmOptions())}
  assert {
    "NP -> 他 | he",
    "NP -> 回答 | the answer",
    "VP -> 表示 满意 | was satisfied",
    "IP -> NP0 VP1 | NP0 VP1",
    "VP -> 对 NP0 VP1 | VP1 with NP0",
  } <= found
  # The whole verb phrase is a constituent, subject and preposition are not.
  assert not any("他 对" in rule for rule in found)


def test_worked_example_minimal():
  rules = extract([EXAMPLE], GhkmOptions(max_size=1))
  assert sorted(map(flat, rules)) == sorted(
    [
      "IP -> NP0 VP1 | NP0 VP1",
      "NP -> PN0 | PN0",
      "PN -> 他 | he",
      "VP -> PP0 VP1 | VP1 PP0",
      "PP -> P0 NP1 | P0 NP1",
      "P -> 对 | with",
      "NP -> NN0 | NN0",
      "NN -> 回答 | the answer",
      "VP -> VV0 NN1 | VV0 NN1",
      "VV -> 表示 | was",
      "NN -> 满意 | satisfied",
    ]
  )


def test_fragment_is_kept():
  rules = {flat(rule): rule for rule in extract([EXAMPLE], GhkmOptions())}
  rule = rules["VP -> 对 NP0 VP1 | VP1 with NP0"]
  assert rule[3] == "(VP (PP (P 对) [NP]) [VP])"
  assert rule[4] == ((0, 1),)


def test_crossing_links_leave_no_frontier_inside():
  pair = ("(A (B x) (C y))", "p q r", "0-0 0-2 1-1")
  assert [flat(rule) for rule in extract([pair], WIDE)] == [
    "A -> x C0 | p C0 r",
    "A -> x y | p q r",
    "C -> y | q",
  ]


def test_unaligned_words_tight_and_all():
  pair = ("(A (B x) (C y))", "u p v q w", "0-1 1-3")
  tight = {flat(rule) for rule in extract([pair], WIDE)}
  assert tight == {
    "A -> B0 C1 | u B0 v C1 w",
    "A -> x C0 | u p v C0 w",
    "A -> B0 y | u B0 v q w",
    "A -> x y | u p v q w",
    "B -> x | p",
    "C -> y | q",
  }
  wide = dataclasses.replace(WIDE, attach="all")
  loose = {flat(rule) for rule in extract([pair], wide)}
  assert tight < loose
  assert {"B -> x | u p v", "C -> y | v q", "A -> B0 C1 | B0 C1"} <= loose


def test_counts_of_attachments():
  pair = ("(A (B x) (C y))", "p v q", "0-0 1-2")
  source, target, links, trees, _ = corpus([pair])
  one = dataclasses.replace(WIDE, attach="all", max_size=1, fractional=False)
  emission = ghkm.extract_rows(source, target, links, trees, one)
  assert (emission.shares == packed_rules.COUNT_UNIT).all()
  shared = dataclasses.replace(one, fractional=True)
  emission = ghkm.extract_rows(source, target, links, trees, shared)
  # Three fragments: one of three attachments, two of two.
  assert sorted(emission.shares / packed_rules.COUNT_UNIT) == pytest.approx(
    [1 / 3] * 3 + [1 / 2] * 4
  )
  few = dataclasses.replace(one, max_attach=1)
  assert extract([pair], few) == extract(
    [pair], dataclasses.replace(one, attach="tight")
  )


def test_failed_parses_and_missing_links_give_nothing():
  pairs = [("()", "p", ""), ("(A x)", "p", ""), ("(A x)", "p", "0-0")]
  source, target, links, trees, _ = corpus(pairs)
  emission = ghkm.extract_rows(source, target, links, trees, WIDE, first=7)
  assert emission.sentences.tolist() == [9]
  assert trees.failed.sum() == 1


def test_unknown_words_stay_out():
  source, target, links, trees, _ = corpus(
    [("(A (B x) (C y))", "p q", "0-0 1-1")]
  )
  known = source.flat.copy()
  known[0] = vocabulary.UNK
  source = dataclasses.replace(source, flat=known)
  emission = ghkm.extract_rows(source, target, links, trees, WIDE)
  columns = packed_rules.unpack(emission.rows)
  assert (columns.source.flat != vocabulary.UNK).all()
  assert len(columns.lhs) == 3  # A -> B C, A -> B y, C -> y


def test_limits():
  rules = extract([EXAMPLE], dataclasses.replace(WIDE, max_size=9))
  sites = [sum(isinstance(s, tuple) for s in rule[1]) for rule in rules]
  assert max(sites) == 4
  for name, measure in [
    ("max_sites", lambda rule: sum(isinstance(s, tuple) for s in rule[1])),
    ("max_source", lambda rule: len(rule[1])),
    ("max_target", lambda rule: len(rule[2])),
  ]:
    change: dict[str, Any] = {"max_size": 9, name: 2}
    limited = dataclasses.replace(WIDE, **change)
    expected = [rule for rule in rules if measure(rule) <= 2]
    assert sorted(map(repr, extract([EXAMPLE], limited))) == sorted(
      map(repr, expected)
    )


@pytest.mark.parametrize(
  "change",
  [
    {"max_size": 0},
    {"max_sites": -1},
    {"max_source": 0},
    {"max_attach": 0},
    {"attach": "some"},
  ],
)
def test_bad_options(change):
  with pytest.raises(ValueError, match=next(iter(change))):
    ghkm.check_options(dataclasses.replace(WIDE, **change))


def test_trees_must_fit():
  source, target, links, trees, _ = corpus([EXAMPLE, EXAMPLE])
  with pytest.raises(ValueError, match="trees"):
    ghkm.extract_rows(
      source, target, links, tree_lib.select(trees, np.array([0])), WIDE
    )
  with pytest.raises(ValueError, match="need trees"):
    ghkm.tree_rules(
      shards.AlignedShard(first=0, source=source, target=target, links=links),
      options=WIDE,
    )


@strategies.composite
def tree_over(draw, size, first=0, depth=0):
  """A random tree over words w<first> ...; unary chains included."""
  label = draw(strategies.sampled_from("ABC"))
  if size == 1:
    if depth < 3 and draw(strategies.integers(0, 3)) == 0:
      return (label, [draw(tree_over(1, first, depth + 1))])
    return (label, f"w{first}")
  parts = draw(strategies.integers(2, min(size, 3)))
  cuts = draw(
    strategies.lists(
      strategies.integers(1, size - 1),
      min_size=parts - 1,
      max_size=parts - 1,
      unique=True,
    )
  )
  bounds = [0, *sorted(cuts), size]
  return (
    label,
    [
      draw(tree_over(bounds[i + 1] - bounds[i], first + bounds[i], depth + 1))
      for i in range(parts)
    ],
  )


@strategies.composite
def tree_pairs(draw):
  size = draw(strategies.integers(1, 4))
  target_size = draw(strategies.integers(1, 4))
  tree = draw(tree_over(size))
  links = draw(
    strategies.sets(
      strategies.tuples(
        strategies.integers(0, size - 1),
        strategies.integers(0, target_size - 1),
      ),
      max_size=5,
    )
  )
  return tree, target_size, links


def written(tree):
  label, below = tree
  if isinstance(below, str):
    return f"({label} {below})"
  return f"({label} {' '.join(map(written, below))})"


def as_pair(tree, target_size, links):
  target = " ".join(f"t{place}" for place in range(target_size))
  return written(tree), target, " ".join(f"{s}-{t}" for s, t in sorted(links))


def leaves(tree):
  if isinstance(tree[1], str):
    return [tree[1]]
  return [word for child in tree[1] for word in leaves(child)]


@hypothesis.settings(max_examples=600)
@hypothesis.given(
  tree_pairs(),
  strategies.integers(1, 4),
  strategies.integers(0, 3),
  strategies.booleans(),
)
def test_equals_the_definition(pair, max_size, max_sites, attach_all):
  tree, target_size, links = pair
  options = dataclasses.replace(
    WIDE,
    max_size=max_size,
    max_sites=max_sites,
    attach="all" if attach_all else "tight",
  )
  found = extract([as_pair(*pair)], options)
  words = (leaves(tree), [f"t{place}" for place in range(target_size)])
  expected = reference.extract(
    tree,
    words,
    links,
    max_size=max_size,
    max_sites=max_sites,
    attach_all=attach_all,
  )
  assert collections.Counter(found) == collections.Counter(expected)


@hypothesis.settings(max_examples=500)
@hypothesis.given(tree_pairs(), strategies.booleans())
def test_minimal_rules_derive_their_sentence(pair, attach_all):
  tree, target_size, links = pair
  options = dataclasses.replace(
    WIDE, max_size=1, max_sites=9, attach="all" if attach_all else "tight"
  )
  rules = extract([as_pair(*pair)], options)
  strings = reference.derive(tree, rules)
  target = tuple(f"t{place}" for place in range(target_size))
  assert (target in strings) == bool(links)  # without a link, no rule


@hypothesis.settings(max_examples=100)
@hypothesis.given(
  strategies.lists(tree_pairs(), min_size=1, max_size=6),
  strategies.integers(1, 6),
)
def test_same_counts_in_any_shards(pairs, tokens):
  source, target, links, trees, _ = corpus([as_pair(*pair) for pair in pairs])
  options = shards.CountOptions(provenance=True)

  def counted(size):
    parts, _ = shards.count_rules(
      shards.split(source, target, links, trees=trees, tokens=size),
      [lambda shard: ghkm.tree_rules(shard, options=WIDE)],
      options=options,
      runner=Runner(kind="serial"),
    )
    return sorted_runs.merge(
      [sorted_runs.make_run(_nothing(), provenance=True), *parts]
    )

  one, many = counted(10**6), counted(tokens)
  for name, array in sorted_runs.to_arrays(one).items():
    np.testing.assert_array_equal(
      array, sorted_runs.to_arrays(many)[name], name
    )


def _nothing():
  return packed_rules.Emission(
    rows=packed_rules.Ragged(
      flat=np.zeros(0, np.int32), offsets=np.zeros(1, np.int64)
    ),
    sentences=np.zeros(0, np.int32),
    shares=np.zeros(0, np.int64),
  )


@pytest.mark.parametrize("binarize", [False, True])
def test_minimal_rules_derive_real_sentences(binarize):
  """In preorder of their roots, minimal rules are a derivation's preorder."""
  config = synthetic.SyntheticConfig(train=300, tune=0, test=0, noise=0.2)
  train = synthetic.generate(config).train
  pairs = list(
    zip(train.trees, train.references[0], train.links[0], strict=True)
  )
  source, target, links, trees, _ = corpus(pairs, binarize=binarize)
  options = dataclasses.replace(WIDE, max_size=1, max_sites=99)
  emission = ghkm.extract_rows(source, target, links, trees, options)
  columns = packed_rules.unpack(emission.rows)
  linked = np.flatnonzero(links.lengths).tolist()
  assert np.unique(emission.sentences).tolist() == linked
  upcoming = iter(range(len(columns.lhs)))

  def expand():
    rule = next(upcoming)
    sites = [expand() for _ in range((columns.source[rule] < 0).sum())]
    out = []
    for symbol in columns.target[rule].tolist():
      out += [symbol] if symbol >= 0 else sites[-1 - symbol]
    return out

  for sentence in linked:
    assert expand() == target[sentence].tolist()
  assert next(upcoming, None) is None


def test_binarised_trees_give_more_rules():
  pair = ("(A (B x) (C y) (D z))", "r p q", "0-1 1-2 2-0")
  plain = {flat(rule) for rule in extract([pair], WIDE)}
  binary = {flat(rule) for rule in extract([pair], WIDE, binarize=True)}
  assert "A -> @A0 D1 | D1 @A0" in binary
  assert {rule for rule in binary if "@A" not in rule} <= plain | binary
  assert "@A -> B0 C1 | B0 C1" in binary - plain


def test_rows_unpack_to_tree_to_string():
  source, target, links, trees, _ = corpus([EXAMPLE])
  emission = ghkm.extract_rows(source, target, links, trees, GhkmOptions())
  columns = packed_rules.unpack(emission.rows)
  assert (columns.kind == Kind.TREE_TO_STRING).all()
