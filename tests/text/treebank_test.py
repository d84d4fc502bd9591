import gzip

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.text import treebank

PLAIN = """the\tDET\t2\tdet
dog\tNOUN\t3\tnsubj
barks\tVERB\t0\troot
.\tPUNCT\t3\tpunct

yes\tINTJ\t0\troot
"""
CONLLU = """# sent_id = 1
# text = the dog barks.
1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2-3\tdogbarks\t_\t_\t_\t_\t_\t_\t_\t_
2\tdog\tdog\tNOUN\tNN\t_\t3\tnsubj\t_\t_
3\tbarks\tbark\tVERB\tVBZ\t_\t0\troot\t_\t_
3.1\tloud\t_\tADV\t_\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

1\tyes\t_\tINTJ\t_\t_\t0\troot\t_\t_

"""


def read(tmp_path, text, name="bank"):
  path = tmp_path / name
  path.write_bytes(text.encode())
  return treebank.read_treebank(str(path))


def columns(bank):
  return (
    [bank.forms[word] for word in bank.words.flat],
    [bank.tag_names[tag] for tag in bank.tags],
    [bank.label_names[label] for label in bank.labels],
    bank.heads.tolist(),
    bank.lengths.tolist(),
  )


def test_both_formats_say_the_same(tmp_path):
  plain, conllu = read(tmp_path, PLAIN), read(tmp_path, CONLLU)
  assert columns(plain) == columns(conllu)
  assert plain.heads.tolist() == [1, 2, -1, 2, -1]
  assert plain.lengths.tolist() == [4, 1]
  out = tmp_path / "out.conllu.gz"
  treebank.write_treebank(str(out), plain)
  assert gzip.decompress(out.read_bytes()).startswith(b"1\tthe\t_\tDET\t")
  assert columns(treebank.read_treebank(str(out))) == columns(plain)


def test_heads_may_be_left_out(tmp_path):
  bank = read(tmp_path, "a\tX\nb\tY\n\nc\tX\t0\n")
  assert bank.has_trees.tolist() == [False, True]
  out = tmp_path / "out"
  treebank.write_treebank(str(out), bank)
  assert columns(treebank.read_treebank(str(out))) == columns(bank)


@pytest.mark.parametrize(
  ("text", "line", "cause"),
  [
    ("a\tX\t0\n\nb\tY\t1\tc\td\n", 3, "5 columns"),
    ("a\tX\t0\n\nb\t\t1\n", 3, "empty form or tag"),
    ("a\tX\t0\n\nb\tY\tx\n", 3, "head 'x' is no number"),
    ("a\tX\t-1\n", 1, "head '-1' is no number"),
    ("a\tX\t0\n\nb\tY\t2\n", 3, "outside the sentence"),
    ("a\tX\t1\nb\tX\t0\n", 1, "outside the sentence"),
    ("a\tX\t2\nb\tX\t1\n", 1, "no root"),
    ("a\tX\t0\nb\tX\t0\n", 1, "several roots"),
    ("a\tX\t0\nb\tX\t3\nc\tX\t2\n", 1, "in a circle"),
    ("a\tX\t0\n\nb\tX\t0\nc\tX\t_\n", 3, "some tokens only"),
  ],
)
def test_bad_lines_are_named(tmp_path, text, line, cause):
  with pytest.raises(InputError, match=cause) as caught:
    read(tmp_path, text)
  assert caught.value.line == line
  assert "\n" not in str(caught.value)


def test_punctuation_is_dropped_and_its_children_lifted(tmp_path):
  text = "a\tX\t2\n,\tPUNCT\t3\nb\tX\t0\n\n(\tPUNCT\t0\nc\tX\t1\nd\tX\t1\n"
  bank, tokens = treebank.without_punctuation(read(tmp_path, text))
  assert tokens.tolist() == [0, 2, 4, 5]
  # The comma's child goes up; below a dropped root the first word is root.
  assert bank.heads.tolist() == [1, -1, -1, 0]
  assert bank.lengths.tolist() == [2, 2]


def test_selected_sentences(tmp_path):
  bank = treebank.select(read(tmp_path, PLAIN), np.array([1, 0]))
  assert bank.heads.tolist() == [-1, 1, 2, -1, 2]
  assert columns(bank)[0][0] == "yes"


def chain(length):
  return "".join(f"w\tX\t{head}\n" for head in range(length))


def test_a_file_without_empty_lines_is_refused(tmp_path):
  with pytest.raises(InputError, match="over 20000 lines") as caught:
    read(tmp_path, "a\tX\n\n" + "w\tX\n" * 20_001)
  assert caught.value.line == 3


def test_long_chains_are_checked_in_linear_time(tmp_path):
  bank = read(tmp_path, chain(9999))
  heads = np.arange(-1, 10**6, dtype=np.int32)
  assert treebank.is_tree(heads)  # quadratic time is an hour
  heads[5] = 10**6
  assert not treebank.is_tree(heads)
  with pytest.raises(InputError, match="sentence 1 has 9999 tokens, over"):
    treebank.check_lengths(bank, "x")


def test_what_can_be_parsed_is_not_refused(tmp_path):
  treebank.check_lengths(read(tmp_path, chain(treebank.LONGEST_PARSED)))
