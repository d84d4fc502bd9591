"""Devices, processes, checkpoints, progress, caches."""
