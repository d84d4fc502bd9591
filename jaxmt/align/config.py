"""Settings of the word aligners."""

import dataclasses
from typing import Any

MODELS = ("diagonal", "model1", "hmm")
DECODERS = ("viterbi", "posterior")
GRADIENTS = ("fast_align", "exact")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignConfig:
  """How to align; `default(model)` gives each model its usual values.

  Attributes:
    model: one of `MODELS`.
    iterations: passes over the bitext. The last one finds the links instead
      of counting, as in fast_align, so there is one M-step less.
    warm_up: M-steps of Model 1 before the HMM.
    null_probability: p0 of the diagonal model and the HMM.
    alpha: Dirichlet prior on translation probabilities, 0 for none.
    tension: at the start, diagonal model.
    optimize_tension: whether to learn it.
    tension_gradient: one of `GRADIENTS`, see `diagonal`.
    uniform_jump: weight of uniform jumps in the HMM, s.
    decoder: one of `DECODERS`.
    threshold: least posterior of a link for the posterior decoder.
    cells_per_batch: how much goes to the devices at once; with `bucket_cost`
      it changes speed and memory, not the result.
    bucket_cost: price of one more grid width, see
      `cooccurrence.bucket_widths`.
  """

  model: str = "diagonal"
  iterations: int = 5
  warm_up: int = 5
  null_probability: float = 0.08
  alpha: float = 0.01
  tension: float = 4.0
  optimize_tension: bool = True
  tension_gradient: str = "fast_align"
  uniform_jump: float = 0.2
  decoder: str = "viterbi"
  threshold: float = 0.5
  cells_per_batch: int = 1 << 20
  bucket_cost: int = 1 << 20


def default(model: str, **changes) -> AlignConfig:
  """Returns a model's usual settings with the given changes, checked.

  Raises:
    ValueError: naming the field that is out of range.
  """
  usual: dict[str, dict[str, Any]] = {
    "diagonal": {},
    "model1": {"alpha": 0.0},
    # NULL and uniform jumps as GIZA++ sets them.
    "hmm": {"null_probability": 0.4, "uniform_jump": 0.2},
  }
  if model not in usual:
    raise ValueError(f"model '{model}' is none of {', '.join(MODELS)}")
  config = AlignConfig(model=model, **{**usual[model], **changes})
  checks = {
    "iterations": config.iterations >= 1,
    "warm_up": config.warm_up >= 0,
    "null_probability": 0.0 < config.null_probability < 1.0,
    "alpha": 0.0 <= config.alpha < float("inf"),
    "tension": 0.0 < config.tension < float("inf"),
    "tension_gradient": config.tension_gradient in GRADIENTS,
    "uniform_jump": 0.0 <= config.uniform_jump <= 1.0,
    "decoder": config.decoder in DECODERS,
    "threshold": 0.0 <= config.threshold < 1.0,
    "cells_per_batch": config.cells_per_batch >= 1,
    "bucket_cost": config.bucket_cost >= 0,
  }
  for name, holds in checks.items():
    if not holds:
      raise ValueError(f"{name} cannot be {getattr(config, name)}")
  return config
