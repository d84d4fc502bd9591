"""A bitext with noise of known kinds, and what can be done about it.

    export JAXMT_DATA=DIR
    python launch/train.py --config=configs/cleaning.py --workdir=runs/c \
      --config.grammar.keep=0.7

20,000 pairs of Hansards French-English, of which 30 % get noise
(`jaxmt.corpora.noise`), aligned with it, and a phrase table. Cleaning is
`grammar.keep` (drop the worst pairs), `grammar.weighted` (two more
probabilities of weighted counts), `grammar.phrases.significance`,
`grammar.min_count`, or the system `forced` with leaving-one-out by lengths. The
study `configs/ablations/cleaning.py` compares them. The language model is of
the target sides of these pairs, with their noise, and of those of all other
pairs. Variant `small`: 300 pairs.
"""

import os
import pathlib

import ml_collections

from jaxmt.experiment import experiment

NOISE = (
  *("misaligned:0.15", "misordered:0.05"),
  *("untranslated:0.05", "truncated:0.05"),
)


def get_config(variant: str = "") -> ml_collections.ConfigDict:
  """Returns the config."""
  if variant not in ("", "small"):
    raise ValueError("not small")
  base = os.environ.get("JAXMT_DATA")
  if not base:
    raise ValueError("set JAXMT_DATA to the folder of the corpora")
  folder = pathlib.Path(base) / "hansards-fr-en"
  full = lambda name: str(folder / name)
  small = variant == "small"
  config = experiment.defaults()
  config.seed = 0
  config.data.kind = "files"
  config.data.files.update(
    train_source=full("train.fr.gz"),
    train_target=full("train.en.gz"),
    tune_source=full("dev.fr.gz"),
    tune_references=(full("dev.en.gz"),),
    test_source=full("test.fr.gz"),
    test_references=(full("test.en.gz"),),
    train_pairs=300 if small else 20000,
    tune_sentences=20 if small else 400,
    spread=True,
    noise=NOISE,
  )
  config.align.model = "diagonal"
  config.lm.order = 4
  config.grammar.kind = "phrase"
  config.search.update(beam=100, pop=200)
  config.tune.update(method="kbmira", metric="bleu", rounds=6, nbest=100)
  config.systems = ("primary",)
  config.theta.update(leave_one_out="lengths", alpha=0.0)
  config.interpolation = 0.5
  config.evaluate.metrics = ("bleu", "ter", "chrf")
  config.inspect.update(changed=0, sample=0, beams=())
  return config
