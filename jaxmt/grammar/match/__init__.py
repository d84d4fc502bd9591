"""Matching: which rules apply to which spans of a sentence."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "applications",
  "matching",
  "source_trie",
  "tree_kernel",
)
