"""Systems with trained models beside the same system without them.

    export JAXMT_DATA=DIR
    python launch/train.py --config=configs/neural.py:topics --workdir=runs/t
    python launch/train.py --config=configs/neural.py:tatoeba --workdir=runs/z
    python launch/train.py --config=configs/neural.py --workdir=runs/n

`topics`: Kyoto Japanese-English with its Wikipedia articles as documents, and
phrases from left to right. `tatoeba`: similarity of phrases (BRAE) and a
network of derivations (R2NN) in a bracketing grammar, beginning with given word
vectors. Without a variant: the embedded corpus, similarity and a scorer of
rules with Hiero; `small` takes minutes and translates badly. The baseline is
"primary"; "retuned" says what tuning again gives by itself.
"""

import os
import pathlib

import ml_collections

from jaxmt.experiment import experiment

_VARIANTS = ("", "small", "topics", "tatoeba")


def _kyoto(base: pathlib.Path) -> dict:
  """Every fourth pair of the Kyoto corpus, which its own links align."""
  folder = base / "kyoto-ja-en"
  return {
    "train_source": str(folder / "train.ja.gz"),
    "train_target": str(folder / "train.en.gz"),
    "train_documents": str(folder / "train.doc.gz"),
    "tune_source": str(folder / "dev.ja.gz"),
    "tune_references": (str(folder / "dev.en.0.gz"),),
    "test_source": str(folder / "test.ja.gz"),
    "test_references": (str(folder / "test.en.0.gz"),),
    "train_pairs": 25565,
    "tune_sentences": 500,
    "spread": True,
  }


def _tatoeba(base: pathlib.Path) -> dict:
  """All pairs of Tatoeba, with the given links."""
  folder = base / "tatoeba-zh-en"
  return {
    "train_source": str(folder / "train.zh.gz"),
    "train_target": str(folder / "train.en.gz"),
    "train_links": str(folder / "train.zh-en.align.gz"),
    "tune_source": str(folder / "dev.zh.gz"),
    "tune_references": (str(folder / "dev.en.gz"),),
    "test_source": str(folder / "test.zh.gz"),
    "test_references": (str(folder / "test.en.gz"),),
    "tune_sentences": 500,
    "spread": True,
  }


def get_config(variant: str = "") -> ml_collections.ConfigDict:
  """Returns the config."""
  if variant not in _VARIANTS:
    raise ValueError(f"not one of {', '.join(filter(None, _VARIANTS))}")
  config = experiment.defaults()
  config.seed = 0
  small = variant == "small"
  config.data.synthetic.update(
    train=150 if small else 1000,
    tune=20 if small else 300,
    test=20 if small else 1000,
    monolingual=0,
    noise=0.02,
  )
  config.align.model = "diagonal"
  config.lm.order = 4
  config.grammar.kind = "hiero"
  config.search.update(beam=30, pop=200, span=10)
  config.tune.update(method="kbmira", metric="bleu", rounds=6, nbest=100)
  config.systems = ("primary", "retuned", "similarity", "scorer")
  config.evaluate.metrics = ("bleu", "ter", "chrf")
  if small:
    config.neural.pairs = 40
    config.neural.similarity.tune.epochs = 2
    config.neural.scorer.rounds = 1
    config.tune.rounds = 2
  if variant in ("topics", "tatoeba"):
    base = os.environ.get("JAXMT_DATA")
    if not base:
      raise ValueError("set JAXMT_DATA to the folder of the corpora")
    read = {"topics": _kyoto, "tatoeba": _tatoeba}[variant]
    config.data.kind = "files"
    config.data.files.update(read(pathlib.Path(base)))
    config.inspect.update(changed=0, sample=0, beams=())
  if variant == "topics":
    config.grammar.kind = "phrase"
    config.search.update(beam=100, pop=200)
    config.systems = ("primary", "retuned", "topic-mixtures", "topics")
    config.neural.topics.words = 5000
    config.neural.mixtures.rounds = 20
    config.neural.topics.fit.epochs = 3
  elif variant == "tatoeba":
    config.align.model = "given"
    config.grammar.kind = "btg"
    config.systems = ("primary", "retuned", "similarity", "recursive")
    config.neural.pairs = 2000
    vectors = pathlib.Path(os.environ["JAXMT_DATA"]) / "embeddings-zh-en"
    config.neural.source_vectors = str(vectors / "zh.npz")
    config.neural.target_vectors = str(vectors / "en.npz")
  return config
