"""The network, path scores and Viterbi of the neural HMM aligner.

Yang, Liu, Li, Zhou & Yu (ACL 2013), "Word Alignment Modeling with Context
Dependent Deep Neural Network". With i a generated word and a_i the word it is
linked to, or NULL,

  s(a) = sum over i of t(i, a_i) + d(a_i - last),

where t is a network of the words around both, and d has 17 values: jumps of -7
to 7, and longer ones either way. (The paper multiplies; its scores may be
negative, so they are read as logarithms.) As in the HMM, a word linked to NULL
keeps the place the next jump starts from; the first jump starts before the
first word.

J: generated words. I: conditioning words. B: sentence pairs. w: window.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from jaxmt.models import lookup

JUMPS = 17
_LONG = JUMPS // 2
_LOW = -1e9  # below all scores


class WindowNetwork(nn.Module):
  """Scores pairs of windows.

  The first layer is a sum of one part for each side, so a grid of all pairs
  needs it once per word, not once per pair.

  Attributes:
    generated_words: ids of the generated side.
    given_words: ids of the conditioning side.
    size: of embeddings.
    hidden: units of the hidden layers.
    start: embeddings begin uniform in plus or minus this. While sums of the
      first layer are inside plus or minus 1, the network is linear and sees no
      pairs of words; so a small value makes it slow to learn.
  """

  generated_words: int
  given_words: int
  size: int
  hidden: tuple[int, ...]
  start: float = 0.1

  def setup(self):
    """Makes the layers."""
    start = lambda key, shape, dtype: jax.random.uniform(
      key, shape, dtype, -self.start, self.start
    )
    self.generated_embedding = nn.Embed(
      self.generated_words, self.size, embedding_init=start
    )
    self.given_embedding = nn.Embed(
      self.given_words, self.size, embedding_init=start
    )
    self.generated_layer = nn.Dense(self.hidden[0])
    self.given_layer = nn.Dense(self.hidden[0], use_bias=False)
    self.layers = [nn.Dense(units) for units in self.hidden[1:]]
    self.last = nn.Dense(1)

  def generated(self, windows: Array) -> Array:
    """First layer of generated windows `[..., 2 w + 1]`, `[..., H]`."""
    vectors = lookup.rows_of(self.generated_embedding.embedding, windows)
    return self.generated_layer(vectors.reshape(*windows.shape[:-1], -1))

  def given(self, windows: Array) -> Array:
    """First layer of conditioning windows `[..., 2 w + 1]`, `[..., H]`."""
    vectors = lookup.rows_of(self.given_embedding.embedding, windows)
    return self.given_layer(vectors.reshape(*windows.shape[:-1], -1))

  def rest(self, first: Array) -> Array:
    """Scores from sums of the first layer `[..., H]`, `[...]`."""
    value = nn.hard_tanh(first)
    for layer in self.layers:
      value = nn.hard_tanh(layer(value))
    return self.last(value)[..., 0]

  def __call__(self, generated: Array, given: Array) -> Array:
    """Scores of pairs of windows, `[...]`."""
    return self.rest(self.generated(generated) + self.given(given))

  def grid(
    self, generated: Array, given: Array, null: Array
  ) -> tuple[Array, Array]:
    """Scores of all pairs of a batch.

    Args:
      generated: windows `[B, J, 2 w + 1]`.
      given: windows `[B, I, 2 w + 1]`.
      null: the window of NULL `[2 w + 1]`.

    Returns:
      `(links [B, J, I], null [B, J])`.
    """
    ours = self.generated(generated)
    theirs = self.given(given)
    links = self.rest(ours[:, :, None] + theirs[:, None])
    return links, self.rest(ours + self.given(null))


def jump_bucket(distance: Array) -> Array:
  """Returns which of the 17 scores a jump has."""
  return jnp.clip(distance, -_LONG, _LONG) + _LONG


def _jump_table(jump: Array, width: int) -> Array:
  """Scores of jumps from places -1.. to places 0.., `[I + 1, I]`."""
  start = jnp.arange(-1, width)[:, None]
  return jump[jump_bucket(jnp.arange(width)[None, :] - start)]


def viterbi(
  links: Array, null: Array, jump: Array, generated: Array, given: Array
) -> Array:
  """Returns the best path: the place of each word, -1 for NULL; int32 `[B, J]`.

  Padded words have -1. Ties go to NULL, then to the lowest previous place.

  Args:
    links: scores of links `[B, J, I]`.
    null: scores of NULL `[B, J]`.
    jump: `[17]`.
    generated: lengths, int32 `[B]`.
    given: lengths, int32 `[B]`.
  """
  _, rows, width = links.shape
  table = _jump_table(jump, width)
  columns = jnp.arange(width) < given[:, None]

  def step(best, row):
    link, none, is_word = row
    arrive = best[:, :, None] + table
    previous = jnp.argmax(arrive, axis=1).astype(jnp.int32) - 1
    linked = jnp.where(columns, arrive.max(axis=1) + link, _LOW)
    stay = best + none[:, None]
    take = (linked > stay[:, 1:]) & is_word[:, None]
    after = stay.at[:, 1:].set(jnp.where(take, linked, stay[:, 1:]))
    best = jnp.where(is_word[:, None], after, best)
    # -2: this word has no link, the place stays.
    return best, jnp.where(take, previous, -2)

  start = jnp.full((len(links), width + 1), _LOW).at[:, 0].set(0.0)
  words = jnp.arange(rows)[:, None] < generated
  inputs = (links.swapaxes(0, 1), null.T, words)
  best, pointers = jax.lax.scan(step, start, inputs)

  def back(place, pointer):
    index = jnp.maximum(place, 0)[:, None]
    previous = jnp.take_along_axis(pointer, index, axis=1)[:, 0]
    linked = (place >= 0) & (previous > -2)
    return jnp.where(linked, previous, place), jnp.where(linked, place, -1)

  end = jnp.argmax(best, axis=1).astype(jnp.int32) - 1
  _, path = jax.lax.scan(back, end, pointers, reverse=True)
  return path.T


def path_scores(
  links: Array, null: Array, jump: Array, path: Array, generated: Array
) -> Array:
  """Returns s(a) of paths, `[B]`; differentiable in the scores.

  Args:
    links: scores of links `[B, J, I]`.
    null: scores of NULL `[B, J]`.
    jump: `[17]`.
    path: places, -1 for NULL, `[B, J]`.
    generated: lengths, `[B]`.
  """
  words = jnp.arange(path.shape[1]) < generated[:, None]
  linked = (path >= 0) & words
  own = jnp.take_along_axis(links, jnp.maximum(path, 0)[..., None], axis=2)
  score = jnp.where(linked, own[..., 0], jnp.where(words, null, 0.0))
  # The place that each jump starts from: that of the last link before.
  last = jax.lax.associative_scan(
    lambda a, b: jnp.where(b > -2, b, a), jnp.where(linked, path, -2), axis=1
  )
  before = jnp.pad(last, ((0, 0), (1, 0)), constant_values=-2)[:, :-1]
  before = jnp.where(before > -2, before, -1)
  jumps = jump[jump_bucket(path - before)]
  return score.sum(1) + jnp.where(linked, jumps, 0.0).sum(1)
