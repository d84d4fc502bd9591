"""Target n-grams and word pairs of candidates."""

import collections

import numpy as np
import pytest

from jaxmt.features import string_templates
from tests.features.selection_test import counted


@pytest.mark.parametrize("order", [1, 2, 3])
def test_ngrams(order):
  lines = ["a b a b", "", "b", "c a b"]
  expected = []
  for line in lines:
    words = line.split()
    if order > 1:
      words = ["<s>", *words, "</s>"]
    grams = zip(*(words[n:] for n in range(order)), strict=False)
    expected.append(collections.Counter("ngram:" + "_".join(g) for g in grams))
  assert (
    counted(*string_templates.target_ngrams(lines, order=order)) == expected
  )


def test_word_pairs():
  rows, names = string_templates.word_pairs(
    ["x y x", "z"], ["a b a", "", "b"], np.array([0, 0, 1])
  )
  assert counted(rows, names) == [
    {"pair:x_a": 2, "pair:x_b": 1, "pair:y_a": 2, "pair:y_b": 1},
    {},
    {"pair:z_b": 1},
  ]
