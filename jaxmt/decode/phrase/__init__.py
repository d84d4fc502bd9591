"""Phrase-based search: stacks of hypotheses from left to right."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "chains",
  "device_search",
  "phrase_decoder",
  "markup",
  "phrase_chart",
  "phrase_model",
  "stack_beams",
  "stack_features",
  "stack_forest",
  "stack_kernel",
  "stack_search",
)
