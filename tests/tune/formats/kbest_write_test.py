"""Writing k-best lists, and reading them back."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from jaxmt.decode import candidate_lists
from jaxmt.features import sparse
from jaxmt.text.ragged import Ragged
from jaxmt.tune.formats import kbest_files, kbest_write

NAMES = ("TM0_0", "TM0_1", "LM0", "PP_a_0", "PP_a_1", "x=y", "W_0")


def make(rows, texts, names=NAMES):
  """Candidates of dense rows; two of each sentence."""
  dense = np.asarray(rows, np.float64).reshape(len(texts), len(names))
  row, column = np.nonzero(dense)
  counts = np.bincount(row, minlength=len(dense))
  return candidate_lists.from_rows(
    sentence=np.arange(len(texts)) // 2,
    lines=list(texts),
    features=sparse.SparseRows(
      ids=column.astype(np.int32),
      values=dense[row, column],
      offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    ),
    names=names,
  )


ROWS = [[-1.5, 0, -2, 1, 0, 3, 0.1], [0, 0, -3, 0, 0, 0, 0]]


@pytest.mark.parametrize(
  ("format", "want"),
  [
    (
      "jaxmt",
      [
        "0 ||| a b ||| TM0_0=-1.5 LM0=-2.0 PP_a_0=1.0 x=y=3.0 W_0=0.1 ||| -4.5",
        "0 |||  ||| LM0=-3.0 ||| -5.0",
      ],
    ),
    (
      "joshua",
      [
        "0 ||| a b ||| TM0_0=-1.5 LM0=-2.0 PP_a_0=1.0 x=y=3.0 W_0=0.1 ||| -4.5",
        "0 |||  ||| LM0=-3.0 ||| -5.0",
      ],
    ),
    (
      "travatar",
      [
        "0 ||| a b ||| -4.5 ||| TM0_0=-1.5 LM0=-2.0 PP_a_0=1.0 x=y=3.0 W_0=0.1",
        "0 |||  ||| -5.0 ||| LM0=-3.0",
      ],
    ),
    (
      "moses",
      [
        "0 ||| a b  ||| TM0= -1.5 0.0 LM0= -2.0 PP_a_0= 1.0 x=y= 3.0"
        " W_0= 0.1 ||| -4.5 ||| 0-1 1-0",
        "0 |||   ||| TM0= 0.0 0.0 LM0= -3.0 ||| -5.0 ||| ",
      ],
    ),
  ],
)
def test_lines(format, want):
  links = Ragged(
    flat=np.array([[0, 1], [1, 0]], np.int32), offsets=np.array([0, 2, 2])
  )
  made = make(ROWS, ["a b", ""])
  got = kbest_write.format_kbest(
    made, np.array([-4.5, -5.0]), format=format, links=links
  )
  assert got == want


def test_without_links_moses_has_four_fields():
  made = make(ROWS, ["a", "b"])
  lines = kbest_write.format_kbest(made, np.zeros(2), format="moses")
  assert [line.count("|||") for line in lines] == [3, 3]


WORDS = strategies.text(
  strategies.characters(
    exclude_characters=" \t\n\r\v\f|", exclude_categories=["Cs"]
  ),
  min_size=1,
)


@hypothesis.settings(max_examples=60)
@hypothesis.given(
  format=strategies.sampled_from(kbest_files.FORMATS),
  texts=strategies.lists(
    strategies.lists(WORDS, max_size=4).map(" ".join), min_size=1, max_size=5
  ),
  data=strategies.data(),
)
def test_round_trip(format, texts, data):
  value = strategies.floats(allow_nan=False, allow_infinity=False, width=64)
  rows = data.draw(
    strategies.lists(
      strategies.lists(
        value | strategies.just(0.0), min_size=len(NAMES), max_size=len(NAMES)
      ),
      min_size=len(texts),
      max_size=len(texts),
    )
  )
  # Travatar's lists are told from others by the "=" of their features.
  rows[0][2] = 1.0
  made = make(rows, texts)
  lines = kbest_write.format_kbest(made, np.arange(len(texts)), format=format)
  again = kbest_files.parse_kbest("\n".join(lines).encode(), kind=format)
  assert again.lines == made.lines
  np.testing.assert_array_equal(again.sentence, made.sentence)
  want = sparse.to_dense(made.features, len(NAMES))
  place = [NAMES.index(name) for name in again.names]
  got = np.zeros_like(want)
  got[:, place] = sparse.to_dense(again.features, len(again.names))
  np.testing.assert_array_equal(got, want)


def test_bars_are_escaped():
  made = make(ROWS, ["a ||| b", "|"])
  lines = kbest_write.format_kbest(made, np.zeros(2))
  again = kbest_files.parse_kbest("\n".join(lines).encode())
  assert again.lines == ["a &#124;&#124;&#124; b", "|"]


def test_wrong_arguments():
  made = make(ROWS, ["a", "b"])
  with pytest.raises(ValueError, match="none of"):
    kbest_write.format_kbest(made, np.zeros(2), format="pharaoh")
  with pytest.raises(ValueError, match="scores"):
    kbest_write.format_kbest(made, np.zeros(3))
  with pytest.raises(ValueError, match="links"):
    kbest_write.format_kbest(
      made,
      np.zeros(2),
      format="moses",
      links=Ragged(flat=np.zeros((0, 2), np.int32), offsets=np.zeros(2, int)),
    )
