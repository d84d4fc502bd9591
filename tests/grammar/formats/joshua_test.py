"""Tables of Joshua read by hand-checked examples."""

import numpy as np

from jaxmt.grammar import formats
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.table import Kind
from jaxmt.text import files
from tests.grammar.formats.dialect_test import GLUE, read, texts, values


def test_joshua_turns_the_sign_of_values_without_name(tmp_path):
  line = "[X] ||| me llaman ||| call me ||| 1.5 0 Lex=2 ||| 0-1 1-0"
  table = read(tmp_path, "joshua", line)
  assert texts(table) == ["X -> me llaman | call me", *GLUE]
  assert values(table, 0)["tm_pt_0"] == -1.5
  assert values(table, 0)["Lex"] == 2
  assert formats.to_lines(table, "joshua") == [line]


def test_joshua_leaves_the_sign_of_named_values(tmp_path):
  table = read(
    tmp_path,
    "joshua",
    "[X] ||| a ||| b ||| 1.5",
    "[X] ||| a ||| c ||| tm_pt_0=2",
  )
  assert table_lib.feature(table, "tm_pt_0")[:2].tolist() == [-1.5, 2]


def test_joshua_glue_file(tmp_path):
  grammar, glue = str(tmp_path / "grammar"), str(tmp_path / "glue")
  files.write_lines(
    grammar,
    [
      "[NP] ||| la [NN,1] ||| the [NN,1] ||| 0.5 ||| 0-0",
      "[S] ||| [NP,1] [VP,2] ||| [NP,1] [VP,2] ||| 1 |||",
      "[S] ||| [S,1] [X,2] y ||| [S,1] [X,2] z ||| 1 |||",
    ],
  )
  files.write_lines(glue, formats.glue_lines("joshua"))
  table = formats.read_all([grammar, glue], "joshua")
  alone = formats.read(grammar, "joshua")
  assert sorted(texts(table)) == sorted(texts(alone))
  assert [kind for kind in table.kind if kind == Kind.GLUE] == [0, 0]
  for one in (table, alone):
    for rule in np.flatnonzero(one.kind == Kind.GLUE).tolist():
      assert values(one, rule)["tm_glue_0"] == 1
      assert values(one, rule).get("tm_pt_0", 0) == 0
  assert formats.to_lines(table, "joshua") == files.read_lines(grammar)
