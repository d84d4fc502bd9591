"""Methods that learn weights from packed forests."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "forest_data",
  "forest_loss",
  "forest_mert",
  "forest_mira",
  "forest_ngrams",
  "forest_pool",
  "forest_rampion",
)
