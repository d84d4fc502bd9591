"""A finished run of launch/train.py that takes seconds, for other tests."""

import pathlib

from tests import util

FLAGS = (
  "--config=configs/quickstart.py",
  "--config.data.synthetic.train=120",
  "--config.data.synthetic.tune=20",
  "--config.data.synthetic.test=20",
  "--config.data.synthetic.max_length=12",
  "--config.align.model=given",
  "--config.grammar.hiero.max_words=3",
  "--config.grammar.trees.max_size=2",
  "--config.search.beam=8",
  "--config.search.pop=30",
  "--config.search.span=6",
  "--config.tune.rounds=1",
  "--config.tune.nbest=20",
  "--config.theta.iterations=1",
  "--config.theta.train_beam=20",
  "--config.theta.train_pop=40",
  "--config.theta.k=8",
  "--config.theta.margin=3",
)


def make(workdir: pathlib.Path, *systems: str) -> pathlib.Path:
  """Runs the experiment with some systems; returns the workdir."""
  done = util.run_program(
    "launch/train.py",
    *FLAGS,
    f"--config.systems={systems!r}",
    f"--workdir={workdir}",
  )
  assert done.returncode == 0, done.stderr
  return workdir


def artefact(workdir: pathlib.Path, stage: str, name: str) -> list[str]:
  """The lines of a file of a stage."""
  return file(workdir, stage, name).read_text().splitlines()


def file(workdir: pathlib.Path, stage: str, name: str) -> pathlib.Path:
  """A file of a stage."""
  (found,) = workdir.glob(f"artefacts/{stage}-*/{name}")
  return found
