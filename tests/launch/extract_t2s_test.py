"""Tree-to-string and joint extraction, and other toolkits' formats."""

import numpy as np
import pytest

from jaxmt.grammar import formats, native, validation
from jaxmt.grammar.table import Kind, rule_text
from jaxmt.text import files
from tests import util

TREES = [
  "(IP (NP (PN 他)) (VP (PP (P 对) (NP (NN 书))) (VP (VV 满意))))",
  "(())",
  "(IP (NP (PN 她)) (ADVP (AD 也)) (VP (VV 来)))",
]
SOURCE = ["他 对 书 满意", "她 来", "她 也 来"]
TARGET = ["he is satisfied with books", "she comes", "she comes too"]
LINKS = ["0-0 1-3 2-4 3-1 3-2", "0-0 1-1", "0-0 1-2 2-1"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  """The flags that name a tiny corpus."""
  return _write(tmp_path_factory.mktemp("corpus"), TREES)


def _write(folder, trees):
  flags = []
  for name, lines in [
    ("source", SOURCE),
    ("target", TARGET),
    ("links", LINKS),
    ("trees", trees),
  ]:
    files.write_lines(str(folder / name), lines)
    flags.append(f"--{name}={folder / name}")
  return flags


@pytest.fixture(scope="module")
def grammars(tmp_path_factory, corpus):
  """Kind to `(table, what the program said)`."""
  found = {}
  for kind in ("hiero", "t2s", "joint"):
    path = str(tmp_path_factory.mktemp(kind) / "grammar")
    said = extract(*corpus, f"--kind={kind}", f"--output={path}", "--binarize")
    found[kind] = native.read(path), said
  return found


def extract(*flags):
  done = util.run_program("launch/extract.py", *flags)
  assert done.returncode == 0, done.stderr
  return done.stderr


def texts(table, kind):
  rules = np.flatnonzero(table.kind == kind).tolist()
  return {rule_text(table, rule) for rule in rules}


def test_kinds_and_failed_parses(grammars):
  tables = {}
  for kind, (table, said) in grammars.items():
    assert ("1 without a tree" in said) == (kind != "hiero")
    validation.validate(table)
    tables[kind] = table
  trees = texts(tables["t2s"], Kind.TREE_TO_STRING)
  assert "VP -> 对 NP0 VP1 | VP1 with NP0" in trees
  assert "IP -> @IP0 来 | @IP0 too" not in trees
  assert "IP -> NP0 ADVP1 VP2 | NP0 VP2 ADVP1" in trees
  assert not texts(tables["t2s"], Kind.HIERO)
  assert texts(tables["joint"], Kind.TREE_TO_STRING) == trees
  hiero = texts(tables["hiero"], Kind.HIERO)
  assert texts(tables["joint"], Kind.HIERO) == hiero
  # A failed parse keeps its Hiero rules.
  assert "X -> 她 来 | she comes" in hiero


@pytest.mark.parametrize("dialect", ["cdec", "moses", "joshua", "travatar"])
@pytest.mark.parametrize("kind", ["t2s", "joint"])
def test_formats(tmp_path, grammars, dialect, kind):
  table, _ = grammars[kind]
  path = str(tmp_path / "other.gz")
  formats.write(table, path, dialect)
  back = formats.read(path, dialect)
  validation.validate(back)

  def spelled(rules):
    return sorted(
      (rule_text(rules, rule), rules.links[rule].tolist())
      for rule in range(len(rules))
      if rules.kind[rule] in (Kind.HIERO, Kind.TREE_TO_STRING)
    )

  assert spelled(back) == spelled(table)
  if dialect != "joshua":  # has no place for trees
    trees = texts(table, Kind.TREE_TO_STRING)
    assert texts(back, Kind.TREE_TO_STRING) == trees
  if dialect in ("cdec", "travatar"):
    for name in table.feature_names[:7]:
      one = table.features[:, table.feature_names.index(name)]
      two = back.features[:, back.feature_names.index(name)]
      np.testing.assert_array_equal(np.sort(one), np.sort(two))


def test_format_flag(tmp_path, corpus, grammars):
  path = str(tmp_path / "grammar.gz")
  extract(
    *corpus, "--kind=joint", "--binarize", "--format=cdec", f"--output={path}"
  )
  table, _ = grammars["joint"]
  assert files.read_lines(path) == formats.to_lines(table, "cdec")


def test_bad_tree(tmp_path):
  corpus = _write(tmp_path, [TREES[0], "(A (B 她)", TREES[2]])
  path = str(tmp_path / "out")
  done = util.run_program(
    "launch/extract.py", *corpus, "--kind=t2s", f"--output={path}"
  )
  assert done.returncode == 2
  assert f"{tmp_path / 'trees'}:2: unbalanced" in done.stderr
  said = extract(*corpus, "--kind=t2s", f"--output={path}", "--skip_bad")
  assert "1 bad skipped" in said
  assert "without a tree" not in said


def test_missing_trees_and_bad_options(tmp_path, corpus):
  output = f"--output={tmp_path / 'out'}"
  done = util.run_program(
    "launch/extract.py", *corpus[:3], "--kind=t2s", output
  )
  assert done.returncode == 2
  assert "--trees" in done.stderr
  done = util.run_program(
    "launch/extract.py", *corpus, "--kind=t2s", output, "--tree_size=0"
  )
  assert done.returncode == 2
  assert "max_size" in done.stderr


@pytest.mark.parametrize(
  ("name", "pair", "trees"),
  [
    ("enja-trees", ("en", "ja"), "train.en.tree.gz"),
    ("tatoeba-zh-en", ("zh", "en"), "train.first12k.zh.tree.gz"),
  ],
)
def test_real_corpus(tmp_path, name, pair, trees):
  folder = util.corpus(name)
  flags = []
  for flag, file in [
    ("source", f"train.{pair[0]}.gz"),
    ("target", f"train.{pair[1]}.gz"),
    ("links", f"train.{pair[0]}-{pair[1]}.align.gz"),
    ("trees", trees),
  ]:
    lines = files.read_lines(str(folder / file))[:1000]
    files.write_lines(str(tmp_path / flag), lines)
    flags.append(f"--{flag}={tmp_path / flag}")
  path = str(tmp_path / "joint")
  extract(*flags, "--kind=joint", f"--output={path}", "--binarize")
  table = native.read(path)
  validation.validate(table)
  kinds = np.bincount(table.kind, minlength=4)
  assert kinds[Kind.TREE_TO_STRING] > 5_000
  assert kinds[Kind.HIERO] > 5_000
  logs = table.features[:, :5]
  assert (logs <= 0).all()
