import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.errors import InputError
from jaxmt.text import bitext
from tests import util
from tests.reference import tokens as reference
from tests.text import text_strategies


@pytest.fixture
def put(tmp_path):
  def write(name, data):
    data = data.encode() if isinstance(data, str) else data
    (tmp_path / name).write_bytes(data)
    return str(tmp_path / name)

  return write


def test_reads_plain_and_gzipped(put):
  source = put("s", "你 好\n再 见\n")
  target = put("t.gz", gzip.compress(b"hello\ngood bye"))
  read = bitext.read_bitext(source, target)
  assert read.source_lines == ["你 好", "再 见"]
  assert read.target_lines == ["hello", "good bye"]
  assert read.kept.tolist() == [0, 1]
  assert len(read) == 2
  assert read.report.summary() == "kept 2 of 2 sentence pairs"


def test_drops_are_counted_by_reason_and_said(put):
  source = put("s", "a\n\n \na b c d e\na b c\nx  y\na\n")
  target = put("t", "b\nb\n\t\nb\nb b b b b b b\n\nb\n")
  read = bitext.read_bitext(source, target, max_length=6, max_ratio=3)
  assert read.kept.tolist() == [0, 6]
  assert read.source_lines == ["a", "a"]
  assert dict(read.report.dropped) == {
    "empty source": 2,
    "empty target": 1,
    "too long": 1,
    "length ratio": 1,
  }
  assert read.report.summary() == (
    "kept 2 of 7 sentence pairs (dropped: 2 empty source, 1 empty target,"
    " 1 too long, 1 length ratio)"
  )
  assert len(bitext.read_bitext(source, target, drop_empty=False)) == 7


def test_empty_files(put):
  read = bitext.read_bitext(put("s", ""), put("t", ""))
  assert (len(read), read.kept.tolist()) == (0, [])
  assert read.report.summary() == "kept 0 of 0 sentence pairs"


lengths = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=9)
limits = st.none() | st.integers(1, 5)
ratios = st.none() | st.sampled_from([1, 1.5, 2.0, 9])


@given(lengths, limits, ratios, st.booleans())
def test_filter_equals_a_loop(pairs, max_length, max_ratio, drop_empty):
  source, target = np.array(pairs, np.int64).reshape(-1, 2).T
  kept, report = bitext.filter_pairs(
    source,
    target,
    max_length=max_length,
    max_ratio=max_ratio,
    drop_empty=drop_empty,
  )
  expected, dropped = [], dict.fromkeys(bitext.REASONS, 0)
  for number, (a, b) in enumerate(pairs):
    if drop_empty and not a:
      dropped["empty source"] += 1
    elif drop_empty and not b:
      dropped["empty target"] += 1
    elif max_length and max(a, b) > max_length:
      dropped["too long"] += 1
    elif max_ratio and a != b and max(a, b) > max_ratio * min(a, b):
      dropped["length ratio"] += 1
    else:
      expected.append(number)
  assert kept.tolist() == expected
  assert dict(report.dropped) == dropped
  assert report.kept == len(expected)


@pytest.mark.parametrize("limit", [{"max_length": 0}, {"max_ratio": 0.5}])
def test_limits_that_keep_nothing_are_refused(limit):
  with pytest.raises(ValueError, match=next(iter(limit))):
    bitext.filter_pairs(np.ones(1), np.ones(1), **limit)


@given(text_strategies.lines)
def test_word_counts_equal_splitting(lines):
  expected = [len(reference.split(line)) for line in lines]
  assert bitext.word_counts(lines).tolist() == expected


@pytest.mark.parametrize(
  ("source", "target", "short", "line", "cause"),
  [
    ("a\nb\nc\n", "a\n", "t", 1, "ends after 1 lines, {s} has 3"),
    ("a\n", "a\nb\n", "s", 1, "ends after 1 lines, {t} has 2"),
    ("a\nb", "a\nb\n\n", "s", 2, "ends after 2 lines, {t} has 3"),
    ("", "a\n", "s", 1, "ends after 0 lines, {t} has 1"),
  ],
)
def test_uneven_files_name_the_shorter_and_its_end(
  put, source, target, short, line, cause
):
  paths = {"s": put("s", source), "t": put("t", target)}
  with pytest.raises(InputError) as caught:
    bitext.read_bitext(paths["s"], paths["t"])
  cause = cause.format(**paths)
  assert str(caught.value) == f"{paths[short]}:{line}: uneven: {cause}"


def test_line_count_against_a_number():
  bitext.check_line_count(3, path="x", expected=3)
  with pytest.raises(InputError, match="x:2: uneven: has 2 lines, expected 3"):
    bitext.check_line_count(2, path="x", expected=3)
  with pytest.raises(InputError, match="x:4: uneven: has 5 lines, expected 3"):
    bitext.check_line_count(5, path="x", expected=3)


def test_long_pairs_become_empty_lines():
  sides = ["a b c", "a", "", "a"], ["a", "a b", "a b c", "a b"]
  source, target, rows = bitext.without_long_pairs(*sides, 2)
  assert (source, target) == (["", "a", "", "a"], ["", "a b", "", "a b"])
  assert rows.tolist() == [0, 2]
  assert sides[0][0] == "a b c"  # not changed in place


def test_bad_utf8_names_file_and_line(put):
  source, target = put("s", b"a\nb\n"), put("t", b"a\n\xc3\n")
  with pytest.raises(InputError) as caught:
    bitext.read_bitext(source, target)
  assert (caught.value.path, caught.value.line) == (target, 2)


def test_real_corpus_is_read_and_filtered():
  folder = util.corpus("tatoeba-zh-en")
  paths = [str(folder / f"dev.{side}.gz") for side in ("zh", "en")]
  whole = bitext.read_bitext(*paths)
  some = bitext.read_bitext(*paths, max_length=10, max_ratio=2)
  assert whole.report.pairs == some.report.pairs == 1000
  assert 0 < len(some) < len(whole)
  assert sum(some.report.dropped.values()) == 1000 - len(some)
  every = [
    gzip.open(path, "rt", encoding="utf-8", newline="\n") for path in paths
  ]
  for stream, lines in zip(
    every, (some.source_lines, some.target_lines), strict=True
  ):
    with stream:
      original = stream.read().split("\n")
    assert [original[number] for number in some.kept] == lines
