"""Synchronous grammars: extraction, estimation, matching, formats."""
