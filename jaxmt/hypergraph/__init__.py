"""Forests and passes over them: inside-outside, k-best, pruning."""
