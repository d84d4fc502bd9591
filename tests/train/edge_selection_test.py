"""What is selected, against all derivations of small forests."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import translation_forest
from jaxmt.decode.forced import forced as force
from jaxmt.grammar.match.matching import GLUE, ORDINARY
from jaxmt.grammar.table import Kind
from jaxmt.hypergraph import (
  best_derivations,
  marginals,
  root_edges,
  sum_values,
  viterbi,
)
from jaxmt.train import (
  beam_diagnosis,
  derivation_losses,
  edge_selection,
  explain,
)
from jaxmt.train.theta_config import ThetaConfig
from tests.reference import tiny_training as tiny

FREE = ThetaConfig(constraint=100.0, k=3, margin=2, cost=2.0)


def spell(model, source, forest, held, edges):
  strings = translation_forest.edge_strings(model, source, forest)
  return best_derivations(forest, held, edges, strings=strings)[1]


def every(model, bitext, forest):
  """All derivations of the forests with their exact augmented parts."""
  return translation_forest.kbest(model, bitext.source, forest, size=20_000)


def exact_scores(bitext, forest, found, config):
  score = sum_values(found.edges, forest.score)
  score -= config.alpha1 * edge_selection.beam_losses(
    forest, found.edges, config
  )
  good = derivation_losses.goodness(config.goodness)
  return score - config.alpha2 * good(
    found.words, bitext.references, found.sentence
  )


@pytest.fixture(scope="module")
def world():
  return tiny.make()


@pytest.mark.parametrize("alphas", [(0.0, 2.0), (0.4, 0.0), (0.3, 2.0)])
def test_viterbi_is_the_argmax_over_all_derivations(world, alphas):
  model, bitext = world
  config = dataclasses.replace(
    FREE,
    counts="viterbi",
    alpha1=alphas[0],
    alpha2=alphas[1],
    state="accumulators",
  )
  result, forest = tiny.forests(model, bitext, config, tiny.WIDE)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  found = every(model, bitext, forest)
  exact = exact_scores(bitext, forest, found, config)
  for row in range(len(bitext)):
    here = slice(found.offsets[row], found.offsets[row + 1])
    top = exact[here].max()
    np.testing.assert_allclose(chosen.augmented[row], top, atol=2e-4)
    edges = np.flatnonzero(chosen.weights * in_sentence(forest, row))
    best = [
      set(found.edges[d].tolist())
      for d in range(here.start, here.stop)
      if exact[d] > top - 1e-3
    ]
    assert set(edges.tolist()) in best
  assert len(found.score) > 30


@pytest.mark.parametrize("alphas", [(0.1, 5.0), (2.0, 0.0), (0.0, 5.0)])
def test_the_shipped_state_selects_a_derivation_with_its_exact_score(
  world, alphas
):
  """Merging by language model state is a pruning: it may miss the best.

  But the score of what it selects is exact, and it rarely misses.
  """
  model, bitext = world
  config = dataclasses.replace(
    FREE, counts="viterbi", alpha1=alphas[0], alpha2=alphas[1], state="lm"
  )
  result, forest = tiny.forests(model, bitext, config, tiny.WIDE)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  found = every(model, bitext, forest)
  exact = exact_scores(bitext, forest, found, config)
  reached = 0
  for row in range(len(bitext)):
    here = range(found.offsets[row], found.offsets[row + 1])
    edges = np.flatnonzero(chosen.weights * in_sentence(forest, row))
    [own] = [d for d in here if set(found.edges[d].tolist()) == set(edges)]
    np.testing.assert_allclose(chosen.augmented[row], exact[own], atol=2e-4)
    reached += exact[own] > exact[here].max() - 1e-3
  assert reached >= len(bitext) - 1


def in_sentence(forest, row):
  edges = np.diff(forest.edge_offsets[forest.node_offsets])
  return np.repeat(np.arange(len(forest)), edges) == row


FLAT = dict.fromkeys(tiny.WEIGHTS, 0.0) | {"target_given_source": 0.5}


def hypothesis_scores(model, result, forest):
  """For each node the scores of its cell, and its own among them."""
  found = result.matches
  keys = zip(
    found.sentence, found.begin, found.end, found.category, strict=True
  )
  cells = dict(zip(keys, found.place, strict=True))
  # A hypothesis is the best of its candidates by augmented score.
  held = viterbi(forest, forest.edges.augmented)
  paths, _ = best_derivations(forest, held, held.back)
  size = len(model.table)
  glue = np.append(model.table.kind == Kind.GLUE, [False, False])
  node_row = np.searchsorted(
    forest.node_offsets, np.arange(len(paths)), "right"
  )
  for node in range(len(paths)):
    rule = forest.edges.rule[forest.edge_offsets[node]]
    category = GLUE if glue[min(rule, size + 1)] else ORDINARY
    span = (
      node_row[node] - 1,
      forest.nodes.begin[node],
      forest.nodes.end[node],
    )
    if rule == size:  # the goal
      yield None, None
      continue
    scores = result.beams.score[cells[*span, category]]
    own = forest.score[paths[node]].sum()
    near = np.abs(scores - own).argmin()
    assert abs(scores[near] - own) < 1e-4
    yield scores, scores[near]


@pytest.mark.parametrize("weights", [{}, FLAT], ids=["tuned", "flat"])
def test_ranks_are_those_among_the_scores_of_the_beam(weights):
  """loss_beam from what the beams hold; equal scores have one rank."""
  model, bitext = tiny.make(**weights)
  config = dataclasses.replace(FREE, alpha1=0.3, alpha2=1.0)
  result, forest = tiny.forests(model, bitext, config)
  loss, tied = np.zeros(forest.num_nodes), 0
  for node, (scores, own) in enumerate(
    hypothesis_scores(model, result, forest)
  ):
    if scores is not None:
      rank = 1 + np.sum(scores > own + np.float32(1e-4))
      tied += np.sum(np.abs(scores - own) < 1e-4) > 1
      loss[node] = derivation_losses.beam_loss(rank, k=3, margin=2, cost=2.0)
  found = translation_forest.kbest(model, bitext.source, forest, size=500)
  got = edge_selection.beam_losses(forest, found.edges, config)
  heads = forest.heads[found.edges.flat]
  want = np.add.reduceat(loss[heads], found.edges.offsets[:-1])
  np.testing.assert_allclose(got, want, atol=1e-9)
  assert want.max() > 2
  assert tied > 20 or not weights


def test_search_and_selection_agree_on_ties():
  """A kept derivation's augmented score is its model score less its loss."""
  model, bitext = tiny.make(**FLAT)
  config = dataclasses.replace(FREE, alpha1=0.4, alpha2=0.0)
  _, forest = tiny.forests(model, bitext, config)
  held = viterbi(forest, forest.edges.augmented)
  roots, _ = root_edges(forest)
  paths, _ = best_derivations(forest, held, roots)
  want = np.add.reduceat(forest.score[paths.flat], paths.offsets[:-1])
  want -= 0.4 * edge_selection.beam_losses(forest, paths, config)
  np.testing.assert_allclose(held.through[roots], want, atol=1e-4)


@pytest.mark.parametrize("counts", ["viterbi", "nbest", "forest"])
def test_without_losses_it_is_plain_training_on_what_the_beam_has(
  world, counts
):
  model, bitext = world
  config = dataclasses.replace(
    FREE, counts=counts, alpha1=0.0, alpha2=0.0, nbest=20_000
  )
  result, forest = tiny.forests(model, bitext, config)
  assert forest.edges.augmented is None
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  if counts == "viterbi":
    first = translation_forest.kbest(model, result.source, forest, size=1)
    want = np.zeros(forest.num_edges)
    want[first.edges.flat] = 1.0
  else:  # all derivations are listed, so both are the posteriors
    want = marginals(forest)
  np.testing.assert_allclose(chosen.weights, want, atol=1e-5)
  np.testing.assert_allclose(chosen.searched, chosen.model, atol=1e-4)


@pytest.mark.parametrize("counts", ["viterbi", "nbest", "forest"])
def test_every_sentence_counts_one_derivation(world, counts):
  model, bitext = world
  config = dataclasses.replace(FREE, counts=counts, nbest=20)
  result, forest = tiny.forests(model, bitext, config)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  roots, sentence = root_edges(forest)
  mass = np.bincount(sentence, chosen.weights[roots], minlength=len(bitext))
  np.testing.assert_allclose(mass, 1.0)
  # What goes into a node comes out of it.
  heads = np.bincount(forest.heads, chosen.weights, minlength=forest.num_nodes)
  tails = np.zeros(forest.num_nodes)
  for part in range(forest.tails.shape[1]):
    use = forest.tails[:, part] >= 0
    np.add.at(tails, forest.tails[use, part], chosen.weights[use])
  below = np.ones(len(tails), bool)
  below[forest.node_offsets[1:] - 1] = False
  np.testing.assert_allclose(heads[below], tails[below], atol=1e-12)


def test_nbest_posteriors_are_those_of_exact_scores(world):
  model, bitext = world
  config = dataclasses.replace(
    FREE, counts="nbest", nbest=20_000, alpha1=0.2, alpha2=1.5
  )
  result, forest = tiny.forests(model, bitext, config)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  found = every(model, bitext, forest)
  exact = exact_scores(bitext, forest, found, config)
  want = np.zeros(forest.num_edges)
  for row in range(len(bitext)):
    here = range(found.offsets[row], found.offsets[row + 1])
    value = np.exp(exact[here] - exact[here].max())
    value /= value.sum()
    for number, weight in zip(here, value, strict=True):
      want[found.edges[number]] += weight
  np.testing.assert_allclose(chosen.weights, want, atol=1e-9)


def test_inadmissible_strings_are_not_used(world):
  model, bitext = world
  for counts in ("viterbi", "nbest"):
    config = dataclasses.replace(
      FREE, counts=counts, constraint=0.0, nbest=200, alpha2=0.0
    )
    result, forest = tiny.forests(model, bitext, config)
    chosen = edge_selection.select(
      model, result.source, forest, bitext.references, config
    )
    roots, sentence = root_edges(forest)
    held = viterbi(forest, forest.edges.augmented)
    strings = spell(model, result.source, forest, held, roots)
    right = derivation_losses.admissible(
      strings, bitext.references, sentence, share=0.0
    )
    assert not chosen.weights[roots[~right]].any()
    reached = np.bincount(sentence, right, minlength=len(bitext)) > 0
    np.testing.assert_array_equal(chosen.admissible, reached)
    assert 0 < reached.sum()


def test_a_large_alpha2_reaches_what_forced_decoding_reaches(world):
  model, bitext = world
  config = dataclasses.replace(
    FREE,
    counts="viterbi",
    alpha1=0.0,
    alpha2=1e3,
    goodness="wer",
    state="accumulators",
  )
  result, forest = tiny.forests(model, bitext, config, tiny.WIDE)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  forced = force.force(model, bitext.source, list(bitext.lines))
  roots, sentence = root_edges(forest)
  used = roots[chosen.weights[roots] > 0]
  held = viterbi(forest, forest.edges.augmented)
  strings = spell(model, result.source, forest, held, used)
  equal = derivation_losses.admissible(
    strings, bitext.references, sentence[chosen.weights[roots] > 0], share=0.0
  )
  assert forced.reached.sum() >= 8
  assert equal[forced.reached].all()


def test_a_large_alpha2_finds_nothing_worse_than_the_reference(world):
  """By equation (11), whose counts are not clipped: others can be better."""
  model, bitext = world
  config = dataclasses.replace(
    FREE, counts="viterbi", alpha1=0.0, alpha2=1e3, state="accumulators"
  )
  result, forest = tiny.forests(model, bitext, config, tiny.WIDE)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  forced = force.force(model, bitext.source, list(bitext.lines))
  held = viterbi(forest, forest.edges.augmented)
  roots, sentence = root_edges(forest)
  used = chosen.weights[roots] > 0
  strings = spell(model, result.source, forest, held, roots[used])
  rows = sentence[used]
  assert rows.tolist() == list(range(len(bitext)))
  loss = derivation_losses.goodness("bleu")
  got = loss(strings, bitext.references, rows)
  best = loss(bitext.references, bitext.references, rows)
  assert forced.reached.sum() >= 8
  assert (got <= best + 1e-4)[forced.reached].all()
  equal = derivation_losses.admissible(
    strings, bitext.references, rows, share=0.0
  )
  assert equal.sum() >= 5


def test_a_sentence_without_a_near_derivation_in_its_list_is_left_out(
  world, monkeypatch
):
  model, bitext = world
  config = dataclasses.replace(FREE, counts="nbest", nbest=5)
  result, forest = tiny.forests(model, bitext, config)
  roots = len(root_edges(forest)[0])
  near = derivation_losses.admissible

  def without_first(strings, references, sentence, *, share):
    found = near(strings, references, sentence, share=share)
    return found if len(strings) == roots else found & (sentence > 0)

  monkeypatch.setattr(derivation_losses, "admissible", without_first)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  assert chosen.admissible.tolist() == [False] + [True] * (len(bitext) - 1)
  assert not (chosen.weights * in_sentence(forest, 0)).any()
  for values in (chosen.model, chosen.augmented):
    np.testing.assert_array_equal(np.isnan(values), ~chosen.admissible)


def test_another_metric_is_exact_at_the_root(world):
  model, bitext = world
  config = dataclasses.replace(
    FREE, counts="viterbi", alpha1=0.1, alpha2=3.0, goodness="ter"
  )
  result, forest = tiny.forests(model, bitext, config)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  found = every(model, bitext, forest)
  exact = exact_scores(bitext, forest, found, config)
  rows = {tuple(sorted(found.edges[d])): exact[d] for d in range(len(exact))}
  for row in range(len(bitext)):
    edges = np.flatnonzero(chosen.weights * in_sentence(forest, row))
    np.testing.assert_allclose(
      chosen.augmented[row], rows[tuple(edges)], atol=1e-4
    )


def test_best_bleu_takes_the_best_of_the_list(world):
  model, bitext = world
  config = ThetaConfig(method="best-bleu", nbest=50)
  result, forest = tiny.forests(model, bitext, config)
  chosen = edge_selection.best_bleu(
    model, result.source, forest, bitext.references, config
  )
  found = translation_forest.kbest(model, result.source, forest, size=50)
  bleu = -derivation_losses.goodness("bleu+1")(
    found.words, bitext.references, found.sentence
  )
  for row in range(len(bitext)):
    here = slice(found.offsets[row], found.offsets[row + 1])
    best = here.start + int(np.argmax(bleu[here]))
    edges = np.flatnonzero(chosen.weights * in_sentence(forest, row))
    assert set(edges.tolist()) == set(found.edges[best].tolist())


@pytest.mark.parametrize("limit", [0.0, 0.25, 0.5])
def test_forest_counts_are_of_near_derivations_alone(world, limit):
  """Posteriors of the admissible derivations among all, listed one by one."""
  model, bitext = world
  config = dataclasses.replace(
    FREE,
    counts="forest",
    constraint=limit,
    alpha1=0.1,
    alpha2=0.5,
    samples=4000,
  )
  result, forest = tiny.forests(model, bitext, config)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  found = translation_forest.kbest(
    model,
    bitext.source,
    forest,
    size=20_000,
    scores=forest.edges.augmented.astype(np.float64),
  )
  near = derivation_losses.admissible(
    found.words, bitext.references, found.sentence, share=limit
  )
  want, used = np.zeros(forest.num_edges), np.zeros(forest.num_edges, bool)
  shares = np.zeros(len(bitext))
  for row in range(len(bitext)):
    here = np.arange(found.offsets[row], found.offsets[row + 1])
    value = np.exp(found.score[here] - found.score[here].max())
    shares[row] = value[near[here]].sum() / value.sum()
    for number, weight in zip(here, value * near[here], strict=True):
      used[found.edges[number]] |= near[number]
      want[found.edges[number]] += weight / max(value @ near[here], 1e-300)
  # No edge counts that only inadmissible derivations have.
  assert not chosen.weights[~used].any()
  np.testing.assert_allclose(chosen.near, shares, atol=0.04)
  likely = np.repeat(shares > 0.05, np.diff(edge_bounds(forest)))
  np.testing.assert_allclose(chosen.weights[likely], want[likely], atol=0.1)
  np.testing.assert_array_equal(
    chosen.admissible[shares > 0.05], shares[shares > 0.05] > 0
  )
  # Some root edges have derivations on both sides.
  assert limit > 0.25 or ((shares > 0) & (shares < 0.95)).any()


def edge_bounds(forest):
  return forest.edge_offsets[forest.node_offsets]


def test_forest_counts_that_nothing_constrains_are_marginals(world):
  model, bitext = world
  config = dataclasses.replace(FREE, counts="forest", samples=3)
  result, forest = tiny.forests(model, bitext, config)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  np.testing.assert_allclose(
    chosen.weights, marginals(forest, forest.edges.augmented), atol=1e-9
  )
  assert (chosen.near == 1).all()


def test_a_sentence_without_a_near_draw_counts_its_best_derivation(world):
  """One draw of a flat forest is hardly ever the reference."""
  model, bitext = world
  config = dataclasses.replace(
    FREE,
    counts="forest",
    constraint=0.0,
    samples=1,
    posterior_scale=1e-6,
  )
  result, forest = tiny.forests(model, bitext, config)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  missed = np.flatnonzero((chosen.near == 0) & chosen.admissible)
  assert len(missed) > 1
  for row in missed:
    edges = np.flatnonzero(chosen.weights * in_sentence(forest, row))
    assert set(edges) == set(chosen.chosen[row].tolist())


def test_chosen_parts_have_the_plain_decoder_s_ranks(world):
  """Without losses the augmented search ranks as the plain decoder does.

  With them, a state is represented by its best derivation by augmented score:
  its parts can rank otherwise than in the plain decoder, but rarely do.
  """
  model, bitext = world
  plain = dataclasses.replace(FREE, alpha1=0.0, alpha2=0.0)
  config = dataclasses.replace(FREE, counts="viterbi", alpha1=0.3, alpha2=2.0)
  result, forest = tiny.forests(model, bitext, config)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, config
  )
  decoded, _ = tiny.forests(model, bitext, plain)
  ranks = beam_diagnosis.plain_ranks(model, forest, chosen.chosen, decoded)
  own = beam_diagnosis.node_ranks(forest, chosen.chosen)
  assert ranks.lengths.tolist() == own.lengths.tolist()
  assert np.mean(ranks.flat == own.flat) > 0.8
  # By hand: scores of the plain decoder's beams that are better.
  cells = explain.cells_by_span(decoded)
  for row in range(len(bitext)):
    below = beam_diagnosis.below_root(forest, chosen.chosen)[row]
    for edge, rank in zip(below, ranks[row], strict=True):
      node = forest.heads[edge]
      rule = forest.edges.rule[edge]
      glue = rule < len(model.table) and model.table.kind[rule] == Kind.GLUE
      span = (forest.nodes.begin[node], forest.nodes.end[node])
      cell = cells[row, *map(int, span), GLUE if glue else ORDINARY]
      score = forest.score[subtree(forest, chosen.chosen[row], node)].sum()
      there = decoded.beams.score[cell]
      assert rank == 1 + np.sum(there > score + 1e-4)


def subtree(forest, edges, node):
  """Edges of a derivation at and below a node."""
  by_head = {int(forest.heads[edge]): int(edge) for edge in edges}
  out, waiting = [], [int(node)]
  while waiting:
    edge = by_head[waiting.pop()]
    out.append(edge)
    waiting += [int(t) for t in forest.tails[edge] if t >= 0]
  return out
