"""Where a result comes from: code versions, package versions, commit."""

import ast
import functools
import hashlib
import importlib.metadata
import inspect
import pathlib
import platform
import subprocess
from collections.abc import Callable, Iterator

_PACKAGE = pathlib.Path(__file__).resolve().parent.parent
_RECORDED = ("jax", "jaxlib", "flax", "optax", "numpy", "numba", "sacrebleu")


@functools.cache
def direct_imports(path: pathlib.Path) -> tuple[str, ...]:
  """Returns the `jaxmt` modules that a source file imports, sorted.

  Read from the text, so imports inside functions count too. Importing a module
  counts as importing its packages as well.
  """
  names = set()
  for node in _statements(ast.parse(path.read_bytes())):
    if isinstance(node, ast.Import):
      names.update(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
      names.add(node.module)
      names.update(f"{node.module}.{alias.name}" for alias in node.names)
  with_packages = {
    ".".join(name.split(".")[: depth + 1])
    for name in names
    if name.split(".")[0] == "jaxmt"
    for depth in range(len(name.split(".")))
  }
  return tuple(sorted(n for n in with_packages if module_path(n).is_file()))


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
  """Yields every statement, however deep; expressions have no imports."""
  frontier = [tree]
  while frontier:
    node = frontier.pop()
    yield node
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
      frontier.extend(getattr(node, field, ()))


@functools.cache
def module_path(module: str) -> pathlib.Path:
  """Returns the source file of a `jaxmt` module."""
  path = _PACKAGE.joinpath(*module.split(".")[1:])
  return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@functools.cache
def code_version(path: pathlib.Path) -> str:
  """Hashes a source file and all `jaxmt` modules it imports, however far.

  A change anywhere an artefact's making depends on gives another version, so
  nothing stale is ever reused; comments count too, which is safe.
  """
  reached, frontier = {path}, list(direct_imports(path))
  while frontier:
    file = module_path(frontier.pop())
    if file not in reached:
      reached.add(file)
      frontier.extend(direct_imports(file))
  digest = hashlib.sha256()
  for file in sorted(reached, key=lambda file: file.parts[-3:]):
    digest.update(hashlib.sha256(file.read_bytes()).digest())
  return digest.hexdigest()[:16]


def function_version(function: Callable) -> str:
  """Returns the code version of a module-level function, with its name."""
  path = pathlib.Path(inspect.getfile(function)).resolve()
  return f"{function.__name__}@{code_version(path)}"


def versions() -> dict[str, str]:
  """Returns the versions of Python and of the packages results depend on."""
  numbers = {"python": platform.python_version()}
  for name in _RECORDED:
    numbers[name] = importlib.metadata.version(name)
  return numbers


def commit() -> dict[str, str | bool | None]:
  """Returns the commit of the checkout this code runs from, if it is one."""

  def git(*args: str) -> str | None:
    try:
      done = subprocess.run(
        ["git", *args], cwd=_PACKAGE, capture_output=True, text=True, timeout=20
      )
    except (OSError, subprocess.SubprocessError):
      return None
    return done.stdout.strip() if done.returncode == 0 else None

  status = git("status", "--porcelain")
  return {
    "commit": git("rev-parse", "HEAD"),
    "modified": None if status is None else bool(status),
  }
