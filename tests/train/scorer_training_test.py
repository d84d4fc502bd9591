"""The rule scorer: gradients through forests, what is learned, same bits."""

import dataclasses
import functools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt import hypergraph
from jaxmt.decode import model as models
from jaxmt.decode import nbest
from jaxmt.decode.chart import beam_forest, decoder
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.errors import InputError
from jaxmt.features import rule_scores, sentence_models, sparse
from jaxmt.runtime import checkpoint
from jaxmt.train import scorer_training
from jaxmt.train.scorer_training import ScorerOptions, TrainingText
from jaxmt.tune.forests import forest_loss
from tests.reference import tiny_training as tiny

CONFIG = DecodeConfig(search=tiny.SEARCH)
OPTIONS = ScorerOptions(
  size=3, hidden=4, min_count=1, rounds=2, passes=10, batch=4, rate=0.05
)
# "das" is "the" in most pairs; here it is "that" if "alt" is in the sentence.
LINES = ["das haus", "das haus ist alt", "das kleine haus ist alt"]
REFERENCES = [["the house"], ["that house is old"], ["that small house is old"]]
SLOW = pytest.mark.skipif(
  not os.environ.get("JAXMT_SLOW"), reason="set JAXMT_SLOW"
)
TEXT = TrainingText(lines=LINES, references=REFERENCES)


def drawn(model, seed=0):
  """A scorer whose numbers are random, the last layer's as well."""
  scorer = scorer_training.start_model(model, TEXT, OPTIONS)
  rng = np.random.default_rng(seed)
  parameters = jax.tree.map(
    lambda leaf: rng.normal(0, 0.7, leaf.shape).astype(np.float32),
    scorer.parameters,
  )
  return dataclasses.replace(scorer, parameters=parameters)


@functools.cache
def forests():
  """Forests of a drawn scorer: model, scorer, forests, inputs."""
  model, _ = tiny.make()
  scorer = drawn(model)
  weights = {**model.weights, rule_scores.NAME: 1.0}
  lists = scorer_training._decode(model, scorer, weights, TEXT, CONFIG, OPTIONS)
  pool = lists.forests.bind(REFERENCES)
  return (
    model,
    scorer,
    *scorer_training.forest_inputs(model, scorer, pool, LINES),
  )


@pytest.mark.parametrize(
  "loss", ["softmax", "risk", pytest.param("softramp3", marks=SLOW)]
)
def test_gradients_reach_the_network_through_forests(loss):
  _, scorer, data, inputs = forests()
  (batch,) = forest_loss.make_batches(data, [np.arange(len(LINES))])
  arrays = {
    name: jnp.asarray(getattr(inputs, name))
    for name in ("source", "target", "sentence", "words")
  }

  @jax.jit
  def value(parameters):
    total, weight = scorer_training.batch_loss(
      parameters,
      batch,
      arrays,
      jnp.asarray(data.slopes * 10.0, jnp.float32),
      module=scorer.module,
      loss=loss,
      scale=0.5,
      settings=(),
    )
    return total / weight

  slopes = jax.grad(value)(scorer.parameters)
  rng = np.random.default_rng(1)
  for _ in range(2):
    way = jax.tree.map(
      lambda leaf: rng.normal(0, 1, leaf.shape).astype(np.float32), slopes
    )
    moved = lambda step, way=way: jax.tree.map(
      lambda leaf, by: leaf + step * by, scorer.parameters, way
    )
    found = sum(
      jax.tree.leaves(jax.tree.map(lambda a, b: (a * b).sum(), slopes, way))
    )
    expected = (value(moved(3e-3)) - value(moved(-3e-3))) / 6e-3
    np.testing.assert_allclose(found, expected, rtol=0.03, atol=2e-3)
  sizes = [float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(slopes)]
  assert min(sizes) > 0


def test_decoder_and_training_score_edges_alike():
  """The split forest's best score is the decoder's best score."""
  model, scorer, data, inputs = forests()
  own = np.append(scorer_training._pair_scores(scorer, inputs), 0.0)
  pair = data.features[:, 1].astype(int)
  scores = (data.features[:, 0] + own[pair])[data.split.edge]
  best = hypergraph.viterbi(data.split.forest, scores)
  named = dataclasses.replace(model, local=scorer.features())
  named = models.with_weights(
    models.with_templates(named, None),
    {**model.weights, rule_scores.NAME: 1.0},
  )
  source = models.make_source(named, LINES)
  ((result,),) = decoder.decode(named, source, config=CONFIG)
  grown = beam_forest.extract(named, result)
  lists = nbest.lists(
    named, result.source, grown, nbest.ListSettings(size=1), rows=result.rows
  )
  order = np.argsort(lists.sentence)
  found = best.score[data.split.forest.roots]
  np.testing.assert_allclose(found, lists.score[order], atol=1e-3)
  weights = {**model.weights, rule_scores.NAME: 1.0}
  vector = np.array([weights.get(name, 0.0) for name in lists.names])
  total = sparse.dot(lists.features, vector)
  np.testing.assert_allclose(lists.score, total, atol=1e-3)


@functools.cache
def trained():
  model, _ = tiny.make()
  return scorer_training.train(model, TEXT, OPTIONS, config=CONFIG)


def test_the_scorer_learns_what_no_rule_knows():
  done = trained()
  scores = [record["bleu"] for record in done.history]
  assert max(scores) > scores[0] + 0.1


def test_a_killed_training_ends_with_the_same_bits(tmp_path):
  model, _ = tiny.make()
  whole = trained()
  store = checkpoint.Partial(tmp_path / "rounds")

  class Killed(Exception):
    pass

  def kill(record):
    if record["round"] == 1:
      raise Killed

  with pytest.raises(Killed):
    scorer_training.train(
      model, TEXT, OPTIONS, config=CONFIG, store=store, on_round=kill
    )
  again = scorer_training.train(
    model, TEXT, OPTIONS, config=CONFIG, store=store
  )
  assert again.history == whole.history
  one, other = (t.scorer.to_values() for t in (whole, again))
  assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_scorer_in_a_folder_is_the_same_and_is_checked(tmp_path):
  model, _ = tiny.make()
  scorer = drawn(model)
  sentence_models.write(str(tmp_path / "s"), [scorer])
  (read,) = sentence_models.read_all([str(tmp_path / "s")], model.table)
  rules = np.arange(5)
  sentence = tuple(LINES[1].split())
  np.testing.assert_array_equal(
    read.features()[0].values(model.table, rules, sentence),
    scorer.values(model.table, rules, sentence),
  )
  broken = scorer.to_values()
  broken["scorer_rule"] = broken["scorer_rule"][:-1]
  with pytest.raises(InputError, match="scorer_rule has a wrong"):
    rule_scores.from_values(broken)
  words = dataclasses.replace(
    scorer.source_words,
    words=(*scorer.source_words.words[:4], *map(str, range(20))),
  )
  other = dataclasses.replace(scorer, source_words=words)
  with pytest.raises(InputError, match="knows no source word"):
    other.check(model.table)


def test_settings_that_make_no_sense():
  for change, message in (
    ({"loss": "xbleu"}, "none of"),
    ({"rounds": 0}, "'rounds' must be"),
    ({"rate": -1.0}, "'rate' must be"),
  ):
    with pytest.raises(InputError, match=message):
      scorer_training.check_options(dataclasses.replace(OPTIONS, **change))
