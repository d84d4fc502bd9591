import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmt.lm import arpa_read, automaton, tables
from jaxmt.runtime import parallel
from jaxmt.text import files, ragged, vocabulary
from tests import util
from tests.lm import language_models
from tests.reference import backoff

LN10 = np.log(10)
SLOTS = 1024  # one size for all tiny models, so that nothing is recompiled


def padded(table):
  """The same tables with unused slots at the end."""
  more = SLOTS - len(table.check)
  assert more >= 0
  return dataclasses.replace(
    table,
    check=np.pad(table.check, (0, more), constant_values=-1),
    follow=np.pad(table.follow, (0, more)),
    score=np.pad(table.score, (0, more)),
    length=np.pad(table.length, (0, more)),
  )


def encode(table, sentences, width=None):
  rows = [language_models.ids(table, sentence) for sentence in sentences]
  return ragged.pad(ragged.from_rows(rows), width=width)[0]


score_sentences = jax.jit(automaton.score_sentences)
score_words = jax.jit(automaton.score_words)
step = jax.jit(automaton.step)


def oracle_states(grams, words, order):
  """Where the automaton must be: the longest known, useful suffix."""
  useful = {gram for gram in grams if grams[gram][1] != 0}
  useful |= {gram[:cut] for gram in grams for cut in range(1, len(gram))}
  history = tuple(word if (word,) in grams else "<unk>" for word in words)
  for length in range(min(order - 1, len(history)), 0, -1):
    if history[-length:] in useful and history[-length:] in grams:
      return history[-length:]
  return ()


@settings(max_examples=40)
@given(st.data(), language_models.corpora(), st.integers(1, 5))
def test_scores_and_states_equal_the_oracle(data, lines, order):
  prune = data.draw(language_models.prunings(order))
  model = language_models.from_lines(lines, order=order, prune=prune)
  grams = backoff.parse(language_models.arpa_text(model))
  table = padded(tables.build_tables(model))
  device = automaton.to_device(table)
  word = st.sampled_from(["a", "b", "c", "ff", "x", "</s>", "<s>"])
  sentences = data.draw(st.lists(st.lists(word, max_size=6), max_size=3))
  sentences = [*sentences, ["a"], ["b"], ["x"]][:3]
  start = data.draw(st.sampled_from([(), ("<s>",)]))
  batch = encode(table, [" ".join(words) for words in sentences], width=6)
  begin, null = automaton.init(device, (3,))
  got, states = score_words(device, begin if start else null, batch)
  reached = {}
  for row, words in enumerate(sentences):
    wanted = backoff.sentence(grams, words, order=order, start=start, end=None)
    np.testing.assert_allclose(
      got[row, : len(words)], np.array(wanted) * LN10, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_array_equal(got[row, len(words) :], 0)
    state = oracle_states(grams, [*start, *words], order)
    reached.setdefault(state, set()).add(int(states[row]))
  # Equal contexts have one state, different ones different states.
  assert all(len(numbers) == 1 for numbers in reached.values())
  assert len(set.union(*reached.values())) == len(reached)
  assert reached.get((), {tables.ROOT}) == {tables.ROOT}


@pytest.mark.parametrize(
  "name, wanted",
  [
    ("market.3.arpa", language_models.MARKET_SCORES),
    ("srilm.arpa", language_models.SRILM_SCORES),
  ],
)
def test_scores_equal_kenlm_golden(name, wanted):
  table = tables.build_tables(language_models.read(name))
  device = automaton.to_device(table)
  sentences = [sentence for sentence, _, _ in wanted]
  scores, unknown = score_sentences(device, encode(table, sentences))
  np.testing.assert_allclose(
    scores / LN10, [score for _, score, _ in wanted], atol=1e-4
  )
  assert unknown.tolist() == [count for _, _, count in wanted]


def test_n_gram_lengths_equal_kenlm_golden():
  # Of KenLM's query, "the dog" is found although only "sees the dog" is in
  # the file: the suffix is filled in.
  table = tables.build_tables(language_models.read("srilm.arpa"))
  rows = [
    language_models.ids(table, "the dog sees the cat"),
    language_models.ids(table, "a cat sees the dog"),
  ]
  scores = tables.score_text(table, ragged.from_rows(rows))
  assert scores.length.tolist() == [2, 2, 1, 2, 1, 1, 2, 3, 4, 2, 3, 1]


@pytest.mark.parametrize("order", [2, 3, 5])
def test_scores_equal_kenlm_on_real_text(order, tmp_path):
  kenlm = pytest.importorskip("kenlm")
  folder = util.corpus("multi30k-de-en")
  lines = files.read_lines(str(folder / "train.en.gz"))[:8000]
  model = language_models.from_lines(
    lines, order=order, prune=(0, 0, 1)[:order]
  )
  path = str(tmp_path / "lm.arpa")
  language_models.arpa_write.write_arpa(path, model)
  theirs = kenlm.Model(path)
  table = tables.build_tables(arpa_read.read_arpa(path))
  device = automaton.to_device(table)
  sentences = files.read_lines(str(folder / "test2016.en.gz"))
  scores, unknown = score_sentences(device, encode(table, sentences))
  ids, tokens = vocabulary.intern(sentences)
  known = tables.word_map(table, tokens)
  on_host = tables.score_text(
    table, ragged.Ragged(flat=known[ids.flat], offsets=ids.offsets)
  )
  for row, sentence in enumerate(sentences):
    full = list(theirs.full_scores(sentence))
    total = sum(score for score, _, _ in full)
    assert scores[row] / LN10 == pytest.approx(total, abs=1e-4)
    assert unknown[row] == sum(oov for _, _, oov in full)
    np.testing.assert_allclose(
      on_host.log10[row], [score for score, _, _ in full], atol=1e-5
    )
    start, end = on_host.words.offsets[row : row + 2]
    assert on_host.length[start:end].tolist() == [n for _, n, _ in full]
  np.testing.assert_allclose(on_host.totals, scores / LN10, atol=1e-4)
  np.testing.assert_array_equal(on_host.unknown, unknown)


def test_states_are_equal_where_kenlms_are():
  kenlm = pytest.importorskip("kenlm")
  for name in ("market.3.arpa", "market.6.prune01.fallback.arpa", "srilm.arpa"):
    theirs = kenlm.Model(str(language_models.TESTDATA / name))
    table = tables.build_tables(language_models.read(name))
    device = automaton.to_device(table)
    rng = np.random.default_rng(0)
    # Where a model has no <unk>, KenLM keeps it as a context to no effect.
    words = table.words[1:] if name == "srilm.arpa" else [*table.words, "zebra"]
    histories = [
      " ".join(rng.choice(words, rng.integers(0, 4))) for _ in range(40)
    ] + (
      ["a cat sees", "cat sees", "sees the dog", "the dog"]
      if name == "srilm.arpa"
      else ["the old man", "old man", "man", "a cat sees"]
    )
    _, ours = score_words(
      device, jnp.int32(tables.ROOT), encode(table, histories, width=4)
    )
    ours = np.asarray(ours)
    states = []
    for history in histories:
      state, following = kenlm.State(), kenlm.State()
      theirs.NullContextWrite(state)
      for word in history.split():
        theirs.BaseScore(state, word, following)
        state, following = following, kenlm.State()
      states.append(state)
    for i, one in enumerate(states):
      for j, other in enumerate(states):
        assert (one == other) == (ours[i] == ours[j]), (i, j)


def model_and_queries(order=4):
  model = language_models.from_lines(
    language_models.market_lines(), order=order
  )
  table = tables.build_tables(model)
  device = automaton.to_device(table)
  rng = np.random.default_rng(3)
  words = rng.integers(1, len(table.words) + 1, (16, 10)).astype(np.int32)
  real = encode(table, language_models.market_lines()[:16], width=10)
  words = np.concatenate([words, real])
  _, state = score_words(device, device.begin, words)
  return device, state, jnp.asarray(words[:, 0])


def test_eager_jit_vmap_and_sharded_agree():
  device, state, word = model_and_queries()
  wanted = automaton.step(device, state, word)
  sharded = parallel.data_parallel(
    automaton.step,
    mesh=parallel.make_mesh(8),
    inputs=("copied", "split", "split"),
    outputs=("split", "split"),
  )
  for function in (
    step,
    jax.vmap(automaton.step, in_axes=(None, 0, 0)),
    sharded,
  ):
    got = function(device, state, word)
    for ours, other in zip(got, wanted, strict=True):
      np.testing.assert_array_equal(ours, other)
      assert ours.dtype == other.dtype


def test_any_batch_shape():
  device, state, word = model_and_queries()
  score, following = step(device, state, word)
  shape = (2, 4, 4)
  scores, followings = step(device, state.reshape(shape), word.reshape(shape))
  np.testing.assert_array_equal(scores.ravel(), score)
  np.testing.assert_array_equal(followings.ravel(), following)
  everything, _ = step(device, state[:, None], word[None, :])
  assert everything.shape == (32, 32)
  np.testing.assert_array_equal(jnp.diagonal(everything), score)
  one, _ = step(device, state[5], word[5])
  assert one.shape == () and one == score[5]


def test_padding_changes_nothing():
  table = tables.build_tables(language_models.read("market.3.arpa"))
  device = automaton.to_device(table)
  sentences = [sentence for sentence, _, _ in language_models.MARKET_SCORES]
  batch = encode(table, sentences)
  wanted = score_sentences(device, batch)
  wider = np.pad(batch, ((0, 2), (0, 3)))
  holes = np.insert(batch, 2, tables.NO_WORD, axis=1)
  for other in (wider, holes):
    got = score_sentences(device, other)
    np.testing.assert_array_equal(got[0][: len(batch)], wanted[0])
    np.testing.assert_array_equal(got[1][: len(batch)], wanted[1])
  score, state = step(device, device.begin, jnp.int32(tables.NO_WORD))
  assert score == 0 and state == device.begin


@pytest.mark.parametrize("order", [1, 2, 4])
def test_every_state_is_a_distribution(order):
  model = language_models.from_lines(["a b a", "b b c", "a"], order=order)
  table = tables.build_tables(model)
  device = automaton.to_device(table)
  states = np.unique(table.check[table.check >= 0])
  words = np.array([w for w in range(1, len(table.words) + 1) if w != 2])
  scores, _ = step(device, states[:, None], words[None, :])
  np.testing.assert_allclose(jnp.exp(scores).sum(1), 1, atol=1e-5)
