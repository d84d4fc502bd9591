"""Runs before any test: eight virtual CPU devices, settled hypothesis."""

import os

# Before JAX starts: the sharding tests need several devices.
os.environ["JAX_NUM_CPU_DEVICES"] = "8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import hypothesis

hypothesis.settings.register_profile(
  "default", deadline=None, derandomize=True, database=None
)
hypothesis.settings.load_profile("default")
