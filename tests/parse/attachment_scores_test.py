import numpy as np
import pytest

from jaxmt.parse import attachment_scores
from jaxmt.text import treebank
from jaxmt.text.ragged import Ragged


def test_attachment_by_hand(tmp_path):
  path = tmp_path / "bank"
  path.write_text(
    "a\tX\t2\nb\tX\t0\n.\tPUNCT\t2\n\n"
    + "".join(f"w\tX\t{k}\n" for k in range(11))
  )
  bank = treebank.read_treebank(str(path))
  heads = np.array([-1, 0, 1, *range(-1, 9), 10 - 2], np.int32)
  found = attachment_scores.attachment(
    bank, Ragged(flat=heads, offsets=bank.words.offsets)
  )
  assert found["sentences"] == 2 and found["words"] == 13
  assert found["short_sentences"] == 1
  # a and b are the wrong way round; the last word of the chain is wrong.
  assert found["accuracy"] == pytest.approx(100 * 11 / 14)
  assert found["words_accuracy"] == pytest.approx(100 * 10 / 13)
  assert found["short_words_accuracy"] == 0
  assert found["undirected_accuracy"] == pytest.approx(100 * 11 / 13)
  assert found["exact"] == 0
