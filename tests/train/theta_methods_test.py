"""The methods that loss-augmented training is compared with."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import translation_forest
from jaxmt.decode.forced import forced as force
from jaxmt.grammar import estimate
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.hypergraph import marginals
from jaxmt.train import theta_features, theta_methods
from jaxmt.train.theta_config import ThetaConfig
from jaxmt.train.training import Resources, RunOptions
from tests.reference import tiny_training as tiny

CONFIG = ThetaConfig(iterations=2, fallback="skip", shard=4, batch_cells=60)


@pytest.fixture(scope="module")
def world():
  return tiny.make()


def train(world, **changes):
  model, bitext = world
  config = dataclasses.replace(CONFIG, **changes)
  return theta_methods.train(
    model, bitext, config, options=RunOptions(search=tiny.SEARCH)
  )


def test_primary_is_the_relative_frequency_of_extraction(world):
  model, _ = world
  got = train(world, method="primary", alpha=0.0)
  np.testing.assert_allclose(
    got.theta, theta_features.theta_features(model), atol=1e-5
  )
  assert got.history == ()


def forced_counts(model, bitext, weigh):
  """Counts of forced derivations, the obvious way."""
  found = force.force(model, bitext.source, list(bitext.lines))
  weights = weigh(found.forest)
  total = np.zeros(len(model.table) + 1)
  rule = found.forest.edges.rule
  np.add.at(total, np.minimum(rule, len(model.table)), weights)
  return total[:-1], found.reached


def viterbi(model, bitext):
  def weigh(forest):
    best = translation_forest.kbest(model, bitext.source, forest, size=1)
    weights = np.zeros(forest.num_edges)
    weights[best.edges.flat] = 1.0
    return weights

  return weigh


def test_forced_counts_the_best_derivations_of_the_references(world):
  model, bitext = world
  got = train(world, method="forced")
  scaled = theta_features.scaled(model, CONFIG.scale)
  want, reached = forced_counts(scaled, bitext, viterbi(scaled, bitext))
  np.testing.assert_allclose(got.counts / COUNT_UNIT, want, atol=1e-6)
  assert len(got.history) == 1
  assert got.history[0]["admissible"] == reached.sum()


@pytest.mark.parametrize("counts", ["viterbi", "nbest", "forest"])
def test_likelihood_trains_on_the_derivations_of_the_references(world, counts):
  model, bitext = world
  got = train(
    world, method="likelihood", counts=counts, iterations=1, nbest=10_000
  )
  scaled = theta_features.scaled(model, CONFIG.scale)
  weigh = viterbi(scaled, bitext)
  if counts != "viterbi":
    weigh = marginals
  want, _ = forced_counts(scaled, bitext, weigh)
  np.testing.assert_allclose(got.counts / COUNT_UNIT, want, atol=1e-6)


def test_likelihood_rises_with_iterations(world):
  """Hard EM: the best derivations' rule probabilities grow."""
  got = train(
    world, method="likelihood", counts="viterbi", iterations=4, alpha=0.01
  )
  scores = [record["model_score"] for record in got.history]
  assert scores[-1] > scores[0]


def test_forced_without_own_singletons_reaches_less(world):
  free = train(world, method="forced")
  held = train(world, method="forced", leave_one_out="singletons")
  assert held.history[0]["admissible"] < free.history[0]["admissible"]
  # Taking own counts out leaves nothing of a rule nobody else has.
  soft = train(world, method="forced", leave_one_out="counts")
  assert soft.history[0]["admissible"] == held.history[0]["admissible"]
  _, bitext = world
  alone = np.unique(force.own_rules(bitext.provenance).flat)
  assert free.counts[alone].any() and not soft.counts[alone].any()


def test_own_rules_of_a_probability_by_length_reach_as_much(world):
  free = train(world, method="forced")
  held = train(world, method="forced", leave_one_out="lengths")
  assert held.history[0]["admissible"] == free.history[0]["admissible"]
  # Long rules of one sentence lose against short ones.
  model, bitext = world
  alone = np.unique(force.own_rules(bitext.provenance).flat)
  words = (model.table.source.lengths + model.table.target.lengths)[alone]
  size = lambda got: got.counts[alone] @ words / got.counts[alone].sum()
  assert size(held) < size(free)


def test_unreached_sentences_fall_back_on_as_many_counts_as_words(world):
  model, bitext = world
  how = {"method": "forced", "leave_one_out": "counts"}
  bare, full = train(world, **how), train(world, fallback="scaled", **how)
  found = force.force(
    model,
    bitext.source,
    list(bitext.lines),
    excluded=force.own_rules(bitext.provenance),
  )
  words = bitext.source.ids.lengths[~found.reached].sum()
  assert words > 0
  added = (full.counts - bare.counts).sum() / COUNT_UNIT
  np.testing.assert_allclose(added, words, rtol=1e-6)


def test_only_loss_augmented_training_falls_back_by_default(world):
  how = {"method": "forced", "leave_one_out": "counts"}
  bare, default = train(world, **how), train(world, fallback="default", **how)
  np.testing.assert_array_equal(bare.counts, default.counts)
  assert default.history[0]["fallbacks"] > 0
  assert default.history[0]["fallback_mass_share"] == 0.0
  how |= {"method": "loss-augmented", "constraint": 0.0}
  full = train(world, fallback="scaled", **how)
  default = train(world, fallback="default", **how)
  np.testing.assert_array_equal(full.counts, default.counts)
  assert default.history[0]["fallback_mass_share"] > 0.0


def test_searn_mixes_forced_and_seen(world):
  forced = train(world, method="forced")
  got = train(world, method="searn", iterations=1, searn_weight=0.25)
  model, bitext = world
  groups = estimate.group_rules(model.table)
  seen = theta_features.theta_of(got.counts, groups, CONFIG)
  want = np.log(
    0.25 * np.exp(seen) + 0.75 * np.exp(forced.theta.astype(np.float64))
  )
  np.testing.assert_allclose(got.theta, want, atol=1e-5)
  assert len(got.history) == 2
  # What is seen need not be near the reference.
  assert got.history[1]["admissible"] == len(bitext)


def test_best_bleu_uses_every_sentence(world):
  _, bitext = world
  got = train(world, method="best-bleu", nbest=20)
  assert [r["admissible"] for r in got.history] == [len(bitext)] * 2


@pytest.mark.parametrize("method", ["forced", "searn", "likelihood"])
def test_progress_ends_at_the_total_that_a_method_says(world, method):
  model, bitext = world
  sentences = []
  options = RunOptions(
    search=tiny.SEARCH, resources=Resources(on_shard=sentences.append)
  )
  config = dataclasses.replace(CONFIG, method=method)
  theta_methods.train(model, bitext, config, options=options)
  passes = theta_methods.find(method).passes(config)
  assert sum(sentences) == passes * len(bitext)


def test_a_name_is_taken_once():
  with pytest.raises(ValueError, match="'forced' exists already"):
    theta_methods.register(theta_methods.find("forced"))
  with pytest.raises(ValueError, match="'magic' is none of primary"):
    theta_methods.find("magic")
