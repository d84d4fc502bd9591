"""Synchronous grammars: extraction, estimation, matching, formats."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "estimate",
  "extract",
  "filter",
  "formats",
  "lexical",
  "match",
  "native",
  "provenance",
  "table",
)
