"""Stages of experiments: pure functions from artefacts to artefacts.

One module for each kind of stage, so that a change of code redoes only the
stages that could run it (`jaxmt.provenance.code_version`).
"""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "align",
  "corpus",
  "decode",
  "evaluate",
  "gloss",
  "grammar",
  "held_out",
  "inspect",
  "learn",
  "lm",
  "mix_theta",
  "system",
  "theta",
  "tune",
)
