r"""Alignment quality of all aligners on hand-aligned pairs, as a table.

    python tools/align_table.py --source=S --target=T \
        --train_gold=PREFIX --test_gold=PREFIX [--systems=hmm,w,hp,...]

Trains the simpler aligners on the bitext with the hand-aligned pairs of both
prefixes (PREFIX.SRC, PREFIX.en, PREFIX.align; their links are not looked at),
the others on the links of --train_gold, and scores the pairs of --test_gold. A
system is the name of a simpler aligner, "neural", or KIND[:METHOD[:PRUNER]] of
ITG, such as hp, hp:mert, w:softmax:tic-tac-toe; "+" after it takes all links
with a posterior above a half.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import json
import time

import numpy as np
from absl import flags

from jaxmt.align import em, evaluation, registry, symmetrize
from jaxmt.align.itg import evidence as evidence_lib
from jaxmt.align.itg import model
from jaxmt.align.neural.aligner import NeuralConfig
from jaxmt.errors import InputError
from jaxmt.models.fitting import FitOptions
from jaxmt.report import tables
from jaxmt.runtime import parallel, progress
from jaxmt.text import bitext, ragged
from jaxmt.text.ragged import Ragged
from jaxmt.train import itg_training, supervised_alignment

_SOURCE = flags.DEFINE_string("source", "", "source side of the bitext")
_TARGET = flags.DEFINE_string("target", "", "target side")
_TRAIN = flags.DEFINE_string("train_gold", "", "prefix of pairs to train on")
_TEST = flags.DEFINE_string("test_gold", "", "prefix of pairs to score")
_SYSTEMS = flags.DEFINE_list(
  "systems",
  ["hmm", "diagonal", "w", "p", "h", "hp", "hp+", "hp:mert"],
  "what to compare",
)
_METHOD = flags.DEFINE_enum(
  "symmetrize",
  "grow-diag-final-and",
  symmetrize.METHODS,
  "of the simpler aligners",
)
_BEAM = flags.DEFINE_integer("beam", 10, "target spans for each source span")
_EPOCHS = flags.DEFINE_integer("epochs", 5, "of the neural aligner's network")
_SEED = flags.DEFINE_integer("seed", 0, "of random starts")
_JSON = flags.DEFINE_bool("json", False, "print the rows as JSON")


def main(argv: list[str]) -> None:
  """Trains all systems and prints their scores."""
  del argv
  program.required(
    source=_SOURCE.value,
    target=_TARGET.value,
    train_gold=_TRAIN.value,
    test_gold=_TEST.value,
  )
  for name in _SYSTEMS.value:
    if name not in (*registry.names(), "neural"):
      _itg_config(name)
  lines = bitext.read_parallel([_SOURCE.value, _TARGET.value])
  test = supervised_alignment.read_gold(_TEST.value)
  text = supervised_alignment.encode(
    test.source + lines[0],
    test.target + lines[1],
    supervised_alignment.read_gold(_TRAIN.value),
  )
  parallel.initialize()
  learnt = evidence_lib.learn(
    text.source,
    text.target,
    source_words=text.source_words,
    target_words=text.target_words,
    symmetrization=_METHOD.value,
  )
  progress.say(f"simpler aligners of {len(text.source):,} pairs learnt")
  gold = itg_training.Gold(
    lines=np.arange(len(test.source)), sure=test.sure, possible=test.possible
  )
  rows = []
  for name in _SYSTEMS.value:
    start = time.process_time()
    links, more = _links(name, text, learnt, gold)
    found = evaluation.evaluate(
      ragged.select(links, gold.lines), gold.sure, gold.possible
    )
    scores = {key: found[key] for key in ("precision", "recall", "f1", "aer")}
    rows.append(
      {
        "system": name,
        **scores,
        "aer_margin": found["aer_margin"],
        **more,
        "cpu_s": round(time.process_time() - start, 1),
      }
    )
    progress.say(json.dumps(rows[-1]))
  print(json.dumps(rows) if _JSON.value else tables.text(rows))


def _itg_config(name: str) -> itg_training.ItgConfig:
  """Reads KIND[:METHOD[:PRUNER]]."""
  parts = name.removesuffix("+").split(":")
  if len(parts) > 3:
    raise InputError(f"--systems: '{name}' has more than three parts")
  kind, method, pruner = [*parts, "", ""][:3]
  return itg_training.ItgConfig(
    beam=_BEAM.value,
    kind=kind,
    method=method or "softmax",
    pruner=pruner or "dpdi",
  )


def _links(name: str, text, learnt, gold) -> tuple[Ragged, dict]:
  """Links of the test pairs by one system; others may have links, too."""
  if name == "hmm":
    return learnt.links, {}
  if name == "neural":
    config = NeuralConfig(
      seed=_SEED.value,
      fit=FitOptions(epochs=_EPOCHS.value, batch=512, rate=0.003),
    )
    return supervised_alignment.align_neural(
      text.source,
      text.target,
      learnt.links,
      config,
      symmetrization=_METHOD.value,
      report=progress.say,
    ), {}
  if name in registry.names():
    found = em.align(text.source, text.target, registry.default_config(name))
    return symmetrize.symmetrize(
      found.links["forward"], found.links["backward"], method=_METHOD.value
    ), {}
  aligner = itg_training.train(
    learnt,
    text.source,
    text.target,
    text.gold,
    _itg_config(name),
    seed=_SEED.value,
    report=progress.say,
  )
  errors = itg_training.pruning_errors(aligner, text.source, text.target, gold)
  decoder = "posterior" if name.endswith("+") else "viterbi"
  links = model.align(
    aligner, text.source, text.target, lines=gold.lines, decoder=decoder
  )
  more = {
    "per": round(errors["per"], 4),
    "f_bound": round(errors["f_bound"], 4),
  }
  return links, more


if __name__ == "__main__":
  program.run(main)
