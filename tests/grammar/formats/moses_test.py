"""Tables of Moses read by hand-checked examples."""

import math

import numpy as np
import pytest

from jaxmt.grammar import formats
from jaxmt.grammar.table import Kind
from jaxmt.text import files
from tests.grammar.formats.dialect_test import GLUE, read, texts, values


def test_moses_hiero(tmp_path):
  line = (
    "do not [X][X] [X] ||| n' [X][X] pas [X] ||| 0.5 1 0.25"
    " ||| 0-0 1-2 2-1 ||| 8 4 2"
  )
  table = read(tmp_path, "moses", line)
  assert texts(table) == ["X -> do not X0 | n' X0 pas", *GLUE]
  assert values(table, 0)["TranslationModel0_0"] == pytest.approx(math.log(0.5))
  assert values(table, 0)["TranslationModel0_1"] == 0
  assert table.counts[0] == 2
  assert table.links[0].tolist() == [[0, 0], [1, 2]]  # of words only
  # The counts of the sides are those of this table.
  written = line.replace("8 4 2", "2 2 2")
  assert formats.to_lines(table, "moses") == [written]


def test_moses_reorders_by_links(tmp_path):
  table = read(
    tmp_path,
    "moses",
    "[X][A] w [X][B] [X] ||| [X][B] v [X][A] [C] ||| 1 ||| 0-2 2-0 1-1",
    "[NP][X] w [VP] ||| v [NP][X] [X] ||| 0 ||| 0-1 1-0 ||| ||| f 2 g -1",
  )
  assert texts(table)[:2] == ["C -> A0 w B1 | B1 v A0", "VP -> NP0 w | v NP0"]
  assert table.kind[:2].tolist() == [Kind.HIERO, Kind.TREE_TO_STRING]
  assert values(table, 1)["TranslationModel0_0"] == -100  # no ln 0
  assert values(table, 1)["TranslationModel0_f"] == 2
  assert values(table, 1)["TranslationModel0_g"] == -1
  assert formats.to_lines(table, "moses")[0].startswith("[X][A] w [X][B] [X]")
  assert formats.to_lines(table, "moses")[1].startswith(
    "[NP][X] w [VP] ||| v [NP][X] [X] ||| "
  )


def test_moses_phrases(tmp_path):
  line = "casa ||| house ||| 0.7 0.75 ||| 0-0 |||"
  table = read(tmp_path, "moses-phrases", line)
  assert texts(table) == ["X -> casa | house", *GLUE]
  assert formats.to_lines(table, "moses-phrases") == [line]
  assert formats.to_lines(table, "moses") == [
    "casa [X] ||| house [X] ||| 0.7 0.75 ||| 0-0 |||"
  ]
  hiero = read(tmp_path, "moses", "a [X][X] [X] ||| [X][X] b [X] ||| 1 ||| 1-0")
  with pytest.raises(ValueError, match="phrase table"):
    formats.to_lines(hiero, "moses-phrases")


def test_moses_glue_file(tmp_path):
  grammar, glue = str(tmp_path / "grammar"), str(tmp_path / "glue")
  files.write_lines(grammar, ["a [X] ||| b [X] ||| 0.5 0.25 ||| 0-0 |||"])
  files.write_lines(glue, formats.glue_lines("moses"))
  table = formats.read_all([grammar, glue], "moses")
  alone = formats.read(grammar, "moses")
  assert sorted(texts(table)) == sorted(texts(alone))
  for one in (table, alone):
    for rule in np.flatnonzero(one.kind == Kind.GLUE).tolist():
      found = {k: v for k, v in values(one, rule).items() if v}
      assert found == {"TranslationModel1": pytest.approx(math.log(2.718))}
  assert formats.to_lines(table, "moses") == files.read_lines(grammar)
