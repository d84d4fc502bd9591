"""Where compiled host kernels are kept between runs.

numba keeps a compiled kernel until the file it is written in changes. A kernel
that calls one in another file would then go on calling the old one after an
update, and crash. So the folder's name is a hash of all files that hold
kernels: any change starts a new folder.
"""

import hashlib
import os
import pathlib
import shutil
import sys
import tempfile

_KEPT = 4  # folders of other versions that may stay


def configure() -> None:
  """Chooses numba's cache folder, unless NUMBA_CACHE_DIR names one."""
  if os.environ.get("NUMBA_CACHE_DIR"):
    return
  folder = _base() / _version()
  try:
    folder.mkdir(parents=True, exist_ok=True)
    _forget_old(folder)
  except OSError:
    folder = pathlib.Path(tempfile.gettempdir(), f"jaxmt-{os.getuid()}")
    folder = folder / _version()
  os.environ["NUMBA_CACHE_DIR"] = str(folder)
  if "numba" in sys.modules:
    sys.modules["numba"].config.CACHE_DIR = str(folder)


def _base() -> pathlib.Path:
  cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
  return pathlib.Path(cache) / "jaxmt" / "kernels"


def _version() -> str:
  """Hashes the sources that hold kernels."""
  package = pathlib.Path(__file__).parent
  digest = hashlib.sha256(str(package).encode())
  for path in sorted(package.rglob("*.py")):
    source = path.read_bytes()
    if b"njit" in source:
      digest.update(path.name.encode() + source)
  return digest.hexdigest()[:16]


def _forget_old(folder: pathlib.Path) -> None:
  """Removes all but the newest folders of other versions."""
  os.utime(folder)
  others = sorted(
    folder.parent.iterdir(), key=lambda other: other.stat().st_mtime
  )
  for other in others[: -_KEPT - 1]:
    shutil.rmtree(other, ignore_errors=True)
