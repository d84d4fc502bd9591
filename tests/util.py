"""Shared by the tests: real corpora, running our programs, tolerances."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import jax
import pytest

PATIENCE = 1200  # seconds for a program; nothing should take so long
ROOT = pathlib.Path(__file__).resolve().parent.parent


def corpus(name: str) -> pathlib.Path:
  """The folder of a real corpus, or a skip that says why."""
  base = os.environ.get("JAXMT_DATA")
  if not base:
    pytest.skip("JAXMT_DATA is not set: no real corpora")
  path = pathlib.Path(base) / name
  if not path.is_dir():
    pytest.skip(f"JAXMT_DATA has no {name}")
  return path


def fast_folder() -> str | None:
  """Memory that looks like a disk, for tests that write much; None if none."""
  return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def run_program(
  script: str, *args: str, stdin: str | bytes | None = None, **kwargs
) -> subprocess.CompletedProcess:
  """Runs `python <script> args` from the repository's root; text output."""
  if isinstance(stdin, str):
    stdin = stdin.encode()
  done = subprocess.run(
    [sys.executable, str(ROOT / script), *args],
    input=stdin,
    capture_output=True,
    cwd=ROOT,
    timeout=kwargs.pop("timeout", PATIENCE),
    **kwargs,
  )
  return subprocess.CompletedProcess(
    done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
  )


def lowered(function: Callable, *arguments, **static) -> list[str]:
  """Lowers a function for CUDA and TPU, without an accelerator; the programs.

  Args:
    function: jitted or not.
    *arguments: trees of arrays.
    **static: its static arguments.
  """
  program = function
  if not hasattr(function, "trace"):
    program = jax.jit(function, static_argnames=tuple(static))
  traced = program.trace(*arguments, **static)
  return [
    traced.lower(lowering_platforms=(platform,)).as_text()
    for platform in ("cuda", "tpu")
  ]
