"""Training of the neural aligner: gradients, students and teachers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.align import link_scores
from jaxmt.align.neural import network, neural_hmm, objectives
from jaxmt.errors import InputError
from jaxmt.models.fitting import FitOptions
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged

CONFIG = neural_hmm.NeuralConfig(
  size=6,
  window=1,
  hidden=(12, 6),
  jump_pairs=100,
  fit=FitOptions(epochs=20, batch=64, rate=0.03),
  jump_fit=FitOptions(epochs=2, batch=16, rate=0.05),
)


def bitext(seed, *, noise=0.2, pairs=150):
  """Words 1..8 become 11..18 in order; a fifth of the teacher's links moved."""
  rng = np.random.default_rng(seed)
  lengths = rng.integers(2, 6, pairs)
  lengths[0] = 10  # one longer than the narrowest batch
  source = ragged.from_rows([rng.integers(1, 9, n) for n in lengths])
  target = dataclasses.replace(source, flat=source.flat + 10)
  place = np.concatenate([np.arange(n) for n in lengths])
  other = rng.integers(0, np.repeat(lengths, lengths))
  moved = rng.random(len(place)) < noise
  gold = np.stack([place, place], axis=1).astype(np.int32)
  teacher = np.stack([place, np.where(moved, other, place)], axis=1)
  rows = lambda flat: Ragged(flat=flat.astype(np.int32), offsets=source.offsets)
  return source, target, rows(teacher), rows(gold)


@pytest.mark.parametrize(
  ("objective", "start", "fit"),
  [
    ("hinge", 0.1, FitOptions(epochs=40, batch=64, rate=0.02)),
    # From a small start the softmax stays uniform: the network is linear there.
    ("softmax", 1.0, FitOptions(epochs=15, batch=256, rate=0.005)),
  ],
)
def test_a_student_beats_its_noisy_teacher(objective, start, fit):
  source, target, teacher, gold = bitext(0, pairs=300)
  config = dataclasses.replace(
    CONFIG,
    size=10,
    window=0,
    hidden=(60, 10),
    objective=objective,
    start=start,
    fit=fit,
  )
  lines = []
  found = neural_hmm.align(source, target, teacher, config, report=lines.append)
  taught = link_scores.score_links(teacher, gold)
  assert taught.f1 < 0.9
  for side in ("forward", "backward"):
    assert link_scores.score_links(found[side], gold).f1 > taught.f1
  assert any("jumps epoch 2" in line for line in lines)


def test_same_seed_same_links_and_options_run():
  source, target, teacher, _ = bitext(1, pairs=40)
  config = dataclasses.replace(
    CONFIG,
    fine_tune=True,
    embedding_epochs=1,
    fit=FitOptions(epochs=1, batch=32),
    jump_fit=FitOptions(epochs=1, batch=8),
  )
  one = neural_hmm.train_direction(target, source, teacher, config)
  two = neural_hmm.train_direction(target, source, teacher, config)
  for a, b in zip(
    jax.tree.leaves((one.parameters, one.jump)),
    jax.tree.leaves((two.parameters, two.jump)),
    strict=True,
  ):
    np.testing.assert_array_equal(a, b)


def test_given_vectors_are_where_training_begins():
  source, target, teacher, _ = bitext(3, pairs=20)
  slow = FitOptions(epochs=1, batch=32, rate=1e-12)
  config = dataclasses.replace(CONFIG, size=4, fit=slow, jump_fit=slow)
  given = np.full((19, 4), np.nan, np.float32)
  given[11:14] = np.random.default_rng(0).normal(size=(3, 4))
  plain = neural_hmm.train_direction(target, source, teacher, config)
  begun = neural_hmm.train_direction(
    target, source, teacher, config, vectors=(given, None)
  )
  table = lambda found, name: np.asarray(
    found.parameters["params"][name]["embedding"]
  )
  # The eight target words have the ids 1 to 8 of the network.
  ours, usual = (table(one, "generated_embedding") for one in (begun, plain))
  np.testing.assert_allclose(ours[1:4], given[11:14], atol=1e-6)
  np.testing.assert_allclose(ours[4:], usual[4:], atol=1e-6)
  np.testing.assert_allclose(
    *(table(one, "given_embedding") for one in (begun, plain)), atol=1e-6
  )


def test_vectors_of_two_sizes_are_refused():
  source, target, teacher, _ = bitext(3, pairs=5)
  vectors = (np.zeros((9, 2), np.float32), np.zeros((19, 3), np.float32))
  with pytest.raises(InputError, match="word vectors of"):
    neural_hmm.align(source, target, teacher, CONFIG, vectors=vectors)


def setting():
  """A tiny network with the arrays of its losses."""
  source, target, teacher, _ = bitext(2, pairs=5)
  config = dataclasses.replace(CONFIG, size=2, hidden=(3,))
  ours, theirs = neural_hmm._sides(target, source, config)
  module = network.WindowNetwork(
    generated_words=ours.size, given_words=theirs.size, size=2, hidden=(3,)
  )
  window = jnp.zeros((1, 3), jnp.int32)
  parameters = module.init(jax.random.key(0), window, window)
  rows, partners = neural_hmm._examples(ours, theirs, teacher)
  constants = {
    "generated": jnp.asarray(ours.ids),
    "given": jnp.asarray(theirs.ids),
    "null": jnp.int32(theirs.null),
    "partners": jnp.asarray(partners),
  }
  return module, parameters, constants, rows, (ours, theirs, teacher)


def check_gradient(value, parameters):
  """Compares the slope along a direction with a finite difference."""
  slope = jax.grad(value)(parameters)
  leaves, structure = jax.tree.flatten(parameters)
  keys = jax.random.split(jax.random.key(5), len(leaves))
  step = jax.tree.unflatten(
    structure,
    [
      jax.random.normal(key, leaf.shape)
      for key, leaf in zip(keys, leaves, strict=True)
    ],
  )
  moved = lambda size: jax.tree.map(
    lambda leaf, d: leaf + size * d, parameters, step
  )
  expected = (value(moved(1e-3)) - value(moved(-1e-3))) / 2e-3
  found = sum(
    jnp.vdot(a, b)
    for a, b in zip(jax.tree.leaves(slope), jax.tree.leaves(step), strict=True)
  )
  assert float(found) == pytest.approx(float(expected), rel=2e-2, abs=2e-2)


def test_gradient_of_the_local_hinge():
  module, parameters, constants, rows, _ = setting()
  loss = objectives.LocalHinge(module, 1)
  rows = jax.tree.map(jnp.asarray, rows)
  value = lambda p: loss(p, constants, rows, jax.random.key(1))[0]
  check_gradient(value, parameters)


@pytest.mark.parametrize("width", [4, 12])
def test_grid_softmax_equals_loops_and_gradient(width):
  module, parameters, constants, _, (ours, theirs, teacher) = setting()
  loss = objectives.GridSoftmax(module, 1, width)
  rows = neural_hmm._pairs(ours, theirs, np.arange(5))
  rows = jax.tree.map(jnp.asarray, rows)
  value = lambda p: loss(p, constants, rows, jax.random.key(1))[0]
  check_gradient(value, parameters)
  links, null = objectives.grids(module, parameters, constants, rows, 12, 1)
  expected, words = 0.0, 0
  for pair in range(5):
    linked = teacher[pair].tolist()
    for place in range(min(width, int(ours.lengths[pair]))):
      size = min(width, int(theirs.lengths[pair]))
      scores = np.append(links[pair, place, :size], null[pair, place])
      own = [there for here, there in linked if here == place]
      right = [there for there in own if there < size]
      right = right if own else [size]
      if right:
        chances = np.exp(scores) / np.exp(scores).sum()
        expected -= np.log(chances[right].sum())
        words += 1
  total, number = loss(parameters, constants, rows, jax.random.key(1))
  assert float(total) == pytest.approx(expected, rel=1e-4)
  assert int(number) == words


def test_gradient_of_the_sentence_hinge():
  module, parameters, constants, _, (ours, theirs, teacher) = setting()
  loss = objectives.SentenceHinge(module, 1, 12)
  rows = {
    "generated": ours.starts,
    "given": theirs.starts,
    "generated_length": ours.lengths,
    "given_length": theirs.lengths,
    "path": neural_hmm._paths(ours, teacher, np.arange(5), 12, 0),
  }
  rows = {name: jnp.asarray(v, jnp.int32) for name, v in rows.items()}
  jump = jax.random.normal(jax.random.key(3), (network.JUMPS,))
  both = {"network": parameters, "jump": jump}
  value = lambda p: loss(p, constants, rows, jax.random.key(1))[0]
  check_gradient(value, both)
  # In the jumps it is the difference of the jumps of best and gold paths.
  slope = np.asarray(jax.grad(value)(both)["jump"])
  links, null = objectives.grids(module, parameters, constants, rows, 12, 1)
  lengths = rows["generated_length"], rows["given_length"]
  best = np.asarray(network.viterbi(links, null, jump, *lengths))
  expected = np.zeros(network.JUMPS)
  for pair in range(5):
    size = int(lengths[0][pair])
    expected += jumps_of(best[pair, :size])
    expected -= jumps_of(np.asarray(rows["path"])[pair, :size])
  assert np.abs(expected).sum() > 0
  np.testing.assert_allclose(slope, expected, atol=1e-5)


def jumps_of(path):
  """How often each of the 17 jumps is made by a path."""
  counts, last = np.zeros(network.JUMPS), -1
  for place in path[path >= 0].tolist():
    counts[min(max(place - last, -8), 8) + 8] += 1
    last = place
  return counts


def test_negatives_are_no_links():
  *_, rows, (_, theirs, teacher) = setting()
  null = int((rows["given"] == theirs.null).sum())
  assert len(rows["given"]) == len(teacher.flat) + null


def test_bad_settings_are_refused():
  with pytest.raises(ValueError, match="hidden"):
    neural_hmm.NeuralConfig(hidden=())
  with pytest.raises(ValueError, match="objective"):
    neural_hmm.NeuralConfig(objective="mse")
  with pytest.raises(ValueError, match="start"):
    neural_hmm.NeuralConfig(start=0.0)
