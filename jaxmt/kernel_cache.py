"""Where compiled host kernels are kept between runs, and until when.

numba keeps a compiled kernel until the file it is written in changes. A kernel
that calls one in another file would then go on calling the old one after an
update, and crash. So `Locator` stamps a kernel with a hash of its own file, of
the files that it imports (whose constants are compiled in) and of all kernel
files that can be reached from there.
"""

import functools
import hashlib
import os
import pathlib
import re
import sys
import tempfile

_PACKAGE = pathlib.Path(__file__).resolve().parent
_IMPORT = re.compile(
  rb"^[ \t]*(?:from[ \t]+(jaxmt[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)"
  rb"|import[ \t]+(jaxmt[\w.]*))",
  re.MULTILINE,
)


def configure() -> None:
  """Chooses numba's cache folder, unless NUMBA_CACHE_DIR names one."""
  if not os.environ.get("NUMBA_CACHE_DIR"):
    folder = _base()
    try:
      folder.mkdir(parents=True, exist_ok=True)
      (folder / ".writable").touch()
    except OSError:
      folder = pathlib.Path(tempfile.gettempdir(), f"jaxmt-{os.getuid()}")
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
  os.environ.setdefault(
    "NUMBA_CACHE_LOCATOR_CLASSES", "jaxmt.kernel_locator.Locator"
  )
  if "numba" in sys.modules:
    config = sys.modules["numba"].config
    config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]
    config.CACHE_LOCATOR_CLASSES = os.environ["NUMBA_CACHE_LOCATOR_CLASSES"]


def _base() -> pathlib.Path:
  cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
  return pathlib.Path(cache) / "jaxmt" / "kernels"


@functools.cache
def _read(path: pathlib.Path) -> tuple[bytes, bool, tuple[pathlib.Path, ...]]:
  """Hash of a file, whether it has kernels, and the files it imports."""
  source = path.read_bytes()
  names = set()
  for module, members, whole in _IMPORT.findall(source):
    if whole:
      names.add(whole.decode())
      continue
    names.add(module.decode())
    for member in re.findall(rb"\w+", members):
      names.add(f"{module.decode()}.{member.decode()}")
  found = {_PACKAGE.joinpath(*name.split(".")[1:]) for name in names}
  files = (place.with_suffix(".py") for place in sorted(found))
  return (
    hashlib.sha256(source).digest(),
    b"njit" in source,
    tuple(file for file in files if file.is_file() and file != path),
  )


@functools.cache
def stamp(path: pathlib.Path) -> str:
  """Returns the version of the kernels in a file of this package."""
  reached, frontier = {path}, list(_read(path)[2])
  relevant = {path, *frontier}
  while frontier:
    file = frontier.pop()
    if file in reached:
      continue
    reached.add(file)
    _, kernels, imports = _read(file)
    if kernels:
      relevant.add(file)
    frontier.extend(imports)
  digest = hashlib.sha256()
  for file in sorted(relevant):
    digest.update(str(file.relative_to(_PACKAGE)).encode() + _read(file)[0])
  return digest.hexdigest()
