"""The systems an experiment can compare: ways to learn θ, or weights.

The first system of an experiment is its baseline. "primary" takes relative
frequencies of extracted rules; all others train θ on the training text with the
baseline's weights, mix it with the primary one, and tune again from these
weights (figure 6). "retuned" only tunes again, and so measures the gain of the
second tuning alone.

"phrase-dependency" parses the lattices of the baseline's phrase-based search:
trees over phrases, with weights of their own.

"max-violation", "early", "skip", "standard" and "local" have the baseline's θ
and learn weights on the training text instead of tuning them.

"topics", "topic-mixtures", "similarity", "scorer" and "recursive" have the
baseline's θ and a trained model each, whose features are tuned with the others
(`stages.neural`).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jaxmt.errors import InputError
from jaxmt.train import theta_config as train_config
from jaxmt.train import theta_methods
from jaxmt.train.theta_config import ThetaConfig
from jaxmt.train.violation import learn_config as learn_config

PRIMARY = "primary"
RETUNED = "retuned"
TOPICS, MIXTURES = "topics", "topic-mixtures"
SIMILARITY, SCORER, RECURSIVE = "similarity", "scorer", "recursive"
NEURAL = (TOPICS, MIXTURES, SIMILARITY, SCORER, RECURSIVE)
PHRASE_DEPENDENCY = "phrase-dependency"
# The methods of the loss-augmented training paper, section IV, by our names.
SYSTEMS: Mapping[str, Mapping[str, Any]] = {
  PRIMARY: {"method": "primary"},
  RETUNED: {"method": "primary"},
  "forced": {"method": "forced"},
  "searn": {"method": "searn"},
  "best-bleu": {"method": "best-bleu"},
  **{
    counts: {"method": "likelihood", "counts": counts}
    for counts in train_config.COUNTS
  },
  **{
    f"augmented-{counts}": {"method": "loss-augmented", "counts": counts}
    for counts in train_config.COUNTS
  },
  PHRASE_DEPENDENCY: {"method": "primary"},
  # Violation-fixing updates; θ is the baseline's.
  **{update: {"method": "primary"} for update in learn_config.UPDATES},
  **{kind: {"method": "primary"} for kind in NEURAL},
}


def learns_weights(name: str) -> bool:
  """Returns whether a system learns its weights on the training text."""
  return name in learn_config.UPDATES


def has_rules_alone(name: str) -> bool:
  """Returns whether a system is its rules, their θ and weights, no more."""
  return name != PHRASE_DEPENDENCY and name not in NEURAL


def check(names: Sequence[str], theta: ThetaConfig) -> None:
  """Raises `InputError` if a system or a setting does not exist."""
  for name in names:
    if name not in SYSTEMS:
      raise InputError(
        f"config key 'systems': '{name}' is none of {', '.join(SYSTEMS)}"
      )
  for place, name in enumerate(names):
    if name in names[:place]:
      raise InputError(f"config key 'systems': duplicate system '{name}'")
  if names and names[0] != PRIMARY:
    raise InputError(
      f"config key 'systems': '{PRIMARY}' comes first, the others start from it"
    )
  try:
    train_config.check(theta)
  except ValueError as error:
    raise InputError(f"config key 'theta': {error}") from error


def trained(name: str) -> bool:
  """Returns whether a system has a θ of its own."""
  return theta_methods.find(SYSTEMS[name]["method"]).needs_text


def theta_config(name: str, shared: ThetaConfig) -> ThetaConfig:
  """Returns the training settings of a system."""
  return dataclasses.replace(shared, **SYSTEMS[name])
