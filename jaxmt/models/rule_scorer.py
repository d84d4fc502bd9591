"""A network that scores rules in sentences.

With `s`, `t` the mean vectors of a rule's source and target words, and `c` that
of all words of the sentence, which have other vectors there,

    score = v . tanh(A [s; t] + b + C c).

v is 0 at the start: an untrained network scores nothing. The network is cut in
two, since the sentence is the same for all its rules.
"""

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

PADDING = 0


class RuleScorer(nn.Module):
  """Scores rules in sentences.

  Attributes:
    source_words: number of source words, ids from 1.
    target_words: number of target words, ids from 1.
    size: numbers of a word's vector.
    hidden: units.
  """

  source_words: int
  target_words: int
  size: int
  hidden: int

  def setup(self):
    """Makes the layers."""
    start = nn.initializers.normal(0.1)
    embed = lambda words: nn.Embed(words, self.size, embedding_init=start)
    self.source = embed(self.source_words)
    self.target = embed(self.target_words)
    self.context = embed(self.source_words)
    self.of_rule = nn.Dense(self.hidden)
    self.of_sentence = nn.Dense(self.hidden, use_bias=False)
    self.output = nn.Dense(1, use_bias=False, kernel_init=nn.initializers.zeros)

  def rule_part(self, source: Array, target: Array) -> Array:
    """Returns the part of the hidden layer that rules give, `[N, hidden]`.

    Args:
      source: ids of source words, `PADDING` after them, int32 `[N, I]`.
      target: ids of target words likewise, int32 `[N, J]`.
    """
    sides = [_mean(self.source, source), _mean(self.target, target)]
    return self.of_rule(jnp.concatenate(sides, axis=-1))

  def sentence_part(self, words: Array) -> Array:
    """Returns the part that sentences give, of their words `[N, K]`."""
    return self.of_sentence(_mean(self.context, words))

  def __call__(
    self, source: Array, target: Array, words: Array, sentence: Array
  ) -> Array:
    """Returns the scores of N rules in B sentences, `[N]`.

    Args:
      source: see `rule_part`.
      target: see `rule_part`.
      words: ids of the sentences' words, int32 `[B, K]`.
      sentence: the sentence of each rule, int32 `[N]`.
    """
    given = self.sentence_part(words)[sentence]
    return self.output(nn.tanh(self.rule_part(source, target) + given))[..., 0]


def _mean(embed: nn.Embed, ids: Array) -> Array:
  """The mean vector of the words in each row, 0 without any."""
  vectors = embed(ids)
  real = (ids != PADDING)[..., None].astype(vectors.dtype)
  count = jnp.maximum(real.sum(-2), 1.0)
  return (vectors * real).sum(-2) / count
