"""Processes that run for long: programs compiled once, a heap that stays small.

Two things let a process that decodes without end grow although nothing is
lost. Compiling leaves some hundred MB of free pieces in the heap. And glibc
raises the size from which an array gets pages of its own, up to 32 MB, so that
large arrays of a few sizes come to lie in the heap, where smaller ones split
the gaps they leave. `return_free` and `bound_heap` do nothing with other C
libraries.
"""

import ctypes
import functools
import threading
from collections.abc import Callable

import jax
import numpy as np

_TRIM_THRESHOLD = -1  # of <malloc.h>
_MMAP_THRESHOLD = -3
_LARGE = 1 << 20  # bytes from which an array gets pages of its own
_RESERVE = 1 << 26  # bytes at the heap's end that wait for their next use


@functools.cache
def _glibc() -> ctypes.CDLL | None:
  try:
    library = ctypes.CDLL(None)
  except OSError:
    return None
  needed = ("malloc_trim", "mallopt", "gnu_get_libc_version")
  return library if all(hasattr(library, name) for name in needed) else None


def return_free() -> None:
  """Gives free pages of the heap back to the system; takes milliseconds."""
  library = _glibc()
  if library is not None:
    library.malloc_trim(0)


def bound_heap() -> None:
  """Keeps large arrays out of the heap from now on, for the whole process."""
  library = _glibc()
  if library is not None:
    library.mallopt(_MMAP_THRESHOLD, _LARGE)
    library.mallopt(_TRIM_THRESHOLD, _RESERVE)


class CompiledOnce:
  """A jitted function that only one thread compiles for each set of shapes.

  Other threads that call it with the same shapes wait for that, instead of
  compiling the same program too. What the compiler has freed goes back to the
  system.
  """

  def __init__(self, function: Callable):
    """Wraps a function of positional trees of arrays that `jax.jit` made."""
    self._function = function
    self._known: set = set()
    self._lock = threading.Lock()

  def __call__(self, *arguments):
    """Calls the function."""
    leaves, structure = jax.tree.flatten(arguments)
    shapes = tuple(
      (np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in leaves
    )
    key = (structure, shapes)
    if key in self._known:
      return self._function(*arguments)
    with self._lock:
      result = self._function(*arguments)
      if key not in self._known:
        self._known.add(key)
        return_free()
    return result
