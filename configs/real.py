"""A corpus of your own: file paths instead of the embedded corpus.

    python launch/train.py --config=configs/real.py --workdir=runs/mine \
      --config.data.files.train_source=train.de \
      --config.data.files.train_target=train.en \
      --config.data.files.tune_source=dev.de \
      --config.data.files.tune_references="('dev.en',)" \
      --config.data.files.test_source=test.de \
      --config.data.files.test_references="('test.en',)"

Trees (`train_trees`, `tune_trees`, `test_trees`) and links (`train_links`) are
optional. 29,000 pairs of 12 words on two CPU cores: about a minute.
"""

import ml_collections


def get_config(variant: str = "") -> ml_collections.ConfigDict:
  """Returns the config; it has no variants."""
  if variant:
    raise ValueError("there are no variants")
  return ml_collections.ConfigDict(
    {
      "seed": 0,
      "data": {
        "kind": "files",
        "files": {
          "train_source": "",
          "train_target": "",
          "train_trees": "",
          "train_links": "",
          "tune_source": "",
          "tune_references": (),
          "tune_trees": "",
          "test_source": "",
          "test_references": (),
          "test_trees": "",
          "max_length": 80,
          "max_ratio": 9.0,
        },
      },
      "aligners": ("diagonal", "hmm"),
      "align": {"symmetrize": "grow-diag-final-and", "iterations": 5},
      "lm": {"order": 4},
      "evaluate": {
        "part": "test",
        "metrics": ("bleu", "ter", "chrf"),
        "test": "randomization",
      },
    }
  )
