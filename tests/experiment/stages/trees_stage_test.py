"""An experiment with trees over phrases, from text to the report."""

import json

import numpy as np
import pytest

import jaxmt
from jaxmt.corpora import synthetic
from jaxmt.decode.dependency import configurations
from jaxmt.errors import InputError
from jaxmt.experiment.stages import dependency_trees, tree_parsing
from jaxmt.experiment.stages.dependency_trees import TreesConfig
from jaxmt.experiment.stages.tree_parsing import ParseConfig
from tests import util
from tests.reference import tiny_run


def run(path, *flags):
  return util.run_program(
    "launch/train.py",
    *tiny_run.FLAGS,
    *("--config.grammar.kind=phrase", "--config.data.synthetic.train=60"),
    "--config.systems=('primary','phrase-dependency')",
    *("--config.trees.edges=60", "--config.trees.nbest=10"),
    *("--config.trees.rounds=1", "--config.trees.parse.clusters=5"),
    *("--config.trees.length=3", f"--workdir={path}", *flags),
  )


def test_an_experiment_with_trees_over_phrases(tmp_path):
  bank = "he\tPRON\t2\nsees\tVERB\t0\nthe\tDET\t4\nhouse\tNOUN\t2\n\n" * 3
  (tmp_path / "bank").write_text(bank)
  flags = [
    flag
    for side in ("source", "target")
    for flag in (
      f"--config.trees.parse.{side}=unsupervised",
      f"--config.trees.parse.{side}_treebank={tmp_path / 'bank'}",
    )
  ]
  done = run(tmp_path / "run", *flags)
  assert done.returncode == 0, done.stderr
  results = json.loads((tmp_path / "run" / "results.json").read_text())
  assert set(results["systems"]) == {"primary", "phrase-dependency", "gloss"}
  assert "bleu" in results["significance"]["phrase-dependency"]
  assert len(results["curves"]["phrase-dependency"]) == 2
  weights = json.loads(
    next(
      (tmp_path / "run").glob("artefacts/tune-phrase-*/weights.json")
    ).read_text()
  )
  assert {"dep_phrase", "dep_sibling_left", "LanguageModel"} <= weights.keys()
  page = (tmp_path / "run" / "report.html").read_text()
  assert "Trees over phrases: phrase-dependency" in page
  again = run(tmp_path / "run", *flags)
  assert "[decode-phrase-dependency] reused" in again.stderr
  check_new_text(tmp_path / "run", tmp_path / "out")
  check_given_trees(tmp_path)


def check_given_trees(path):
  """The same experiment, with constituents of the training targets."""
  lines = next((path / "run").glob("artefacts/corpus-*/train_target.txt"))
  flat = [
    f"(S {' '.join(f'(X {word})' for word in line.split())})"
    for line in lines.read_text().splitlines()
  ]
  (path / "trees").write_text("\n".join(flat) + "\n")
  done = run(
    path / "run",
    "--config.trees.parse.target=constituents",
    f"--config.trees.parse.target_trees={path / 'trees'}",
  )
  assert done.returncode == 0, done.stderr
  assert "[parse] done" in done.stderr and "[lm] reused" in done.stderr


def check_new_text(path, out):
  """The run's system translates its own test part as the run did."""
  lines = lambda pattern: next(path.glob(f"artefacts/{pattern}")).read_text()
  source = lines("corpus-*/test_source.txt")
  done = util.run_program(
    "launch/translate_trees.py",
    *(f"--workdir={path}", "--input=-", f"--output={out}"),
    stdin=source,
  )
  assert done.returncode == 0, done.stderr
  assert out.read_text() == lines("decode-phrase-*/test_hypothesis.txt")
  system = jaxmt.load_trees(str(path))
  found = jaxmt.translate_trees(system, source.splitlines()[:3])
  assert [one.text for one in found] == out.read_text().splitlines()[:3]
  heads = [np.arange(-1, len(line.split()) - 1) for line in source.splitlines()]
  jaxmt.translate_trees(system, source.splitlines()[:1], source_trees=heads[:1])
  with pytest.raises(InputError, match="no tree of the words"):
    jaxmt.translate_trees(system, ["a b"], source_trees=[[1, 0]])
  with pytest.raises(InputError, match=r"see launch/translate_trees\.py"):
    jaxmt.load(str(path), system="phrase-dependency")
  done = util.run_program(
    "launch/translate_trees.py",
    *(f"--workdir={path}", "--input=-", f"--output={out}", "--lm=x"),
  )
  assert done.returncode == 2 and "has its own --lm" in done.stderr


@pytest.mark.parametrize(
  ("config", "cause"),
  [
    (TreesConfig(parse=ParseConfig(source="x")), "parse.source 'x' is none of"),
    (
      TreesConfig(parse=ParseConfig(target="supervised")),
      "needs parse.target_treebank",
    ),
    (
      TreesConfig(parse=ParseConfig(target="constituents")),
      "needs parse.target_trees",
    ),
    (
      TreesConfig(parse=ParseConfig(target_head_rules="x")),
      "head rules 'x' are none of",
    ),
    (TreesConfig(groups=("x",)), "no group 'x'"),
    (TreesConfig(nbest=0), "nbest is too small"),
  ],
)
def test_settings_that_make_no_sense(config, cause):
  with pytest.raises(ValueError, match=cause):
    dependency_trees.check(config)


def test_trees_by_head_rules_are_those_of_the_sentences():
  from jaxmt.experiment.stages import corpus as corpus_stage

  text = corpus_stage.embedded(
    synthetic.SyntheticConfig(train=20, tune=5, test=5, seed=1)
  )
  config = ParseConfig(source="constituents", target="random", clusters=4)
  learning = tree_parsing.learning(config)
  assert list(learning) == ["target"]
  parsed = tree_parsing.parse(
    config, corpus=text, target=tree_parsing.learn(learning["target"])
  )
  sizes = [len(line.split()) for line in text.test_source]
  assert len(parsed.test_heads) == sum(sizes)
  found = configurations.source_trees(parsed.test_heads, text.test_source)
  assert all((tree.heads == -1).sum() == 1 for tree in found)
  assert len(parsed.train_heads) == sum(
    len(line.split()) for line in text.train_target
  )
  assert np.isin(-1, parsed.train_heads)


def test_given_trees_of_the_training_targets(tmp_path):
  from jaxmt.experiment.stages import corpus as corpus_stage

  text = corpus_stage.embedded(
    synthetic.SyntheticConfig(train=6, tune=2, test=2, seed=1)
  )
  # Every second sentence is one that the corpus has dropped. The first word is
  # the verb.
  lines = []
  for line in text.train_target:
    first, *others = line.split()
    rest = " ".join(f"(NP {word})" for word in others)
    lines += [f"(S (VP {first}) {rest})", "(S (VP dropped))"]
  path = tmp_path / "trees"
  path.write_text("\n".join(lines) + "\n")
  config = ParseConfig(
    source="none", target="constituents", target_trees=str(path), clusters=4
  )
  assert tree_parsing.tree_paths(config) == {"target_trees": str(path)}
  parsed = tree_parsing.parse(config, corpus=text, target_trees=str(path))
  wanted = [
    head
    for line in text.train_target
    for head in (-1, *(0,) * (len(line.split()) - 1))
  ]
  np.testing.assert_array_equal(parsed.train_heads, wanted)
  assert parsed.clusters
  path.write_text("\n".join(lines[2:]) + "\n")
  with pytest.raises(InputError, match="no tree of sentence 1, "):
    tree_parsing.parse(config, corpus=text, target_trees=str(path))
