"""Tables of cdec read by hand-checked examples."""

from jaxmt.grammar import formats
from jaxmt.grammar.table import Kind
from tests.grammar.formats.dialect_test import GLUE, read, texts, values


def test_cdec(tmp_path):
  table = read(
    tmp_path,
    "cdec",
    "# a comment",
    "[X] ||| eat [X,1] ||| [1] essen ||| Cost=0.25 Count=2 ||| 0-1",
    "",
    "[NP] ||| [X] b [Y] ||| [2] c [1] ||| 0.5 1.5",
    "[X] ||| a ||| ||| Cost=1;PhraseModel_1=3",
    "[X] ||| a ||| b",
  )
  assert texts(table) == [
    "X -> eat X0 | X0 essen",
    "NP -> X0 b Y1 | Y1 c X0",
    "X -> a | ",
    "X -> a | b",
    *GLUE,
  ]
  expected = {"Cost": 0.25, "Count": 2.0}
  assert {k: v for k, v in values(table, 0).items() if v} == expected
  expected = {"PhraseModel_0": 0.5, "PhraseModel_1": 1.5}
  assert {k: v for k, v in values(table, 1).items() if v} == expected
  expected = {"Cost": 1, "PhraseModel_1": 3}
  assert {k: v for k, v in values(table, 2).items() if v} == expected
  assert table.links[0].tolist() == [[0, 1]]
  # What the decoder adds: Glue for joining, PassThrough for copying.
  assert {k: v for k, v in values(table, 4).items() if v} == {}
  assert {k: v for k, v in values(table, 5).items() if v} == {"Glue": 1}
  assert {k: v for k, v in values(table, 6).items() if v} == {"PassThrough": 1}


def test_cdec_numbers_bare_values_among_all(tmp_path):
  table = read(tmp_path, "cdec", "[X] ||| a ||| b ||| Cost=1 2")
  assert values(table, 0)["PhraseModel_1"] == 2


def test_cdec_trees(tmp_path):
  line = "(VP (VBD was) (VP-C [VBN] (PP (IN by) [NP]))) ||| bei [2] [1]"
  table = read(tmp_path, "cdec", f"{line} ||| R3=1 ||| 0-0")
  assert texts(table)[0] == "VP -> was VBN0 by NP1 | bei NP1 VBN0"
  assert table.kind[0] == Kind.TREE_TO_STRING
  assert formats.to_lines(table, "cdec") == [f"{line} ||| R3=1 ||| 0-0"]
