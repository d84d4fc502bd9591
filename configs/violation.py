"""Violation-fixing learning against MERT: the embedded corpus, or a real one.

    python launch/train.py --config=configs/violation.py --workdir=runs/v
    export JAXMT_DATA=DIR
    python launch/train.py --config=configs/violation.py:tatoeba \
      --workdir=runs/tatoeba

As in the paper (Zhao, Huang, Mi & Ittycheriah 2014): Hiero rules without those
seen once (word pairs stay), tight phrases, a trigram model, simple Word-Edges.
Weights start from the tuned ones. Variants `tatoeba`, `fisher` and `multi30k`
read corpora from the folder that JAXMT_DATA names; `small` takes a minute and
translates badly. `tatoeba-part` and its like have the rules of all pairs, but
learn from some 2,000 of them, evenly spread, for two epochs, and tune on 200
sentences. The tuning plot of a report is the learning curve of each system.
"""

import os
import pathlib

import ml_collections

from jaxmt.experiment import experiment

# For `-part`, every N-th pair is learned from.
_EVERY = {"tatoeba": 12, "fisher": 16, "multi30k": 20}
# Folder, languages, development and test references.
_CORPORA = {
  "tatoeba": (
    "tatoeba-zh-en",
    ("zh", "en"),
    ("dev.en.gz",),
    "test",
    ("test.en.gz",),
  ),
  "fisher": (
    "fisher-callhome-es-en",
    ("es", "en"),
    tuple(f"dev.en.{n}.gz" for n in range(4)),
    "test",
    tuple(f"test.en.{n}.gz" for n in range(4)),
  ),
  "multi30k": (
    "multi30k-de-en",
    ("de", "en"),
    ("dev.en.gz",),
    "test2016",
    ("test2016.en.gz",),
  ),
}


def _read(config: ml_collections.ConfigDict, variant: str) -> None:
  """Sets the files of a real corpus."""
  folder, (source, target), dev, test, references = _CORPORA[variant]
  base = os.environ.get("JAXMT_DATA")
  if not base:
    raise ValueError("set JAXMT_DATA to the folder of the corpora")
  where = pathlib.Path(base) / folder
  full = lambda name: str(where / name)
  config.data.kind = "files"
  config.data.files.update(
    train_source=full(f"train.{source}.gz"),
    train_target=full(f"train.{target}.gz"),
    train_links=full(f"train.{source}-{target}.align.gz"),
    tune_source=full(f"dev.{source}.gz"),
    tune_references=tuple(map(full, dev)),
    test_source=full(f"{test}.{source}.gz"),
    test_references=tuple(map(full, references)),
    max_length=80,
  )
  config.align.model = "given"


def get_config(variant: str = "") -> ml_collections.ConfigDict:
  """Returns the config."""
  corpus = variant.removesuffix("-part")
  if corpus not in ("", "small", *_CORPORA):
    raise ValueError(f"not one of small, {', '.join(_CORPORA)}")
  config = experiment.defaults()
  config.seed = 0
  small = variant == "small"
  config.data.synthetic.update(
    train=200 if small else 1000,
    tune=20 if small else 200,
    test=20 if small else 600,
    monolingual=0,
    noise=0.02,
  )
  config.align.model = "diagonal"
  if corpus in _CORPORA:
    _read(config, corpus)
  config.lm.order = 3
  config.grammar.update(kind="hiero", min_count=2)
  config.search.update(beam=30, pop=200, span=10)
  config.tune.update(method="mert", metric="bleu", rounds=3 if small else 6)
  config.systems = ("primary", "max-violation")
  config.learn.update(
    templates=("edges:simple",),
    epochs=2 if small else 6,
    minibatch=32,
    rate=1.0,
    dense_rate=0.01,
  )
  config.evaluate.metrics = ("bleu",)
  if corpus != variant:
    config.held_out, config.own_rules = _EVERY[corpus], True
    config.data.files.update(tune_sentences=200, spread=True)
    config.tune.rounds = 4
    config.learn.epochs = 2
  return config
