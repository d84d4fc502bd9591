"""The embedded corpus: a synthetic Chinese-English treebank."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "statistics",
  "synthetic",
)
