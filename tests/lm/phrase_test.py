import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.lm import automaton, phrase, tables
from tests.lm import language_models

MODELS = [
  ("market.1.arpa"),
  ("market.2.fallback.arpa"),
  ("market.3.arpa"),
  ("market.6.prune01.fallback.arpa"),
  ("srilm.arpa"),
]
COUNT, LENGTH = 64, 8

append_word = jax.jit(phrase.append_word)
append_phrase = jax.jit(phrase.append_phrase)
score_words = jax.jit(automaton.score_words)
step = jax.jit(automaton.step)


def setup(name):
  """A model and sentences, half of them text and half of them chance."""
  table = tables.build_tables(language_models.read(name))
  device = automaton.to_device(table)
  rng = np.random.default_rng(7)
  words = rng.integers(3, len(table.words) + 1, (COUNT, LENGTH))
  lines = [*language_models.market_lines(), "a cat sees a dog sees the cat"]
  for row in range(0, COUNT, 2):
    ids = language_models.ids(table, lines[rng.integers(len(lines))])[:LENGTH]
    words[row, : len(ids)] = ids
  lengths = rng.integers(1, LENGTH + 1, COUNT)
  words[np.arange(LENGTH) >= lengths[:, None]] = tables.NO_WORD
  return device, jnp.asarray(words.astype(np.int32)), rng


def build(device, words):
  """Word by word from nothing; returns `(score, phrase)`."""
  piece = phrase.empty(device, words.shape[:1])
  total = jnp.zeros(words.shape[0])
  for place in range(words.shape[1]):
    score, piece = append_word(device, piece, words[:, place])
    total = total + score
  return total, piece


def segment(words, first, last):
  places = np.arange(words.shape[1])
  inside = (places >= first[:, None]) & (places < last[:, None])
  return jnp.where(inside, words, tables.NO_WORD)


@pytest.mark.parametrize("name", MODELS)
def test_word_by_word_is_scoring_without_context(name):
  device, words, _ = setup(name)
  total, piece = build(device, words)
  wanted, state = score_words(device, jnp.int32(tables.ROOT), words)
  np.testing.assert_allclose(total, wanted.sum(-1), rtol=1e-5, atol=1e-5)
  np.testing.assert_array_equal(piece.state, state)


@pytest.mark.parametrize("name", MODELS)
def test_pieces_in_any_bracketing_give_the_sentence_score(name):
  device, words, rng = setup(name)
  cuts = np.sort(rng.integers(0, LENGTH + 1, (COUNT, 3)), axis=1).T
  zero, end = np.zeros(COUNT, int), np.full(COUNT, LENGTH)
  bounds = [zero, *cuts, end]
  pieces = [
    build(device, segment(words, first, last))
    for first, last in itertools.pairwise(bounds)
  ]

  def join(left, right):
    change, joined = append_phrase(device, left[1], right[1])
    return left[0] + right[0] + change, joined

  a, b, c, d = pieces
  start = (jnp.zeros(COUNT), phrase.sentence_start(device, (COUNT,)))
  trees = [
    join(join(join(join(start, a), b), c), d),
    join(start, join(a, join(b, join(c, d)))),
    join(join(start, join(a, b)), join(c, d)),
    join(start, join(join(a, join(b, c)), d)),
  ]
  wanted, state = score_words(device, device.begin, words)
  for total, piece in trees:
    np.testing.assert_allclose(total, wanted.sum(-1), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(piece.state, state)
  loose = join(join(a, b), join(c, d))
  whole = build(device, words)
  np.testing.assert_allclose(loose[0], whole[0], rtol=1e-5, atol=1e-4)
  np.testing.assert_allclose(
    loose[1].estimate, whole[1].estimate, rtol=1e-5, atol=1e-4
  )
  for field in ("words", "closed", "state"):
    np.testing.assert_array_equal(
      getattr(loose[1], field), getattr(whole[1], field), field
    )


@pytest.mark.parametrize("name", MODELS)
def test_no_more_words_stay_open_than_contexts_can_change(name):
  device, words, _ = setup(name)
  _, piece = build(device, words)
  count = np.asarray((piece.words != tables.NO_WORD).sum(-1))
  assert count.max() <= device.order - 1
  # Brute force: read the sentence after every state there is. A word is open
  # if some state gives it another score than backing off to the null context.
  states = jnp.asarray(np.unique(device.check[device.check >= 0]))
  for row in range(0, COUNT, 9):
    sentence = words[row]
    null, state = jnp.int32(tables.ROOT), states
    differs = []
    for word in sentence[sentence != tables.NO_WORD]:
      extra = device.score[state] - device.score[null]
      score, state = step(device, state, word)
      plain, null = step(device, null, word)
      differs.append(
        np.any(np.abs(score - plain - extra) > 1e-4) or np.any(state != null)
      )
    changing = max((i + 1 for i, d in enumerate(differs) if d), default=0)
    assert changing <= count[row]
    if not piece.closed[row]:
      assert count[row] == len(differs)


def test_equal_pieces_behave_alike():
  device, words, _ = setup("market.3.arpa")
  _, piece = build(device, words)
  key = np.concatenate(
    [piece.words, piece.closed[:, None], piece.state[:, None]], axis=1
  )
  _, where = np.unique(key, axis=0, return_inverse=True)
  assert len(set(where.tolist())) < COUNT  # some are equal
  for left_words in (words[::-1], words[5:6].repeat(COUNT, 0)):
    _, left = build(device, left_words)
    left = jax.tree.map(lambda x: jnp.repeat(x[3:4], COUNT, 0), left)
    change, joined = append_phrase(device, left, piece)
    for group in range(where.max() + 1):
      same = np.flatnonzero(where == group)
      np.testing.assert_allclose(
        change[same], change[same[0]], rtol=1e-5, atol=1e-5
      )
      assert len(set(np.asarray(joined.state)[same].tolist())) == 1


def test_no_word_and_empty_pieces_change_nothing():
  device, words, _ = setup("market.3.arpa")
  _, piece = build(device, words)
  score, same = append_word(
    device, piece, jnp.full(COUNT, tables.NO_WORD, jnp.int32)
  )
  nothing = phrase.empty(device, (COUNT,))
  right, after = append_phrase(device, piece, nothing)
  left, before = append_phrase(device, nothing, piece)
  np.testing.assert_array_equal(score, 0)
  np.testing.assert_array_equal(right, 0)
  np.testing.assert_allclose(left, 0, atol=1e-5)
  for other in (same, after, before):
    for field in ("words", "closed", "state"):
      np.testing.assert_array_equal(
        getattr(other, field), getattr(piece, field)
      )


def test_vmap_and_batch_agree():
  device, words, _ = setup("market.3.arpa")
  _, left = build(device, words)
  _, right = build(device, words[::-1])
  wanted = append_phrase(device, left, right)
  got = jax.vmap(phrase.append_phrase, in_axes=(None, 0, 0))(
    device, left, right
  )
  jax.tree.map(np.testing.assert_array_equal, got, wanted)
