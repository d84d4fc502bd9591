import numpy as np
import pytest

from jaxmt.decode.dependency import configurations, probabilities
from jaxmt.decode.dependency import lattice as lattices
from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.decode.dependency.probabilities import Dependencies
from jaxmt.grammar.extract import phrase_dependencies
from jaxmt.grammar.extract.phrase_dependencies import DependencyOptions
from tests.grammar.extract.phrase_dependencies_test import (
  LIMITS,
  SERIAL,
  as_pairs,
  random_corpus,
)
from tests.reference import phrase_dependencies as reference


@pytest.fixture(scope="module")
def corpus():
  return random_corpus(4, 80)


@pytest.fixture(scope="module")
def dependencies(corpus):
  table = phrase_dependencies.extract(
    phrase_dependencies.split(as_pairs(corpus)),
    options=DependencyOptions(length=3),
    runner=SERIAL,
  )
  words = {word for one in corpus for word in one[1]}
  return Dependencies(
    table=table, clusters={word: f"c{int(word[1]) // 2}" for word in words}
  )


def lattice_of(rng, source):
  """Random phrases over a sentence: edges of several paths."""
  start = np.sort(rng.integers(0, 4, 14)).astype(np.int32)
  begin = rng.integers(0, len(source), 14)
  end = np.minimum(begin + rng.integers(1, 3, 14), len(source))
  text = tuple(
    " ".join(f"t{w}" for w in rng.integers(0, 4, rng.integers(1, 3)))
    for _ in range(14)
  )
  final = np.full(6, -np.inf, np.float32)
  final[-1] = 0.0
  return Lattice(
    start=start,
    end=np.minimum(start + rng.integers(1, 3, 14), 5).astype(np.int32),
    score=np.zeros(14, np.float32),
    final=final,
    words=np.array([len(phrase.split()) for phrase in text], np.int32),
    span=np.stack([begin, end], 1).astype(np.int32),
  ), text


def expected(table, lattice, text, source, clusters, child, parent):
  """Features of an arc, by the definition."""
  target, spans = [], []
  for edge in (child, parent):
    words = [] if edge < 0 else text[edge].split()
    spans.append((len(target), len(target) + len(words)))
    target += words
  own, other = spans
  pair = [None if e < 0 else tuple(lattice.span[e]) for e in (child, parent)]
  if parent < 0:
    other = None
  else:
    # Places that say on which side, and whether there is a gap.
    right = lattice.start[child] >= lattice.end[parent]
    one, two = (parent, child) if right else (child, parent)
    shift = 50 + int(lattice.end[one] != lattice.start[two])
    first = other if right else own
    pads = ["x"] * (shift - 50)
    ordered = target[slice(*first)] + pads
    second = own if right else other
    at = (len(ordered), len(ordered) + second[1] - second[0])
    target = ordered + target[slice(*second)]
    head = (0, first[1] - first[0])
    own, other = (at, head) if right else (head, at)
  kinds = [clusters.get(word, "?") for word in target]
  values = {}
  for given in (None, tuple(pair)):
    for name, context, outcome in reference.events(
      source, target, kinds, given, own, other
    ):
      values[name] = table.get((name, context, outcome), 0.0)
      lexical = {
        "dep_phrase": "dep_word",
        "dep_phrase_cluster": "dep_word_cluster",
      }
      if name in lexical:
        key = (lexical[name], context, outcome)
        values[lexical[name]] = table.get(key, 0.0)
  return {name: value for name, value in values.items() if value}


@pytest.mark.parametrize("seed", range(3))
def test_scores_and_values_are_those_of_the_reference(
  seed, corpus, dependencies
):
  rng = np.random.default_rng(seed)
  source = [f"s{w}" for w in rng.integers(0, 4, 5)]
  lattice, text = lattice_of(rng, source)
  table = reference.table(corpus, LIMITS)
  options = probabilities.option_keys(lattice, text, source, dependencies)
  groups = ("target-tree", "rules")
  parts = configurations.arc_parts(lattice, options=options, groups=groups)
  names = [n for group in groups for n in configurations.NAMES[group]]
  assert parts.names == tuple(names) and len(names) == 15
  weights = dict(zip(names, rng.normal(size=15), strict=True))
  arcs = configurations.scores(parts, weights)
  seen = 0
  longest = lattices.longest_paths(lattice)
  for left in range(14):
    values = configurations.root_values(parts, left)
    wanted = expected(
      table, lattice, text, source, dependencies.clusters, left, -1
    )
    assert values == pytest.approx(wanted, rel=1e-5)
    total = sum(weights[name] * value for name, value in wanted.items())
    assert arcs.root[left] == pytest.approx(total, abs=1e-4)
    for right in range(14):
      if longest[lattice.end[left], lattice.start[right]] < 0:
        continue
      for child, parent, score in (
        (left, right, arcs.left[left, right]),
        (right, left, arcs.right[left, right]),
      ):
        wanted = expected(
          table, lattice, text, source, dependencies.clusters, child, parent
        )
        values = configurations.values(
          parts, left, right, rightward=child == right
        )
        assert values == pytest.approx(wanted, rel=1e-5)
        total = sum(weights[name] * value for name, value in wanted.items())
        assert score == pytest.approx(total, abs=1e-4)
        seen += len(wanted)
  assert seen > 20


def test_groups_can_be_left_out(dependencies):
  rng = np.random.default_rng(7)
  source = ["s0", "s1", "s2"]
  lattice, text = lattice_of(rng, source)
  options = probabilities.option_keys(lattice, text, source, dependencies)
  tree = configurations.source_tree(np.array([1, -1, 1]))
  every = dict.fromkeys(
    (name for group in configurations.NAMES.values() for name in group), 1.0
  )
  assert len(every) == 88
  make = lambda groups: configurations.arc_parts(
    lattice, tree=tree, options=options, groups=groups
  )
  nothing = configurations.scores(make(()), every)
  assert not nothing.right[nothing.right > -np.inf].any()
  assert not nothing.root.any()
  sums = configurations.scores(make(configurations.GROUPS), every)
  parts = [
    configurations.scores(make((group,)), every)
    for group in configurations.GROUPS
  ]
  there = sums.right > -np.inf
  np.testing.assert_allclose(
    sums.right[there], sum(p.right for p in parts)[there], rtol=1e-4
  )
  np.testing.assert_allclose(sums.root, sum(p.root for p in parts), rtol=1e-4)
  with pytest.raises(ValueError, match="no group 'x'"):
    make(("x",))
