"""A finished run is a translator, and so is what is exported from it."""

import json

import numpy as np
import pytest

import jaxmt
from jaxmt.decode import dialect_systems, loading
from jaxmt.experiment import finished_run
from jaxmt.experiment.stages import system
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.grammar import formats, native
from jaxmt.grammar import table as tables
from jaxmt.grammar.table import Kind
from tests import util
from tests.reference import tiny_run

SYSTEM = "augmented-forest"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  workdir = tmp_path_factory.mktemp("run")
  return tiny_run.make(workdir, "primary", SYSTEM)


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
  folder = tmp_path_factory.mktemp("exported") / "system"
  for _ in range(2):  # the second replaces the first
    done = util.run_program(
      "launch/export.py", f"--workdir={run}", f"--output={folder}"
    )
    assert done.returncode == 0, done.stderr
    assert SYSTEM in done.stderr
  return folder


def translate(run, folder, *flags):
  corpus = lambda name: tiny_run.file(run, "corpus", name)
  done = util.run_program(
    "launch/translate.py",
    *flags,
    f"--input={corpus('test_source.txt')}",
    f"--trees={corpus('test_trees.txt')}",
    f"--output={folder / 'out'}",
    f"--derivations={folder / 'trees'}",
    f"--scores={folder / 'scores'}",
  )
  assert done.returncode == 0, done.stderr
  read = lambda name: (folder / name).read_text().splitlines()
  scores = [float(line.split(" ||| ")[3]) for line in read("scores")]
  return read("out"), read("trees"), scores


def of_run(run, system, name):
  return tiny_run.artefact(run, f"decode-{system}", f"test_{name}.txt")


def test_run_and_export_give_what_the_run_gave(run, exported, tmp_path):
  out, trees, scores = translate(
    run, tmp_path, f"--workdir={run}", f"--system={SYSTEM}"
  )
  assert out == of_run(run, SYSTEM, "hypothesis")
  assert trees == of_run(run, SYSTEM, "derivations")
  own = translate(run, tmp_path, f"--workdir={exported}")
  assert own[:2] == (out, trees)
  assert own[2] == pytest.approx(scores, abs=1e-4)
  settings = json.loads((exported / "settings.json").read_text())
  names = ("span", "targets", "beam", "pop", "batch_cells")
  sizes = [f"--{name}={settings[name]}" for name in names]
  assert all(size in (exported / "README.md").read_text() for size in sizes)
  named = translate(
    run,
    tmp_path,
    f"--grammar={exported / 'grammar'}",
    f"--lm={exported / 'lm.arpa.gz'}",
    f"--weights={exported / 'weights.txt'}",
    *sizes,
  )
  assert named == own


@pytest.mark.parametrize("form", ["cdec", "moses", "travatar"])
def test_formats_of_other_toolkits_translate_as_the_run(run, tmp_path, form):
  folder = tmp_path / "system"
  done = util.run_program(
    "launch/export.py",
    f"--workdir={run}",
    f"--format={form}",
    f"--output={folder}",
  )
  assert done.returncode == 0, done.stderr
  assert (folder / "grammar.gz").is_file()
  assert (folder / "glue").is_file() == (form != "cdec")
  expected = translate(run, tmp_path, f"--workdir={run}", f"--system={SYSTEM}")
  out, _, scores = translate(run, tmp_path, f"--workdir={folder}")
  assert out == expected[0]
  # The first glue rule of a sentence counts here, and not in cdec or Travatar.
  shift = np.subtract(scores, expected[2])
  assert shift == pytest.approx(shift[0], abs=1e-3)
  if form == "moses":  # where the ends of sentences are words
    weights = loading.read_weights(str(folder / "weights.txt"))
    ends = -2 * weights["WordPenalty0"]
    assert shift[0] == pytest.approx(ends, abs=1e-3)


def hiero_rules(run):
  """Rules without trees and the weights of a system."""
  done = finished_run.read(str(run), None)
  grammar = done.record("grammar", Grammar)
  theta = finished_run.system_theta(done, SYSTEM)
  table = system.rule_table(grammar, theta)
  plain = tables.select(table, table.kind != Kind.TREE_TO_STRING)
  return plain, done.tuned(SYSTEM).weights


@pytest.mark.parametrize("form", dialect_systems.FORMATS)
def test_scores_are_those_of_our_own_format(run, tmp_path, form):
  table, weights = hiero_rules(run)
  native.write(str(tmp_path / "native"), table)
  rules, theirs = dialect_systems.to_dialect(table, weights, form)
  formats.write(rules, str(tmp_path / "rules.gz"), form)
  lm = tmp_path / "lm.arpa"
  lm.write_text(tiny_run.file(run, "lm", "arpa.txt").read_text())
  sizes = {"lm": str(lm), "span": 6, "matching_of": "jaxmt"}
  ours = loading.load_files(
    str(tmp_path / "native"), weights=weights, dialect="jaxmt", **sizes
  )
  other = loading.load_files(
    str(tmp_path / "rules.gz"), weights=theirs, dialect=form, **sizes
  )
  lines = tiny_run.artefact(run, "corpus", "test_source.txt")
  search = {"beam": 8, "pop": 30, "forests": False}
  one, two = (jaxmt.decode(t, lines, **search) for t in (ours, other))
  assert two.text == one.text
  pairs = zip(one.translations, two.translations, strict=True)
  shift = np.array([b.score - a.score for a, b in pairs])
  assert shift == pytest.approx(shift[0], abs=1e-3)


def test_joshua_has_no_trees(run, tmp_path):
  done = util.run_program(
    "launch/export.py",
    f"--workdir={run}",
    "--format=joshua",
    f"--output={tmp_path / 'x'}",
  )
  assert done.returncode == 2 and not (tmp_path / "x").exists()
  assert "no tree-to-string rules" in done.stderr
  assert done.stderr.count("\n") == 1


def test_raw_text_and_other_weights(run, exported, tmp_path):
  pytest.importorskip("rjieba")
  weights = tmp_path / "w"
  text = (exported / "weights.txt").read_text()
  weights.write_text(text + "Nonsense 1.0\nngram:a_b 0.0\n")
  line = tiny_run.artefact(run, "corpus", "test_source.txt")[0]
  done = util.run_program(
    "launch/translate.py",
    f"--workdir={exported}",
    f"--weights={weights}",
    "--source_language=zh",
    "--target_language=en",
    "--input=-",
    stdin=line.replace(" ", "") + "\n",
  )
  assert done.returncode == 0, done.stderr
  assert "no such features: Nonsense\n" in done.stderr
  out = done.stdout
  assert out.count("\n") == 1 and " ." not in out and out.strip()


@pytest.mark.parametrize(
  ("program", "flags", "message"),
  [
    ("export", ["--system=magic", "--output={0}/x"], "no system 'magic'"),
    ("export", ["--system=primary", "--output={0}"], "is something else"),
    ("export", ["--output={0}/none/x"], "no such folder"),
    ("translate", ["--system=magic"], "the run has: primary"),
    ("translate", ["--grammar=g"], "--workdir has its own --grammar"),
  ],
)
def test_refusals_are_one_line(run, tmp_path, program, flags, message):
  (tmp_path / "kept").write_text("")
  done = util.run_program(
    f"launch/{program}.py",
    f"--workdir={run}",
    *(flag.format(tmp_path) for flag in flags),
    stdin="",
  )
  assert done.returncode == 2
  assert message in done.stderr and done.stderr.count("\n") == 1
  assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_no_run_is_one_line(tmp_path):
  done = util.run_program(
    "launch/translate.py", f"--workdir={tmp_path}", stdin=""
  )
  assert done.returncode == 2
  assert "no run of launch/train.py" in done.stderr
