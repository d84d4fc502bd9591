"""What the beam loss changes in one iteration, by beam width and weight.

    python tools/beam_effect.py --config=configs/quickstart.py:study \
      --beams=3,5,10,30 --weights=0.1,1,10 [--config.a.b=v] [--json]

The stages of an experiment up to the tuned baseline, then one iteration of
loss-augmented training for each pair: no second tuning, no evaluation. Every
batch is diagnosed (`jaxmt.train.beam_diagnosis`). k is the beam, k_m half of
it. All pairs run one compiled search. With `--config.tune.rounds=0` the weights
are those that tuning starts from.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
import json

from absl import flags
from ml_collections import config_flags

from jaxmt.errors import InputError
from jaxmt.experiment import config as config_lib
from jaxmt.experiment import experiment
from jaxmt.experiment.stages import (
  align,
  corpus,
  grammar,
  lm,
  theta,
  tune,
)
from jaxmt.report import text_tables
from jaxmt.train import beam_diagnosis, theta_methods

_CONFIG = config_flags.DEFINE_config_file("config", None, "the experiment")
_BEAMS = flags.DEFINE_list("beams", ["3", "10", "30"], "values of k")
_WEIGHTS = flags.DEFINE_list("weights", ["0.1", "1"], "values of α1")
_COUNTS = flags.DEFINE_list(
  "counts", ["viterbi", "forest"], "viterbi, nbest, forest"
)
_JSON = flags.DEFINE_bool("json", False, "a line of JSON for each pair")


def main(argv: list[str]) -> None:
  """Prints a row for each beam, weight and kind of counts."""
  del argv
  settings = config_lib.of_flag(program.given(_CONFIG))
  base = experiment.freeze(settings)
  text = _corpus(base)
  links = align.align(base.align, corpus=text)
  rules = grammar.extract(base.grammar, corpus=text, links=links)
  model = lm.language_model(base.lm, corpus=text)
  tuned = tune.tune(
    tune.TuningConfig(tune=base.tune, search=base.search),
    corpus=text,
    grammar=rules,
    lm=model,
  )
  made, bitext = theta.training_model(
    base.search, corpus=text, grammar=rules, lm=model, weights=tuned.weights
  )
  rows = []
  for counts, beam, weight in _grid():
    config = dataclasses.replace(
      base.theta,
      counts=counts,
      k=beam,
      margin=beam // 2,
      alpha1=weight,
      iterations=1,
      diagnose=1,
    )
    learned = theta_methods.train(made, bitext, config)
    rows.append(_row(counts, beam, weight, learned.history[0]))
    if _JSON.value:
      print(json.dumps({**rows[-1], "record": learned.history[0]}), flush=True)
  if not _JSON.value:
    print(text_tables.text(rows))


def _corpus(base: experiment.ExperimentConfig) -> corpus.Corpus:
  """Returns the text that the config describes."""
  if base.data.kind == "synthetic":
    return corpus.embedded(base.data.synthetic)
  return corpus.from_files(
    base.data.files, **corpus.input_paths(base.data.files)
  )


def _grid() -> list[tuple[str, int, float]]:
  """Returns the triples of the flags.

  Raises:
    InputError: for what is no number.
  """
  try:
    beams = [int(text) for text in _BEAMS.value]
    weights = [float(text) for text in _WEIGHTS.value]
  except ValueError as error:
    raise InputError(f"--beams, --weights: {error}") from error
  return [(c, b, w) for c in _COUNTS.value for b in beams for w in weights]


def _row(counts: str, beam: int, weight: float, record) -> dict[str, str]:
  """Returns a row of the table."""
  ranks = record["plain_ranks"]
  total = max(sum(ranks.values()), 1)
  after = sum(
    number
    for name, number in ranks.items()
    if beam_diagnosis.first_rank(name) > beam
  )
  return {
    "counts": counts,
    "k": str(beam),
    "α1": f"{weight:g}",
    "beam loss": f"{record['beam_loss']:.4g}",
    "changed %": f"{100 * record['beam_changes']:.3g}",
    "first %": f"{100 * ranks.get('1', 0) / total:.1f}",
    "beyond k %": f"{100 * after / total:.2f}",
    "admissible": f"{record['admissible']} of {record['sentences']}",
  }


if __name__ == "__main__":
  program.run(main)
