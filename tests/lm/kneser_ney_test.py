import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmt.errors import InputError
from jaxmt.lm import arpa_write, kneser_ney, ngram_model, word_ids
from jaxmt.lm.kneser_ney import EstimateConfig
from jaxmt.text import files
from tests import util
from tests.lm import language_models
from tests.reference import backoff
from tests.reference import kneser_ney as slow

# Written by: lmplz --text market.txt --arpa FILE -o ORDER [--prune ...]
#   [--discount_fallback]
GOLDEN = [
  ("market.1.arpa", 1, (), False),
  ("market.2.fallback.arpa", 2, (), True),
  ("market.3.arpa", 3, (), False),
  ("market.3.prune001.arpa", 3, (0, 0, 1), False),
  ("market.4.prune112.fallback.arpa", 4, (1, 1, 2), True),
  ("market.6.prune01.fallback.arpa", 6, (0, 1), True),
]


def config(order, prune=(), fallback=True):
  return EstimateConfig(
    order=order,
    prune=prune,
    fallback=kneser_ney.FALLBACK if fallback else None,
  )


@pytest.mark.parametrize("name, order, prune, fallback", GOLDEN)
def test_writes_the_file_that_lmplz_writes(name, order, prune, fallback):
  sentences, words = word_ids.encode_corpus(language_models.market_lines())
  made = kneser_ney.estimate(sentences, words, config(order, prune, fallback))
  wanted = files.read_text(str(language_models.TESTDATA / name))
  assert language_models.arpa_text(made).split("\n") == wanted.split("\n")


@settings(max_examples=120)
@given(st.data(), language_models.corpora(), st.integers(1, 6))
def test_equals_the_dictionary_oracle(data, lines, order):
  prune = data.draw(language_models.prunings(order))
  made = language_models.from_lines(lines, order=order, prune=prune)
  thresholds = [*prune, *[prune[-1] if prune else 0] * (order - len(prune))]
  wanted = slow.estimate(
    [line.split() for line in lines], order, thresholds, kneser_ney.FALLBACK
  )
  got = {}
  for k in range(1, order + 1):
    level = made.levels[k - 1]
    for row, p, b in zip(
      ngram_model.spell(made.levels, k).tolist(),
      level.probability.tolist(),
      level.backoff.tolist(),
      strict=True,
    ):
      got[tuple(made.words[word] for word in row)] = (10**p, 10**b)
  assert got.keys() == wanted.keys()
  for gram, (p, b) in wanted.items():
    assert got[gram] == pytest.approx((p, b), rel=2e-5, abs=1e-9), gram


@settings(max_examples=30)
@given(st.data(), language_models.corpora(), st.integers(1, 4))
def test_probabilities_sum_to_one_in_every_context(data, lines, order):
  prune = data.draw(language_models.prunings(order))
  made = language_models.from_lines(lines, order=order, prune=prune)
  grams = backoff.parse(language_models.arpa_text(made))
  contexts = {(), ("a", "b", "a", "b")[: order - 1]}
  contexts |= {
    gram for gram in grams if len(gram) < order and gram[-1] != "</s>"
  }
  vocabulary = [word for word in made.words if word != "<s>"]
  for context in sorted(contexts):
    total = sum(
      10 ** backoff.log10_probability(grams, context, word)
      for word in vocabulary
    )
    assert total == pytest.approx(1, abs=1e-5), context


@pytest.mark.parametrize("prune", [(), (0, 0, 1)])
@pytest.mark.parametrize("order", [3, 5])
def test_equals_lmplz_on_a_real_corpus(order, prune):
  # The numbers come from lmplz's files: every so-manyth n-gram of each order.
  folder = util.corpus("multi30k-de-en")
  name = ",".join(map(str, (order, *prune)))
  golden = json.loads(
    files.read_text(str(language_models.TESTDATA / "multi30k.lmplz.json"))
  )[name]
  lines = files.read_lines(str(folder / "train.en.gz"))
  sentences, words = word_ids.encode_corpus(lines)
  made = kneser_ney.estimate(sentences, words, config(order, prune, False))
  assert made.counts == tuple(row["count"] for row in golden)
  for level, row in zip(made.levels, golden, strict=True):
    step = row["step"]
    np.testing.assert_allclose(
      level.probability[::step], row["probability"], atol=1e-4
    )
    assert np.mean(level.probability, dtype=np.float64) == pytest.approx(
      row["mean_probability"], abs=1e-5
    )
    assert np.mean(level.backoff, dtype=np.float64) == pytest.approx(
      row["mean_backoff"], abs=1e-5
    )
    if row["backoff"]:
      np.testing.assert_allclose(
        level.backoff[::step], row["backoff"], atol=1e-4
      )


def test_whole_file_of_a_real_corpus():
  corpus = util.corpus("multi30k-de-en")
  theirs = util.corpus("cdec-multi30k-de-en") / "lm4.arpa.gz"
  lines = files.read_lines(str(corpus / "train.en.gz"))
  sentences, words = word_ids.encode_corpus(lines)
  made = kneser_ney.estimate(sentences, words, config(4, (), False))
  read = language_models.arpa_read.read_arpa(str(theirs))
  assert made.words == read.words
  for ours, other in zip(made.levels, read.levels, strict=True):
    np.testing.assert_array_equal(ours.context, other.context)
    np.testing.assert_array_equal(ours.suffix, other.suffix)
    np.testing.assert_allclose(ours.probability, other.probability, atol=1e-5)
    np.testing.assert_allclose(ours.backoff, other.backoff, atol=1e-5)


def test_every_n_gram_knows_its_words():
  made = language_models.from_lines(["a b a b", "b a"], order=3)
  trigrams = {
    tuple(made.words[word] for word in row)
    for row in ngram_model.spell(made.levels, 3).tolist()
  }
  assert trigrams == {
    ("<s>", "a", "b"),
    ("a", "b", "a"),
    ("b", "a", "b"),
    ("a", "b", "</s>"),
    ("<s>", "b", "a"),
    ("b", "a", "</s>"),
  }
  for k in (2, 3):
    rows = ngram_model.spell(made.levels, k)
    shorter = ngram_model.spell(made.levels, k - 1)
    level = made.levels[k - 1]
    np.testing.assert_array_equal(shorter[level.suffix], rows[:, 1:])
    np.testing.assert_array_equal(shorter[level.context], rows[:, :-1])


def test_short_lines_leave_the_high_orders_empty():
  made = language_models.from_lines(["a", "b", ""], order=5)
  assert made.counts == (5, 5, 2, 0, 0)


@pytest.mark.parametrize(
  "order, prune, cause",
  [
    (0, (), "order 0"),
    (7, (), "order 7"),
    (3, (0, 2, 1), "must not fall"),
    (3, (-1,), "at least 0"),
    (2, (0, 0, 1), "3 thresholds"),
  ],
)
def test_bad_configs(order, prune, cause):
  sentences, words = word_ids.encode_corpus(["a b"])
  with pytest.raises(InputError, match=cause):
    kneser_ney.estimate(sentences, words, config(order, prune))


def test_bad_fallback():
  sentences, words = word_ids.encode_corpus(["a b"])
  wrong = EstimateConfig(order=2, fallback=(0.5, 1.0, 3.5))
  with pytest.raises(InputError, match=r"3\.5 for count 3"):
    kneser_ney.estimate(sentences, words, wrong)


def test_empty_text():
  sentences, words = word_ids.encode_corpus([])
  with pytest.raises(InputError, match="empty"):
    kneser_ney.estimate(sentences, words, config(2))


def test_too_small_for_discounts_names_the_order():
  sentences, words = word_ids.encode_corpus(["a b a"])
  with pytest.raises(InputError, match="1-gram has adjusted count 3"):
    kneser_ney.estimate(sentences, words, config(2, (), False))
  lines = language_models.market_lines()
  sentences, words = word_ids.encode_corpus(lines)
  with pytest.raises(InputError, match="2-gram discount for adjusted count 3"):
    kneser_ney.estimate(sentences, words, config(2, (), False))


def test_probability_one_is_zero_in_logs():
  made = language_models.from_lines(["a b"], order=2)
  assert made.levels[0].probability[1] == 0  # <s>
  assert all(level.probability.max() <= 0 for level in made.levels)
  assert math.isfinite(float(made.levels[0].backoff.min()))
  assert "-inf" not in b"".join(arpa_write.format_arpa(made)).decode()
