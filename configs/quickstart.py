"""The quickstart: the embedded corpus, from text to compared systems.

    python launch/train.py --config=configs/quickstart.py --workdir=runs/quick

Word links, language model, joint grammar (Hiero and tree-to-string rules) and
tuned weights make the baseline; then rule probabilities are trained with a
loss, weights are tuned again, and both are compared. Any setting of
`jaxmt.experiment` can be changed: `--config.search.beam=50`. Variants: `small`,
which takes seconds and translates badly; `study`, the base of the studies in
`configs/ablations`: more sentences to judge by, and a tuner with less chance in
it; `reverse`, the same from English to Chinese, with Hiero rules alone since
there are no English trees.
"""

import ml_collections

from jaxmt.experiment import experiment

# Sentences of train, tune, test, and of text for the language model.
_SIZES = {
  "": (1000, 200, 600, 4000),
  "small": (150, 20, 20, 300),
  "study": (1000, 300, 1000, 4000),
  "reverse": (1000, 300, 1000, 4000),
}


def get_config(variant: str = "") -> ml_collections.ConfigDict:
  """Returns the config."""
  if variant not in _SIZES:
    raise ValueError(f"not one of {', '.join(filter(None, _SIZES))}")
  train, tune, test, monolingual = _SIZES[variant]
  config = experiment.defaults()
  config.seed = 0
  config.data.kind = "synthetic"
  config.data.synthetic.update(
    train=train, tune=tune, test=test, monolingual=monolingual, noise=0.02
  )
  config.align.model = "diagonal"
  config.lm.order = 4
  config.data.reverse = variant == "reverse"
  config.grammar.kind = "hiero" if variant == "reverse" else "joint"
  config.grammar.trees.max_size = 3
  config.search.update(beam=30, pop=200, span=10)
  config.tune.update(method="mert", metric="bleu", rounds=5, nbest=100)
  config.systems = ("primary", "augmented-forest")
  # A sentence finds its reference with rules of its own, whatever the others
  # are worth: they are left out. Smoothing is less than the paper's, which is
  # for millions of sentences. configs/ablations/gain.py tells what each gives.
  config.theta.update(
    alpha1=0.1,
    alpha2=5.0,
    iterations=2,
    alpha=0.02,
    train_beam=100,
    leave_one_out="counts",
  )
  if variant in ("study", "reverse"):
    config.tune.update(method="kbmira", rounds=6)
  config.interpolation = 0.5
  config.evaluate.metrics = ("bleu", "ter", "chrf")
  return config
