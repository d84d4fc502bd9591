"""The n-gram model as an automaton on the device.

    table = tables.build_tables(model)
    automaton = to_device(table)
    words = tables.word_map(table, ["a", "cat"])
    begin, null = init(automaton)
    ln_p, state = step(automaton, begin, words[0])

A query reads the chain of back-off states, one check per state of it and one
score: 2 N + 1 scalar loads for order N, whatever the word, with no branch and
no loop. Everything takes any batch shape and works under `jit`, `vmap` and
`shard_map`; there is nothing random and nothing that depends on the batch.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.lm.tables import (
  EOS_WORD,
  NO_WORD,
  ROOT,
  STATE_MASK,
  UNK_WORD,
  Tables,
)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class NgramAutomaton:
  """A back-off model as arrays; the columns are explained in `tables`.

  Attributes:
    check: int32 `[T]`.
    follow: int32 `[T]`.
    score: float32 `[T]`, natural logarithms.
    begin: the state after `<s>`, int32 `[]`.
    order: length of the longest n-grams, N.
  """

  check: jax.Array
  follow: jax.Array
  score: jax.Array
  begin: jax.Array
  order: int = dataclasses.field(metadata=dict(static=True))


def to_device(tables: Tables) -> NgramAutomaton:
  """Copies the arrays to the default device."""
  return NgramAutomaton(
    check=jnp.asarray(tables.check),
    follow=jnp.asarray(tables.follow),
    score=jnp.asarray(tables.score),
    begin=jnp.asarray(np.int32(tables.begin)),
    order=tables.order,
  )


def init(
  automaton: NgramAutomaton, shape: tuple[int, ...] = ()
) -> tuple[jax.Array, jax.Array]:
  """Returns the states to start from, int32 of the given shape.

  Returns:
    `(begin, null)`: after `<s>`, and without any context.
  """
  begin = jnp.broadcast_to(automaton.begin, shape)
  return begin, jnp.full(shape, ROOT, jnp.int32)


def step(
  automaton: NgramAutomaton, state: jax.Array, word: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Reads one word.

  Args:
    automaton: the model.
    state: int32, any shape.
    word: ids of `tables.word_map`, int32, of a shape that broadcasts with
      `state`. `NO_WORD` (0) costs nothing and changes nothing.

  Returns:
    `(ln p(word | state), next state)`, float32 and int32.
  """
  slot, state, word = locate(automaton, state, word)
  score = lookup(automaton.score, state) + lookup(automaton.score, slot)
  following = lookup(automaton.follow, slot) & STATE_MASK
  real = word != NO_WORD
  return jnp.where(real, score, 0.0), jnp.where(real, following, state)


def locate(
  automaton: NgramAutomaton, state: jax.Array, word: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Finds the arc that a word takes.

  Returns:
    `(slot, state, word)`: the arc's slot, and the arguments in their common
    shape, all int32. The arc is the state's own if `slot == state + word`.
  """
  state, word = jnp.broadcast_arrays(
    jnp.asarray(state, jnp.int32), jnp.asarray(word, jnp.int32)
  )
  chain = [state]
  for _ in range(automaton.order - 1):
    chain.append(lookup(automaton.follow, chain[-1]))
  slot = chain[-1] + word  # state 0 has an arc for every word
  for longer in reversed(chain[:-1]):
    arc = longer + word
    # Past the table's end the read is of the last slot, which no state owns.
    slot = jnp.where(lookup(automaton.check, arc) == longer, arc, slot)
  return slot, state, word


def backoff_total(automaton: NgramAutomaton, state: jax.Array) -> jax.Array:
  """Returns B(state), the ln weight of backing off to no context; float32."""
  return lookup(automaton.score, state)


def score_words(
  automaton: NgramAutomaton, state: jax.Array, words: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Reads a batch of word sequences.

  Args:
    automaton: the model.
    state: where to start, int32 `[...]`.
    words: ids `[..., L]`; `NO_WORD` anywhere is skipped.

  Returns:
    `(ln p of each word [..., L], states after the last [...])`.
  """

  def read(state, word):
    score, state = step(automaton, state, word)
    return state, score

  batch = jnp.broadcast_shapes(jnp.shape(state), words.shape[:-1])
  state = jnp.broadcast_to(jnp.asarray(state, jnp.int32), batch)
  words = jnp.broadcast_to(words, (*batch, words.shape[-1]))
  state, scores = jax.lax.scan(read, state, jnp.moveaxis(words, -1, 0))
  return jnp.moveaxis(scores, 0, -1), state


def score_sentences(
  automaton: NgramAutomaton, words: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Scores whole sentences, from `<s>` to `</s>`.

  Args:
    automaton: the model.
    words: ids `[..., L]` without markers, padded with `NO_WORD`.

  Returns:
    `(ln p [...], unknown words [...])`, float32 and int32.
  """
  begin, _ = init(automaton, words.shape[:-1])
  scores, state = score_words(automaton, begin, words)
  last, _ = step(automaton, state, jnp.int32(EOS_WORD))
  unknown = jnp.sum(words == UNK_WORD, axis=-1, dtype=jnp.int32)
  return jnp.sum(scores, axis=-1) + last, unknown


def lookup(table: jax.Array, index: jax.Array) -> jax.Array:
  """Returns `table[index]`; an index beyond the end reads the last entry."""
  return table.at[index].get(mode="clip", wrap_negative_indices=False)
