"""Imports point along the data flow, and only few modules touch the world."""

import ast
import pathlib

import pytest

from jaxmt import provenance
from tests import util

PACKAGE = util.ROOT / "jaxmt"

# Every part may import the parts before it on its line of the flow.
ALLOWED = {
  "errors": set(),
  "threads": set(),
  "kernel_cache": set(),
  "kernel_locator": {"kernel_cache"},
  "data": {"errors"},
  "parallel": {"errors"},
  "align": {"errors", "data", "parallel"},
  "lm": {"errors", "data", "parallel"},
  "metrics": {"errors", "data", "threads"},
  "losses": set(),
  "features": {"errors", "data", "grammar"},
  "grammar": {"errors", "data", "align", "lm", "runner"},
  "runner": {"errors"},
  "chart": {
    "errors",
    "data",
    "lm",
    "grammar",
    "features",
    "metrics",
    "parallel",
  },
  "config": {"errors"},
  "provenance": set(),
  "progress": set(),
  "program": {"errors"},
  "checkpoint": {"errors", "data"},
  "crew": {"errors", "data", "parallel"},
  "pipeline": {
    "checkpoint",
    "config",
    "crew",
    "data",
    "errors",
    "progress",
    "provenance",
  },
}
ALLOWED["tune"] = {
  "threads",
  "errors",
  "data",
  "metrics",
  "losses",
  "features",
  "grammar",
  "chart",
  "lm",
  "parallel",
}
ALLOWED["train"] = ALLOWED["tune"] | {"tune", "align", "lm", "runner"}
ALLOWED["models"] = {"errors", "data", "features"}
ALLOWED["report"] = {"errors", "data"}
ALLOWED["stages"] = ALLOWED["train"] | {"train", "progress", "runner"}
ALLOWED["systems"] = {"errors", "train"}
ALLOWED["tuning"] = ALLOWED["tune"] | {"tune", "report", "checkpoint"}
ALLOWED["experiment_report"] = {
  "config",
  "data",
  "pipeline",
  "provenance",
  "report",
}
ALLOWED["workplace"] = {
  "crew",
  "errors",
  "parallel",
  "pipeline",
  "runner",
  "stages",
}
ALLOWED["study"] = {"errors", "config", "report"}

# Modules that may open files, run programs or read the clock.
IMPURE = {
  "data/array_folder.py",
  "data/files.py",
  "threads.py",
  "kernel_cache.py",
  "kernel_locator.py",
  "checkpoint.py",
  "crew.py",
  "pipeline.py",
  "progress.py",
  "program.py",
  "provenance.py",
  "config.py",
  "study.py",
  "experiment.py",
  "runner.py",
  "parallel.py",
  "tuning.py",
}
WORLD = {"os", "pathlib", "shutil", "subprocess", "tempfile", "time"}


def sources():
  return sorted(PACKAGE.rglob("*.py"))


def part(path: pathlib.Path) -> str:
  return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize(
  "path", sources(), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_point_along_the_flow(path):
  own = part(path)
  if own in ("__init__", "experiment"):
    return
  assert own in ALLOWED, f"say in this test what '{own}' may import"
  for module in provenance.direct_imports(path):
    names = module.split(".")
    if len(names) > 1 and names[1] != own:
      assert names[1] in ALLOWED[own], f"{own} imports {module}"


@pytest.mark.parametrize(
  "path", sources(), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_only_few_modules_touch_the_world(path):
  name = str(path.relative_to(PACKAGE))
  if name in IMPURE:
    return
  for node in ast.walk(ast.parse(path.read_bytes())):
    if isinstance(node, ast.Import):
      touched = {a.name.split(".")[0] for a in node.names} & WORLD
      assert not touched, f"{name} imports {touched}"
    elif isinstance(node, ast.ImportFrom):
      assert (node.module or "").split(".")[0] not in WORLD
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
      assert node.func.id not in ("open", "eval", "exec"), name


def test_nothing_unpickles():
  for path in [*sources(), *(util.ROOT / "launch").glob("*.py")]:
    for node in ast.walk(ast.parse(path.read_bytes())):
      if isinstance(node, ast.Import):
        assert "pickle" not in {alias.name for alias in node.names}, path
      elif isinstance(node, ast.ImportFrom):
        assert node.module != "pickle", path


def test_the_import_reader_sees_imports_inside_functions(tmp_path):
  file = tmp_path / "m.py"
  file.write_text("def f():\n  from jaxmt.data import files\n  return files\n")
  found = provenance.direct_imports(file)
  assert "jaxmt.data.files" in found and "jaxmt.data" in found


def test_code_version_follows_what_is_imported(tmp_path):
  plain, importing = tmp_path / "a.py", tmp_path / "b.py"
  plain.write_text("x = 1\n")
  importing.write_text("from jaxmt.data import files\nx = 1\n")
  assert provenance.code_version(plain) != provenance.code_version(importing)
