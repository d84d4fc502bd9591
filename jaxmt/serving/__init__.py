"""The live page and its JSON interface: batches of requests, one decoder."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__, "application", "batching", "requests", "service"
)
