"""What is selected, against all derivations of small forests."""

import dataclasses

import numpy as np
import pytest

from jaxmt.chart import force, forest_posteriors, kbest
from jaxmt.data.ragged import Ragged
from jaxmt.train import kept, losses, select
from jaxmt.train.config import ThetaConfig
from tests.reference import tiny_training as tiny

FREE = ThetaConfig(constraint=100.0, k=3, margin=2, cost=2.0)


def every(model, bitext, forest):
  """All derivations of the forests with their exact augmented parts."""
  return kbest.best(model, bitext.source, forest, size=20_000)


def exact_scores(bitext, forest, found, config):
  score = kbest.features(found, forest.score)
  score -= config.alpha1 * select.beam_losses(forest, found.edges, config)
  good = losses.goodness(config.goodness)
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
  chosen = select.select(
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


def in_sentence(forest, row):
  edges = np.diff(forest.edge_offsets[forest.node_offsets])
  return np.repeat(np.arange(len(forest)), edges) == row


def test_ranks_of_nodes_are_those_of_their_cells(world):
  """loss_beam, from the scores of all hypotheses of a cell."""
  model, bitext = world
  config = dataclasses.replace(FREE, alpha1=0.3, alpha2=1.0)
  result, forest = tiny.forests(model, bitext, config)
  found = every(model, bitext, forest)
  got = select.beam_losses(forest, found.edges, config)
  heads = np.searchsorted(forest.edge_offsets, found.edges.flat, "right") - 1
  for row in range(0, len(found.score), 7):
    own = heads[found.edges.offsets[row] : found.edges.offsets[row + 1]]
    ranks = forest.rank[own[1:]] + 1  # without the goal
    want = losses.beam_loss(ranks, k=3, margin=2, cost=2.0).sum()
    np.testing.assert_allclose(got[row], want)
  del result


@pytest.mark.parametrize("counts", ["viterbi", "nbest", "forest"])
def test_without_losses_it_is_plain_training_on_what_the_beam_has(
  world, counts
):
  model, bitext = world
  config = dataclasses.replace(
    FREE, counts=counts, alpha1=0.0, alpha2=0.0, nbest=20_000
  )
  result, forest = tiny.forests(model, bitext, config)
  assert forest.augmented is None
  chosen = select.select(
    model, result.source, forest, bitext.references, config
  )
  if counts == "viterbi":
    first = kbest.best(model, result.source, forest, size=1)
    want = np.zeros(len(forest.rule))
    want[first.edges.flat] = 1.0
  else:  # all derivations are listed, so both are the posteriors
    want, _ = forest_posteriors.posteriors(forest)
  np.testing.assert_allclose(chosen.weights, want, atol=1e-5)
  np.testing.assert_allclose(chosen.searched, chosen.model, atol=1e-4)


@pytest.mark.parametrize("counts", ["viterbi", "nbest", "forest"])
def test_every_sentence_counts_one_derivation(world, counts):
  model, bitext = world
  config = dataclasses.replace(FREE, counts=counts, nbest=20)
  result, forest = tiny.forests(model, bitext, config)
  chosen = select.select(
    model, result.source, forest, bitext.references, config
  )
  roots, sentence = kept.root_edges(forest)
  mass = np.bincount(sentence, chosen.weights[roots], minlength=len(bitext))
  np.testing.assert_allclose(mass, 1.0)
  # What goes into a node comes out of it.
  heads = np.bincount(forest.heads, chosen.weights, minlength=len(forest.rank))
  tails = np.zeros(len(forest.rank))
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
  chosen = select.select(
    model, result.source, forest, bitext.references, config
  )
  found = every(model, bitext, forest)
  exact = exact_scores(bitext, forest, found, config)
  want = np.zeros(len(forest.rule))
  for row in range(len(bitext)):
    here = range(found.offsets[row], found.offsets[row + 1])
    value = np.exp(exact[here] - exact[here].max())
    value /= value.sum()
    for number, weight in zip(here, value, strict=True):
      want[found.edges[number]] += weight
  np.testing.assert_allclose(chosen.weights, want, atol=1e-9)


def test_inadmissible_strings_are_not_used(world):
  model, bitext = world
  for counts in ("viterbi", "nbest", "forest"):
    config = dataclasses.replace(
      FREE, counts=counts, constraint=0.0, nbest=200, alpha2=0.0
    )
    result, forest = tiny.forests(model, bitext, config)
    chosen = select.select(
      model, result.source, forest, bitext.references, config
    )
    roots, sentence = kept.root_edges(forest)
    scores = forest.score if forest.augmented is None else forest.augmented
    strings = kept.spell(model, forest, kept.keep(forest, scores), roots)
    right = losses.admissible(strings, bitext.references, sentence, share=0.0)
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
  chosen = select.select(
    model, result.source, forest, bitext.references, config
  )
  forced = force.force(model, bitext.source, list(bitext.lines))
  roots, sentence = kept.root_edges(forest)
  used = roots[chosen.weights[roots] > 0]
  strings = kept.spell(model, forest, kept.keep(forest, forest.augmented), used)
  equal = losses.admissible(
    strings, bitext.references, sentence[chosen.weights[roots] > 0], share=0.0
  )
  assert forced.reached.sum() >= 8
  assert equal[forced.reached].all()


def test_another_metric_is_exact_at_the_root(world):
  model, bitext = world
  config = dataclasses.replace(
    FREE, counts="viterbi", alpha1=0.1, alpha2=3.0, goodness="ter"
  )
  result, forest = tiny.forests(model, bitext, config)
  chosen = select.select(
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
  chosen = select.best_bleu(
    model, result.source, forest, bitext.references, config
  )
  found = kbest.best(model, result.source, forest, size=50)
  bleu = -losses.goodness("bleu+1")(
    found.words, bitext.references, found.sentence
  )
  for row in range(len(bitext)):
    here = slice(found.offsets[row], found.offsets[row + 1])
    best = here.start + int(np.argmax(bleu[here]))
    edges = np.flatnonzero(chosen.weights * in_sentence(forest, row))
    assert set(edges.tolist()) == set(found.edges[best].tolist())


def test_copied_words_are_the_words_of_the_table(world):
  model, bitext = world
  size = len(model.table.target_words)
  place = bitext.source.words.index("alt")
  rows = Ragged(flat=np.array([5, size + place]), offsets=np.array([0, 2]))
  got = select.same_words(model, bitext.source, rows)
  assert got.flat.tolist() == [5, size + place]  # the target has no "alt"
