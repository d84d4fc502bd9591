"""A pipeline that trains θ and can be told to die while it does.

    python killable_theta.py WORKDIR [ENTRY]

With ENTRY it sends itself SIGKILL when that is about to be kept, e.g.
`iteration2-shard1`: in the third iteration, after its first shard.
"""

import os
import signal
import sys

from jaxmt.experiment import pipeline
from jaxmt.experiment.stages import grammar, lm, theta
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.experiment.stages.grammar import GrammarStageConfig
from jaxmt.experiment.stages.lm import LmStageConfig
from jaxmt.experiment.stages.system import Tuned
from jaxmt.experiment.stages.theta import ThetaStageConfig
from jaxmt.runtime import checkpoint, parallel
from jaxmt.train.theta_config import ThetaConfig
from tests.reference import tiny_training as tiny

CONFIG = ThetaStageConfig(
  theta=ThetaConfig(
    iterations=4,
    shard=4,
    batch_cells=100,
    train_beam=8,
    train_pop=16,
    k=3,
    margin=2,
  )
)


def corpus(config) -> Corpus:
  del config
  source, target, given = (list(side) for side in zip(*tiny.PAIRS, strict=True))
  references = [[line] for line in target]
  return Corpus(
    train_source=source,
    train_target=target,
    train_links=given,
    tune_references=references,
    test_references=references,
  )


def links(config, *, corpus: Corpus) -> Links:
  del config
  return Links(links=corpus.train_links or [])


def weights(config) -> Tuned:
  return Tuned(weights=config)


def run(workdir):
  with pipeline.open_run(workdir, config={}) as made:
    text = made.stage("corpus", corpus)
    rules = made.stage(
      "grammar",
      grammar.extract,
      config=GrammarStageConfig(kind="hiero"),
      corpus=text,
      links=made.stage("links", links, corpus=text),
    )
    model = made.stage(
      "lm", lm.language_model, config=LmStageConfig(order=2), corpus=text
    )
    tuned = made.stage("tuned", weights, config=tiny.WEIGHTS)
    return made.stage(
      "theta",
      theta.learn,
      config=CONFIG,
      resumable=True,
      corpus=text,
      grammar=rules,
      lm=model,
      tuned=tuned,
    )


def die_at(entry):
  """Makes the next attempt to keep `entry` the process's last."""
  put = checkpoint.Partial.put

  def deadly(self, name, values):
    if name == entry:
      os.kill(os.getpid(), signal.SIGKILL)
    put(self, name, values)

  checkpoint.Partial.put = deadly


if __name__ == "__main__":
  parallel.initialize()
  if len(sys.argv) > 2:
    die_at(sys.argv[2])
  run(sys.argv[1])
