"""jaxmt: syntactic machine translation and structured learning in JAX."""

from jaxmt import kernel_cache as _kernel_cache

__version__ = "0.1.0"

_kernel_cache.configure()
