import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.errors import InputError
from jaxmt.text import ragged, scan, vocabulary
from tests import util
from tests.reference import tokens as reference
from tests.text import text_strategies


def check_against_reference(lines):
  ids, tokens = vocabulary.intern(lines)
  rows, expected = reference.intern(lines)
  assert tokens == expected
  assert [ids[row].tolist() for row in range(len(ids))] == rows
  assert (ids.flat.dtype, ids.offsets.dtype) == (np.int32, np.int64)


@given(text_strategies.lines)
def test_interning_equals_a_dictionary(lines):
  check_against_reference(lines)


def test_the_table_grows():
  rng = np.random.default_rng(5)
  numbers = rng.integers(0, 60_000, 200_000)
  check_against_reference(
    [" ".join(map(str, row)) for row in numbers.reshape(-1, 20)]
  )


@given(text_strategies.lines, st.integers(1, 3))
def test_equal_hashes_do_not_make_words_equal(lines, hashes):
  data = scan.join_lines(lines)
  starts, ends, _ = scan.tokenize(data, len(lines))
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(
      scan, "_hash", lambda data, start, end: np.uint64((end - start) % hashes)
    )
    ids, first = scan.intern_spans.py_func(data, starts, ends)
  rows, expected = reference.intern(lines)
  assert ids.tolist() == [number for row in rows for number in row]
  assert scan.strings(data, starts[first], ends[first]) == expected


def test_tokens_split_at_ascii_white_space_only():
  ids, tokens = vocabulary.intern(
    [" a\u3000b\t c\xa0d\r", "", "\v\f", "c\xa0d"]
  )
  assert tokens == ["a\u3000b", "c\xa0d"]
  assert ids.offsets.tolist() == [0, 2, 2, 2, 3]
  assert ids.flat.tolist() == [0, 1, 1]


def test_a_line_is_one_line():
  with pytest.raises(ValueError, match="newline"):
    vocabulary.intern(["a\nb"])


def test_no_lines_and_no_words():
  for lines in ([], ["", " "]):
    ids, tokens = vocabulary.intern(lines)
    assert (len(ids), len(ids.flat), tokens) == (len(lines), 0, [])
  assert vocabulary.build([]).words == vocabulary.SPECIALS


@given(st.lists(text_strategies.lines, max_size=3), st.integers(1, 3))
def test_build_orders_by_count_then_bytes(corpora, min_count):
  counts = collections.Counter(
    token
    for corpus in corpora
    for line in corpus
    for token in reference.split(line)
  )
  expected = sorted(
    (
      word
      for word, count in counts.items()
      if count >= min_count and word not in vocabulary.SPECIALS
    ),
    key=lambda word: (-counts[word], word.encode()),
  )
  made = vocabulary.build(corpora, min_count=min_count)
  assert made.words == (*vocabulary.SPECIALS, *expected)
  assert [made.index[word] for word in made.words] == list(range(len(made)))


def test_special_ids():
  made = vocabulary.build([["b a </s> a <pad>"]])
  assert made.words == ("<pad>", "<unk>", "<s>", "</s>", "a", "b")
  assert made.index["<pad>"] == vocabulary.PAD == 0
  assert made.index["<unk>"] == vocabulary.UNK
  assert made.index["<s>"] == vocabulary.BOS
  assert made.index["</s>"] == vocabulary.EOS


def test_special_strings_in_text_are_unknown_words():
  made = vocabulary.build([["a b"]])
  ids = vocabulary.encode(made, ["<s> a </s>", "<pad> b c <unk>"])
  assert ids.flat.tolist() == [1, 4, 1, 1, 5, 1, 1]
  assert ids.offsets.tolist() == [0, 3, 7]


@given(text_strategies.lines, text_strategies.lines)
def test_encode_equals_a_loop(known, lines):
  made = vocabulary.build([known])
  ids = vocabulary.encode(made, lines)
  unknown = set(vocabulary.SPECIALS)
  expected = [
    [
      vocabulary.UNK if word in unknown else made.index.get(word, 1)
      for word in reference.split(line)
    ]
    for line in lines
  ]
  assert [ids[row].tolist() for row in range(len(ids))] == expected


@given(text_strategies.lines)
def test_decode_undoes_encode(lines):
  made = vocabulary.build([lines])
  expected = [
    " ".join(
      "<unk>" if word in vocabulary.SPECIALS else word
      for word in reference.split(line)
    )
    for line in lines
  ]
  assert vocabulary.decode(made, vocabulary.encode(made, lines)) == expected


def test_decode_writes_specials_and_refuses_strangers():
  made = vocabulary.build([["字"]])
  ids = ragged.from_rows([[2, 4, 3, 0], [], [4, 4]])
  assert vocabulary.decode(made, ids) == ["<s> 字 </s> <pad>", "", "字 字"]
  for stranger in (5, -1):
    with pytest.raises(ValueError, match="outside"):
      vocabulary.decode(made, ragged.from_rows([[stranger]]))


@given(text_strategies.lines)
def test_word_list_survives(lines):
  made = vocabulary.build([lines])
  again = vocabulary.from_lines(vocabulary.to_lines(made), path="v")
  assert again == made


@pytest.mark.parametrize(
  ("words", "line", "cause"),
  [
    ([], 1, "expected <pad>, found the end"),
    (["<pad>", "<unk>"], 3, "expected <s>, found the end"),
    (["<pad>", "<unk>", "</s>", "<s>"], 3, "expected <s>, found '</s>'"),
    ([*vocabulary.SPECIALS, "a", ""], 6, "not one word: ''"),
    ([*vocabulary.SPECIALS, "a b"], 5, "not one word: 'a b'"),
    ([*vocabulary.SPECIALS, "a", "b", "a"], 7, "duplicate word 'a'"),
    ([*vocabulary.SPECIALS, "<s>"], 5, "duplicate word '<s>'"),
  ],
)
def test_bad_word_list_names_file_and_line(words, line, cause):
  with pytest.raises(InputError) as caught:
    vocabulary.from_lines(words, path="v")
  assert str(caught.value) == f"v:{line}: {cause}"
  with pytest.raises(ValueError, match="word"):
    vocabulary.Vocabulary(words=tuple(words))


def test_real_corpus():
  folder = util.corpus("ci-mini-multi30k-de-en")
  lines = (folder / "train.de").read_text("utf-8").split("\n")[:-1]
  check_against_reference(lines)
  made = vocabulary.build([lines])
  assert vocabulary.decode(made, vocabulary.encode(made, lines)) == lines
