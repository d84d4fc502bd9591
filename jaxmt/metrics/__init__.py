"""Translation metrics as additive statistics, and significance tests."""
