r"""A recurrent network's probability of a phrase given its translation.

Liu et al. (2014, section 5.2): with f_a(i) the word that is linked to e_i,

    T(s, t) = sum_i ln p(e_i | e_{i-1}, f_a(i), h_i),
    h_i = tanh(E e_{i-1} + F f_a(i) + U h_{i-1}),  p = softmax(V h_i).

It is trained on phrase pairs with their links rather than on whole sentences,
since phrase pairs are what it scores.

B: phrase pairs. W: words of the longest. Ids of 0 are no word: before a phrase,
after it, and where nothing is linked.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmt.models import fitting
from jaxmt.models.fitting import EpochStore, FitOptions

_CHUNK = 1024


class PhraseRecurrence(nn.Module):
  """ln p of phrases given the words linked to theirs.

  Attributes:
    given: number of words of the other side, with 0.
    words: number of words of this side, with 0.
    size: units.
  """

  given: int
  words: int
  size: int

  @nn.compact
  def __call__(self, words: Array, linked: Array) -> Array:
    """Returns T of phrases, `[B]`.

    Args:
      words: ids of the phrases, int32 `[B, W]`.
      linked: ids of the words linked to each, 0 for none, int32 `[B, W]`.
    """
    start = nn.initializers.normal(0.1)
    before = jnp.pad(words[:, :-1], ((0, 0), (1, 0)))
    inputs = nn.Embed(self.words, self.size, embedding_init=start)(before)
    inputs += nn.Embed(self.given, self.size, embedding_init=start)(linked)
    again = self.param("again", start, (self.size, self.size))

    def step(hidden, given):
      hidden = jnp.tanh(given + hidden @ again)
      return hidden, hidden

    zero = jnp.zeros((len(words), self.size))
    _, hidden = jax.lax.scan(step, zero, inputs.transpose(1, 0, 2))
    logits = nn.Dense(self.words)(hidden).transpose(1, 0, 2)
    logs = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(logs, words[..., None], -1)[..., 0]
    return jnp.where(words > 0, chosen, 0.0).sum(-1)


@dataclasses.dataclass(frozen=True)
class RecurrenceLoss:
  """-T for each word; rows are `{"words": [B, W], "linked": [B, W]}`."""

  net: PhraseRecurrence

  def __call__(self, parameters, constants, rows, key):
    """See `fitting.Loss`."""
    del constants, key
    logs: Any = self.net.apply(parameters, rows["words"], rows["linked"])
    return -logs.sum(), (rows["words"] > 0).sum().astype(jnp.float32)


def train(
  words: np.ndarray,
  linked: np.ndarray,
  net: PhraseRecurrence,
  options: FitOptions,
  *,
  store: EpochStore | None = None,
) -> Iterator[Any]:
  """Yields the parameters after each epoch.

  Args:
    words: ids of phrases, int32 `[N, W]`.
    linked: ids of the words linked to theirs, int32 `[N, W]`.
    net: the network.
    options: see `FitOptions`.
    store: of epochs, see `fitting.fit`.
  """
  start = net.init(jax.random.key(options.seed), words[:1], linked[:1])
  rows = {"words": words, "linked": linked}
  for epoch in fitting.fit(
    RecurrenceLoss(net), start, rows, options, store=store
  ):
    yield epoch.parameters


@functools.partial(jax.jit, static_argnames="net")
def _apply(net, parameters, words, linked):
  return net.apply(parameters, words, linked)


def scores(
  net: PhraseRecurrence, parameters: Any, words: np.ndarray, linked: np.ndarray
) -> np.ndarray:
  """Returns T of N phrases, float32 `[N]`; arguments as in `train`."""
  out = []
  for start in range(0, len(words), _CHUNK):
    part = [one[start : start + _CHUNK] for one in (words, linked)]
    size = len(part[0])
    padded = [np.pad(one, ((0, _CHUNK - size), (0, 0))) for one in part]
    out.append(np.asarray(_apply(net, parameters, *padded))[:size])
  return np.concatenate([np.zeros(0, np.float32), *out])
