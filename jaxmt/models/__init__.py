"""Neural models in flax whose outputs are features or scores.

`fitting` trains any of them, on one device or several.
"""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "fitting",
  "phrase_autoencoder",
  "phrase_pair_training",
  "phrase_recurrence",
  "rule_scorer",
  "recursive_recurrent",
  "topic_mixtures",
  "topic_vectors",
  "vector_files",
  "word_vectors",
)
