"""Scoring pieces of a sentence before their left context is known.

A decoder builds translations from the inside out. The first words of a piece
are scored without their context; when the piece is put to the right of another,
only those scores change. How many words are *open*, that is, can still change?
Word j of a piece w_1 w_2 ... can only if some n-gram of the model ends in
w_1 .. w_j and is longer; from the first word where none does, the piece is
*closed*: a left context then costs that word its back-off weights and nothing
else, whatever the word is (Li & Khudanpur 2008; Heafield, Hoang, Koehn, Kiso &
Federico 2011). With B(s) the total back-off weight of a state (see `tables`),
s the state after the open words from no context, and t the same from the left
context, the change of score is

    sum_j ln p(w_j | left, w_<j) - sum_j ln p(w_j | w_<j)
    + [closed] (B(t) - B(s))

so a piece needs to keep its open words (at most N - 1), whether it is closed,
its right state, and the part of its score that is to be replaced. Two pieces
with equal `words`, `closed` and `state` behave alike in every context.
"""

import dataclasses

import jax
import jax.numpy as jnp

from jaxmt.lm import automaton as automaton_lib
from jaxmt.lm.automaton import NgramAutomaton
from jaxmt.lm.tables import LEFT, NO_WORD, ROOT, STATE_MASK


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Phrase:
  """What the model has to remember of a piece; any batch shape `[...]`.

  Attributes:
    words: the open words, `NO_WORD` after them, int32 `[..., N - 1]`.
    closed: whether words have followed that no left context can change.
    state: the state after the last word, int32.
    estimate: the score that a left context would replace, float32.
  """

  words: jax.Array
  closed: jax.Array
  state: jax.Array
  estimate: jax.Array


def empty(automaton: NgramAutomaton, shape: tuple[int, ...] = ()) -> Phrase:
  """Returns pieces without words."""
  return Phrase(
    words=jnp.full((*shape, automaton.order - 1), NO_WORD, jnp.int32),
    closed=jnp.zeros(shape, bool),
    state=jnp.full(shape, ROOT, jnp.int32),
    estimate=jnp.zeros(shape, jnp.float32),
  )


def sentence_start(
  automaton: NgramAutomaton, shape: tuple[int, ...] = ()
) -> Phrase:
  """Returns pieces that hold `<s>`: nothing can come before them."""
  begin, _ = automaton_lib.init(automaton, shape)
  return dataclasses.replace(
    empty(automaton, shape), closed=jnp.ones(shape, bool), state=begin
  )


def append_word(
  automaton: NgramAutomaton, phrase: Phrase, word: jax.Array
) -> tuple[jax.Array, Phrase]:
  """Puts a word to the right.

  Args:
    automaton: the model.
    phrase: pieces `[...]`.
    word: ids `[...]`; `NO_WORD` changes nothing.

  Returns:
    `(ln p, phrase)`: the word's score given the words it follows.
  """
  slot, state, word = automaton_lib.locate(automaton, phrase.state, word)
  before = automaton_lib.backoff_total(automaton, state)
  score = before + automaton_lib.lookup(automaton.score, slot)
  packed = automaton_lib.lookup(automaton.follow, slot)
  following = packed & STATE_MASK
  real = word != NO_WORD
  score = jnp.where(real, score, 0.0)

  # While the piece is open, its state is exactly its words.
  was_open = real & ~phrase.closed
  stays = was_open & (slot == state + word) & ((packed & LEFT) != 0)
  whole = packed < 0
  closes = was_open & ~(stays & whole)
  # A word that stays open may still leave a shorter state: closed after it.
  after = automaton_lib.backoff_total(automaton, following)
  estimate = phrase.estimate + jnp.where(
    stays, score + jnp.where(whole, 0.0, after), jnp.where(was_open, before, 0)
  )
  count = jnp.sum(phrase.words != NO_WORD, axis=-1, keepdims=True)
  here = jnp.arange(phrase.words.shape[-1]) == count
  return score, Phrase(
    words=jnp.where(here & stays[..., None], word[..., None], phrase.words),
    closed=phrase.closed | closes,
    state=jnp.where(real, following, state),
    estimate=estimate,
  )


def append_phrase(
  automaton: NgramAutomaton, left: Phrase, right: Phrase
) -> tuple[jax.Array, Phrase]:
  """Puts a piece to the right of another.

  Returns:
    `(change, phrase)`: the score of the whole is that of both parts plus
    `change`.
  """

  def read(carry, word):
    total, phrase = carry
    score, phrase = append_word(automaton, phrase, word)
    return (total + score, phrase), None

  total = jnp.zeros(jnp.shape(right.state), jnp.float32)
  words = jnp.moveaxis(right.words, -1, 0)
  (total, joined), _ = jax.lax.scan(read, (total, left), words)
  last = automaton_lib.backoff_total(automaton, joined.state)
  change = total + jnp.where(right.closed, last, 0.0) - right.estimate
  closes = right.closed & ~joined.closed
  return change, Phrase(
    words=joined.words,
    closed=joined.closed | right.closed,
    state=jnp.where(right.closed, right.state, joined.state),
    estimate=joined.estimate + jnp.where(closes, last, 0.0),
  )
