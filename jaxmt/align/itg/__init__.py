"""ITG word alignment: forests of bi-spans, rules, pruning, features."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "bispans",
  "evidence",
  "gold_spans",
  "itg_model",
  "link_violations",
  "parse",
  "pruning",
  "rules",
  "terminals",
)
