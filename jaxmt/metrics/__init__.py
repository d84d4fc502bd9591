"""Translation metrics as additive statistics, and significance tests."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "base",
  "bleu",
  "chrf",
  "comparison",
  "edits",
  "evaluation",
  "gtm",
  "linear_bleu",
  "meteor",
  "nist",
  "named_metrics",
  "significance",
  "ter",
  "weighted",
)
