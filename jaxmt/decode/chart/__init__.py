"""Chart search: beam search and exact search over synchronous grammars."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "accumulators",
  "augmentations",
  "beam_forest",
  "beam_search",
  "chart_layout",
  "cube",
  "decoder",
  "exact",
  "exact_kernel",
  "feature_states",
  "reference_inputs",
  "search",
  "search_report",
)
