"""What all host kernels share: the compiler, and how many threads to use.

    from jaxmt.text.kernels import njit

    @njit
    def total(values): ...

Kernels release the interpreter lock, so plain Python threads keep all cores
busy, and are compiled once per version of their code: see `kernel_cache`.
"""

import os
from typing import Any

import numba

from jaxmt.text import kernel_cache


def njit(function: Any = None, **options: Any) -> Any:
  """Compiles a function with numba; the machine code is kept between runs.

  Args:
    function: the function, if used as a plain decorator.
    **options: of `numba.njit`.
  """
  if function is None:
    return lambda function: njit(function, **options)
  dispatcher = numba.njit(function, nogil=True, **options)
  if hasattr(dispatcher, "_cache"):  # not when NUMBA_DISABLE_JIT is set
    dispatcher._cache = kernel_cache.KernelCache(function)
  return dispatcher


def available_threads() -> int:
  """Returns how many cores this process may use."""
  return len(os.sched_getaffinity(0))
