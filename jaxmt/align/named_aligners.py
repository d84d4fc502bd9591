"""The aligners by name: those of this package, and those users register."""

from jaxmt.align import diagonal, hmm, model1
from jaxmt.align.aligner import DECODERS, GRADIENTS, AlignConfig, Aligner

_ALIGNERS = {
  aligner.name: aligner
  for aligner in (diagonal.ALIGNER, model1.ALIGNER, hmm.ALIGNER)
}


def register(aligner: Aligner) -> None:
  """Makes an aligner known by its name to the engine, configs and flags.

  Raises:
    ValueError: if the name is taken, or the warm-up model unknown.
  """
  if aligner.name in _ALIGNERS:
    raise ValueError(f"aligner '{aligner.name}' exists already")
  if aligner.warm_up is not None:
    find(aligner.warm_up)
  _ALIGNERS[aligner.name] = aligner


def names() -> tuple[str, ...]:
  """Returns the names of all aligners."""
  return tuple(_ALIGNERS)


def find(name: str) -> Aligner:
  """Returns the aligner of a name.

  Raises:
    ValueError: if there is none.
  """
  if name not in _ALIGNERS:
    raise ValueError(f"model '{name}' is none of {', '.join(_ALIGNERS)}")
  return _ALIGNERS[name]


def default_config(model: str, **changes) -> AlignConfig:
  """Returns a model's usual settings with the given changes, checked.

  Raises:
    ValueError: naming the field that is out of range.
  """
  config = AlignConfig(model=model, **{**find(model).defaults, **changes})
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


def stages(config: AlignConfig) -> list[tuple[Aligner, int, int]]:
  """Returns `(aligner, M-steps, passes)` in order.

  A warm-up model has an M-step in every pass. In the last pass of the model
  itself, links take the place of the M-step.
  """
  aligner = find(config.model)
  order = [(aligner, config.iterations - 1, config.iterations)]
  if aligner.warm_up is not None:
    first = find(aligner.warm_up)
    order.insert(0, (first, config.warm_up, config.warm_up))
  return order


def total_passes(config: AlignConfig) -> int:
  """Returns how often the engine goes over the bitext."""
  return sum(passes for _, _, passes in stages(config))
