"""The arrays of the automaton."""

import dataclasses

import numpy as np
import pytest

from jaxmt.lm import arpa_read, tables
from jaxmt.text import files
from tests import util
from tests.lm import language_models


def test_word_map():
  table = tables.build_tables(language_models.read("srilm.arpa"))
  assert table.words[:3] == ("<unk>", "<s>", "</s>")
  got = tables.word_map(table, ["<s>", "a", "zebra", "</s>", "<unk>"])
  assert got.tolist() == [2, 4, 1, 3, 1]
  assert tables.word_map(table, []).dtype == np.int32


def test_capital_unknown_word_is_the_unknown_word(tmp_path):
  text = language_models.arpa_text(language_models.read("market.3.arpa"))
  path = tmp_path / "x.arpa"
  path.write_text(text.replace("<unk>", "<UNK>"))
  table = tables.build_tables(arpa_read.read_arpa(str(path)))
  plain = tables.build_tables(language_models.read("market.3.arpa"))
  np.testing.assert_array_equal(table.score, plain.score)


def test_models_without_markers_are_refused():
  model = language_models.read("market.3.arpa")
  words = tuple(word.replace("<s>", "<t>") for word in model.words)
  with pytest.raises(ValueError, match="no <s>"):
    tables.build_tables(dataclasses.replace(model, words=words))


def test_memory_per_n_gram():
  folder = util.corpus("multi30k-de-en")
  lines = files.read_lines(str(folder / "train.en.gz"))
  for order, prune in ((3, ()), (5, ()), (3, (0, 0, 1))):
    model = language_models.from_lines(lines, order=order, prune=prune)
    assert tables.build_tables(model).bytes_per_ngram <= 40
