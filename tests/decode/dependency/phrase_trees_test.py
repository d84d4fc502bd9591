import numpy as np
import pytest

from jaxmt import hypergraph
from jaxmt.decode.chart import search
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.dependency import (
  configurations,
  lattice_chart,
  phrase_lattices,
  phrase_trees,
)
from jaxmt.decode.dependency import lattice as lattices
from jaxmt.decode.phrase import phrase_decoder, stack_forest
from tests.reference import dependency_trees
from tests.reference import lattice_trees as reference
from tests.reference import phrase_enumeration as enumeration


@pytest.fixture(scope="module")
def decoded():
  case = enumeration.random_case(3)
  model, source = enumeration.to_model(case, distortion=3)
  config = DecodeConfig(search=search.make_config(beam=300, pop=300))
  (part,) = [
    part
    for parts in phrase_decoder.decode(
      model, source, config=config, kernel=True
    )
    for part in parts
  ]
  return model, part, stack_forest.extract(model, part)


def small(decoded, edges=40):
  model, part, forest = decoded
  pruned = lattices.prune_to_budget(forest, edges=edges)
  return phrase_lattices.from_forest(model, part.source, pruned)


def test_without_arcs_the_best_path_is_the_decoders(decoded):
  model, part, forest = decoded
  found = phrase_lattices.from_forest(model, part.source, forest)
  for row, one in enumerate(found):
    lattices.check(one.lattice)
    weights = phrase_trees.fine_weights(model.weights, {})
    parts = configurations.arc_parts(one.lattice)
    np.testing.assert_allclose(
      phrase_trees.scored(one, weights).score, one.lattice.score, atol=1e-3
    )
    tree = phrase_trees.best(one, parts, weights)
    assert tree.score == pytest.approx(part.best().score[row], abs=1e-3)
    # Every source word is translated once.
    words = [w for begin, end in tree.spans for w in range(begin, end)]
    assert sorted(words) == list(range(part.source.ids.lengths[row]))
    assert dependency_trees.is_tree(tree.heads)


def test_lists_are_those_of_enumeration(decoded):
  rng = np.random.default_rng(0)
  weights = dict(
    zip(
      phrase_trees.NAMES, rng.normal(size=len(phrase_trees.NAMES)), strict=True
    )
  )
  given = weights | {phrase_trees.PHRASE_SCORE: 0.5}
  weights = phrase_trees.fine_weights(decoded[0].weights, given)
  for one in small(decoded):
    length = int(one.lattice.span.max())
    tree = configurations.source_tree(np.arange(-1, length - 1))
    parts = configurations.arc_parts(one.lattice, tree=tree)
    arcs = configurations.scores(parts, weights)
    wanted = {}
    scored = phrase_trees.scored(one, weights)
    for path, _, score in reference.derivations(scored, arcs):
      text = " ".join(one.text[edge] for edge in path if one.text[edge])
      wanted[text] = max(score, wanted.get(text, -np.inf))
    found = phrase_trees.kbest(one, parts, weights, size=len(wanted) + 3)
    scores = dict(zip(found.text, found.score.tolist(), strict=True))
    assert len(scores) == len(found)
    assert scores == pytest.approx(wanted, abs=1e-3)
    assert found.score.tolist() == sorted(found.score, reverse=True)
    totals = found.values @ [weights.get(name, 0.0) for name in found.names]
    np.testing.assert_allclose(totals, found.score, atol=1e-3)
    best = phrase_trees.best(one, parts, weights)
    assert best.score == pytest.approx(found.score[0], abs=1e-3)
    assert best.text == found.text[0]


def test_limits_may_leave_no_tree(decoded):
  for one in small(decoded):
    parts = configurations.arc_parts(one.lattice, target_limit=-1)
    if len({tuple(span) for span in one.lattice.span.tolist()}) > 3:
      longest = lattices.longest_paths(one.lattice)
      assert longest.max() > 0
    counts = lattice_chart.total(
      one.lattice, configurations.scores(parts, {}), semiring="max"
    )
    tree = phrase_trees.best(one, parts, {})
    assert (tree is None) == (counts == -np.inf)


def test_pruned_lattices_keep_the_best_path(decoded):
  forest = decoded[2]
  pruned = lattices.prune_to_budget(forest, edges=20)
  best = lambda one: hypergraph.viterbi(one).score[one.roots]
  np.testing.assert_allclose(best(pruned), best(forest))
