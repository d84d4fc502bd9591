"""Tables of Travatar read by hand-checked examples."""

import numpy as np

from jaxmt.grammar import formats
from jaxmt.grammar.table import Kind
from tests.grammar.formats.dialect_test import GLUE, read, texts, values


def test_travatar(tmp_path):
  lines = [
    '"eat" "two" x0:X @ X ||| "futatsu" x0:X "wo" @ X'
    " ||| Pegf=0.02 ppen=2.718 ||| 3 3 3 ||| 0-2 1-0",
    'vp ( vbd ( "ate" ) x0:np ) ||| x0:np "ass" @ vp'
    " ||| Pegf=-1 ppen=0 ||| 1 1 1 ||| 0-1",
  ]
  table = read(tmp_path, "travatar", *lines)
  assert texts(table) == [
    "X -> eat two X0 | futatsu X0 wo",
    "vp -> ate np0 | np0 ass",
    *GLUE,
  ]
  assert table.kind[:2].tolist() == [Kind.HIERO, Kind.TREE_TO_STRING]
  assert values(table, 0)["Pegf"] == np.float32(0.02)
  assert table.counts[:2].tolist() == [3, 1]
  assert {k: v for k, v in values(table, 3).items() if v} == {"glue": 1}
  assert {k: v for k, v in values(table, 4).items() if v} == {"unk": 1}
  assert formats.to_lines(table, "travatar") == lines


def test_travatar_sites_in_any_order_and_target_labels(tmp_path):
  table = read(
    tmp_path,
    "travatar",
    's ( x1:np vp ( x0:vb ) ) ||| x0:other "w" x1:np @ s ||| p=1',
    "x1:A x0:B @ C ||| x0:B x1:A @ C |||",
  )
  assert texts(table)[:2] == ["s -> np0 vb1 | vb1 w np0", "C -> A0 B1 | B1 A0"]


def test_travatar_glue_file(tmp_path):
  table = read(tmp_path, "travatar", *formats.glue_lines("travatar"))
  assert sorted(texts(table)) == sorted(GLUE)
  assert formats.to_lines(table, "travatar") == []
