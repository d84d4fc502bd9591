"""Chooses beam, candidates of a cell and spans for a score and a price of time.

    python launch/tune_search.py --grammar=G --lm=LM.arpa --weights=W \
      --input=dev.src --references=dev.ref --parameters=beam,pop,span \
      --penalty=0.5 --output=FLAGS
    python launch/translate.py --flagfile=FLAGS --grammar=G ...

Downhill simplex on the score of the output less `penalty` points for each
doubling of the time, starting from --beam, --pop and so on. Every
trial is printed; the best one is written as flags. Time is that of the
processor, taken at a second decoding with the same parameters;
--cost=candidates counts scored candidates instead, which gives the same result
on every machine.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
import time

import numpy as np
from absl import flags

from jaxmt.errors import InputError
from jaxmt.experiment.flags import model_flags, search_flags
from jaxmt.text import files, references

flags.adopt_module_key_flags(model_flags)
flags.adopt_module_key_flags(search_flags)
_INPUT = flags.DEFINE_string("input", "", "source text to tune on")
_REFERENCES = flags.DEFINE_list("references", [], "reference files")
_WEIGHTS = flags.DEFINE_string("weights", "", "weights to decode with")
_OUTPUT = flags.DEFINE_string("output", "", "where to write the flags")
_PARAMETERS = flags.DEFINE_list(
  "parameters",
  ["beam", "pop"],
  "some of beam, pop, span, distortion, targets, threshold",
)
_THRESHOLD = flags.DEFINE_float(
  "threshold",
  float("inf"),
  "drop hypotheses so far below the best of a cell",
  lower_bound=0.0,
)
_METRIC = flags.DEFINE_string("metric", "bleu", "what to judge the output by")
_COST = flags.DEFINE_enum(
  "cost", "cpu", ("cpu", "candidates"), "what stands for the time"
)
_PENALTY = flags.DEFINE_float(
  "penalty", 0.5, "points of score that half the time is worth", lower_bound=0
)
_EVALUATIONS = flags.DEFINE_integer(
  "evaluations", 25, "settings to try at most", lower_bound=1
)
_FLAGS = {
  "beam": search_flags.BEAM,
  "pop": search_flags.POP,
  "span": model_flags.SPAN,
  "targets": search_flags.TARGETS,
  "threshold": _THRESHOLD,
  "distortion": model_flags.DISTORTION,
}
_DEFAULTS = {"targets": 20, "distortion": 6}


def _start() -> dict[str, int]:
  """The parameters to tune, with the values of their flags.

  Raises:
    InputError: for an unknown one, or one that the model has not.
  """
  phrases = model_flags.KIND.value == "phrase"
  start = {}
  for name in _PARAMETERS.value:
    if name not in _FLAGS:
      known = ", ".join(_FLAGS)
      raise InputError(f"--parameters: '{name}' is none of: {known}")
    if name == ("span" if phrases else "distortion"):
      kind = model_flags.KIND.value
      raise InputError(f"--parameters: --kind={kind} has no {name}")
    value = _FLAGS[name].value
    value = _DEFAULTS[name] if value is None else value
    if not 1 <= value < 1 << 20:
      raise InputError(f"--{name}={value:g}: tuning starts from 1 or more")
    start[name] = round(value)
  if not start:
    raise InputError("--parameters names nothing to tune")
  return start


class _Decoder:
  """Decodes the tuning set: parameters -> (score in points, cost)."""

  def __init__(self):
    from jaxmt.metrics import encoded_text
    from jaxmt.tune import pool

    self._lines = files.read_lines(_INPUT.value)
    self._trees = None
    if model_flags.TREES.value:
      self._trees = files.read_lines(model_flags.TREES.value)
    self._translator = dataclasses.replace(
      model_flags.load_translator(_WEIGHTS.value, lines=self._lines),
      threads=model_flags.THREADS.value,
      binarize=model_flags.binarizer(),
    )
    lines = references.read_references(
      _REFERENCES.value,
      expected=len(self._lines),
      expected_path=_INPUT.value,
    )
    self._kind = pool.find_metric(_METRIC.value)
    self._measure = encoded_text.make_measure(
      lines, pool.find_metric(_METRIC.value)
    )

  def __call__(self, parameters) -> tuple[float, float]:
    """Returns score and cost."""
    from jaxmt import api

    translator = self._with(parameters)
    decode = lambda: api.decode(
      translator, self._lines, trees=self._trees, forests=False
    )
    texts = list(decode().text)
    cost = self._cells(translator) * translator.pop
    if _COST.value == "cpu":
      # The first time, programs were compiled.
      clock = time.process_time()
      decode()
      cost = time.process_time() - clock
    sums = self._measure(texts, np.arange(len(texts)))
    score = 100 * float(self._kind.corpus_score(sums.sum(0, dtype=np.float64)))
    return (score if self._kind.higher_is_better else -score), float(cost)

  def _with(self, parameters):
    """The translator with these parameters and those of the flags."""
    from jaxmt.decode import translator as translators

    value = lambda name: parameters.get(name, _FLAGS[name].value)
    phrases = model_flags.KIND.value == "phrase"
    limits = {"targets": value("targets")}
    if phrases:
      limits["distortion"] = value("distortion")
    else:
      limits["span"] = value("span")
    beam = value("beam")
    return dataclasses.replace(
      translators.with_limits(self._translator, **limits),
      beam=beam,
      pop=max(value("pop"), beam),
      threshold=value("threshold"),
    )

  def _cells(self, translator) -> int:
    """The number of beams of the whole text."""
    from jaxmt.decode.chart import decoder

    lengths = np.array([len(line.split()) for line in self._lines])
    if translator.model.order is not None:
      return int(lengths.sum())
    return int(decoder.count_cells(lengths, translator.model.limits.span).sum())


def main(argv: list[str]) -> None:
  """Tries settings, writes the best one."""
  del argv
  program.check_paths(
    outputs=("output",),
    inputs=(
      *("grammar", "lm", "input", "trees", "references", "weights"),
      *("reordering", "models"),
    ),
  )
  program.required(
    grammar=model_flags.GRAMMAR.value,
    lm=model_flags.LM.value,
    input=_INPUT.value,
    references=_REFERENCES.value,
    weights=_WEIGHTS.value,
    output=_OUTPUT.value,
  )
  start = _start()
  from jaxmt.report import text_tables
  from jaxmt.tune import search_parameters

  decoder = _Decoder()

  def evaluate(parameters):
    score, cost = decoder(parameters)
    told = " ".join(f"{name}={n}" for name, n in parameters.items())
    print(f"{told}: {_METRIC.value} {score:.3f}, cost {cost:.4g}", flush=True)
    return score, cost

  trials = search_parameters.tune(
    evaluate,
    start,
    search_parameters.SearchParameterConfig(
      penalty=_PENALTY.value, evaluations=_EVALUATIONS.value
    ),
  )
  best = search_parameters.best(trials)
  lines = [f"--{name}={value}" for name, value in best.parameters.items()]
  if "beam" in best.parameters and "pop" not in best.parameters:
    lines.append(
      f"--pop={max(search_flags.POP.value, best.parameters['beam'])}"
    )
  files.write_lines(_OUTPUT.value, lines)
  print(text_tables.text(search_parameters.rows(trials)))
  print(f"best: {' '.join(lines)}")


if __name__ == "__main__":
  program.run(main)
