"""Experiments: configs, stages, pipelines, studies."""
