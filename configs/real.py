"""A corpus of your own: file paths instead of the embedded corpus.

    python launch/train.py --config=configs/real.py --workdir=runs/mine \
      --config.data.files.train_source=train.de \
      --config.data.files.train_target=train.en \
      --config.data.files.tune_source=dev.de \
      --config.data.files.tune_references="('dev.en',)" \
      --config.data.files.test_source=test.de \
      --config.data.files.test_references="('test.en',)"

With trees (`train_trees`, `tune_trees`, `test_trees`; variant `joint`) the
grammar also has tree-to-string rules. Word links (`train_links`, with
`--config.align.model=given`) are optional. `train_pairs` takes the first pairs
only; the targets of the others are text for the language model, as are the
files of `lm_text`, and with `--config.lm.bitext=false` only these are. Any
setting of `jaxmt.experiment` can be changed; `configs/quickstart.py` tells what
happens.
"""

import ml_collections

from jaxmt.experiment import experiment

_KINDS = {"": "hiero", "joint": "joint"}


def get_config(variant: str = "") -> ml_collections.ConfigDict:
  """Returns the config."""
  if variant not in _KINDS:
    raise ValueError(f"not one of {', '.join(filter(None, _KINDS))}")
  config = experiment.defaults()
  config.seed = 0
  config.data.kind = "files"
  config.data.files.update(max_length=80, max_ratio=9.0)
  config.align.update(model="diagonal", symmetrize="grow-diag-final-and")
  config.lm.order = 4
  config.grammar.kind = _KINDS[variant]
  config.search.update(beam=30, pop=200, span=10)
  config.tune.update(method="mert", metric="bleu", rounds=8, nbest=100)
  config.systems = ("primary", "augmented-forest")
  config.theta.update(
    alpha1=0.1,
    alpha2=5.0,
    iterations=2,
    alpha=0.02,  # for small corpora; the paper has 0.5 for millions
    train_beam=100,
    leave_one_out="counts",
  )
  config.interpolation = 0.5
  config.evaluate.metrics = ("bleu", "ter", "chrf")
  return config
