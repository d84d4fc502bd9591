"""Losses of the neural HMM aligner.

`LocalHinge` and `SentenceHinge` are those of Yang et al. (ACL 2013): the score
of a link should be higher by 1 than those of two wrong ones; the score of the
teacher's path higher by 1 than that of the best other path. `GridSoftmax` looks
at all wrong links of a word: each generated word chooses among all words of the
other side and NULL, by the softmax of the network's scores, and the probability
of the teacher's links should be high. It needs the first layer once for each
word of a sentence pair, the local hinge four times for each link.

All are called by `models.fitting` with (parameters, constants, rows, key).
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxmt.align.neural import network, windowed_text
from jaxmt.align.neural.network import WindowNetwork

_LOW = -1e9  # below all scores


@dataclasses.dataclass(frozen=True)
class LocalHinge:
  """max(0, 1 - t(link) + t(wrong link)), for two wrong links of each."""

  module: WindowNetwork
  window: int

  def __call__(self, parameters, constants, rows, key):
    """Returns the sum of hinges and their number; see `fitting`."""
    one, two = jax.random.split(key)
    draw = lambda key, start, length: (
      start
      + jnp.floor(jax.random.uniform(key, start.shape) * length).astype(
        jnp.int32
      )
    )
    partners, null = constants["partners"], constants["null"]
    # NULL is one of the words that may stand in for another.
    other = draw(one, rows["given_start"], rows["given_length"] + 1)
    past = other == rows["given_start"] + rows["given_length"]
    other = jnp.where(past, null, other)
    word = draw(two, rows["generated_start"], rows["generated_length"])

    def is_link(generated, given):
      own = partners[generated]
      return jnp.where(
        given == null, own[:, 0] < 0, (own == given[:, None]).any(-1)
      )

    def layer(method, side, one, two) -> Any:
      windows = windowed_text.windows(
        constants[side], jnp.stack([one, two]), self.window
      )
      return self.module.apply(parameters, windows, method=method)

    # The first layer is a sum over the sides, so each word needs it once.
    ours = layer("generated", "generated", rows["generated"], word)
    theirs = layer("given", "given", rows["given"], other)
    first = jnp.stack([ours[0] + theirs[0], ours[0] + theirs[1]])
    first = jnp.concatenate([first, (ours[1] + theirs[0])[None]])
    scores: Any = self.module.apply(parameters, first, method="rest")
    total, number = 0.0, 0.0
    for wrong, score in (
      ((rows["generated"], other), scores[1]),
      ((word, rows["given"]), scores[2]),
    ):
      usable = ~is_link(*wrong)
      hinge = jax.nn.relu(1.0 - scores[0] + score)
      total += jnp.where(usable, hinge, 0.0).sum()
      number += usable.sum()
    return jnp.asarray(total), jnp.asarray(number, jnp.float32)


def grids(module, parameters, constants, rows, width: int, window: int):
  """Returns scores of links and of NULL, `([B, W, W], [B, W])`."""
  places = lambda start: start[:, None] + jnp.arange(width)
  found: Any = module.apply(
    parameters,
    windowed_text.windows(
      constants["generated"], places(rows["generated"]), window
    ),
    windowed_text.windows(constants["given"], places(rows["given"]), window),
    windowed_text.windows(constants["given"], constants["null"], window),
    method="grid",
  )
  return found


@dataclasses.dataclass(frozen=True)
class SentenceHinge:
  """max(0, 1 - s(gold) + s(best)) where the best path is not the gold one."""

  module: WindowNetwork
  window: int
  width: int

  def __call__(self, parameters, constants, rows, key):
    """Returns the sum of hinges and the number of sentence pairs."""
    del key
    weights = parameters.get("network", constants.get("network"))
    links, null = grids(
      self.module, weights, constants, rows, self.width, self.window
    )
    jump, length = parameters["jump"], rows["generated_length"]
    best = jax.lax.stop_gradient(
      network.viterbi(links, null, jump, length, rows["given_length"])
    )
    gold = rows["path"]
    score = lambda path: network.path_scores(links, null, jump, path, length)
    wrong = (best != gold).any(-1)
    hinge = jax.nn.relu(1.0 - score(gold) + score(best))
    count = jnp.asarray(len(gold), jnp.float32)
    return jnp.where(wrong, hinge, 0.0).sum(), count


@dataclasses.dataclass(frozen=True)
class GridSoftmax:
  """-ln p(the teacher's links | a generated word), over words and NULL.

  Of longer sentences the first `width` words of either side are seen; words
  that are linked with none of these do not count.
  """

  module: WindowNetwork
  window: int
  width: int

  def __call__(self, parameters, constants, rows, key):
    """Returns the sum over generated words and their number."""
    del key
    links, null = grids(
      self.module, parameters, constants, rows, self.width, self.window
    )
    places = jnp.arange(self.width)
    inside = places < rows["given_length"][:, None]
    choices = jnp.concatenate(
      [null[..., None], jnp.where(inside[:, None], links, _LOW)], axis=-1
    )
    own = constants["partners"][rows["generated"][:, None] + places]
    given = rows["given"][:, None] + places
    right = (own[:, :, None] == given[:, None, :, None]).any(-1)
    right &= inside[:, None]
    right = jnp.concatenate([own[..., :1] < 0, right], axis=-1)
    counted = right.any(-1) & (places < rows["generated_length"][:, None])
    total = jax.nn.logsumexp(choices, axis=-1)
    # A finite floor: words that do not count must not spoil the gradient.
    reached = jax.nn.logsumexp(jnp.where(right, choices, _LOW), axis=-1)
    loss = jnp.where(counted, total - reached, 0.0)
    return loss.sum(), counted.sum().astype(jnp.float32)
