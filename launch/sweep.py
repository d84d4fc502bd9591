"""Runs an ablation study: every entry times every seed; resumable.

    python launch/sweep.py --study=configs/ablations/noise.py --workdir=runs/n
    python launch/sweep.py ... --dry_run          # lists the runs
    python launch/sweep.py ... --shard=0/4        # a quarter of them
    python launch/sweep.py ... --entries=a,b --seeds=0     # some of them
    python launch/sweep.py ... --config=configs/real.py \
      --config.data.files.train_source=train.de ...   # on a corpus of your own

--config, with changes to it, takes the place of the study's own base config.
Runs share one artefact store, so stages that two entries have in common run
once; with --store, studies can share one too.
Finished runs are skipped, unless their config, an input file or the code has
changed since. Afterwards: python tools/table.py runs/n

Each run can use several devices, Ray, or several processes, as launch/train.py
does; see there.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import json
import pathlib

from absl import flags
from ml_collections import config_flags

from jaxmt.errors import InputError
from jaxmt.experiment import config as config_lib
from jaxmt.experiment import experiment, pipeline, study
from jaxmt.experiment.flags import resource_flags
from jaxmt.runtime import progress
from jaxmt.text import files

_STUDY = flags.DEFINE_string("study", None, "the study file")
_WORKDIR = flags.DEFINE_string("workdir", None, "folder for all its runs")
_STORE = flags.DEFINE_string(
  "store", None, "folder of artefacts to share between studies"
)
_DRY_RUN = flags.DEFINE_bool("dry_run", False, "only list the runs")
_CONFIG = config_flags.DEFINE_config_file(
  "config", None, "base config instead of the study's own"
)
_SHARD = flags.DEFINE_string(
  "shard", "0/1", "i/n: every n-th run, starting with run i"
)
_ENTRIES = flags.DEFINE_list("entries", [], "only these entries")
_SEEDS = flags.DEFINE_list("seeds", [], "only these seeds of the study")
flags.adopt_module_key_flags(resource_flags)


def main(argv: list[str]) -> None:
  """Runs the unfinished trials of the study."""
  del argv
  plan = study.load(program.given(_STUDY))
  workdir = pathlib.Path(program.given(_WORKDIR))
  own = None if _CONFIG.value is None else config_lib.of_flag(_CONFIG.value)
  trials = study.trials(plan, own)
  chosen = study.part(trials, entries=_ENTRIES.value, seeds=_SEEDS.value)
  frozen, versions = _freeze(trials, wanted={t.folder for t in chosen})
  chosen = study.shard(chosen, _SHARD.value)
  configs = [frozen[trial.folder] for trial in chosen]
  if _DRY_RUN.value:
    for name in (trial.folder for trial in chosen):
      done = study.finished(workdir / name, versions[name])
      print(f"{name}\t{'done' if done else 'to run'}")
    return
  workers = max((config.theta.workers for config in configs), default=1)
  with resource_flags.enter(str(workdir), workers=workers) as options:
    if options is None:  # another process led the run; it is finished
      return
    workdir.mkdir(parents=True, exist_ok=True)
    base = None
    if _CONFIG.value is not None:
      base = config_flags.get_config_filename(flags.FLAGS["config"])
    about = study.description(plan, base=base, versions=versions)
    files.write_text(str(workdir / "study.json"), json.dumps(about, indent=1))
    for number, (trial, config) in enumerate(zip(chosen, configs, strict=True)):
      label = f"({number + 1}/{len(chosen)}) {trial.folder}"
      version = versions[trial.folder]
      if study.finished(workdir / trial.folder, version):
        progress.say(f"{label}: already done")
        continue
      progress.say(f"{label}: running")
      _run(workdir, trial.folder, config, version=version, **options)
  print(f"{len(chosen)} runs done; python tools/table.py {workdir}")


def _freeze(
  trials: list[study.Trial], *, wanted: set[str]
) -> tuple[dict[str, experiment.ExperimentConfig], dict[str, str]]:
  """Returns configs and versions by folder.

  Bad configs are an error for the `wanted` folders, and left out of others.
  """
  frozen, versions = {}, {}
  for trial in trials:
    try:
      frozen[trial.folder] = experiment.freeze(trial.config)
      versions[trial.folder] = experiment.version(frozen[trial.folder])
    except InputError as error:
      if trial.folder in wanted:
        raise InputError(
          f"run {trial.folder}: {error} (--entries chooses others)"
        ) from error
  return frozen, versions


def _run(workdir: pathlib.Path, name: str, config, **options) -> None:
  try:
    with pipeline.open_run(
      str(workdir / name),
      config=config,
      store=_STORE.value or str(workdir / "artefacts"),
      **options,
    ) as run:
      experiment.run(run, config)
  except InputError as error:
    raise InputError(f"run {name}: {error}") from error


if __name__ == "__main__":
  program.run(main)
