"""Where shards of host work run: in this process or on Ray.

    for result in map_shards(function, shards, runner=Runner(workers=2)): ...

gives `function(shard)` for every shard, in order, whatever the runner. The
function is pure: a shard whose worker dies is simply run again. Shards are
taken from their iterator only a few ahead of the results, so a corpus larger
than memory can flow through.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from jaxmt.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

KINDS = ("threads", "serial", "ray")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Runner:
  """How shards are run.

  Attributes:
    kind: "threads" of this process (for functions that release the global
      lock, as compiled kernels do), "serial", or "ray".
    workers: how many shards are worked on at once.
    address: a running Ray cluster ("auto" to find it); a local one is started
      for the time of the call otherwise.
    retries: how often Ray runs a shard again when its worker has died.
  """

  kind: str = "threads"
  workers: int = 2
  address: str | None = None
  retries: int = 5


def check_runner(runner: Runner) -> None:
  """Raises `ValueError` for an unknown kind or no workers."""
  if runner.kind not in KINDS:
    raise ValueError(f"runner {runner.kind!r} is none of {', '.join(KINDS)}")
  if runner.workers < 1:
    raise ValueError("a runner needs at least 1 worker")


def map_shards(
  function: Callable[[Item], Result],
  shards: Iterable[Item],
  *,
  runner: Runner,
) -> Iterator[Result]:
  """Yields `function(shard)` for each shard, in order.

  Args:
    function: pure; for Ray it must be importable by the workers (a function at
      module level, or a `functools.partial` of one).
    shards: may be a generator; it is read in the calling thread.
    runner: where to run.

  Raises:
    Exception: the first one a shard raised, as it was raised.
  """
  check_runner(runner)
  if runner.kind == "ray":
    yield from _map_ray(function, shards, runner)
  elif runner.kind == "serial" or runner.workers == 1:
    yield from map(function, shards)
  else:
    yield from _map_threads(function, shards, runner.workers)


def _map_threads(function, shards, workers: int):
  with concurrent.futures.ThreadPoolExecutor(workers) as pool:
    waiting: collections.deque = collections.deque()
    try:
      for shard in shards:
        waiting.append(pool.submit(function, shard))
        if len(waiting) > workers:  # one shard stands ready for the next
          yield waiting.popleft().result()
      while waiting:
        yield waiting.popleft().result()
    finally:  # after an error, do not start what has not begun
      for future in waiting:
        future.cancel()


def _map_ray(function, shards, runner: Runner):
  with _ray_session(runner) as ray:
    task = ray.remote(function_caller).options(
      max_retries=runner.retries, num_cpus=1
    )
    handle = ray.put(function)
    waiting: collections.deque = collections.deque()
    for shard in shards:
      waiting.append(task.remote(handle, shard))
      if len(waiting) > 2 * runner.workers:
        yield _ray_result(ray, waiting.popleft())
    while waiting:
      yield _ray_result(ray, waiting.popleft())


def function_caller(function, shard):
  """What a Ray worker runs."""
  return function(shard)


def _ray_result(ray, reference):
  try:
    return ray.get(reference)
  except ray.exceptions.RayTaskError as error:
    raise error.cause if error.cause is not None else error from None


def session(runner: Runner) -> contextlib.AbstractContextManager:
  """Holds what a runner needs over several calls of `map_shards`.

  Without it every call on Ray connects (or starts a local Ray) for itself.
  """
  check_runner(runner)
  if runner.kind == "ray":
    return _ray_session(runner)
  return contextlib.nullcontext()


@contextlib.contextmanager
def _ray_session(runner: Runner) -> Iterator[Any]:
  """Connects to Ray, or starts a local one and stops it afterwards."""
  try:
    import ray  # pyrefly: ignore
    import ray.exceptions  # pyrefly: ignore
  except ImportError as error:
    raise InputError(
      "the runner 'ray' needs the package ray (extra: ray)"
    ) from error
  if ray.is_initialized():
    yield ray
    return
  where: dict[str, Any] = (
    {"num_cpus": runner.workers, "include_dashboard": False}
    if runner.address is None
    else {"address": runner.address}
  )
  ray.init(log_to_driver=False, logging_level=logging.ERROR, **where)
  try:
    yield ray
  finally:
    ray.shutdown()
