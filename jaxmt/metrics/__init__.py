"""Translation metrics as additive statistics, and significance tests."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "approximations",
  "base",
  "bleu",
  "chrf",
  "comparison",
  "edits",
  "evaluation",
  "gtm",
  "nist",
  "registry",
  "significance",
  "ter",
  "weighted",
)
