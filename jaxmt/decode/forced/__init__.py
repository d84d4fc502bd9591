"""Forced decoding: every derivation of a given translation."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "forced",
  "forced_chart",
  "forced_items",
  "forced_kernel",
  "forced_phrases",
  "forced_scores",
  "reachability",
  "survey",
)
