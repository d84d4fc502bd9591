"""Meshes, sharding, and two processes that work as one."""

import os
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.runtime import parallel
from tests import util


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_sum_over_devices(devices):
  mesh = parallel.make_mesh(devices)
  assert parallel.size(mesh) == devices

  def local(scale, rows):
    own = scale * rows.sum(axis=0)
    return jax.lax.psum(own, parallel.DATA), rows + 1

  step = parallel.data_parallel(
    local, mesh=mesh, inputs=("copied", "split"), outputs=("copied", "split")
  )
  rows = np.arange(48, dtype=np.float32).reshape(16, 3)
  total, more = step(
    parallel.copied(mesh, np.float32(2.0)), parallel.split(mesh, rows)
  )
  np.testing.assert_allclose(parallel.to_host(total), 2 * rows.sum(axis=0))
  np.testing.assert_array_equal(parallel.to_host(more), rows + 1)


def test_split_divides_and_copied_does_not():
  mesh = parallel.make_mesh(4)
  tree = {"a": np.zeros((8, 2)), "b": np.ones(4)}
  parts = parallel.split(mesh, tree)
  assert parts["a"].addressable_shards[0].data.shape == (2, 2)
  assert parts["b"].addressable_shards[0].data.shape == (1,)
  whole = parallel.copied(mesh, tree)
  assert whole["a"].addressable_shards[0].data.shape == (8, 2)


def test_mesh_takes_all_devices_by_default():
  assert parallel.size(parallel.make_mesh()) == jax.device_count()


@pytest.mark.parametrize("devices", [-1, 1000])
def test_mesh_out_of_range(devices):
  with pytest.raises(ValueError, match="devices"):
    parallel.make_mesh(devices)


def test_donated_statistics_accumulate():
  mesh = parallel.make_mesh(2)
  step = parallel.data_parallel(
    lambda total, rows: (total + rows.sum(),),
    mesh=mesh,
    inputs=("split", "split"),
    outputs=("split",),
    donate=(0,),
  )
  total = parallel.split(mesh, np.zeros(2, np.float32))
  for _ in range(3):
    (total,) = step(total, parallel.split(mesh, np.ones(6, np.float32)))
  np.testing.assert_array_equal(parallel.to_host(total), [9, 9])


def test_initialize_rejects_bad_numbers():
  with pytest.raises(ValueError, match="devices"):
    parallel.initialize(devices=-2)
  with pytest.raises(ValueError, match="process_id 3 of 2"):
    parallel.initialize(
      coordinator="localhost:1", num_processes=2, process_id=3
    )


@pytest.mark.parametrize("address", ["localhost", "localhost:", "a b:1", ":1"])
def test_initialize_rejects_what_is_no_address(address):
  with pytest.raises(ValueError, match="is not host:port"):
    parallel.initialize(coordinator=address)


_CACHED = """
import jax, sys
from jaxmt.runtime import parallel
parallel.initialize(cache=sys.argv[1] if sys.argv[1:] else None)
print(jax.config.values["jax_compilation_cache_dir"])
"""


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_programs_compiled_by_others_are_not_run(tmp_path, by):
  for name, mode in (("mine", 0o700), ("shared", 0o777)):
    (tmp_path / name).mkdir()
    (tmp_path / name).chmod(mode)
    path = str(tmp_path / name)
    given = {"JAX_COMPILATION_CACHE_DIR": path} if by == "variable" else {}
    done = subprocess.run(
      [sys.executable, "-c", _CACHED, *([path] if by == "flag" else [])],
      capture_output=True,
      env={**os.environ, "PYTHONPATH": str(util.ROOT), **given},
      text=True,
    )
    assert done.stdout == (f"{path}\n" if name == "mine" else "None\n")
    assert ("others can write" in done.stderr) == (name == "shared")


_LISTENER = """
import sys
from jaxmt.runtime import parallel
parallel.initialize(coordinator=sys.argv[1])
want = f"{int(sys.argv[1].split(':')[1]):04X}"
for table in ("/proc/net/tcp", "/proc/net/tcp6"):
  for line in open(table).readlines()[1:]:
    place, state = line.split()[1], line.split()[3]
    if place.endswith(":" + want) and state == "0A":
      print(place.split(":")[0])
"""


def test_the_coordinator_listens_on_its_own_address_only(tmp_path):
  address = f"localhost:{free_port()}"
  done = subprocess.run(
    [sys.executable, "-c", _LISTENER, address],
    capture_output=True,
    env={**os.environ, "PYTHONPATH": str(util.ROOT)},
    timeout=600,
  )
  assert done.returncode == 0, done.stderr.decode()
  places = set(done.stdout.decode().split())
  loopback = {"0100007F", "00000000000000000000000001000000"}
  loopback.add("0000000000000000FFFF00000100007F")  # IPv4 inside IPv6
  assert places and places <= loopback


_PROGRAM = """
import sys
import jax
import numpy as np
from jaxmt.runtime import parallel
parallel.initialize(coordinator=sys.argv[1], num_processes=2,
                    process_id=int(sys.argv[2]))
mesh = parallel.make_mesh()
step = parallel.data_parallel(
  lambda rows: (jax.lax.psum(rows.sum(), "data"), rows * 2), mesh=mesh,
  inputs=("split",), outputs=("copied", "split"))
total, rows = parallel.to_host(step(parallel.split(mesh, np.arange(8.0))))
print(parallel.size(mesh), float(total), rows.tolist())
"""


def free_port():
  with socket.socket() as free:
    free.bind(("localhost", 0))
    return free.getsockname()[1]


def test_two_processes(tmp_path):
  port = free_port()
  environment = {
    **os.environ,
    "JAX_NUM_CPU_DEVICES": "2",
    "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
    "PYTHONPATH": str(util.ROOT),
  }
  started = [
    subprocess.Popen(
      [sys.executable, "-c", _PROGRAM, f"localhost:{port}", str(number)],
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      env=environment,
    )
    for number in range(2)
  ]
  try:
    for process in started:
      out, err = process.communicate(timeout=600)
      assert process.returncode == 0, err.decode()
      expected = "4 28.0 [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]"
      assert out.decode().splitlines()[-1] == expected
  finally:
    for process in started:
      process.kill()


def test_loops_are_allowed_inside():
  # A carry that starts as a constant and becomes different on each device.
  mesh = parallel.make_mesh(2)

  def local(rows):
    add = lambda carry, row: (carry + row, carry)
    return (jax.lax.scan(add, jnp.zeros(()), rows)[1],)

  step = parallel.data_parallel(
    local, mesh=mesh, inputs=("split",), outputs=("split",)
  )
  (found,) = step(parallel.split(mesh, np.ones(6, np.float32)))
  np.testing.assert_array_equal(found, [0, 1, 2, 0, 1, 2])
