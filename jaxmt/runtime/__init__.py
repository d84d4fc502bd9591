"""Devices, processes, checkpoints, progress, caches."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "checkpoint",
  "crew",
  "memory",
  "peak_memory",
  "parallel",
  "program",
  "progress",
  "provenance",
  "runner",
)
