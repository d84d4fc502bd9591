import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.errors import InputError
from jaxmt.text import bitext, files, links, ragged
from tests import util
from tests.reference import pharaoh
from tests.text import text_strategies

pairs = st.tuples(st.integers(0, 12), st.integers(0, 12))
rows_of_pairs = st.lists(st.lists(pairs, max_size=8), max_size=6)


def rows_of(value):
  return [
    [tuple(pair) for pair in value[row].tolist()] for row in range(len(value))
  ]


def text_of(rows):
  return [" ".join(f"{s}-{t}" for s, t in row) for row in rows]


@given(rows_of_pairs)
def test_links_are_sorted_and_unique(rows):
  parsed = links.parse_links(text_of(rows), path="x")
  expected = [sorted(set(row)) for row in rows]
  assert rows_of(parsed) == expected
  assert parsed.flat.shape == (sum(map(len, expected)), 2)
  assert (parsed.flat.dtype, parsed.offsets.dtype) == (np.int32, np.int64)
  assert links.format_links(parsed) == text_of(expected)


@given(rows_of_pairs)
def test_reverse_twice_is_nothing(rows):
  parsed = links.parse_links(text_of(rows))
  swapped = links.reverse(parsed)
  assert rows_of(swapped) == [sorted({(t, s) for s, t in row}) for row in rows]
  assert rows_of(links.reverse(swapped)) == rows_of(parsed)


near_links = st.lists(
  st.sampled_from(
    "0-0 1-2 10-3 007-1 2147483647-0 2147483648-0 0-99999999999999999999999"
    " - 1- -1 1--1 -1-2 1-2-3 a-b １-２ 1_2 1-2, 1.0-2 +1-2 0x1-2"
    " 1\u30002".split(" ")
  ),
  max_size=4,
).flatmap(lambda items: st.sampled_from([" ".join(items), "\t".join(items)]))


def check_garbage(lines):
  expected, bad = [], None
  for number, line in enumerate(lines, start=1):
    try:
      expected.append(pharaoh.parse(line))
    except ValueError:
      bad = number
      break
  if bad is None:
    assert rows_of(links.parse_links(lines, path="x")) == expected
  else:
    with pytest.raises(InputError) as caught:
      links.parse_links(lines, path="x")
    assert (caught.value.path, caught.value.line) == ("x", bad)


@given(st.lists(near_links, max_size=5) | text_strategies.lines)
def test_garbage_is_read_as_the_reference_does_or_refused(lines):
  check_garbage(lines)


def test_random_digits_and_dashes_are_read_as_the_reference_does():
  rng = random.Random(7)
  for _ in range(3000):
    lines = [
      "".join(rng.choices("0123--- \t\r9a", k=rng.randrange(12)))
      for _ in range(rng.randrange(4))
    ]
    check_garbage(lines)


@pytest.mark.parametrize(
  ("item", "cause"),
  [
    ("1-", "not a link: '1-'"),
    ("a-b", "not a link: 'a-b'"),
    ("-1-2", "not a link: '-1-2'"),
    ("0--2", "not a link: '0--2'"),
    ("链-0", "not a link: '链-0'"),
    ("0-4294967296", "number too large in link '0-4294967296'"),
    ("x" * 1000, "not a link: '" + "x" * 40 + "...'"),
  ],
)
def test_cause_file_and_line(item, cause):
  with pytest.raises(InputError) as caught:
    links.parse_links(["0-0", "", f"1-1  {item} 2-2"], path="a.align")
  assert str(caught.value).startswith(f"a.align:3: {cause}")
  assert len(str(caught.value)) < 150


def test_empty():
  assert len(links.parse_links([])) == 0
  parsed = links.parse_links(["", " \r", "\t"])
  assert (len(parsed), parsed.flat.shape) == (3, (0, 2))
  assert links.format_links(parsed) == ["", "", ""]
  assert rows_of(links.reverse(parsed)) == [[], [], []]
  assert links.format_links(links.parse_links([])) == []


def test_range_check_names_the_line():
  lines, lengths = ["0-0 1-2", "", "2-1"], np.array([2, 0, 3])
  links.parse_links(
    lines, path="x", source_lengths=lengths, target_lengths=lengths + 1
  )
  with pytest.raises(InputError) as caught:
    links.parse_links(lines, path="x", source_lengths=np.array([2, 5, 2]))
  assert str(caught.value) == "x:3: link 2-1: the source has 2 words"
  with pytest.raises(InputError) as caught:
    links.parse_links(lines, path="x", target_lengths=np.array([2, 5, 2]))
  assert str(caught.value) == "x:1: link 1-2: the target has 2 words"
  with pytest.raises(InputError, match="x:3: uneven: has 3 lines, expected 4"):
    links.parse_links(lines, path="x", source_lengths=np.ones(4, np.int64))


def test_format_takes_large_numbers_and_refuses_negative_ones():
  largest = 2**31 - 1
  value = ragged.Ragged(
    flat=np.array([[largest, 10], [0, 9]], np.int32), offsets=np.array([0, 2])
  )
  assert links.format_links(value) == ["2147483647-10 0-9"]
  with pytest.raises(ValueError, match="negative"):
    links.format_links(
      ragged.Ragged(flat=np.array([[0, -1]]), offsets=np.array([0, 1]))
    )


def test_a_very_long_unsorted_line():
  items = np.random.default_rng(3).permutation(100_000)
  line = " ".join(f"{i}-{i % 7}" for i in items.tolist())
  parsed = links.parse_links([line])
  assert parsed.flat[:, 0].tolist() == list(range(100_000))


def test_real_links_lie_inside_their_sentences_and_survive():
  folder = util.corpus("ci-mini-multi30k-de-en")
  source, target, lines = (
    files.read_lines(str(folder / name))
    for name in ("train.de", "train.en", "train.de-en.align")
  )
  parsed = links.parse_links(
    lines,
    path="train.de-en.align",
    source_lengths=bitext.word_counts(source),
    target_lengths=bitext.word_counts(target),
  )
  assert links.format_links(parsed) == lines
