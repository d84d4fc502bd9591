"""Compiled functions that several threads call."""

import threading
from collections.abc import Callable

import jax
import numpy as np

from jaxmt.runtime import memory


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
        memory.return_free()
    return result
