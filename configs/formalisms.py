"""Phrase-based, bracketing, hierarchical and joint systems on one corpus.

    python launch/train.py --config=configs/formalisms.py --workdir=runs/f
    export JAXMT_DATA=DIR
    python launch/train.py --config=configs/formalisms.py:multi30k \
      --config.grammar.kind=btg --workdir=runs/btg

One formalism a run: `--config.grammar.kind=phrase|btg|hiero|joint`, which the
study `configs/ablations/formalisms.py` compares. The embedded corpus has trees
for `joint`; so has the variant `tatoeba` (the 12,000 pairs with trees).
`multi30k`, `fisher`, with four references, and `kyoto` have none. They read the
corpora of the folder that JAXMT_DATA names, with the word links given there but
for `kyoto`, which aligns every fourth of its 102,260 pairs; its language model
is of all. Weights are tuned on the development part (every fourth or fifth
sentence of those of Fisher and Kyoto), and the test part is translated once.
"""

import os
import pathlib

import ml_collections

from jaxmt.experiment import experiment

_CORPORA = {
  "multi30k": {
    "folder": "multi30k-de-en",
    "languages": ("de", "en"),
    "references": ("",),
    "test": "test2016",
    "links": True,
  },
  "fisher": {
    "folder": "fisher-callhome-es-en",
    "languages": ("es", "en"),
    "references": (".0", ".1", ".2", ".3"),
    "links": True,
    "sizes": {"tune_sentences": 1000, "spread": True},
  },
  "kyoto": {
    "folder": "kyoto-ja-en",
    "languages": ("ja", "en"),
    "references": (".0",),  # the other two are earlier states of it
    "sizes": {"train_pairs": 25565, "tune_sentences": 900, "spread": True},
  },
  "tatoeba": {
    "folder": "tatoeba-zh-en",
    "languages": ("zh", "en"),
    "references": ("",),
    "links": True,
    "trees": "train.first12k.zh.tree.gz",
    "sizes": {"train_pairs": 12000},
  },
}


def get_config(variant: str = "") -> ml_collections.ConfigDict:
  """Returns the config."""
  if variant not in ("", "small", *_CORPORA):
    raise ValueError(f"not one of small, {', '.join(_CORPORA)}")
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
  config.grammar.update(kind="phrase", provenance=False)
  config.search.update(beam=100, pop=200, span=10)
  config.tune.update(method="kbmira", metric="bleu", rounds=6, nbest=100)
  config.systems = ("primary",)
  config.evaluate.metrics = ("bleu", "ter", "chrf")
  if variant in _CORPORA:
    _read(config, **_CORPORA[variant])
    config.inspect.update(changed=10, sample=10)
  return config


def _read(
  config: ml_collections.ConfigDict,
  *,
  folder: str,
  languages: tuple[str, str],
  references: tuple[str, ...],
  test: str = "test",
  links: bool = False,
  trees: str = "",
  sizes: dict[str, int] | None = None,
) -> None:
  """Sets the files of a real corpus."""
  base = os.environ.get("JAXMT_DATA")
  if not base:
    raise ValueError("set JAXMT_DATA to the folder of the corpora")
  source, target = languages
  full = lambda name: str(pathlib.Path(base) / folder / name)
  config.data.kind = "files"
  config.data.files.update(
    train_source=full(f"train.{source}.gz"),
    train_target=full(f"train.{target}.gz"),
    tune_source=full(f"dev.{source}.gz"),
    tune_references=tuple(full(f"dev.{target}{one}.gz") for one in references),
    test_source=full(f"{test}.{source}.gz"),
    test_references=tuple(
      full(f"{test}.{target}{one}.gz") for one in references
    ),
    **(sizes or {}),
  )
  if links:
    config.align.model = "given"
    config.data.files.train_links = full(f"train.{source}-{target}.align.gz")
  if trees:
    config.data.files.update(
      train_trees=full(trees),
      tune_trees=full(f"dev.{source}.tree.gz"),
      test_trees=full(f"{test}.{source}.tree.gz"),
    )
