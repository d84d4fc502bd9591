"""Translation with dependency trees over phrases (Gimpel 2012, Model P).

    python launch/train.py --config=configs/trees.py --workdir=runs/trees
    export JAXMT_DATA=DIR
    python launch/train.py --config=configs/trees.py:multi30k \
      --workdir=runs/multi30k

A phrase-based system, and one that parses its lattices with weights learnt by
ramp 3. On the embedded corpus source trees come from its constituents and
target trees are drawn at random; the variant `multi30k` parses both sides with
what the treebanks of the folder JAXMT_DATA (`data`, if it is not set) teach.
`--config.trees.parse.source` and `.target` choose other parsers.
"""

import os
import pathlib

import ml_collections

from jaxmt.experiment import experiment


def _read(config: ml_collections.ConfigDict) -> None:
  """Sets the files of the German-English corpus and its treebanks."""
  base = pathlib.Path(os.environ.get("JAXMT_DATA", "data"))
  corpus = lambda name: str(base / "multi30k-de-en" / name)
  config.data.kind = "files"
  config.data.files.update(
    train_source=corpus("train.de.gz"),
    train_target=corpus("train.en.gz"),
    train_links=corpus("train.de-en.align.gz"),
    tune_source=corpus("dev.de.gz"),
    tune_references=(corpus("dev.en.gz"),),
    test_source=corpus("test2016.de.gz"),
    test_references=(corpus("test2016.en.gz"),),
    tune_sentences=400,
  )
  config.align.model = "given"
  config.trees.parse.update(
    source="supervised",
    target="supervised",
    source_treebank=str(base / "treebanks" / "de.train.gz"),
    target_treebank=str(base / "treebanks" / "en.train.gz"),
  )


def get_config(variant: str = "") -> ml_collections.ConfigDict:
  """Returns the config."""
  if variant not in ("", "multi30k"):
    raise ValueError("not one of multi30k")
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
  config.trees.update(edges=500, rounds=8, nbest=150, method="ramp3")
  config.evaluate.metrics = ("bleu", "ter")
  if variant:
    _read(config)
  return config
