"""Dependency parsers, learnt from trees or from tags alone; taggers."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  *("arc_features", "arc_parser", "concave", "dmv", "dmv_kernel", "eisner"),
  *(
    "eisner_kernel",
    "attachment_scores",
    "head_rules",
    "tag_sequences",
    "induction",
  ),
  *(
    "saved_parsers",
    "sibling_kernel",
    "sibling_parser",
    "sibling_posteriors",
    "tagger",
    "text_parsing",
    "tree_forest",
  ),
)
