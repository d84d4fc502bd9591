"""Data parallelism: one mesh axis, sharded batches, several hosts.

Everything here works on a mesh with the single axis `DATA`. A batch is split
along its first axis, parameters are copied to every device, and only summed
statistics cross devices:

    mesh = parallel.make_mesh(devices=0)
    step = parallel.data_parallel(
      local_step, mesh=mesh, inputs=("copied", "split"), outputs=("split",))
    step(parallel.copied(mesh, parameters), parallel.split(mesh, batch))

On several hosts every process holds the whole host array and hands its part to
its own devices.
"""

import logging
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxmt.errors import InputError
from jaxmt.runtime import progress
from jaxmt.text import kernel_cache

DATA = "data"
_MOST_DEVICES = 4096  # of a processor that counts as several

_SPECS = {"split": PartitionSpec(DATA), "copied": PartitionSpec()}


def initialize(
  *,
  devices: int = 0,
  coordinator: str = "",
  num_processes: int = 1,
  process_id: int = 0,
  cache: str | None = None,
) -> None:
  """Sets JAX up for a program; call before any JAX computation.

  Args:
    devices: how many devices the program will ask for; where the processor is
      the only device, it then counts as that many. 0 leaves it as it is.
    coordinator: `host:port` of process 0; empty for a run in one process.
      Process 0 listens there and nowhere else, unless the variable
      JAX_COORDINATOR_BIND_ADDRESS names another address.
    num_processes: how many processes there are.
    process_id: which of them this is, from 0.
    cache: folder of compiled programs; empty for none. If None, the one that
      JAX_COMPILATION_CACHE_DIR names, or else one in the user's cache. What is
      in it is run, so it is used only if no other user can write there.

  Raises:
    InputError: if an argument is out of range.
  """
  # JAX tells every time which kinds of device a machine does not have.
  logging.getLogger("jax._src.xla_bridge").setLevel(logging.WARNING)
  if devices < 0:
    raise InputError(f"devices cannot be {devices}")
  if devices > _MOST_DEVICES and not coordinator:
    raise InputError(f"devices: {devices} are over {_MOST_DEVICES}")
  if devices > 1 and not coordinator:
    jax.config.update("jax_num_cpu_devices", devices)
  jax.config.update("jax_compilation_cache_dir", _cache_folder(cache))
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
  if not coordinator:
    return
  if not 0 <= process_id < num_processes:
    raise InputError(f"process_id {process_id} of {num_processes} processes")
  if not re.fullmatch(r"[^\s/]+:[0-9]{1,5}", coordinator):
    raise InputError(f"coordinator '{coordinator}' is not host:port")
  bind = os.environ.get("JAX_COORDINATOR_BIND_ADDRESS", coordinator)
  jax.distributed.initialize(
    coordinator_address=coordinator,
    coordinator_bind_address=bind,
    num_processes=num_processes,
    process_id=process_id,
  )


def _cache_folder(chosen: str | None) -> str | None:
  """The folder of compiled programs, None for none."""
  if chosen is None:
    chosen = jax.config.values["jax_compilation_cache_dir"]
  if chosen == "":
    return None
  if chosen is None:
    folder = kernel_cache.cache_folder("compiled")
  else:
    folder = kernel_cache.private_folder(chosen)
    if folder is None:
      progress.say(f"{chosen}: others can write here, no cache of programs")
  return None if folder is None else str(folder)


def make_mesh(devices: int = 0) -> Mesh:
  """Returns the mesh of the first `devices` devices; 0 takes all of them.

  Raises:
    InputError: if there are not that many, or if several processes run and
      not all of their devices are asked for.
  """
  devices_here = jax.devices()
  count = devices or len(devices_here)
  if not 0 < count <= len(devices_here):
    cause = f"{devices} devices wanted, there are {len(devices_here)}"
    raise InputError(cause)
  if jax.process_count() > 1 and count != len(devices_here):
    raise InputError("several processes: every device takes part")
  return jax.make_mesh(
    (count,), (DATA,), axis_types=(AxisType.Auto,), devices=devices_here[:count]
  )


def size(mesh: Mesh) -> int:
  """Returns the number of devices of a mesh."""
  return mesh.shape[DATA]


def split(mesh: Mesh, tree: Any) -> Any:
  """Puts a tree of host arrays on the devices, first axis divided evenly."""
  return _put(NamedSharding(mesh, _SPECS["split"]), tree)


def copied(mesh: Mesh, tree: Any) -> Any:
  """Puts a tree of host arrays, whole, on every device."""
  return _put(NamedSharding(mesh, _SPECS["copied"]), tree)


def _put(sharding: NamedSharding, tree: Any) -> Any:
  if jax.process_count() == 1:
    return jax.device_put(tree, sharding)

  def put(leaf):
    leaf = np.asarray(leaf)
    return jax.make_array_from_callback(
      leaf.shape, sharding, lambda part: leaf[part]
    )

  return jax.tree.map(put, tree)


def to_host(tree: Any) -> Any:
  """Returns whole NumPy arrays, also of what other processes hold."""
  if jax.process_count() == 1:
    return jax.device_get(tree)

  def fetch(leaf):
    if leaf.is_fully_replicated:
      return np.asarray(leaf.addressable_data(0))
    return multihost_utils.process_allgather(leaf, tiled=True)

  return jax.tree.map(fetch, tree)


def sum_over_processes(array: np.ndarray) -> np.ndarray:
  """Returns the sum of every process's int64 array of the same shape.

  Whole numbers, so that the result does not depend on the order; they cross
  as halves, because devices may not have 64-bit integers.
  """
  if array.dtype != np.int64:
    raise ValueError(f"{array.dtype} is not int64")
  if jax.process_count() == 1:
    return array
  halves = np.ascontiguousarray(array).reshape(-1).view(np.int32)
  every = np.asarray(multihost_utils.process_allgather(halves))
  return every.view(np.int64).sum(axis=0).reshape(array.shape)


def data_parallel(
  function: Callable,
  *,
  mesh: Mesh,
  inputs: Sequence[str],
  outputs: Sequence[str],
  donate: Sequence[int] = (),
) -> Callable:
  """Compiles `function` to run on every device with its own part of the data.

  Args:
    function: takes positional trees of arrays and returns a tuple; inside it
      `jax.lax.psum(x, DATA)` sums over devices.
    mesh: from `make_mesh`.
    inputs: for each argument "split" (first axis divided) or "copied".
    outputs: the same for each result; a "copied" result must be equal on all
      devices, as a psum makes it.
    donate: arguments whose memory the results may take over.
  """
  mapped = jax.shard_map(
    function,
    mesh=mesh,
    in_specs=tuple(_SPECS[kind] for kind in inputs),
    out_specs=tuple(_SPECS[kind] for kind in outputs),
    # Loop carries start as constants, which the check of varying axes rejects.
    check_vma=False,
  )
  return jax.jit(mapped, donate_argnums=tuple(donate))
