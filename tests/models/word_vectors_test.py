"""Word vectors: losses by hand, gradients, what is learned, same bits."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.models import fitting, word_vectors
from jaxmt.models.fitting import FitOptions
from jaxmt.models.word_vectors import WordVectorOptions
from jaxmt.runtime import checkpoint, parallel
from jaxmt.text import vocabulary

TEXT = ["the cat sleeps", "the dog sleeps", "a cat eats", "a dog eats"] * 6
TEXT += ["one", "red blue green red blue"]
SMALL = FitOptions(epochs=3, batch=16, rate=0.05)


def learn(**changes):
  store = changes.pop("store", None)
  mesh = changes.pop("mesh", None)
  words = vocabulary.build([TEXT])
  options = dataclasses.replace(
    WordVectorOptions(size=6, window=2, negatives=3, hidden=5, fit=SMALL),
    **changes,
  )
  return list(
    word_vectors.train_vectors(
      vocabulary.encode(words, TEXT),
      words.words,
      options,
      mesh=mesh,
      store=store,
    )
  )


def loss_of(model):
  """`(loss of parameters, parameters, everything else)` of two words."""
  options = WordVectorOptions(
    model=model, size=3, window=2, negatives=2, hidden=4
  )
  size = 7
  module, loss, example = word_vectors._make(options, size)
  parameters = module.init(jax.random.key(0), *example)
  text = vocabulary.encode(vocabulary.build([["a b c"]]), ["a b c", "b"])
  constants = {
    "ids": jnp.asarray(word_vectors._padded(text, 2, size)),
    "logits": jnp.asarray(word_vectors._noise(text, size)),
  }
  rows = jnp.asarray(word_vectors._centres(text, 2))
  key = jax.random.key(3)
  return lambda p: loss(p, constants, rows, key), parameters, text


def test_the_skip_gram_loss_by_hand():
  loss, parameters, text = loss_of("skip-gram")
  value, weight = loss(parameters)
  word, context = (
    np.asarray(parameters["params"][name]["embedding"], np.float64)
    for name in ("word", "context")
  )
  drawn = jax.random.categorical(
    jax.random.key(3), jnp.asarray(word_vectors._noise(text, 7)), shape=(4, 2)
  )
  want, pairs, row = 0.0, 0, 0
  for sentence in (text[0], text[1]):
    for place, centre in enumerate(sentence):
      for other, near in enumerate(sentence):
        if other != place and abs(other - place) <= 2:
          want += np.log1p(np.exp(-word[centre] @ context[near]))
          for far in np.asarray(drawn[row]):
            want += np.log1p(np.exp(word[centre] @ context[far]))
          pairs += 1
      row += 1
  assert float(weight) == pairs == 6
  np.testing.assert_allclose(float(value), want, rtol=1e-5)


@pytest.mark.parametrize("model", word_vectors.MODELS)
def test_gradients_are_finite_differences(model):
  loss, parameters, _ = loss_of(model)
  flat, structure = jax.tree.flatten(parameters)
  slopes = jax.tree.leaves(jax.grad(lambda p: loss(p)[0])(parameters))
  rng = np.random.default_rng(0)
  direction = [rng.normal(size=leaf.shape) for leaf in flat]
  step = 1e-3
  values = [
    float(
      loss(
        jax.tree.unflatten(
          structure,
          [x + sign * step * d for x, d in zip(flat, direction, strict=True)],
        )
      )[0]
    )
    for sign in (1, -1)
  ]
  along = sum(
    float((s * d).sum()) for s, d in zip(slopes, direction, strict=True)
  )
  assert abs((values[0] - values[1]) / (2 * step) - along) < 0.02 + 0.02 * abs(
    along
  )


def test_words_of_like_contexts_get_like_vectors():
  options = FitOptions(epochs=60, batch=32, rate=0.05)
  vectors, loss = learn(fit=options)[-1]
  first = learn(fit=dataclasses.replace(options, epochs=1))[0][1]
  assert loss < first
  unit = vectors.vectors / np.linalg.norm(vectors.vectors, axis=1)[:, None]
  place = vectors.words.index
  likeness = lambda a, b: float(unit[place(a)] @ unit[place(b)])
  assert likeness("cat", "dog") > likeness("cat", "red") + 0.2


def test_ranking_learns_to_tell_windows():
  losses = [
    loss
    for _, loss in learn(
      model="ranking", fit=FitOptions(epochs=30, batch=16, rate=0.05)
    )
  ]
  assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("model", word_vectors.MODELS)
def test_same_seed_same_bits_also_after_a_kill(model, tmp_path):
  whole = learn(model=model)
  store = checkpoint.Partial(tmp_path / "epochs")
  for _ in zip(range(2), _epochs(model, store), strict=False):
    pass  # killed after its second epoch
  resumed = learn(model=model, store=checkpoint.Partial(tmp_path / "epochs"))
  assert len(resumed) == 2 < len(whole)
  assert [loss for _, loss in resumed] == [loss for _, loss in whole[1:]]
  np.testing.assert_array_equal(resumed[-1][0].vectors, whole[-1][0].vectors)
  other = learn(model=model, fit=dataclasses.replace(SMALL, seed=1))
  assert (other[-1][0].vectors != whole[-1][0].vectors).any()


def _epochs(model, store):
  words = vocabulary.build([TEXT])
  return word_vectors.train_vectors(
    vocabulary.encode(words, TEXT),
    words.words,
    WordVectorOptions(
      model=model, size=6, window=2, negatives=3, hidden=5, fit=SMALL
    ),
    store=store,
  )


def test_several_devices_add_up_their_gradients():
  """A loss without chance: one device and two agree up to rounding."""
  data = jnp.asarray(np.random.default_rng(0).normal(size=(40, 3)), jnp.float32)

  def loss(parameters, constants, rows, key):
    del key
    errors = (rows @ parameters - constants) ** 2
    return errors.sum(), jnp.asarray(len(rows), jnp.float32)

  found = [
    list(
      fitting.fit(
        loss, jnp.zeros(3), data, SMALL, constants=jnp.float32(1.0), mesh=mesh
      )
    )[-1]
    for mesh in (None, parallel.make_mesh(2))
  ]
  np.testing.assert_allclose(
    found[0].parameters, found[1].parameters, rtol=1e-4, atol=1e-6
  )


@pytest.mark.parametrize(
  "wrong",
  [
    {"model": "glove"},
    {"size": 0},
    {"fit": FitOptions(epochs=0)},
    {"fit": FitOptions(rate=float("nan"))},
    {"fit": FitOptions(optimizer="newton")},
  ],
)
def test_bad_settings_are_refused(wrong):
  with pytest.raises(InputError, match="option"):
    learn(**wrong)


def test_a_loss_that_is_not_finite_is_an_error():
  loss = lambda parameters, constants, rows, key: (
    jnp.inf * parameters.sum(),
    jnp.ones(()),
  )
  with pytest.raises(InputError, match="not finite"):
    list(fitting.fit(loss, jnp.ones(2), jnp.ones((4, 1)), SMALL))
