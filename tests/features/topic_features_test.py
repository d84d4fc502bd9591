"""Topics: retrieval, losses by hand, and a corpus of two topics."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.decode import decoding, nbest
from jaxmt.decode import model as models
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.phrase import phrase_model
from jaxmt.errors import InputError
from jaxmt.features import sentence_models, topic_features
from jaxmt.grammar import table as tables
from jaxmt.grammar.extract import extraction
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.shards import CountOptions
from jaxmt.models import topic_mixtures, topic_vectors
from jaxmt.models.fitting import FitOptions
from jaxmt.models.topic_mixtures import MixtureOptions
from jaxmt.models.topic_vectors import TopicOptions
from jaxmt.runtime.runner import Runner
from jaxmt.text import links as links_lib
from jaxmt.text import vocabulary
from tests.reference import tiny_training as tiny

# "bank" is "bank" among words of money, three times, "bench" among trees.
PAIRS = [
  ("bank geld kredit", "bank money credit"),
  ("kredit bank zins", "credit bank interest"),
  ("zins geld bank", "interest money bank"),
  ("bank baum wiese", "bench tree meadow"),
  ("wiese bank see", "meadow bench lake"),
]
DOCUMENTS = (
  [
    "geld kredit zins konto bank",
    "kredit geld konto euro",
    "zins euro konto kredit",
    "baum wiese see blume bank",
    "see blume wiese vogel",
    "vogel baum blume see",
  ],
  [
    "money credit interest account bank",
    "credit money account euro",
    "interest euro account credit",
    "tree meadow lake flower bench",
    "lake flower meadow bird",
    "bird tree flower lake",
  ],
)
OPTIONS = TopicOptions(
  size=8,
  documents=2,
  common=0.6,
  fit=FitOptions(epochs=60, batch=5, rate=0.02),
  tune_epochs=20,
  tune_rate=0.01,
)


@functools.cache
def built():
  """`(topics, table, encoders)` of the corpus."""
  source, target = (list(side) for side in zip(*PAIRS, strict=True))
  links = links_lib.parse_links(["0-0 1-1 2-2"] * len(PAIRS))
  words = [vocabulary.build([side]) for side in (source, target)]
  extracted = extraction.extract_hiero(
    vocabulary.encode(words[0], source),
    vocabulary.encode(words[1], target),
    links,
    source_words=words[0],
    target_words=words[1],
    options=HieroOptions(max_phrase=1, max_target_phrase=1, max_words=1),
    count=CountOptions(provenance=True),
    runner=Runner(kind="serial", workers=1),
  )
  indices = tuple(
    topic_vectors.index_documents(side, OPTIONS) for side in DOCUMENTS
  )
  *_, last = topic_vectors.train_encoders(indices, (source, target), OPTIONS)
  encoders = last[-1]
  topics = topic_features.make_model(
    indices[0], encoders, indices[1], extracted.table, extracted.provenance
  )
  return topics, extracted.table, encoders, extracted.provenance


def test_retrieval_by_hand():
  index = topic_vectors.index_documents(["a a b", "b c", "d"], OPTIONS)
  near = topic_vectors.retrieve(index, ["a", "c b", "x", "d c"], 2)
  # "b" is in two of three documents: no content word.
  assert "b" not in index.words.words
  assert near.tolist() == [[0, -1], [1, -1], [-1, -1], [1, 2]]


@pytest.mark.parametrize("count", [1, 4, 30])
def test_nearest_documents_are_those_of_a_full_sort(count):
  rng = np.random.default_rng(count)
  # Few values, so that many are equal; rounding makes more equal.
  similarity = rng.integers(0, 4, (50, 25)) / 3
  similarity = (similarity + rng.uniform(-1e-7, 1e-7, (50, 25))).clip(0)
  similarity = similarity.astype(np.float32)
  found = np.full((50, count), topic_vectors.NO_DOCUMENT, np.int32)
  topic_vectors._nearest(similarity, count, found)
  for row, values in enumerate(np.round(similarity, 5)):
    order = sorted(range(25), key=lambda n, v=values: (-v[n], n))
    want = [n for n in order if values[n] > 0][:count]
    want += [topic_vectors.NO_DOCUMENT] * (count - len(want))
    assert found[row].tolist() == want


def test_losses_by_hand_and_their_gradients():
  rng = np.random.default_rng(0)
  f, e, g, h = (rng.normal(0, 1, (3, 4)) for _ in range(4))
  cos = lambda a, b: (a * b).sum(-1) / np.sqrt((a**2).sum(-1) * (b**2).sum(-1))
  eta = 0.5 - cos(f, g)
  want = np.maximum(0, eta - cos(f, e) + cos(f, h))
  with jax.enable_x64(True):
    found = topic_vectors.ranking(*map(jnp.asarray, (f, e, g, h)))
    np.testing.assert_allclose(found, want, atol=1e-12)
    value = lambda x: topic_vectors.ranking(x, *map(jnp.asarray, (e, g, h)))
    slopes = jax.grad(lambda x: value(x).sum())(jnp.asarray(f))
    way = rng.normal(0, 1, f.shape)
    fixed = lambda x: np.maximum(0, eta - cos(x, e) + cos(x, h)).sum()
    expected = (fixed(f + 1e-6 * way) - fixed(f - 1e-6 * way)) / 2e-6
    np.testing.assert_allclose((slopes * way).sum(), expected, atol=1e-6)
  assert np.abs(slopes).max() > 0.01
  module = topic_vectors.TopicEncoder(words=4, size=3)
  parameters = module.init(jax.random.key(0), jnp.zeros((1, 4)))
  binary = jnp.asarray([[1, 0, 0, 1], [0, 1, 0, 0]], jnp.uint8)
  rows = jnp.asarray([[0, 1], [1, -1]])
  whole = np.array([[1, 1, 0, 1], [0, 1, 0, 0]], np.float32)
  loss = topic_vectors.DenoisingLoss(module, 0.0)
  total, weight = loss(parameters, {"binary": binary}, rows, jax.random.key(1))
  rebuilt = module.apply(parameters, whole)
  np.testing.assert_allclose(total, ((rebuilt - whole) ** 2).sum(), rtol=1e-5)
  assert weight == 2


def test_negatives_differ_enough():
  words = vocabulary.build([["a b c d"]])
  lines = ["a b c d", "a b c", "x", "d"]
  drawn = topic_vectors.draw_negatives(
    lines, words, dataclasses.replace(OPTIONS, negatives=50)
  )
  # All words of the others are those of the first.
  allowed = [set(), {3}, {0, 1, 3}, {0, 1}]
  assert [set(row[row >= 0].tolist()) for row in drawn] == allowed


def test_both_losses_fall():
  history = built()[2].history
  for part in ("source", "target", "pairs"):
    # Which negatives are drawn makes single epochs differ.
    assert max(history[part][-5:]) < 0.8 * max(history[part][:5])


def test_a_rule_of_one_sentence_has_its_topic():
  topics, table, _, provenance = built()
  counts = np.bincount(provenance.rules.flat, minlength=len(table))
  for sentence, (line, _) in enumerate(PAIRS):
    start, stop = provenance.rules.offsets[sentence : sentence + 2]
    own = provenance.rules.flat[start:stop]
    own = own[counts[own] == 1]
    values = topics.values(table, own, tuple(line.split()))
    np.testing.assert_allclose(values[:, 0], 0.0, atol=1e-5)  # ln 1


def slow_features(topics, rule, sentence):
  """The features of one rule in one sentence, word by word."""
  index = topics.index
  size = len(index.words)
  weights = np.zeros((len(index), size))
  for document in range(len(index)):
    part = slice(*index.offsets[document : document + 2])
    weights[document, index.ids[part]] = index.weights[part]
  query = np.zeros(size)
  for word in sentence:
    number = index.words.index.get(word, 0)
    query[number] += index.idf[number]
  similarity = np.round(weights @ query, 5)
  order = sorted(range(len(index)), key=lambda d: (-similarity[d], d))
  near = [d for d in order[: topics.count] if similarity[d] > 0]
  if len(topics.mixtures):
    vector = topics.mixtures[near].mean(0)
  else:
    words = (weights[near] > 0).any(0)
    vector = np.maximum(topics.encoder[words].sum(0) + topics.bias, 0.0)
  vector = vector / max(np.sqrt((vector**2).sum()), 1e-30)
  out = []
  for side in (topics.source, topics.target):
    cosine = min(max(float(side[rule] @ vector), topic_features.FLOOR), 1.0)
    out.append(np.log(cosine))
  for side in (topics.source, topics.target):
    share = side[rule] / max(side[rule].sum(), 1e-30)
    entropy = -sum(p * np.log(p) for p in share.tolist() if p > 0)
    out.append(np.log(max(entropy, topic_features.FLOOR)))
  return out


@pytest.mark.parametrize("kind", ["encoder", "lda"])
def test_features_of_many_sentences_are_those_of_each(kind):
  topics, table, _, _ = built()
  topics = mixed() if kind == "lda" else topics
  lines = [tuple(line.split()) for line, _ in PAIRS]
  lines += [("see", "vogel", "zins"), ("zins", "euro", "fremd")]
  rng = np.random.default_rng(0)
  rules = rng.integers(0, len(table), 60)
  rows = np.sort(rng.integers(0, len(lines), 60))
  found = topics.batch(table, rules, rows, lines)
  known = topics._rows(table)
  assert (known[rules] >= 0).sum() > 20 and (known[rules] < 0).any()
  for item, (rule, row) in enumerate(zip(rules, rows, strict=True)):
    # Not a bit depends on what is computed together.
    alone = topics.values(table, np.array([rule]), lines[row])[0]
    np.testing.assert_array_equal(found[item], alone)
    want = [0.0] * 4
    if known[rule] >= 0:
      want = slow_features(topics, known[rule], lines[row])
    np.testing.assert_allclose(found[item], want, atol=2e-5)


def test_sensitivity_is_larger_for_rules_of_both_topics():
  topics, _, _, _ = built()
  source = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], np.float32)
  flat = topic_features.entropy(source)
  np.testing.assert_allclose(flat, np.log([1, 2, 3]), atol=1e-6)
  # Its sign is that of tuning: the feature is ln H, no more.
  np.testing.assert_allclose(
    topics._entropies[:, 0],
    np.log(np.maximum(topic_features.entropy(topics.source), 0.01)),
    rtol=1e-6,
  )


def test_rule_vectors_are_weighted_means():
  _, table, encoders, provenance = built()
  vectors = np.random.default_rng(0).uniform(0, 1, (len(PAIRS), 4))
  found = topic_features.rule_vectors(provenance, vectors, rules=len(table))
  want = np.zeros((len(table), 4))
  for row in range(len(PAIRS)):
    low, high = provenance.rules.offsets[row : row + 2]
    for place in range(low, high):
      rule = provenance.rules.flat[place]
      want[rule] += provenance.counts[place] * vectors[row]
  length = np.sqrt((want**2).sum(1, keepdims=True))
  np.testing.assert_allclose(found, want / np.maximum(length, 1e-30), atol=1e-6)
  del encoders


@functools.cache
def mixed():
  """The topics of the corpus by latent Dirichlet allocation."""
  _, table, encoders, provenance = built()
  indices = [topic_vectors.index_documents(d, OPTIONS) for d in DOCUMENTS]
  counts = topic_mixtures.joint_counts((indices[0], indices[1]), DOCUMENTS)
  found = topic_mixtures.fit(counts, MixtureOptions(size=2, rounds=40))
  return topic_features.make_mixture_model(
    indices[0], found.shares, encoders.near, table, provenance
  )


@pytest.mark.parametrize("kind", ["scfg", "phrase", "lda"])
def test_topics_choose_the_translation_of_an_ambiguous_word(kind):
  """Hiero and phrase search: topics choose, without them the majority."""
  topics, table, _, _ = built()
  if kind == "lda":
    topics = mixed()
  if kind == "phrase":
    table = tables.select(table, tables.arity(table) == 0)
  make = phrase_model.make_model if kind == "phrase" else models.make_model
  lines = ["bank konto euro", "vogel bank"]
  best = {}
  for weight in (0.0, 2.0):
    weights = tiny.WEIGHTS | {"TopicSource": weight, "LanguageModel": 0.0}
    model = make(
      table,
      tiny.language_model(),
      weights=weights,
      local=sentence_models.features([topics]),
    )
    assert not models.unknown_weights(model, {"TopicSource": 1.0})
    best[weight] = _translations(model, lines)
  assert [("bench" in line) for line in best[0.0]] == [False, False]
  assert [("bench" in line) for line in best[2.0]] == [False, True]


def _translations(model, lines):
  source = models.make_source(model, lines)
  config = DecodeConfig(search=tiny.SEARCH)
  out = [""] * len(lines)
  for batch in decoding.decode(model, source, config=config):
    for part in batch:
      lists = nbest.lists(
        model,
        part.source,
        decoding.forest(model, part),
        nbest.ListSettings(size=1),
        rows=part.rows,
      )
      for row, line in zip(lists.sentence.tolist(), lists.lines, strict=True):
        out[row] = line
  return out


def test_topics_in_a_folder_are_the_same_and_are_checked(tmp_path):
  topics, table, _, _ = built()
  sentence_models.write(str(tmp_path / "t"), [topics])
  (read,) = sentence_models.read_all([str(tmp_path / "t")], table)
  some = tables.select(table, np.arange(len(table))[::-2].copy())
  sentence = tuple(PAIRS[3][0].split())
  np.testing.assert_array_equal(
    read.values(some, np.arange(len(some)), sentence),
    topics.values(table, np.arange(len(table))[::-2], sentence),
  )
  foreign = tiny.extracted().table
  with pytest.raises(InputError, match="none of the grammar's rules"):
    sentence_models.read_all([str(tmp_path / "t")], foreign)
  values = topics.to_values()
  for name, change, message in (
    ("topics_ids", lambda a: a + 1000, "out of range"),
    ("topics_source", lambda a: a[:-1], "wrong shape"),
    ("topics_mixtures", lambda a: np.ones((1, a.shape[1]), a.dtype), "one for"),
    ("topics_keys", lambda a: a[::-1].copy(), "do not rise"),
    ("topics_bias", lambda a: a * np.float32("nan"), "no usable"),
    ("topics_offsets", lambda a: a[::-1].copy(), "no offsets"),
  ):
    with pytest.raises(InputError, match=message):
      topic_features.from_values(values | {name: change(values[name])})


def test_settings_that_make_no_sense():
  for change, message in (
    ({"size": 0}, "'size' must be"),
    ({"mask": 1.0}, "'mask' must be"),
    ({"common": 0.0}, "'common' must be"),
  ):
    with pytest.raises(InputError, match=message):
      topic_vectors.check_options(dataclasses.replace(OPTIONS, **change))
  with pytest.raises(InputError, match="no content words"):
    topic_vectors.index_documents(["a", "a"], OPTIONS)
