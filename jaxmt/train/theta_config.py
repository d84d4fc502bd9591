"""How θ is trained: the settings of every method, with the paper's defaults.

Xiao, Wong and Zhu, "A loss-augmented approach to training syntactic machine
translation systems" (2016), is "the paper" in this package; numbers of
equations, figures and sections are its.
"""

import dataclasses
import math

from jaxmt.train import derivation_losses

COUNTS = ("viterbi", "nbest", "forest")
FALLBACKS = ("default", "extraction", "scaled", "nearest", "skip")
LEAVE_ONE_OUT = ("none", "singletons", "counts", "lengths")
OWN_COUNTS = ("counts", "lengths")  # those that change θ by a sentence's counts
STATES = ("lm", "accumulators")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThetaConfig:
  """Settings of the methods of `jaxmt.train.theta_methods`.

  Attributes:
    method: "primary" is relative frequency of all extracted rules; "forced"
      one pass over the best derivations that reach the reference; "searn"
      mixes those with what the beam search finds; "best-bleu" takes the best
      of each n-best list; "likelihood" is Viterbi, n-best or forest training
      on the derivations that reach the reference; "loss-augmented" the paper's
      own.
    counts: "viterbi" counts the best derivation, "nbest" the n best and
      "forest" all, weighted by their posteriors.
    alpha1: weight of the beam loss, equation (8).
    alpha2: weight of the goodness loss.
    k: the beam width of decoding, equation (10).
    margin: k_m, ranks around k where the loss rises.
    cost: C, the loss beyond.
    goodness: "bleu" is equation (11); any other is a sentence metric of
      `jaxmt.metrics.named_metrics`.
    scale: weights are multiplied so that the weight of the language model's
      ln p becomes this; 0 leaves them as tuned. Tuners like MERT do not
      determine the scale, but α1, α2 and the posteriors are relative to it: the
      same α2 weighs twice as much if all weights are half as large. The paper
      does not say what its scale was.
    constraint: a derivation is used if its words' edit distance to the
      reference is at most this share of the reference's words.
    iterations: I of figure 5.
    alpha: of add-alpha smoothing. The paper's is for millions of sentences. A
      sentence counts some ten rules but adds a hundred to the table, so with
      thousands of sentences 0.5 for each rule outweighs the counts.
    nbest: derivations of n-best counts, and of "best-bleu".
    samples: derivations drawn from each forest for forest counts; those that
      the constraint allows count.
    posterior_scale: augmented scores are multiplied by it before they become
      posteriors.
    fallback: the counts of a sentence without an admissible derivation:
      "default" is the method's own, "scaled" for loss-augmented training and
      "skip" for the others; those of "extraction", which are some twenty
      times those of other sentences; the same "scaled" to the number of rules
      of its best derivation, or to that of its words if it has none; that
      derivation, though it is not admissible ("nearest"); or none ("skip").
    leave_one_out: "counts" takes a sentence's own counts out of the θ it is
      decoded with, "singletons" forbids rules that only it has (a word no
      other sentence has can still be translated, as a last resort), "none"
      does neither. Derivations that must reach the reference do without rules
      that only the sentence has, in both. "lengths" is "counts", but such rules
      may be used, each probability being e^-5 for each of their words (Wuebker,
      Mauser & Ney 2010, length-based leaving-one-out), so that only long ones
      are avoided. All are of rules: the language model keeps the sentence
      unless it is of other text (`lm.bitext`).
    searn_weight: share of what the search finds, in "searn".
    train_beam: hypotheses per cell in training; well over k + margin.
    train_pop: candidates scored per cell in training.
    state: "lm" merges hypotheses as decoding does; "accumulators" only if
      they match the reference alike too, which is exact and slow.
    diagnose: every n-th batch, at least one, is searched again without the beam
      loss and without any, to tell what the beam loss does (`beam_diagnosis`):
      two more searches of it. 0 for none. Makes no difference to θ.
    shard: sentences decoded and saved together.
    workers: shards worked on at a time.
    batch_cells: cells searched together.
  """

  method: str = "loss-augmented"
  counts: str = "forest"
  alpha1: float = 0.1
  alpha2: float = 5.0
  k: int = 30
  margin: int = 10
  cost: float = 10.0
  goodness: str = "bleu"
  scale: float = 1.0
  constraint: float = 0.25
  iterations: int = 5
  alpha: float = 0.5
  nbest: int = 100
  samples: int = 100
  posterior_scale: float = 1.0
  fallback: str = "default"
  leave_one_out: str = "none"
  searn_weight: float = 0.5
  train_beam: int = 100
  train_pop: int = 250
  state: str = "lm"
  diagnose: int = 40
  shard: int = 128
  workers: int = dataclasses.field(default=2, metadata={"matters": False})
  batch_cells: int = 4096


def check(config: ThetaConfig) -> None:
  """Raises `ValueError`, naming the field, for settings out of range.

  The name of the method is checked by `theta_methods.check`.
  """
  for name, known in (
    ("counts", COUNTS),
    ("fallback", FALLBACKS),
    ("leave_one_out", LEAVE_ONE_OUT),
    ("state", STATES),
  ):
    if getattr(config, name) not in known:
      raise ValueError(
        f"{name} {getattr(config, name)!r} is none of {', '.join(known)}"
      )
  derivation_losses.goodness(config.goodness)
  for name in (
    "k",
    "iterations",
    "nbest",
    "samples",
    "train_beam",
    "shard",
    "workers",
    "batch_cells",
  ):
    if getattr(config, name) < 1:
      raise ValueError(f"{name} must be at least 1")
  for name in (
    "alpha1",
    "alpha2",
    "cost",
    "margin",
    "constraint",
    "alpha",
    "scale",
    "diagnose",
  ):
    if not 0 <= getattr(config, name) < math.inf:
      raise ValueError(f"{name} must be finite and not negative")
  if not 0 < config.posterior_scale < math.inf:
    raise ValueError("posterior_scale must be finite and more than 0")
  if not 0 <= config.searn_weight <= 1:
    raise ValueError("searn_weight must be between 0 and 1")
  if config.train_pop < config.train_beam:
    raise ValueError("train_pop must be at least train_beam")
