import dataclasses

import hypothesis
import numpy as np
import pytest

from jaxmt.grammar import formats, validation
from jaxmt.grammar import table as table_lib
from jaxmt.text import files
from tests import util
from tests.grammar.formats.formats_rules import plain, tables


def reread(table, dialect):
  """What comes back, and the lines written first and second."""
  lines = formats.to_lines(table, dialect)
  text = "".join(line + "\n" for line in lines).encode()
  block = formats.find(dialect).parse(np.frombuffer(text, np.uint8))
  assert not block.faults, (block.faults, lines)
  again = formats.to_lines(block.table, dialect)
  return block.table, lines, again


@hypothesis.settings(max_examples=80)
@hypothesis.given(tables())
def test_cdec(table):
  back, lines, again = reread(table, "cdec")
  assert plain(back, counts=False) == plain(table, counts=False)
  assert again == lines
  validation.validate(back)


@hypothesis.settings(max_examples=80)
@hypothesis.given(tables(trees=True))
def test_cdec_trees(table):
  back, lines, again = reread(table, "cdec")
  assert plain(back, counts=False) == plain(table, counts=False)
  assert again == lines
  assert all(line.startswith("(") for line in lines)
  validation.validate(back)


@hypothesis.settings(max_examples=60)
@hypothesis.given(tables(), tables(trees=True))
def test_cdec_trees_beside_others(flat, trees):
  table = table_lib.concatenate([flat, trees])
  back, lines, again = reread(table, "cdec")
  assert plain(back, counts=False) == plain(table, counts=False)
  assert again == lines
  assert all(line.startswith("[") for line in lines)


@hypothesis.settings(max_examples=80)
@hypothesis.given(tables())
def test_joshua(table):
  back, lines, again = reread(table, "joshua")
  assert plain(back, counts=False) == plain(table, counts=False)
  assert again == lines
  validation.validate(back)


@hypothesis.settings(max_examples=80)
@hypothesis.given(
  tables(names=("TranslationModel0_0", "TranslationModel0_1", "other"))
)
def test_moses(table):
  # Next to 1, probabilities are coarser than logs next to 0.
  rounded = np.round(table.features * 256) / 256
  table = dataclasses.replace(table, features=rounded)
  back, lines, again = reread(table, "moses")
  renamed = dataclasses.replace(
    table,
    feature_names=(*table.feature_names[:2], "TranslationModel0_other"),
  )
  assert plain(back) == plain(renamed)
  assert again == lines
  validation.validate(back)


@hypothesis.settings(max_examples=60)
@hypothesis.given(tables(trees=True, names=()))
def test_moses_keeps_source_labels(table):
  back, lines, again = reread(table, "moses")
  # A rule rooted in X looks like Hiero's, in Moses.
  expected = plain(table, fragments=False, kinds=False)
  assert plain(back, fragments=False, kinds=False) == expected
  assert len(again) == len(lines)


@hypothesis.settings(max_examples=80)
@hypothesis.given(tables())
def test_travatar(table):
  back, lines, again = reread(table, "travatar")
  assert sorted(map(repr, plain(back))) == sorted(map(repr, plain(table)))
  assert again == lines == sorted(lines, key=str.encode)
  validation.validate(back)


@hypothesis.settings(max_examples=80)
@hypothesis.given(tables(trees=True))
def test_travatar_trees(table):
  back, lines, again = reread(table, "travatar")
  assert sorted(map(repr, plain(back))) == sorted(map(repr, plain(table)))
  assert again == lines


@pytest.mark.parametrize("dialect", formats.DIALECTS)
def test_files(tmp_path, dialect):
  lines = {
    "cdec": "[X] ||| a [X,1] ||| [X,1] b ||| p=0.5 ||| 0-1",
    "joshua": "[X] ||| a [X,1] ||| [X,1] b ||| p=0.5 ||| 0-1",
    "moses": "a [X][X] [X] ||| [X][X] b [X] ||| 0.5 ||| 0-1 1-0 |||",
    "moses-phrases": "a ||| b ||| 0.5 ||| 0-0 |||",
    "travatar": '"a" x0:X @ X ||| x0:X "b" @ X ||| p=0.5 ||| ||| 0-1',
  }
  path = str(tmp_path / "in.gz")
  files.write_lines(path, [lines[dialect]])
  table = formats.read(path, dialect)
  out = str(tmp_path / "out.gz")
  formats.write(table, out, dialect)
  assert files.read_lines(out) == [lines[dialect]]
  assert plain(formats.read(out, dialect)) == plain(table)
  validation.validate(table)


def test_real_cdec_grammar(tmp_path):
  folder = util.corpus("cdec-multi30k-de-en")
  table = formats.read(str(folder / "grammar.scfg.gz"), "cdec")
  out = str(tmp_path / "out")
  formats.write(table, out, "cdec")
  again = formats.read(out, "cdec")
  assert len(table) == 177_498 + 3
  assert again.feature_names == table.feature_names
  np.testing.assert_array_equal(again.features, table.features)
  for name in ("source", "target", "links"):
    one, other = getattr(table, name), getattr(again, name)
    np.testing.assert_array_equal(one.flat, other.flat)
    np.testing.assert_array_equal(one.offsets, other.offsets)
  second = str(tmp_path / "second")
  formats.write(again, second, "cdec")
  assert files.read_bytes(second) == files.read_bytes(out)
