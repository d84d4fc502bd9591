"""Scores translations against references, as sacreBLEU does and beyond.

    python launch/evaluate.py --hypothesis=H --references=R1,R2
        [--metrics=bleu,ter,nist,wer,per,gtm,meteor,chrf] [--baseline=H0]
        [--json]

BLEU, TER and chrF equal sacreBLEU's and carry its signature. Files are plain or
gzipped UTF-8, one sentence per line (lines end at the newline character only),
`-` is standard input. Several hypotheses are compared with one baseline.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import json
import os
from typing import Any

from absl import flags

from jaxmt.errors import InputError
from jaxmt.text import bitext, files

_HYPOTHESIS = flags.DEFINE_list("hypothesis", [], "translations to score")
_REFERENCES = flags.DEFINE_list("references", [], "reference files")
_BASELINE = flags.DEFINE_string("baseline", None, "translations to beat")
_METRICS = flags.DEFINE_list(
  "metrics",
  ["bleu", "ter", "chrf"],
  "of bleu, ter, nist, wer, per, gtm, meteor, chrf, chrf++",
)
_JSON = flags.DEFINE_bool("json", False, "print one JSON object, not a table")
_WIDTH = flags.DEFINE_integer(
  "width", 2, "decimals", lower_bound=0, upper_bound=100
)
_SENTENCES = flags.DEFINE_string(
  "sentence_scores", None, "also write one line of scores per sentence here"
)
_TEST = flags.DEFINE_enum(
  "test",
  "bootstrap",
  ["bootstrap", "randomization"],
  "paired significance test against the baseline",
)
_SAMPLES = flags.DEFINE_integer(
  "samples",
  0,
  "of the test; 0: 1,000 resamplings or 10,000 swaps",
  lower_bound=0,
)
_CONFIDENCE = flags.DEFINE_bool(
  "confidence", False, "bootstrap intervals even without a baseline"
)
_SEED = flags.DEFINE_integer(
  "seed",
  12345,
  "of the test's random draws",
  lower_bound=0,
  upper_bound=2**32 - 1,
)
# Settings of the metrics: each flag is a field of `evaluation.Settings`.
flags.DEFINE_string(
  "tokenize", "13a", "none, 13a, zh, intl, char, ja-mecab, ko-mecab"
)
flags.DEFINE_bool("lowercase", False, "fold case (TER folds it by itself)")
flags.DEFINE_integer("order", 4, "BLEU: longest n-gram", lower_bound=1)
flags.DEFINE_enum(
  "smoothing",
  "exp",
  ["none", "floor", "add-k", "add-k-all", "exp"],
  "BLEU: how orders without a match count",
)
flags.DEFINE_float("smoothing_value", None, "BLEU: floor or k", lower_bound=0.0)
flags.DEFINE_bool("effective_order", False, "BLEU: leave out undefined orders")
flags.DEFINE_enum(
  "reference_length",
  "closest",
  ["closest", "shortest", "average"],
  "BLEU: length of several references",
)
flags.DEFINE_integer("nist_order", 5, "NIST: longest n-gram", lower_bound=1)
flags.DEFINE_float("gtm_exponent", 1.0, "GTM: weight of runs", lower_bound=1.0)
flags.DEFINE_enum(
  "meteor_version",
  "1.5",
  ["1.5", "2007", "2005"],
  "METEOR (exact and stem): parameters of 1.5 (English), of Lavie and Agarwal"
  " (2007), or the first ones",
)
flags.DEFINE_integer("chrf_char_order", 6, "chrF: characters", lower_bound=1)
flags.DEFINE_integer("chrf_word_order", 0, "chrF: words", lower_bound=0)
flags.DEFINE_integer("chrf_beta", 2, "chrF: weight of recall", lower_bound=1)
flags.DEFINE_bool("chrf_whitespace", False, "chrF: count white space")
flags.DEFINE_bool("chrf_epsilon", False, "chrF: epsilon smoothing")
flags.DEFINE_bool("ter_normalized", False, "TER: split off punctuation")
flags.DEFINE_bool("ter_no_punct", False, "TER: leave out punctuation")
flags.DEFINE_bool("ter_asian_support", False, "TER: split CJK characters")
flags.DEFINE_bool("ter_case_sensitive", False, "TER: keep case")


def _settings():
  from jaxmt.metrics import encoded_text, evaluation

  names = evaluation.Settings.__dataclass_fields__
  values: dict[str, Any] = {name: flags.FLAGS[name].value for name in names}
  values["metrics"] = tuple(dict.fromkeys(values["metrics"]))
  for name in values["metrics"]:
    if name not in evaluation.NAMES:
      known = ", ".join(evaluation.NAMES)
      raise InputError(f"--metrics: no metric '{name}'; there are {known}")
  if not values["metrics"]:
    raise InputError("--metrics: none given")
  if values["tokenize"] not in encoded_text.TOKENIZERS:
    known = ", ".join(encoded_text.TOKENIZERS)
    raise InputError(
      f"--tokenize: no tokenizer '{values['tokenize']}'; there are {known}"
    )
  return evaluation.Settings(**values)


def _sentence_lines(scored: list, names: list[str]) -> list[str]:
  """One line per sentence with a score per metric and system."""
  lines = [
    "\t".join(f"{item.label} {name}" for item in scored for name in names)
  ]
  columns = [
    item.sentence_scores(system)
    for item in scored
    for system in range(len(names))
  ]
  for values in zip(*columns, strict=True):
    lines.append("\t".join(f"{value:.{_WIDTH.value}f}" for value in values))
  return lines


def main(argv: list[str]) -> None:
  """Reads, scores, prints."""
  del argv
  program.check_paths(
    outputs=("sentence_scores",),
    inputs=("hypothesis", "references", "baseline"),
  )
  hypotheses, references = _HYPOTHESIS.value, _REFERENCES.value
  program.required(hypothesis=hypotheses, references=references)
  settings = _settings()
  paths = [_BASELINE.value] if _BASELINE.value else []
  paths += hypotheses
  sides = bitext.read_parallel(paths + references)
  if not sides[0]:
    raise InputError("no sentences", path=paths[0])

  from jaxmt.metrics import comparison, evaluation

  try:
    scored = evaluation.evaluate(
      list(zip(*sides[len(paths) :], strict=True)),
      sides[: len(paths)],
      settings,
    )
  except (ImportError, RuntimeError) as error:
    # A tokeniser that needs a package which is not here.
    raise InputError(f"--tokenize={settings.tokenize}: {error}") from error
  plan = None
  if _BASELINE.value or _CONFIDENCE.value:
    plan = comparison.SignificancePlan(
      paired=bool(_BASELINE.value),
      test=_TEST.value,
      samples=_SAMPLES.value,
      seed=_SEED.value,
    )
  names = [os.path.basename(path) for path in paths]
  names = paths if len(set(names)) < len(names) else names
  table = [row for item in scored for row in comparison.rows(item, names, plan)]
  signatures = {
    item.label: evaluation.signature(
      item,
      references_per_sentence=len(references),
      test=plan.signature() if plan else (),
    )
    for item in scored
  }
  if _SENTENCES.value:
    files.write_lines(_SENTENCES.value, _sentence_lines(scored, names))
  if _JSON.value:
    for row in table:
      row["signature"] = signatures[row["metric"]]
    print(json.dumps({"sentences": len(sides[0]), "scores": table}))
    return
  print(*comparison.table_lines(table, decimals=_WIDTH.value), sep="\n")
  print()
  for label, value in signatures.items():
    print(f"{label}|{value}")


if __name__ == "__main__":
  program.run(main)
