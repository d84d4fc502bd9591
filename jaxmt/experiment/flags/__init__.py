"""Flags that several programs share, or that one program has many of."""
