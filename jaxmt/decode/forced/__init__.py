"""Forced decoding: every derivation of a given translation."""
