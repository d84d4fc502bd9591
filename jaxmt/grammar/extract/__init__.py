"""Extraction of synchronous rules from word-aligned text."""
