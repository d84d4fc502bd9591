"""jaxmt: syntactic machine translation and structured learning in JAX."""

__version__ = "0.1.0"
