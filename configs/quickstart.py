"""The quickstart: the embedded corpus, from text to compared systems.

    python launch/train.py --config=configs/quickstart.py --workdir=runs/quick

Word links, language model, joint grammar (Hiero and tree-to-string rules) and
tuned weights make the baseline; then rule probabilities are trained with a
loss, weights are tuned again, and both are compared. Any setting of
`jaxmt.experiment` can be changed: `--config.search.beam=50`. Variants: `small`,
which takes seconds and translates badly; `study`, the base of the studies in
`configs/ablations`: more sentences to judge by; `reverse`, the same from
English to Chinese, with Hiero rules alone since there are no English trees;
`paper` and `paper-reverse`, the settings of Xiao, Wong and Zhu (2016) on the
embedded corpus: five iterations, alpha = 0.5, own counts kept, MERT, left-heavy
binary trees, a 5-gram model, beams of 100 and 30, BLEU (closest reference
length, case folded; BLEU-5 for Chinese output).
"""

import ml_collections

from jaxmt.experiment import experiment

# Sentences of train, tune, test, and of text for the language model.
_SIZES = {
  "": (1000, 200, 600, 4000),
  "small": (150, 20, 20, 300),
  "study": (1000, 300, 1000, 4000),
  "reverse": (1000, 300, 1000, 4000),
  "paper": (1000, 300, 1000, 4000),
  "paper-reverse": (1000, 300, 1000, 4000),
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
  reverse = variant.endswith("reverse")
  config.data.reverse = reverse
  config.grammar.kind = "hiero" if reverse else "joint"
  config.grammar.trees.max_size = 3
  config.search.update(beam=30, pop=200, span=10)
  # MERT's own chance would hide what training changes on so few sentences.
  config.tune.update(method="kbmira", metric="bleu", rounds=6, nbest=100)
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
  if variant.startswith("paper"):
    _as_in_the_paper(config, reverse=reverse)
  config.interpolation = 0.5
  config.evaluate.metrics = ("bleu", "ter", "chrf")
  return config


def _as_in_the_paper(config: ml_collections.ConfigDict, *, reverse: bool):
  """Sets what the paper says of its experiments, section IV-A."""
  config.lm.order = 5
  config.grammar.binarize = not reverse
  config.tune.update(method="mert", rounds=5)
  config.theta.update(
    iterations=5,
    alpha=0.5,
    k=30,
    margin=10,
    cost=10.0,
    leave_one_out="none",
  )
  config.evaluate.update(lowercase=True, order=5 if reverse else 4)
