"""Flags that several programs share, or that one program has many of."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "list_flags",
  "method_flags",
  "model_flags",
  "resource_flags",
  "search_flags",
  "tree_flags",
)
