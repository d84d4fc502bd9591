"""Devices, processes, checkpoints, progress, caches."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "checkpoint",
  "crew",
  "parallel",
  "program",
  "progress",
  "provenance",
  "runner",
)
