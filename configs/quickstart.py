"""The quickstart: the embedded corpus, from text to evaluated systems.

    python launch/train.py --config=configs/quickstart.py --workdir=runs/quick

Variants: `small` (600 training sentences, for tests). Two CPU cores, from an
empty workdir: about 30 seconds.
"""

import ml_collections

_SIZES = {"": (4000, 300, 300), "small": (600, 60, 60)}


def get_config(variant: str = "") -> ml_collections.ConfigDict:
  """Returns the config."""
  if variant not in _SIZES:
    raise ValueError(f"not one of {', '.join(filter(None, _SIZES))}")
  train, tune, test = _SIZES[variant]
  return ml_collections.ConfigDict(
    {
      "seed": 0,
      "data": {
        "kind": "synthetic",
        "synthetic": {
          "train": train,
          "tune": tune,
          "test": test,
          "noise": 0.02,
        },
      },
      "aligners": ("diagonal", "hmm", "given"),
      "align": {"symmetrize": "grow-diag-final-and", "iterations": 5},
      "lm": {"order": 4},
      "evaluate": {
        "part": "test",
        "metrics": ("bleu", "ter", "chrf", "nist", "wer", "per", "gtm"),
        "test": "randomization",
      },
    }
  )
