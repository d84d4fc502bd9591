"""Training of a network of derivations: lists, gradients, one sentence."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.errors import InputError
from jaxmt.features import recursive_scores
from jaxmt.models import phrase_recurrence, recursive_recurrent
from jaxmt.models.fitting import FitOptions
from jaxmt.models.recursive_recurrent import RecursiveNet
from jaxmt.models.word_vectors import WordVectors
from jaxmt.runtime import checkpoint
from jaxmt.train import (
  recursive_lists,
  recursive_start,
  recursive_training,
)
from jaxmt.train.recursive_start import RecursiveOptions
from jaxmt.train.scorer_training import TrainingText
from tests.reference import recursive_recurrent as slow
from tests.reference import tiny_training as tiny
from tests.train import tiny_btg

NARROW = DecodeConfig(search=dataclasses.replace(tiny.SEARCH, beam=3, pop=40))
WIDE = DecodeConfig(search=tiny.WIDE)
SHORT = FitOptions(epochs=2, batch=8, rate=0.01)
OPTIONS = RecursiveOptions(
  size=4,
  confidence=SHORT,
  recurrence=SHORT,
  neighbours=SHORT,
  local=1,
  global_=2,
  passes=2,
  batch=8,
  rate=0.02,
)


def text():
  source, target, _ = zip(*tiny.PAIRS, strict=True)
  return TrainingText(
    lines=list(source), references=[[line] for line in target]
  )


@functools.cache
def forced():
  return recursive_start.force_text(tiny_btg.model(), text())


def collected(kind, config, seed=3):
  """`(model, lists, parts)` of a search with a random network."""
  model = recursive_training.with_network(
    tiny_btg.model(), tiny_btg.network(output=3.0, seed=seed)
  )
  parts = recursive_training.search(model, text().lines, config=config)
  return (
    model,
    recursive_lists.collect(model, parts, forced().known, kind),
    parts,
  )


@pytest.mark.parametrize("kind", ["local", "global"])
def test_replayed_derivations_score_as_in_the_search(kind):
  model, trees, parts = collected(kind, NARROW)
  network = model.parameters[-1].model
  net = RecursiveNet(
    pairs=len(network.leaves),
    size=len(network.output),
    inputs=len(network.scale),
  )
  names = ("leaves", "encoder", "output")
  parameters = {"params": {name: getattr(network, name) for name in names}}
  lists = np.arange(len(trees.candidates))
  assert len(lists) > 5
  rows = recursive_training.batch_rows(trees, lists)
  height = int(trees.height.max())
  own = net.apply(
    parameters, rows["pair"], rows["parts"], rows["x"], height=height
  )
  y = np.asarray(rows["base"] + own)
  scores = {
    round(float(score), 3)
    for part in parts
    for score in np.asarray(part.beams.score).reshape(-1)
  }
  checked = 0
  for row in range(len(lists)):
    real = rows["real"][row]
    values = y[rows["candidates"][row][real]]
    kept = len(values) - (trees.good[row].sum() if trees.early[row] else 0)
    # Beams stand best first; what fell off is no better than what stayed.
    assert (np.diff(values[:kept]) <= 1e-3).all()
    assert values[kept:].max(initial=-np.inf) <= values[:kept].min() + 1e-3
    for value in values[:kept]:
      near = [round(float(value), 3) + step for step in (-0.001, 0, 0.001)]
      assert any(round(one, 3) in scores for one in near)
      checked += 1
  assert checked > 10


def test_updates_are_early_only_where_all_good_candidates_fell_off():
  _, narrow, _ = collected("global", NARROW)
  _, wide, _ = collected("global", WIDE)
  assert sum(narrow.early) > 0 and not any(wide.early)
  for trees in (narrow, wide):
    for listed, good, early in zip(
      trees.candidates, trees.good, trees.early, strict=True
    ):
      assert good.any() and len(set(listed.tolist())) == len(listed)
      if early:  # those that stayed are all bad, the others were added
        stayed = len(good) - good.sum()
        assert not good[:stayed].any() and good[stayed:].all()
  # One list a sentence; a wide beam keeps a way to each reference.
  assert len(wide.candidates) == forced().reached == len(tiny.PAIRS)


def tree_of(trees, node):
  left, right = trees.parts[node].tolist()
  if left < 0:
    return "leaf", int(trees.pair[node]), trees.x[node].astype(float)
  if right < 0:
    return tree_of(trees, left)
  rest = trees.x[node] - trees.x[left] - trees.x[right]
  return "join", tree_of(trees, left), tree_of(trees, right), rest


@pytest.mark.parametrize("kind", ["local", "global"])
def test_gradients_are_finite_differences_on_fixed_trees(kind):
  model, trees, _ = collected(kind, NARROW)
  network = model.parameters[-1].model
  rng = np.random.default_rng(0)
  lists = np.arange(len(trees.candidates))[:4]
  net = RecursiveNet(
    pairs=len(network.leaves),
    size=len(network.output),
    inputs=len(network.scale),
  )

  def plain(changed):
    """The loss by recursion over each tree."""
    total = 0.0
    for row in lists.tolist():
      good = trees.good[row]
      y = np.array(
        [
          trees.base[node].astype(float)
          + slow.top(changed, tree_of(trees, node))[1] @ changed.output
          for node in trees.candidates[row].tolist()
        ]
      )
      if kind == "local":
        total += max(0.0, 1.0 - y[good].max() + y[~good].max())
      else:
        total += np.log(np.exp(y).sum() / np.exp(y[good]).sum())
    return total

  names = ("leaves", "encoder", "output")
  exact = dataclasses.replace(
    network, **{n: getattr(network, n).astype(np.float64) for n in names}
  )
  with jax.enable_x64(True):
    rows = recursive_training.batch_rows(trees, lists)
    rows = {
      name: jnp.asarray(value, np.float64)
      if np.issubdtype(value.dtype, np.floating)
      else jnp.asarray(value)
      for name, value in rows.items()
    }
    value = functools.partial(
      recursive_training.list_loss,
      net=net,
      kind=kind,
      height=int(trees.height.max()),
    )
    parameters = {"params": {n: jnp.asarray(getattr(exact, n)) for n in names}}
    (total, weight), slopes = jax.jit(jax.value_and_grad(value, has_aux=True))(
      parameters, rows
    )
  assert weight == len(lists)
  np.testing.assert_allclose(total, plain(exact), rtol=1e-5)
  for name in names:
    array = getattr(exact, name)
    way = rng.normal(0, 1, array.shape)
    ends = [
      plain(dataclasses.replace(exact, **{name: array + step * way}))
      for step in (1e-5, -1e-5)
    ]
    found = (np.asarray(slopes["params"][name]) * way).sum()
    expected = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_neighbours_are_encoded_and_decoded():
  rng = np.random.default_rng(1)
  net = {
    "leaves": rng.normal(0, 1, (5, 3)),
    "encoder": rng.normal(0, 1, (2 * (2 + 3), 3)),
    "output": np.zeros(3),
  }
  decoder = rng.normal(0, 1, (3, 6))
  rows = np.array([[0, 3], [4, 1], [2, 2]], np.int32)
  loss = recursive_recurrent.NeighbourLoss(2)
  want = 0.0
  for one, two in rows.tolist():
    s = slow.clip(net["leaves"][[one, two]])
    blank = np.zeros(2)
    whole = np.concatenate([blank, s[0], blank, s[1]])
    again = slow.clip(whole @ net["encoder"]) @ decoder
    want += 0.5 * ((again - s.reshape(-1)) ** 2).sum()
  parameters = {"net": {"params": net}, "decoder": decoder}
  found, weight = loss(parameters, (), jnp.asarray(rows), None)
  np.testing.assert_allclose(found, want, rtol=1e-5)
  assert weight == 3


def test_start_is_the_log_linear_model_with_phrase_pairs_that_were_used():
  model = tiny_btg.model()
  assert forced().reached == len(tiny.PAIRS) and len(forced().neighbours)
  network = recursive_start.start_model(model, forced(), OPTIONS)
  assert not network.output.any() and network.leaves.shape[1] == 4 + 2
  assert len(network.leaves) == len(network.pairs) + 1
  few = dataclasses.replace(OPTIONS, pairs=3, embedding="sparse")
  rare = recursive_start.start_model(model, forced(), few)
  assert len(rare.leaves) == 4 and set(rare.pairs) < set(network.pairs)
  words = WordVectors(
    words=("das", "haus"), vectors=np.eye(2, 3, dtype=np.float32)
  )
  summed = recursive_start.start_model(
    model, forced(), OPTIONS, vectors=((words, words), (words,))
  )
  assert summed.leaves.shape[1] == 9
  place = summed.pair_number(["das", "haus"], ["the", "house"])
  assert place != recursive_scores.RARE
  np.testing.assert_array_equal(
    summed.leaves[place], [1, 1, 0, 1, 1, 0, 0, 0, 0]
  )


def test_translation_scores_are_those_of_loops_and_their_training_raises_them():
  table = tiny_btg.model().table
  rules = recursive_start.listed_rules(table, 12)
  few = recursive_start.translation_scores(table, rules, OPTIONS)
  fits = dataclasses.replace(SHORT, epochs=60)
  more = recursive_start.translation_scores(
    table, rules, dataclasses.replace(OPTIONS, recurrence=fits)
  )
  assert few.shape == (12, 2) and (more.sum(0) > few.sum(0) + 5).all()
  net = phrase_recurrence.PhraseRecurrence(given=6, words=7, size=3)
  words = np.array([[4, 5, 6], [5, 0, 0]], np.int32)
  linked = np.array([[3, 0, 5], [2, 0, 0]], np.int32)
  parameters = net.init(jax.random.key(0), words, linked)
  found = phrase_recurrence.scores(net, parameters, words, linked)
  layers = jax.tree.map(lambda x: np.asarray(x, float), parameters["params"])
  own, other = (layers[f"Embed_{n}"]["embedding"] for n in (0, 1))
  for row in range(2):
    hidden, before, total = np.zeros(3), 0, 0.0
    for word, link in zip(words[row], linked[row], strict=True):
      if word == 0:
        break
      hidden = np.tanh(own[before] + other[link] + hidden @ layers["again"])
      logits = hidden @ layers["Dense_0"]["kernel"] + layers["Dense_0"]["bias"]
      total += logits[word] - np.log(np.exp(logits).sum())
      before = word
    np.testing.assert_allclose(found[row], total, atol=1e-5)


def test_training_on_one_sentence_makes_its_translation_the_best():
  line, reference = "das haus ist klein", "small is the house"
  training = TrainingText(lines=[line], references=[[reference]])
  options = dataclasses.replace(
    OPTIONS, local=2, global_=4, passes=40, rate=0.05
  )
  done = recursive_training.train(
    tiny_btg.model(), training, options, config=WIDE
  )
  assert done.reached == 1
  assert done.history[0]["bleu"] < 1 and max(
    record["bleu"] for record in done.history
  ) == pytest.approx(1.0)


def test_a_killed_training_ends_with_the_same_bits(tmp_path):
  model = tiny_btg.model()
  run = functools.partial(
    recursive_training.train, model, text(), OPTIONS, config=NARROW
  )
  whole = run()

  class Killed(Exception):
    pass

  def die(record):
    if record["round"] == 2:
      raise Killed

  store = checkpoint.Partial(tmp_path)
  with pytest.raises(Killed):
    run(store=store, on_round=die)
  again = run(store=checkpoint.Partial(tmp_path))
  assert again.history == whole.history
  for name, value in whole.network.to_values().items():
    np.testing.assert_array_equal(again.network.to_values()[name], value)


def test_settings_that_make_no_sense():
  for change, message in (
    ({"size": 0}, "'size'"),
    ({"embedding": "none"}, "'embedding'"),
    ({"rate": 0.0}, "'rate'"),
    ({"local": -1}, "rounds"),
    ({"l2": -1.0}, "'l2'"),
  ):
    with pytest.raises(InputError, match=message):
      recursive_start.check_options(dataclasses.replace(OPTIONS, **change))
  nothing = TrainingText(lines=["das"], references=[["old old old"]])
  with pytest.raises(InputError, match="none of the references"):
    recursive_training.train(tiny_btg.model(), nothing, OPTIONS, config=NARROW)
