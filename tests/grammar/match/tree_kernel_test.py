"""Exact matching of tree fragments against plain recursion."""

import hypothesis
import numpy as np
from hypothesis import strategies

from jaxmt.decode import loading
from jaxmt.decode import model as models
from jaxmt.grammar import formats
from jaxmt.grammar.match import matching
from jaxmt.grammar.match.matching import ORDINARY, MatchConfig
from tests.reference import bracketed, chart_cases
from tests.reference import tree_fragments as reference


def random_tree(rng, depth=3):
  label = "ABS"[rng.integers(3)]
  if depth == 0 or rng.random() < 0.3:
    return (label, "vw"[rng.integers(2)])
  size = rng.integers(1, 4)
  return (label, [random_tree(rng, depth - 1) for _ in range(size)])


def words(tree):
  inside = tree[1]
  if isinstance(inside, str):
    return [inside]
  return [word for kid in inside for word in words(kid)]


def run(tmp_path, lines, trees):
  path = tmp_path / "rules"
  path.write_text("".join(line + "\n" for line in lines))
  model = models.make_model(
    formats.read_all([str(path)], "travatar"),
    chart_cases.to_tables(
      chart_cases.random_lm(np.random.default_rng(0), 1), 1
    ),
    weights={"p": 1.0, "unk": -1.0},
    units=models.DIALECTS["travatar"],
    limits=MatchConfig(substitution="exact", targets=100, applications=500),
  )
  text = [" ".join(words(tree)) for tree in trees]
  spans = loading.make_spans(
    model, list(map(bracketed.format_tree, trees)), text
  )
  source = models.make_source(model, text, spans=spans)
  return model, matching.match(
    source.ids,
    table=model.table,
    trie=model.trie,
    ranked=model.ranked,
    scores=np.concatenate([model.columns.score, source.columns.score]),
    copies=source.copies,
    config=model.limits,
    spans=source.spans,
    width=model.arity,
  )


def yields(tree, rules):
  """How many derivations a tree has: products of sites, sums of rules."""
  found = [
    sites for one in rules if (sites := reference.match(one, tree)) is not None
  ]
  if not found:
    below = [] if isinstance(tree[1], str) else tree[1]
    return int(np.prod([yields(kid, rules) for kid in below]))
  return sum(
    int(np.prod([yields(site, rules) for site in sites])) for sites in found
  )


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(seed=strategies.integers(0, 10**6))
def test_matching_finds_what_recursion_finds(seed, tmp_path_factory):
  rng = np.random.default_rng(seed)
  trees = [random_tree(rng) for _ in range(3)]
  pool = [node for tree in trees[:2] for node, _, _ in reference.nodes(tree)]
  rules = {}
  for _ in range(8):
    fragment = reference.cut(pool[rng.integers(len(pool))], rng)
    rules[reference.spell(fragment)] = fragment
  lines = [
    f"{text} ||| {' '.join(f'x{n}' for n in range(len(reference.sites(one))))}"
    f' "t" ||| p=-{number}'
    for number, (text, one) in enumerate(rules.items())
  ]
  model, found = run(tmp_path_factory.mktemp("rules"), lines, trees)
  size = len(model.table)
  # Every node has its cell, children first.
  cell = np.repeat(np.arange(len(found)), np.diff(found.offsets))
  assert (found.child < cell[:, None]).all()
  ordinary = found.category == ORDINARY
  inner = found.child[np.flatnonzero(ordinary[cell])]
  level = found.level[cell[ordinary[cell]]]
  assert (np.where(inner >= 0, found.level[inner], -1) < level[:, None]).all()
  for row, tree in enumerate(trees):
    got = set()
    for item in np.flatnonzero(found.sentence[cell] == row):
      rule = int(found.rule[item])
      if rule < len(rules):
        spans = tuple(
          (int(found.begin[c]), int(found.end[c]))
          for c in found.child[item]
          if c >= 0
        )
        where = int(found.begin[cell[item]]), int(found.end[cell[item]])
        got.add((where, rule, spans))
    want = set()
    for node, begin, end in reference.nodes(tree):
      for number, one in enumerate(rules.values()):
        sites = reference.match(one, node)
        if sites is not None:
          inside = reference.nodes(node)
          spans = tuple(
            next((b + begin, e + begin) for n, b, e in inside if n is site)
            for site in sites
          )
          want.add(((begin, end), number, spans))
    assert got == want
    # As many derivations as recursion counts, unmatched nodes joined.
    total = np.zeros(len(found))
    for place in range(len(found)):
      for item in range(found.offsets[place], found.offsets[place + 1]):
        kids = [c for c in found.child[item] if c >= 0]
        total[place] += np.prod([total[c] for c in kids])
    assert total[found.goal[row]] == yields(tree, list(rules.values()))
  # Words that no rule matches are copied.
  copied = found.rule > size
  assert (np.diff(found.offsets)[cell[copied]] == 1).all()


def test_joined_children_count_once(tmp_path):
  trees = [("A", [("B", "v"), ("B", "w"), ("B", "v"), ("B", "w")])]
  model, found = run(tmp_path, ['B ( "v" ) ||| "t" ||| p=-1'], trees)
  names = list(model.table.feature_names)
  used = [r for r in found.rule.tolist() if r < len(model.table)]
  unknown = model.table.features[used, names.index("unk")].sum()
  assert unknown == 1  # the node of four children; copied words besides
  assert (found.rule > len(model.table)).sum() == 2


def test_sentences_without_a_tree_are_copied_word_by_word(tmp_path):
  model, found = run(tmp_path, ['B ( "v" ) ||| "t" ||| p=-1'], [("B", "v")])
  source = models.make_source(model, ["v w"])
  found = matching.match(
    source.ids,
    table=model.table,
    trie=model.trie,
    ranked=model.ranked,
    scores=np.concatenate([model.columns.score, source.columns.score]),
    copies=source.copies,
    config=model.limits,
    width=model.arity,
  )
  assert (found.rule > len(model.table)).sum() == 2
  assert found.goal[0] == len(found) - 1
