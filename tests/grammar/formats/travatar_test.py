"""Tables of Travatar read by hand-checked examples."""

import gzip
import re

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.grammar import formats
from jaxmt.grammar import table as tables
from jaxmt.grammar.table import Kind
from tests import util
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


def test_targets_without_labels_and_treebank_tags(tmp_path):
  table = read(
    tmp_path,
    "travatar",
    """'' ( "''" ) ||| "」" ||| p=1 w=1""",
    """S' ( x0:X , ( "," ) ) ||| x0 "、" ||| w=1 p=2 ||| 1 2 3 ||| 1-1""",
    "S ( x0:X x1:S ) ||| x1 x0 ||| w=0.5",
    "NP ( x0:-LRB- ) ||| x0 |||",
  )
  assert texts(table)[:4] == [
    "'' -> '' | 」",
    "S' -> X0 , | X0 、",
    "S -> X0 S1 | S1 X0",
    "NP -> -LRB-0 | -LRB-0",
  ]
  assert (table.kind[:4] == Kind.TREE_TO_STRING).all()
  # Features in any order.
  assert [values(table, row)["p"] for row in range(4)] == [1, 2, 0, 0]
  assert [values(table, row)["w"] for row in range(4)] == [1, 1, 0.5, 0]


@pytest.mark.parametrize(
  "line", ['"a" x0:X @ X ||| x0 ||| p=1', 'A ( "b" ||| "c" ||| p=1']
)
def test_flat_rules_need_labels_and_trees_their_brackets(tmp_path, line):
  with pytest.raises(InputError, match=r"grammar:2: malformed rule"):
    read(tmp_path, "travatar", 'A ( "b" ) ||| "c" ||| p=1', line)


def test_the_table_that_travatar_trained():
  folder = util.corpus("travatar-enja")
  table = formats.read(str(folder / "rule-table.gz"), "travatar", glue=False)
  with gzip.open(folder / "rule-table.gz", "rt") as text:
    lines = text.read().split("\n")[:-1]
  assert len(table) == len(lines)
  assert set(table.feature_names) == {"egfp", "egfl", "fgep", "fgel", "p", "w"}
  rows = np.arange(0, len(table), 97)
  for row in rows.tolist():
    source, target, features, *_ = lines[row].split(" ||| ")
    found = dict(pair.split("=") for pair in features.split())
    got = values(table, row)
    assert {name: got[name] for name in found} == {
      name: np.float32(value) for name, value in found.items()
    }
    assert sum(value != 0 for value in got.values()) <= len(found)
    # What is written again is what was read, but for labels on the target.
    (again,) = formats.to_lines(
      tables.select(table, np.array([row])), "travatar"
    )
    one, other, *_ = again.split(" ||| ")
    assert one == source
    assert re.sub(r"(x\d+):\S+", r"\1", other).rpartition(" @ ")[0] == target
