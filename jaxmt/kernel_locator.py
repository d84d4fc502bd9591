"""numba's view of `kernel_cache`; imported by numba when it needs it."""

import pathlib

from numba.core import caching

from jaxmt import kernel_cache


class Locator(caching.UserProvidedCacheLocator):
  """Keeps kernels in numba's cache folder; see `kernel_cache.stamp`."""

  def get_source_stamp(self):
    """Returns the stamp of a file of ours, numba's own for others."""
    path = pathlib.Path(self._py_file).resolve()
    if path.is_relative_to(pathlib.Path(__file__).resolve().parent):
      return kernel_cache.stamp(path).encode()
    return super().get_source_stamp()
