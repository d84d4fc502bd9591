"""Devices, processes, checkpoints, progress, caches."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "checkpoint",
  "compiling",
  "crew",
  "peak_memory",
  "parallel",
  "program",
  "progress",
  "code_versions",
  "runner",
)
