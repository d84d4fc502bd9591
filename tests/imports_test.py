"""Imports point along the data flow, and only few modules touch the world."""

import ast
import pathlib
import re

import pytest

from jaxmt.runtime import code_versions
from tests import util

PACKAGE = util.ROOT / "jaxmt"

# Every part may import the parts named here, along the data flow.
TEXT = {"errors", "lazy", "text"}
ALLOWED = {
  "errors": set(),
  "lazy": set(),
  "text": {"errors", "lazy"},
  "runtime": TEXT,
  "corpora": TEXT,
  "align": TEXT | {"runtime", "hypergraph", "metrics", "models"},
  "lm": TEXT | {"runtime"},
  "metrics": TEXT,
  "models": TEXT | {"runtime"},
  "losses": TEXT | {"hypergraph"},
  "grammar": TEXT | {"align", "lm", "runtime"},
  "features": TEXT | {"grammar", "lm", "models"},
  "hypergraph": TEXT,
  "parse": TEXT | {"hypergraph", "losses", "runtime"},
  "report": TEXT,
}
ALLOWED["decode"] = TEXT | {
  "lm",
  "grammar",
  "features",
  "metrics",
  "hypergraph",
  "runtime",
}
ALLOWED["tune"] = ALLOWED["decode"] | {"decode", "losses"}
ALLOWED["train"] = ALLOWED["tune"] | {"tune", "align", "models"}
ALLOWED["inspection"] = ALLOWED["train"] | {"train", "report"}
ALLOWED["experiment"] = ALLOWED["inspection"] | {
  *("inspection", "corpora", "parse")
}
ALLOWED["results"] = ALLOWED["inspection"] | {"inspection"}
ALLOWED["api"] = ALLOWED["experiment"] | {"experiment", "results"}
ALLOWED["serving"] = ALLOWED["api"] | {"api"}

# Modules outside `runtime` that may open files, run programs, read the clock.
IMPURE = {
  "text/array_folder.py",
  "text/files.py",
  "text/kernel_cache.py",
  "text/kernels.py",
  "experiment/pipeline.py",
  "experiment/config.py",
  "experiment/study.py",
  "experiment/experiment.py",
  "experiment/finished_run.py",
  "experiment/saved_systems.py",
  "experiment/tuning_run.py",
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
  if own == "__init__":
    return
  assert own in ALLOWED, f"say in this test what '{own}' may import"
  for module in code_versions.direct_imports(path):
    names = module.split(".")
    if len(names) > 1 and names[1] != own:
      assert names[1] in ALLOWED[own], f"{own} imports {module}"


@pytest.mark.parametrize(
  "path", sources(), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_only_few_modules_touch_the_world(path):
  name = str(path.relative_to(PACKAGE))
  if name in IMPURE or part(path) == "runtime":
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
  file.write_text("def f():\n  from jaxmt.text import files\n  return files\n")
  found = code_versions.direct_imports(file)
  assert "jaxmt.text.files" in found and "jaxmt.text" in found


def test_code_version_follows_what_is_imported(tmp_path):
  plain, importing = tmp_path / "a.py", tmp_path / "b.py"
  plain.write_text("x = 1\n")
  importing.write_text("from jaxmt.text import files\nx = 1\n")
  assert code_versions.code_version(plain) != code_versions.code_version(
    importing
  )


PAGES = (
  "README.md",
  "jaxmt/README.md",
  "configs/README.md",
  "launch/README.md",
  "tools/BENCHMARKS.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_modules_that_exist(page):
  modules = [
    str(path.relative_to(util.ROOT))
    for folder in ("jaxmt", "launch", "configs", "tools", "tests")
    for path in (util.ROOT / folder).rglob("*.py")
  ]
  named = set(
    re.findall(r"`([\w/.]+\.py)[` :]", (util.ROOT / page).read_text())
  )
  assert named
  missing = [
    name
    for name in named
    if not any(f"/{path}".endswith(f"/{name}") for path in modules)
  ]
  assert not missing
