"""Small models that several tests share."""

import pathlib

from hypothesis import strategies as st

from jaxmt.lm import arpa_read, arpa_write, kneser_ney, tables, word_ids
from jaxmt.text import files

TESTDATA = pathlib.Path(__file__).parent / "testdata"

# What KenLM's `query` gives: sentence, log10 total, unknown words.
MARKET_SCORES = [
  ("the old man sees the young dog", -6.66482, 0),
  ("a zebra eats the market", -8.05456, 1),
  ("", -1.52971, 0),
  ("two apples", -4.08686, 0),
  ("两 个 dog", -4.97833, 0),
  ("the the the", -4.5395, 0),
]
SRILM_SCORES = [
  ("a cat sees a dog", -2.68, 0),
  ("the dog sees the cat", -6.82, 0),
  ("a cat sees the dog", -2.82, 0),
  ("", -1.15, 0),
  ("zebra", -101.15, 1),
  ("a zebra sees a cat sees a cat", -105.8, 1),
  ("the Käse sees the dog the", -6.55, 0),
]


def read(name):
  return arpa_read.read_arpa(str(TESTDATA / name))


def market_lines():
  return files.read_lines(str(TESTDATA / "market.txt"))


def from_lines(lines, *, order, prune=()):
  """Estimates with fallback discounts, so that any text will do."""
  sentences, words = word_ids.encode_corpus(lines)
  config = kneser_ney.EstimateConfig(
    order=order, prune=prune, fallback=kneser_ney.FALLBACK
  )
  return kneser_ney.estimate(sentences, words, config)


def arpa_text(model):
  return b"".join(arpa_write.format_arpa(model)).decode()


def ids(table, sentence):
  return tables.word_map(table, sentence.split())


def corpora(max_words=7):
  """Strategy: lists of lines over a small vocabulary, some lines empty."""
  word = st.sampled_from(["a", "b", "c", "d", "é", "ff"])
  line = st.lists(word, max_size=max_words).map(" ".join)
  return st.lists(line, min_size=1, max_size=25)


def prunings(order):
  """Strategy: thresholds for at most `order` orders that do not fall."""
  count = st.integers(min_value=0, max_value=2)
  return st.lists(count, max_size=order).map(lambda row: tuple(sorted(row)))
