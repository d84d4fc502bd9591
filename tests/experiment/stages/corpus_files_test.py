import dataclasses

import pytest

from jaxmt.corpora.synthetic import SyntheticConfig
from jaxmt.errors import InputError
from jaxmt.experiment.stages import corpus, lm
from jaxmt.experiment.stages.lm import LmStageConfig


def _config(folder, **changes):
  content = {
    "s": ["a b", "c", "b a", "a"],
    "t": ["x y", "", "y x", "x"],
    "l": ["0-0 1-1", "", "0-1", "0-0"],
    "p": ["(S (N a) (V b))", "(S c)", "(S (V b) (N a))"],
  }
  for name, lines in content.items():
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
  path = lambda name: str(folder / name)
  values = {
    "train_source": path("s"),
    "train_target": path("t"),
    "train_links": path("l"),
    "train_trees": path("p"),
    "tune_source": path("s"),
    "tune_references": (path("t"),),
    "test_source": path("s"),
    "test_references": (path("t"),),
    "train_pairs": 3,
  }
  return corpus.FilesConfig(**{**values, **changes})


def test_the_first_pairs_with_their_links_and_trees(tmp_path):
  made = corpus.from_files(_config(tmp_path))
  assert made.train_source == ["a b", "b a"]  # the second has no target
  assert made.train_target == ["x y", "y x"]
  assert made.train_links == ["0-0 1-1", "0-1"]
  assert made.train_trees == ["(S (N a) (V b))", "(S (V b) (N a))"]
  assert made.metrics["pairs"] == 3
  assert made.lm_text == ["x"]
  assert len(made.tune_source) == 4


def test_documents_of_the_pairs_that_stay(tmp_path):
  (tmp_path / "d").write_text("one\none\ntwo\ntwo\n")
  names = {"train_documents": str(tmp_path / "d"), "train_trees": ""}
  made = corpus.from_files(_config(tmp_path, **names))
  assert made.train_documents == ["one", "two"]  # the second has no target
  whole = corpus.from_files(_config(tmp_path, train_pairs=0, **names))
  assert whole.train_documents == ["one", "two", "two"]
  assert corpus.reverse(None, corpus=whole).train_documents == [
    *("one", "two", "two")
  ]
  (tmp_path / "d").write_text("one\ntwo\n")
  with pytest.raises(InputError, match="d:2: "):
    corpus.from_files(_config(tmp_path, train_pairs=0, **names))


def test_noise_in_the_training_pairs(tmp_path):
  settings = {"train_links": "", "train_trees": "", "train_pairs": 0}
  config = _config(tmp_path, noise=("untranslated:0.7",), **settings)
  corpus.check(config)
  made = corpus.from_files(config)
  assert made.train_source == ["a b", "b a", "a"]
  same = [
    s == t for s, t in zip(made.train_source, made.train_target, strict=True)
  ]
  assert sum(same) == made.metrics["untranslated"] == 2
  assert corpus.input_paths(config).keys() == (
    corpus.input_paths(_config(tmp_path, **settings)).keys()
  )
  for changes, message in (
    ({"noise": ("typos:1",)}, "none of"),
    ({"noise": ("truncated:0.1",), "train_trees": ""}, "given links"),
  ):
    with pytest.raises(ValueError, match=message):
      corpus.check(_config(tmp_path, **changes))


def test_all_pairs_need_all_trees(tmp_path):
  with pytest.raises(InputError, match="uneven"):
    corpus.from_files(_config(tmp_path, train_pairs=0))


def test_more_pairs_than_there_are_is_all_of_them(tmp_path):
  config = _config(tmp_path, train_pairs=9, train_trees="")
  assert corpus.from_files(config).train_source == ["a b", "b a", "a"]


def test_pairs_and_tuning_sentences_are_spread_over_the_files(tmp_path):
  config = _config(
    tmp_path, train_pairs=2, tune_sentences=2, spread=True, train_trees=""
  )
  made = corpus.from_files(config)
  assert made.train_source == ["a b", "b a"]  # the first and the third
  assert made.train_links == ["0-0 1-1", "0-1"]
  assert made.lm_text == ["", "x"]
  assert made.tune_source == ["a b", "b a"]
  assert made.tune_references == [["x y"], ["y x"]]


def _words(config, corpus_):
  return set(lm.language_model(config, corpus=corpus_).tables.words)


def test_language_models_of_the_bitext_and_of_other_text(tmp_path):
  (tmp_path / "m").write_text("w z\nz\n")
  given = (str(tmp_path / "m"),)
  made = corpus.from_files(_config(tmp_path, lm_text=given))
  assert made.lm_text == ["x", "w z", "z"]  # the fourth pair's, the file's
  order = LmStageConfig(order=2)
  both = _words(order, made)
  assert {"x", "y", "w", "z"} <= both
  alone = _words(LmStageConfig(order=2, bitext=False), made)
  assert {"x", "w", "z"} <= alone and "y" not in alone
  made = dataclasses.replace(made, lm_text=None)
  with pytest.raises(InputError, match=r"lm\.bitext"):
    _words(LmStageConfig(order=2, bitext=False), made)


def test_text_for_the_language_model_turns_with_the_corpus():
  made = corpus.embedded(
    SyntheticConfig(train=5, tune=2, test=2, monolingual=3)
  )
  turned = corpus.reverse(None, corpus=made)
  assert len(made.lm_text) == 3
  assert turned.lm_text == made.lm_text_reverse != made.lm_text
