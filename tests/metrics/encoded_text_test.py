"""Tokens of text for the metrics."""

import sys

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from jaxmt.metrics import chrf, encoded_text


def test_tokenizers_are_those_sacrebleu_has():
  known = set(BLEU.TOKENIZERS)
  # The rest would fetch models from elsewhere.
  assert set(encoded_text.TOKENIZERS) == known - {
    "spm",
    "flores101",
    "flores200",
    "spBLEU-1K",
  }


def test_code_points():
  points = encoded_text.code_points(["a的", "", "😀\n"])
  assert points.flat.tolist() == [97, 0x7684, 0x1F600, 10]
  assert points.offsets.tolist() == [0, 2, 2, 4]


def test_unknown_tokenizers_are_refused():
  with pytest.raises(ValueError, match="no tokenizer 'x'"):
    encoded_text.tokenized(["a"], tokenize="x")


SPACES = [chr(code) for code in range(0x10FFFF) if chr(code).isspace()]
NEAR_SPACES = "\x08\x0e\x1b\x7f\x84\x86\x9f\xa1\u167f\u1681\u1fff\u200b\u2027"
NEAR_SPACES += "\u202a\u202e\u2030\u205e\u2060\u2fff\u3001\u180e\ufeff"
LINES = st.lists(
  st.text(
    st.one_of(
      st.sampled_from(SPACES + list(NEAR_SPACES) + list("abcß的😀")),
      st.characters(exclude_categories=("Cs",)),
    ),
    max_size=25,
  ),
  max_size=6,
)


def spelled(ids, references):
  """Ids as the words they stand for; None for the unknown."""
  known = {}
  for line in references:
    for word in line.split():
      known.setdefault(word, len(known))
  names = {number: word for word, number in known.items()}
  return [[names.get(word) for word in ids[n]] for n in range(len(ids))], known


@hypothesis.given(LINES, LINES)
def test_words_are_those_of_str_split(references, hypotheses):
  ids, table = encoded_text.number(references)
  got, known = spelled(ids, references)
  assert got == [line.split() for line in references]
  got, _ = spelled(encoded_text.look_up(table, hypotheses), references)
  want = [
    [word if word in known else None for word in line.split()]
    for line in hypotheses
  ]
  assert got == want


def test_every_space_there_is():
  assert chrf._is_space.py_func(ord("a")) is False
  for code in range(sys.maxunicode + 1):
    if code > 0x3100 and code % 97:
      continue
    assert chrf._is_space.py_func(code) == chr(code).isspace(), hex(code)
  line = "".join(f"x{space}" for space in SPACES)
  ids, _ = encoded_text.number([line])
  assert ids.lengths.tolist() == [len(SPACES)]
  line = "".join(f"x{mark}" for mark in NEAR_SPACES)
  assert encoded_text.number([line])[0].lengths.tolist() == [1]


def test_large_texts_are_split_on_several_threads(monkeypatch):
  monkeypatch.setattr(encoded_text.kernels, "available_threads", lambda: 5)
  rng = np.random.default_rng(0)
  lines = [
    " ".join(f"w{n}" for n in rng.integers(0, 3000, rng.integers(0, 40)))
    for _ in range(20000)
  ]
  _, table = encoded_text.number([f"w{n}" for n in range(2000)])
  got = encoded_text.look_up(table, lines)
  assert len(lines[0]) * len(lines) > 5 * encoded_text._CHUNK_BYTES // 2
  want = [[min(int(word[1:]), 2000) for word in line.split()] for line in lines]
  assert [row.tolist() for row in map(got.__getitem__, range(20000))] == want


def test_text_that_looks_special_is_not():
  known = encoded_text.encode_references([["<unk> <s> </s> <pad>"]])
  assert known.encode(["</s> <unk> x"]).flat.tolist() == [2, 0, 4]


@pytest.mark.parametrize("lines", [[], [""], ["", ""], ["\n"], ["a\nb", "c"]])
def test_empty_lines_and_newlines(lines):
  ids, table = encoded_text.number(lines)
  assert len(ids) == len(lines)
  assert ids.lengths.tolist() == [len(line.split()) for line in lines]
  again = encoded_text.look_up(table, lines)
  np.testing.assert_array_equal(again.flat, ids.flat)
  np.testing.assert_array_equal(again.offsets, ids.offsets)
