"""The flags that say where rule probabilities are trained.

    flags.adopt_module_key_flags(workplace)

    tools = workplace.set_up()
    with crew.assemble(workdir) as team:
      if team.helps:
        workplace.help(team, tools)

Return:
      with pipeline.open_run(workdir, ..., crew=team, tools=tools) as run: ...

Several devices, Ray, or several processes: results do not depend on it.
"""

from collections.abc import Mapping
from typing import Any

from absl import flags

from jaxmt import parallel, pipeline
from jaxmt import runner as runner_lib
from jaxmt.crew import Crew
from jaxmt.errors import InputError
from jaxmt.stages import theta
from jaxmt.stages.theta import ThetaStageConfig, Workplace

_DEVICES = flags.DEFINE_integer(
  "devices", 1, "devices that training of rules is split over, 0 for all"
)
_RUNNER = flags.DEFINE_enum(
  "runner", "threads", runner_lib.KINDS, "where rules are trained"
)
_RAY = flags.DEFINE_string("ray_address", None, "a running Ray cluster")
_COORDINATOR = flags.DEFINE_string(
  "coordinator", "", "host:port of process 0 of a run of several processes"
)
_PROCESSES = flags.DEFINE_integer("num_processes", 1, "processes of that run")
_PROCESS = flags.DEFINE_integer("process_id", 0, "which of them this is")


def set_up() -> Mapping[str, Any]:
  """Sets JAX up as the flags say; call before any JAX computation.

  Returns:
    The tools of `pipeline.open_run`.

  Raises:
    InputError: for flags that do not go together, or devices that are not
      there.
  """
  try:
    parallel.initialize(
      devices=_DEVICES.value,
      coordinator=_COORDINATOR.value,
      num_processes=_PROCESSES.value,
      process_id=_PROCESS.value,
    )
  except ValueError as error:
    raise InputError(f"--{error}") from error
  place = Workplace(
    runner=_RUNNER.value, ray_address=_RAY.value, devices=_DEVICES.value
  )
  theta.check_workplace(place)
  return {"workplace": place}


def help(crew: Crew, tools: Mapping[str, Any]) -> None:
  """Helps the leader of a crew with training until it ends."""
  pipeline.take_part(crew, theta.learn, ThetaStageConfig, tools=tools)
