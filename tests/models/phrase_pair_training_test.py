"""Training of phrase pairs: a lexicon with paraphrases, resuming, devices."""

import dataclasses
import os

import jax
import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.models import phrase_autoencoder, phrase_pair_training
from jaxmt.models.fitting import FitOptions
from jaxmt.models.phrase_pair_training import PhrasePairOptions
from jaxmt.runtime import checkpoint, parallel

OPTIONS = PhrasePairOptions(
  size=8,
  unit=True,
  rebuild=FitOptions(epochs=2, batch=32, rate=0.01),
  tune=FitOptions(epochs=8, batch=32, rate=0.02),
)


def lexicon(seed=0):
  """Phrases of adjective and noun, each word with two target synonyms.

  Source ids 4..7 are adjectives, 8..11 nouns; target words of id w are 2 w - 4
  and 2 w - 3. Target order is turned.
  """
  rng = np.random.default_rng(seed)
  source = np.stack([rng.integers(4, 8, 400), rng.integers(8, 12, 400)], 1)
  target = (2 * source - 4 + rng.integers(0, 2, (400, 2)))[:, ::-1]
  single = rng.random(400) < 0.3
  source[single, 1], target[single, 0] = 0, target[single, 1]
  target[single, 1] = 0
  return source.astype(np.int32), np.ascontiguousarray(target, np.int32)


def finish(options, **settings):
  return list(
    phrase_pair_training.train(lexicon(), (12, 20), options, **settings)
  )


def test_meaning_is_learned_and_paraphrases_become_neighbours():
  steps = finish(OPTIONS)
  first = next(step for step in steps if step.part == "pairs")
  last = steps[-1]
  modules = phrase_pair_training.encoders((12, 20), OPTIONS)
  fresh = lexicon(seed=1)
  share = lambda p: phrase_pair_training.rank_held_out(modules, p, fresh, 0)
  rebuilt = [step for step in steps if step.part == "target"][-1]
  # Without a second language images say nothing.
  assert share(rebuilt.parameters) < 0.7
  assert share(last.parameters) > 0.93 and last.ranked > 0.9
  assert last.error < first.error
  # The nearest other phrase of two words is one with the same meaning.
  phrases = np.array([[n, a] for n in range(12, 20) for a in range(4, 12)])

  def paraphrases(parameters):
    vectors = phrase_autoencoder.encode(
      modules[1], parameters["target"], phrases.astype(np.int32)
    )[0]
    far = ((vectors[:, None] - vectors) ** 2).sum(-1)
    np.fill_diagonal(far, np.inf)
    nearest = phrases[far.argmin(1)]
    return ((nearest // 2) == (phrases // 2)).all(1).mean()

  assert paraphrases(rebuilt.parameters) < 0.4
  assert paraphrases(last.parameters) > 0.6


def test_training_stops_where_the_error_rises():
  wild = dataclasses.replace(
    OPTIONS, tune=FitOptions(epochs=20, batch=32, rate=2.0)
  )
  steps = finish(wild)
  rounds = [step for step in steps if step.part == "pairs"]
  assert len(rounds) < 20 and rounds[-1].error >= rounds[-2].error
  # The result is that of the round before.
  jax.tree.map(
    np.testing.assert_array_equal, rounds[-1].parameters, rounds[-2].parameters
  )


class Killed(Exception):
  """Stands for the end of a process."""


class Dying(checkpoint.Partial):
  """A store whose process dies after some writes."""

  def __init__(self, folder, writes):
    super().__init__(folder)
    self.left = writes

  def put(self, name, values):
    super().put(name, values)
    self.left -= 1
    if not self.left:
      raise Killed


@pytest.mark.parametrize("rate", [0.02, 2.0])
def test_a_killed_training_ends_with_the_same_bits(tmp_path, rate):
  options = dataclasses.replace(
    OPTIONS,
    rebuild=dataclasses.replace(OPTIONS.rebuild, epochs=1),
    tune=FitOptions(epochs=3, batch=32, rate=rate),
  )
  whole = finish(options)[-1]
  if rate > 1 and not os.environ.get("JAXMT_SLOW"):
    pytest.skip("set JAXMT_SLOW=1")
  # 1 write for each language, then 2 for each round.
  for writes in (3, 4) if rate < 1 else (1, 5, 6):
    folder = tmp_path / str(writes)
    try:
      finish(options, store=Dying(folder, writes))
    except Killed:
      pass
    again = finish(options, store=checkpoint.Partial(folder))[-1]
    assert (again.number, again.error) == (whole.number, whole.error)
    jax.tree.map(
      np.testing.assert_array_equal, again.parameters, whole.parameters
    )


@pytest.mark.skipif(not os.environ.get("JAXMT_SLOW"), reason="set JAXMT_SLOW=1")
def test_two_devices_learn_what_one_learns():
  short = dataclasses.replace(
    OPTIONS, tune=FitOptions(epochs=2, batch=32, rate=0.01)
  )
  one = finish(short)[-1].parameters
  two = finish(short, mesh=parallel.make_mesh(2))[-1].parameters
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=2e-3), one, two
  )


def test_settings_that_make_no_sense():
  for change, message in (
    ({"size": 0}, "'size' must be"),
    ({"alpha": 2.0}, "'alpha' must be"),
    ({"pulls": phrase_autoencoder.Pulls(words=-1.0)}, "'words' must not"),
  ):
    with pytest.raises(InputError, match=message):
      phrase_pair_training.check_options(dataclasses.replace(OPTIONS, **change))
  none = np.zeros((0, 2), np.int32)
  with pytest.raises(InputError, match="no phrase pair"):
    next(phrase_pair_training.train((none, none), (5, 5), OPTIONS))
