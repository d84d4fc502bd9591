"""The C library's heap: what is free goes back to the system.

Two things let a process that decodes without end grow although nothing is
lost. Compiling leaves some hundred MB of free pieces in the heap. And glibc
raises the size from which an array gets pages of its own, up to 32 MB, so that
large arrays of a few sizes come to lie in the heap, where smaller ones split
the gaps they leave. Both functions do nothing with other C libraries.
"""

import ctypes
import functools

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
