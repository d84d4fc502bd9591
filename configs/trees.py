"""Translation with dependency trees over phrases (Gimpel 2012, Model P).

    python launch/train.py --config=configs/trees.py --workdir=runs/trees
    export JAXMT_DATA=DIR
    python launch/train.py --config=configs/trees.py:multi30k \
      --workdir=runs/multi30k

A phrase-based system, and one that parses its lattices with weights learnt by
ramp 3. On the embedded corpus source trees come from its constituents and
target trees are drawn at random. The variants read the folder JAXMT_DATA
(`data`, if it is not set):

- `multi30k`: 10,000 pairs German-English with English trees by head rules, and
  German ones by what a treebank teaches;
- `tatoeba`: 12,000 pairs Chinese-English with Chinese trees by head rules, and
  English ones by what a treebank teaches;
- `bible`: 12,000 verses Chinese-English, four references, parsers of both sides
  learnt from treebanks.

`--config.trees.parse.source` and `.target` choose other parsers.
"""

import os
import pathlib

import ml_collections

from jaxmt.experiment import experiment


def _base() -> pathlib.Path:
  return pathlib.Path(os.environ.get("JAXMT_DATA", "data"))


def _treebank(language: str) -> str:
  return str(_base() / "treebanks" / f"{language}.train.gz")


def _files(config, folder: str, source: str, **others: object) -> None:
  """Sets the training files of a corpus into English."""
  config.data.kind = "files"
  config.data.files.update(
    train_source=str(_base() / folder / f"train.{source}.gz"),
    train_target=str(_base() / folder / "train.en.gz"),
    tune_source=str(_base() / folder / f"dev.{source}.gz"),
    test_source=str(_base() / folder / f"test.{source}.gz"),
    **others,
  )
  config.trees.parse.update(
    source="supervised",
    target="supervised",
    source_treebank=_treebank(source),
    target_treebank=_treebank("en"),
  )


def _multi30k(config: ml_collections.ConfigDict) -> None:
  corpus = lambda name: str(_base() / "multi30k-de-en" / name)
  _files(
    config,
    "multi30k-de-en",
    "de",
    train_links=corpus("train.de-en.align.gz"),
    tune_references=(corpus("dev.en.gz"),),
    test_references=(corpus("test2016.en.gz"),),
    train_pairs=10_000,
    tune_sentences=300,
  )
  config.data.files.test_source = corpus("test2016.de.gz")
  config.align.model = "given"
  config.trees.parse.update(
    target="constituents",
    target_trees=corpus("train.first10k.en.tree.gz"),
  )


def _tatoeba(config: ml_collections.ConfigDict) -> None:
  corpus = lambda name: str(_base() / "tatoeba-zh-en" / name)
  _files(
    config,
    "tatoeba-zh-en",
    "zh",
    train_links=corpus("train.zh-en.align.gz"),
    train_trees=corpus("train.first12k.zh.tree.gz"),
    tune_trees=corpus("dev.zh.tree.gz"),
    test_trees=corpus("test.zh.tree.gz"),
    tune_references=(corpus("dev.en.gz"),),
    test_references=(corpus("test.en.gz"),),
    train_pairs=12_000,
    tune_sentences=400,
  )
  config.align.model = "given"
  config.trees.parse.source = "constituents"


def _bible(config: ml_collections.ConfigDict) -> None:
  corpus = lambda name: str(_base() / "bible-multiref" / name)
  references = lambda part: tuple(corpus(f"{part}.en.{n}.gz") for n in range(4))
  _files(
    config,
    "bible-multiref",
    "zh",
    tune_references=references("dev"),
    test_references=references("test"),
    train_pairs=12_000,
    tune_sentences=300,
    spread=True,
  )
  # The steps of short sentences overshoot here: translations get 4 times as
  # long as the references, and four rounds do not bring them back.
  config.tune.update(rounds=8, options=("cap=1e-3",))


_VARIANTS = {"multi30k": _multi30k, "tatoeba": _tatoeba, "bible": _bible}


def get_config(variant: str = "") -> ml_collections.ConfigDict:
  """Returns the config."""
  if variant and variant not in _VARIANTS:
    raise ValueError(f"not one of {', '.join(_VARIANTS)}")
  config = experiment.defaults()
  config.seed = 0
  config.data.synthetic.update(
    train=1000, tune=200, test=600, monolingual=0, noise=0.02
  )
  config.align.model = "diagonal"
  config.lm.order = 4
  config.grammar.kind = "phrase"
  config.search.update(beam=100, pop=200)
  config.tune.update(method="kbmira", metric="bleu", rounds=5)
  config.systems = ("primary", "phrase-dependency")
  # Small steps: chosen by cross-validation on tuning lists (configs/README.md).
  config.trees.update(
    edges=500, rounds=3, nbest=100, method="kbmira", options=("cap=1e-4",)
  )
  config.evaluate.metrics = ("bleu", "ter")
  if variant:
    _VARIANTS[variant](config)
  return config
