"""The program: flags, files, exit codes, equal output from any runner."""

import gzip

import pytest

from jaxmt.grammar import formats, native, table, validation
from tests import util

SOURCE = ["a b c", "a b", "c a", "b"]
TARGET = ["x y z", "x y", "z x", "y"]
LINKS = ["0-0 1-1 2-2", "0-0 1-1", "0-0 1-1", "0-0"]


@pytest.fixture
def corpus(tmp_path):
  """Flags that name a small corpus, one side of it gzipped."""
  (tmp_path / "s").write_text("\n".join(SOURCE) + "\n")
  (tmp_path / "t").write_bytes(gzip.compress("\n".join(TARGET).encode()))
  (tmp_path / "l").write_text("\n".join(LINKS) + "\n")
  return [f"--{n}={tmp_path / n[0]}" for n in ("source", "target", "links")]


def run(*args):
  return util.run_program("launch/extract.py", *args)


def texts(made):
  return [table.rule_text(made, rule) for rule in range(len(made))]


def content(folder):
  return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_grammar_comes_out(tmp_path, corpus):
  done = run(*corpus, f"--output={tmp_path / 'G'}", "--provenance")
  assert done.returncode == 0, done.stderr
  assert "rules from 4 sentence pairs" in done.stderr
  made = native.read(str(tmp_path / "G"))
  validation.validate(made)
  rules = texts(made)
  assert "X -> a b | x y" in rules and "X -> X0 b X1 | X0 y X1" in rules
  assert rules[-3:] == [
    "S -> X0 | X0",
    "S -> S0 X1 | S0 X1",
    "X -> <unk> | <unk>",
  ]
  assert made.counts[rules.index("X -> a | x")] == 3
  assert len(native.read_provenance(str(tmp_path / "G"))) == 4
  left = {file.name for file in tmp_path.iterdir()}
  assert left == {"s", "t", "l", "G"}, "something was left behind"


def test_budget_and_workers_do_not_show(tmp_path, corpus):
  first = run(*corpus, f"--output={tmp_path / 'one'}", "--provenance")
  other = run(
    *corpus,
    f"--output={tmp_path / 'two'}",
    "--provenance",
    "--memory=1",
    "--workers=1",
    "--runner=serial",
  )
  assert first.returncode == other.returncode == 0, other.stderr
  assert content(tmp_path / "one") == content(tmp_path / "two")


def test_filtering_keeps_usable_rules(tmp_path, corpus):
  (tmp_path / "test").write_text("b a new\n")
  done = run(
    *corpus,
    f"--output={tmp_path / 'G'}",
    f"--filter={tmp_path / 'test'}",
    "--provenance",
  )
  assert done.returncode == 0, done.stderr
  rules = texts(native.read(str(tmp_path / "G")))
  assert "X -> a | x" in rules and "X -> X0 a | X0 x" in rules
  assert not any("c" in rule for rule in rules)
  assert "X -> a b | x y" not in rules
  assert len(native.read_provenance(str(tmp_path / "G"))) == 4


def test_options_reach_the_extractor(tmp_path, corpus):
  done = run(
    *corpus,
    f"--output={tmp_path / 'G'}",
    "--max_nonterminals=0",
    "--max_words=1",
    "--min_count=2",
  )
  assert done.returncode == 0, done.stderr
  assert len(native.read(str(tmp_path / "G"))) == 3 + 3


def test_trees_give_tree_rules(tmp_path, corpus):
  trees = ["(S (A a) (B b) (C c))", "(S (A a) (B b))", "()", "(B b)"]
  (tmp_path / "p").write_text("\n".join(trees) + "\n")
  flags = [*corpus, f"--trees={tmp_path / 'p'}", f"--output={tmp_path / 'G'}"]
  done = run(*flags, "--kind=joint", "--binarize")
  assert done.returncode == 0, done.stderr
  rules = texts(native.read(str(tmp_path / "G")))
  assert "S -> @S0 C1 | @S0 C1" in rules and "X -> a b | x y" in rules
  done = run(*flags, "--kind=t2s")
  assert done.returncode == 0, done.stderr
  rules = texts(native.read(str(tmp_path / "G")))
  assert "S -> A0 b C1 | A0 y C1" in rules and "X -> a b | x y" not in rules
  (tmp_path / "p").write_text("\n".join([*trees[:3], "(B b"]) + "\n")
  done = run(*flags, "--kind=t2s")
  assert done.returncode == 2
  assert f"{tmp_path / 'p'}:4: " in done.stderr


def test_other_formats_come_out(tmp_path, corpus):
  done = run(
    *corpus,
    f"--output={tmp_path / 'G.gz'}",
    "--format=moses",
    f"--glue={tmp_path / 'glue'}",
    f"--filter={tmp_path / 's'}",
  )
  assert done.returncode == 0, done.stderr
  found = formats.read(str(tmp_path / "G.gz"), "moses")
  assert "X -> a b | x y" in texts(found)
  assert "[S]" in (tmp_path / "glue").read_text()


def test_an_empty_corpus_has_only_glue(tmp_path, corpus):
  for name in "stl":
    (tmp_path / name).write_text("")
  done = run(*corpus, f"--output={tmp_path / 'G'}")
  assert done.returncode == 0, done.stderr
  assert len(native.read(str(tmp_path / "G"))) == 3


def test_bad_links_end_with_file_and_line(tmp_path, corpus):
  (tmp_path / "l").write_text("0-0\n0-0 1-7\n\n0-0\n")
  done = run(*corpus, f"--output={tmp_path / 'G'}")
  assert done.returncode == 2
  assert f"{tmp_path / 'l'}:2: link 1-7" in done.stderr
  assert len(done.stderr.splitlines()) == 1
  assert {file.name for file in tmp_path.iterdir()} == {"s", "t", "l"}


def test_bad_links_can_be_skipped_and_are_counted(tmp_path, corpus):
  (tmp_path / "l").write_text("0-0\n0-0 1-7\nx\n0-0\n")
  done = run(*corpus, f"--output={tmp_path / 'G'}", "--skip_bad")
  assert done.returncode == 0, done.stderr
  assert "2 bad skipped" in done.stderr
  assert f"skipped {tmp_path / 'l'}:3: not a link" in done.stderr


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--output="], "--output is required"),
    (["--max_phrase=0"], "max_phrase must be at least 1"),
    (["--workers=0"], "at least 1 worker"),
    (["--memory=0"], "--memory"),
    (["--kind=t2s"], "--trees is required"),
    (["--format=cdec", "--provenance"], "no room for --provenance"),
    (["--glue=g"], "no --glue"),
    (["--kind=trees"], "--kind"),
    (["--source=-"], "standard input"),
    (["--source=nowhere"], "nowhere: no such file"),
    (["--output=nowhere/G"], "nowhere"),
    (["--links=README.md"], "uneven: ends after 4 lines"),
  ],
)
def test_bad_flags_are_one_line(tmp_path, corpus, flags, message):
  done = run(*corpus, f"--output={tmp_path / 'G'}", *flags)
  assert done.returncode == 2
  assert message in done.stderr
  assert len(done.stderr.splitlines()) == 1


def test_phrase_tables_come_out(tmp_path, corpus):
  done = run(*corpus, "--kind=phrase", f"--output={tmp_path / 'G'}")
  assert done.returncode == 0, done.stderr
  made = native.read(str(tmp_path / "G"))
  assert "X -> a b c | x y z" in texts(made)
  assert "reorder_forward_swap" in made.feature_names
  done = run(
    *corpus,
    "--kind=phrase",
    "--format=moses",
    f"--output={tmp_path / 'P.gz'}",
    f"--reordering={tmp_path / 'R.gz'}",
  )
  assert done.returncode == 0, done.stderr
  lines = gzip.decompress((tmp_path / "P.gz").read_bytes()).decode()
  assert "a b c ||| x y z ||| 1 1 1 1 ||| 0-0 1-1 2-2 ||| 1 1 1" in lines
  lines = gzip.decompress((tmp_path / "R.gz").read_bytes()).decode()
  assert "a b c ||| x y z ||| 0.6 0.2 0.2 0.6 0.2 0.2\n" in lines


def test_flags_of_phrase_tables_are_checked(tmp_path, corpus):
  for flags, cause in [
    (["--reordering=R"], "needs --kind=phrase"),
    (["--kind=phrase", "--format=moses"], "--reordering"),
    (["--kind=phrase", "--format=cdec"], "native or moses"),
    (["--kind=phrase", "--significance=x"], "significance 'x'"),
  ]:
    done = run(*corpus, *flags, f"--output={tmp_path / 'G'}")
    assert done.returncode == 2 and cause in done.stderr, done.stderr
    assert not (tmp_path / "G").exists()
