"""Violation-fixing updates of bracketing grammars with a reordering model."""

import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.decode.chart import search
from jaxmt.train.shard_store import MemoryStore
from jaxmt.train.violation import (
  forced_forests,
  learner,
  minibatch,
  partial_derivations,
  updates,
)
from jaxmt.train.violation.learn_config import LearnConfig
from tests.reference import tiny_training
from tests.train import tiny_btg
from tests.train.violation import worlds


def settings(**changes):
  return LearnConfig(
    **{
      "templates": ("edges:simple",),
      "minibatch": 4,
      "length_search": "none",
      **changes,
    }
  )


def make_setting(config, *, beam, **weights):
  """All sentences of the tiny bitext."""
  model = models.with_weights(tiny_btg.model(), tiny_btg.WEIGHTS | weights)
  model = learner.prepare_model(model, config)
  lines = [pair[0] for pair in tiny_training.PAIRS]
  references = [[pair[1]] for pair in tiny_training.PAIRS]
  source = models.make_source(model, lines)
  forced = forced_forests.force_text(
    model, source, references, config, store=MemoryStore()
  )
  return learner.LearningSetting(
    model=model,
    source=source,
    references=references,
    forced=forced,
    start=dict(model.weights),
    search=search.make_config(beam=beam, pop=10 * beam),
  )


def sides(made, config):
  """Pack of reached sentences, scores of both sides, and the contribution."""
  pack, best, searched, top, _ = worlds.both_sides(made, config)
  (one,) = minibatch.contribute([pack], work=worlds.work(made, config))
  return pack, best.score, searched, top.score, one


@pytest.mark.parametrize("update", ["max-violation", "early", "standard"])
def test_features_of_an_update_have_its_violation(update):
  config, done = settings(update=update), 0
  for inverted in (-3.0, 0.0, 3.0):
    made = make_setting(config, beam=4, inverted=inverted)
    pack, good, searched, score, one = sides(made, config)
    is_good = partial_derivations.are_good(pack.good, searched)
    pairs = updates.pair_groups(pack.good, good, searched, score, is_good)
    choices = updates.choose(update, pairs, searched, is_good)
    expected = score[choices.minus] - good[choices.plus]
    found = one.stats[choices.sentence, minibatch.VIOLATION]
    clear = np.abs(expected) > 1e-3
    np.testing.assert_allclose(found[clear], expected[clear], atol=1e-3)
    column = made.model.feature_names.index("MaxEntReordering")
    done += int(np.count_nonzero(one.dense[:, column]))
    if update == "max-violation":
      assert (one.stats[choices.sentence, minibatch.VALID] == 1).all()
      sentence = partial_derivations.group_sentence(pairs.group)
      for row, value in zip(choices.sentence, expected, strict=True):
        assert value == pairs.violation[sentence == row].max()
  assert done  # the reordering model has a say in some


def test_both_sides_score_the_best_reference_alike():
  config = settings(update="standard")
  made = make_setting(config, beam=200)
  pack, good, searched, score, one = sides(made, config)
  right = one.stats[:, minibatch.RIGHT] > 0
  assert right.any()
  for row in np.flatnonzero(right):
    root = searched.forest.roots[row]
    own = good[pack.good.forest.roots[pack.good.sentence == row]]
    assert score[root] == pytest.approx(own.max(), abs=1e-3)
  # Nothing was pruned, so that no wrong translation is behind a reference.
  violation = one.stats[one.stats[:, minibatch.UPDATED] > 0]
  assert (violation[:, minibatch.VIOLATION] >= -1e-3).all()


def test_learning_leaves_fewer_wrong_sentences():
  config = settings(epochs=6)
  made = make_setting(config, beam=10, inverted=3.0)
  learned = learner.learn(made, config, store=MemoryStore())
  first, *_, last = learned.history
  assert last["right_share"] > first["right_share"]
  assert all(record["valid_share"] == 1.0 for record in learned.history)
  assert learned.weights["inverted"] < 3.0
