"""Runs a whole experiment, from text to an evaluated system; resumable.

    python launch/train.py --config=configs/quickstart.py --workdir=runs/quick
    python launch/train.py --config=configs/quickstart.py:small \
      --config.data.synthetic.noise=0.1 --workdir=runs/noisy

Started again on the same workdir it runs only stages that were unfinished or
have changed. Results in the workdir: results.json, metrics.jsonl, report.html.

Rule probabilities are trained on several devices (--devices=4), on Ray
(--runner=ray), or by several processes that see the same workdir: start the
same command N times with --coordinator=HOST:PORT --num_processes=N and
--process_id=0 to N-1. None of that changes the results.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

from absl import flags
from ml_collections import config_flags

from jaxmt.experiment import config as config_lib
from jaxmt.experiment import experiment, pipeline
from jaxmt.experiment.flags import resource_flags

_CONFIG = config_flags.DEFINE_config_file(
  "config", None, "config file, with :variant if it has variants"
)
_WORKDIR = flags.DEFINE_string("workdir", None, "folder for all results")
_STORE = flags.DEFINE_string(
  "store", None, "folder of artefacts to share between runs"
)
_WAIT = flags.DEFINE_bool(
  "wait", False, "wait while another process uses the workdir"
)
flags.adopt_module_key_flags(resource_flags)


def main(argv: list[str]) -> None:
  """Runs the experiment and prints its table."""
  del argv
  program.required(config=_CONFIG.value)
  workdir = program.given(_WORKDIR)
  config = experiment.freeze(config_lib.of_flag(_CONFIG.value))
  with resource_flags.enter(workdir, workers=config.theta.workers) as options:
    if options is None:  # another process led the run; it is finished
      return
    with pipeline.open_run(
      workdir,
      config=config,
      store=_STORE.value,
      wait=_WAIT.value,
      **options,
    ) as run:
      print(experiment.run(run, config))


if __name__ == "__main__":
  program.run(main)
