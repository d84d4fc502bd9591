"""Looking inside: derivations, charts and lists as views."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "chart_views",
  "derivation_views",
  "list_views",
  "phrase_views",
  "search_statistics",
  "searched",
  "training_evidence",
)
