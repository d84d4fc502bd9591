"""Word vectors learned from text: skip-gram, and ranking of windows.

Skip-gram with negative sampling (Mikolov et al. 2013): with `x` the vector of a
word, `y` that of a word at most c places away in the sentence, and N words `n`
drawn from the unigram distribution to the power 3/4,

    - log s(x y) - sum_n log s(- x n).

Ranking (Collobert and Weston 2008): a network scores windows of 2 c + 1 words;
a window of the text should score higher by 1 than the same window with another
word in its middle,

    max(0, 1 - f(window) + f(changed window)).
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from jaxmt.errors import InputError
from jaxmt.models import fitting
from jaxmt.models.fitting import EpochStore, FitOptions
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged

MODELS = ("skip-gram", "ranking")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordVectors:
  """V words and their vectors.

  Attributes:
    words: each once.
    vectors: float32 `[V, D]`.
  """

  words: tuple[str, ...]
  vectors: np.ndarray

  def __post_init__(self):
    if self.vectors.shape[:1] != (len(self.words),):
      raise ValueError(f"{self.vectors.shape} for {len(self.words)} words")

  def __len__(self) -> int:
    return len(self.words)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordVectorOptions:
  """What is learned.

  Attributes:
    model: one of `MODELS`.
    size: D.
    window: c; words up to this many places away are the context.
    negatives: N, of skip-gram.
    hidden: units of the ranking network.
    fit: how it is learned.
  """

  model: str = "skip-gram"
  size: int = 50
  window: int = 5
  negatives: int = 5
  hidden: int = 40
  fit: FitOptions = dataclasses.field(default_factory=FitOptions)


def check_options(options: WordVectorOptions) -> None:
  """Raises `InputError` for settings that make no sense."""
  if options.model not in MODELS:
    raise InputError(
      f"option 'model': '{options.model}' is none of {', '.join(MODELS)}"
    )
  for name in ("size", "window", "negatives", "hidden"):
    if getattr(options, name) < 1:
      raise InputError(f"option '{name}' must be at least 1")
  fitting.check_options(options.fit)


class SkipGram(nn.Module):
  """Vectors of words and of words as context.

  Attributes:
    words: V.
    size: D.
  """

  words: int
  size: int

  @nn.compact
  def __call__(self, centre: Array, others: Array) -> Array:
    """Returns the products of vectors, `[B, K]`.

    Args:
      centre: word ids `[B]`.
      others: context ids `[B, K]`.
    """
    start = nn.initializers.uniform(scale=1.0 / self.size)
    word = nn.Embed(self.words, self.size, embedding_init=start, name="word")
    context = nn.Embed(
      self.words, self.size, embedding_init=start, name="context"
    )
    return jnp.einsum("bd,bkd->bk", word(centre), context(others))


class WindowRanker(nn.Module):
  """Scores windows of words by a network with one hidden layer.

  Attributes:
    words: V.
    size: D.
    hidden: units.
  """

  words: int
  size: int
  hidden: int

  @nn.compact
  def __call__(self, windows: Array) -> Array:
    """Returns the scores `[B]` of windows of word ids `[B, 2 c + 1]`."""
    start = lambda key, shape, dtype: jax.random.uniform(
      key, shape, dtype, -0.1, 0.1
    )
    vectors = nn.Embed(
      self.words, self.size, embedding_init=start, name="word"
    )(windows)
    flat = vectors.reshape(*windows.shape[:-1], -1)
    return nn.Dense(1)(nn.hard_tanh(nn.Dense(self.hidden)(flat)))[..., 0]


def train_vectors(
  text: Ragged,
  words: tuple[str, ...],
  options: WordVectorOptions,
  *,
  mesh: Mesh | None = None,
  store: EpochStore | None = None,
) -> Iterator[tuple[WordVectors, float]]:
  """Yields word vectors and the mean loss after each epoch.

  Args:
    text: word ids of S sentences, int32.
    words: of the ids, V.
    options: see `WordVectorOptions`.
    mesh: devices, see `fitting.fit`.
    store: of epochs, see `fitting.fit`.

  Raises:
    InputError: for an empty text, or bad settings.
  """
  check_options(options)
  if not len(text.flat):
    raise InputError("no word to learn vectors of")
  model, loss, example = _make(options, len(words))
  # Ids before the first word of a sentence and after its last are V: padding.
  constants = {
    "ids": jnp.asarray(_padded(text, options.window, len(words))),
    "logits": jnp.asarray(_noise(text, len(words))),
  }
  centres = _centres(text, options.window)
  key = jax.random.fold_in(jax.random.key(options.fit.seed), 1)
  parameters = model.init(key, *example)
  for epoch in fitting.fit(
    loss,
    parameters,
    jnp.asarray(centres),
    options.fit,
    constants=constants,
    mesh=mesh,
    store=store,
  ):
    table: Any = epoch.parameters
    vectors = np.asarray(table["params"]["word"]["embedding"], np.float32)
    yield (
      WordVectors(words=words, vectors=vectors[: len(words)]),
      epoch.loss,
    )


def _make(options: WordVectorOptions, size: int):
  """The module, its loss and arguments to start it with."""
  one = jnp.zeros((1,), jnp.int32)
  if options.model == "skip-gram":
    module = SkipGram(words=size + 1, size=options.size)
    loss = _SkipGramLoss(module, options.window, options.negatives, size)
    return module, loss, (one, one[:, None])
  module = WindowRanker(
    words=size + 1, size=options.size, hidden=options.hidden
  )
  windows = jnp.zeros((1, 2 * options.window + 1), jnp.int32)
  return module, _RankingLoss(module, options.window, size), (windows,)


def _padded(text: Ragged, window: int, padding: int) -> np.ndarray:
  """Ids of all sentences with `window` paddings after each, and before all."""
  lengths = text.lengths + window
  offsets = window + ragged.row_offsets(lengths)
  ids = np.full(int(offsets[-1]), padding, np.int32)
  ids[_centres(text, window)] = text.flat
  return ids


def _centres(text: Ragged, window: int) -> np.ndarray:
  """Where each word of the text is in the padded ids, int32 `[T]`."""
  sentence = np.repeat(np.arange(len(text)), text.lengths)
  return (np.arange(len(text.flat)) + window * (1 + sentence)).astype(np.int32)


def _noise(text: Ragged, size: int) -> np.ndarray:
  """Logits of the distribution of negatives, `[V]`."""
  counts = np.bincount(text.flat, minlength=size).astype(np.float64)
  logs = 0.75 * np.log(np.maximum(counts, 1e-30))
  return np.where(counts > 0, logs, -1e30).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class _SkipGramLoss:
  module: SkipGram
  window: int
  negatives: int
  padding: int

  def __call__(self, parameters, constants, rows, key):
    ids = constants["ids"]
    shifts = [s for s in range(-self.window, self.window + 1) if s]
    places = rows[:, None] + jnp.array(shifts)
    context = ids[places]
    real = context != self.padding
    drawn = jax.random.categorical(
      key, constants["logits"], shape=(*rows.shape, self.negatives)
    )
    near: Any = self.module.apply(parameters, ids[rows], context)
    far: Any = self.module.apply(parameters, ids[rows], drawn)
    # Each context word has N negatives: those of its centre stand for them.
    pairs = real.sum(-1)
    positive = jnp.where(real, jax.nn.softplus(-near), 0.0).sum(-1)
    negative = jax.nn.softplus(far).sum(-1) * pairs
    return (positive + negative).sum(), pairs.sum().astype(jnp.float32)


@dataclasses.dataclass(frozen=True)
class _RankingLoss:
  module: WindowRanker
  window: int
  padding: int

  def __call__(self, parameters, constants, rows, key):
    ids = constants["ids"]
    places = rows[:, None] + jnp.arange(-self.window, self.window + 1)
    windows = ids[places]
    drawn = jax.random.randint(key, rows.shape, 0, self.padding)
    changed = windows.at[:, self.window].set(drawn)
    good: Any = self.module.apply(parameters, windows)
    bad: Any = self.module.apply(parameters, changed)
    # A word that is drawn for itself is no change.
    different = drawn != windows[:, self.window]
    hinge = jnp.where(different, jax.nn.relu(1.0 - good + bad), 0.0)
    return hinge.sum(), jnp.asarray(different.sum(), jnp.float32)
