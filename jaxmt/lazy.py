"""Packages whose modules are loaded when they are first used (PEP 562).

__all__, __getattr__, __dir__ = lazy.modules(__name__, "files", "ragged")
"""

# This is the first that programs load, before they can answer Ctrl-C: typing
# alone would take longer than all the rest.
from __future__ import annotations

import importlib
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
  from collections.abc import Callable
  from typing import Any

  Hooks = tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]


def modules(package: str, *names: str) -> Hooks:
  """Returns `__all__`, `__getattr__` and `__dir__` of a package.

  Args:
    package: the package's `__name__`.
    *names: of its public modules.
  """
  return names_of(package, {name: (f"{package}.{name}", "") for name in names})


def names_of(package: str, places: dict[str, tuple[str, str]]) -> Hooks:
  """Returns the hooks of a package that offers names of several modules.

  Args:
    package: the package's `__name__`.
    places: module of each name, and what it is called there; empty: the module
      itself.
  """

  def get(name: str) -> Any:
    if name not in places:
      raise AttributeError(f"module {package!r} has no attribute {name!r}")
    module, attribute = places[name]
    module_object = importlib.import_module(module)
    value = getattr(module_object, attribute) if attribute else module_object
    setattr(sys.modules[package], name, value)
    return value

  return (
    list(places),
    get,
    lambda: sorted({*vars(sys.modules[package]), *places}),
  )


class CallablePackage(ModuleType):
  """A package that can be called, as the function of its name in `jaxmt.api`.

  `jaxmt.decode` is a package of modules, and `jaxmt.decode(model, lines)` is
  what most people need of it.
  """

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    """Calls the function."""
    api = importlib.import_module("jaxmt.api")
    function = getattr(api, self.__name__.rpartition(".")[2])
    return function(*args, **kwargs)
