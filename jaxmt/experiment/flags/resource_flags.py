"""Flags of the resources on which rule probabilities are trained.

    flags.adopt_module_key_flags(resource_flags)

    with resource_flags.enter(workdir, workers=2) as options:
      if options is None:  # another process led the run; it is finished
        return
      with pipeline.open_run(workdir, config=config, **options) as run: ...

Several devices, Ray, or several processes: results do not depend on it.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from absl import flags

from jaxmt.errors import InputError
from jaxmt.experiment import pipeline
from jaxmt.experiment.stages import theta
from jaxmt.experiment.stages.theta import ResourceOptions, ThetaStageConfig
from jaxmt.runtime import crew, parallel
from jaxmt.runtime import runner as runner_lib
from jaxmt.runtime.runner import Runner

_DEVICES = flags.DEFINE_integer(
  "devices", 1, "number of devices that train rules, 0 for all", lower_bound=0
)
_RUNNER = flags.DEFINE_enum(
  "runner", "threads", runner_lib.KINDS, "what trains rules in parallel"
)
_RAY = flags.DEFINE_string(
  "ray_address", None, "address of a running Ray cluster"
)
_COORDINATOR = flags.DEFINE_string(
  "coordinator", "", "host:port of process 0 of a run of several processes"
)
_PROCESSES = flags.DEFINE_integer(
  "num_processes", 1, "processes of that run", lower_bound=1
)
_PROCESS = flags.DEFINE_integer(
  "process_id", 0, "number of this process", lower_bound=0
)


@contextlib.contextmanager
def enter(workdir: str, *, workers: int) -> Iterator[dict[str, Any] | None]:
  """Sets JAX up as the flags say; call before any JAX computation.

  Of several processes the first leads. The others take part in training until
  the leader has finished.

  Args:
    workdir: a folder that all processes see.
    workers: shards worked on at once; Ray reserves a worker for each.

  Yields:
    Arguments for `pipeline.open_run`, or None if this process does not lead.

  Raises:
    InputError: for flags that exclude each other, or missing devices.
  """
  if _COORDINATOR.value and _RUNNER.value == "ray":
    raise InputError("--coordinator cannot be combined with --runner=ray")
  runner = Runner(kind=_RUNNER.value, workers=workers, address=_RAY.value)
  # Ray starts programs. That is unsafe once JAX has started its threads.
  with runner_lib.session(runner):
    tools = {"resources": _set_up()}
    with crew.assemble(workdir) as team:
      if team.helps:
        pipeline.take_part(team, theta.learn, ThetaStageConfig, tools=tools)
        yield None
      else:
        yield {"crew": team, "tools": tools}


def _set_up() -> ResourceOptions:
  """Starts JAX and returns the flags' resources."""
  try:
    parallel.initialize(
      devices=_DEVICES.value,
      coordinator=_COORDINATOR.value,
      num_processes=_PROCESSES.value,
      process_id=_PROCESS.value,
    )
  except ValueError as error:
    raise InputError(f"--{error}") from error
  resources = ResourceOptions(
    runner=_RUNNER.value, ray_address=_RAY.value, devices=_DEVICES.value
  )
  theta.check_resources(resources)
  return resources
