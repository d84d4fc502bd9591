"""Phrase-based search: stacks of hypotheses from left to right."""
