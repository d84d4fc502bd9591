"""Text for the language model."""

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.lm import word_ids


def test_special_words_in_the_text():
  lines = ["a b", "a", "c <s> b"]
  with pytest.raises(InputError, match=r"^in\.txt:3: .*<s>") as caught:
    word_ids.encode_corpus(lines, path="in.txt")
  assert caught.value.line == 3
  skipped = word_ids.encode_corpus(lines, skip_symbols=True)
  plain = word_ids.encode_corpus(["a b", "a", "c b"])
  assert skipped[1] == plain[1]
  np.testing.assert_array_equal(skipped[0].flat, plain[0].flat)
  np.testing.assert_array_equal(skipped[0].offsets, plain[0].offsets)
