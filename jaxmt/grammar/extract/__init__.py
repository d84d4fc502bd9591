"""Extraction of synchronous rules from word-aligned text."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "aligned_text",
  "block_pairs",
  "extraction",
  "ghkm",
  "ghkm_choices",
  "hiero",
  "orientations",
  "packed_rules",
  "pair_arrays",
  "phrase_smoothing",
  "phrases",
  "rule_buffer",
  "shards",
  "phrase_significance",
  "sorted_runs",
  "static_features",
  "streaming_features",
)
