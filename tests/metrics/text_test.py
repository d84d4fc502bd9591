"""Tokens of text for the metrics."""

import pytest
from sacrebleu.metrics import BLEU

from jaxmt.metrics import text


def test_tokenizers_are_those_sacrebleu_has():
  known = set(BLEU.TOKENIZERS)
  # The rest would fetch models from elsewhere.
  assert set(text.TOKENIZERS) == known - {
    "spm",
    "flores101",
    "flores200",
    "spBLEU-1K",
  }


def test_code_points():
  points = text.code_points(["a的", "", "😀\n"])
  assert points.flat.tolist() == [97, 0x7684, 0x1F600, 10]
  assert points.offsets.tolist() == [0, 2, 2, 4]


def test_unknown_tokenizers_are_refused():
  with pytest.raises(ValueError, match="no tokenizer 'x'"):
    text.tokenized(["a"], tokenize="x")
