"""Experiments: configs, stages, pipelines, studies."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "config",
  "experiment",
  "finished_run",
  "pipeline",
  "saved_systems",
  "study",
  "systems",
  "tuning_run",
)
