"""Matching: which rules apply to which spans of a sentence."""
