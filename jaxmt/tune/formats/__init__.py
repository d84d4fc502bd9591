"""Files to tune on: k-best lists of five toolkits, Moses' tuning data."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "kbest_files",
  "kbest_write",
  "mert_data",
)
