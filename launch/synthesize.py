"""Writes the embedded synthetic Chinese-English treebank to files.

    python launch/synthesize.py --output=DIR [--seed=0] [--train=4000]
        [--tune=300] [--test=300] [--noise=0.02] [--references=3]

Writes train.zh, train.en, train.zh.tree, train.links, and for tune and test
P.zh, P.zh.tree, P.en.0, P.en.1, ... and P.links.0, P.links.1, ...; each file
appears whole or not at all. Prints what is in the corpus.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
import os
from typing import Any

from absl import flags

from jaxmt.corpora import statistics, synthetic
from jaxmt.errors import InputError
from jaxmt.report import text_tables
from jaxmt.text import files

_DEFAULT = synthetic.SyntheticConfig()
_OUTPUT = flags.DEFINE_string("output", None, "folder to write into")
flags.DEFINE_integer(
  "seed", _DEFAULT.seed, "of the corpus", lower_bound=0, upper_bound=2**32 - 1
)
flags.DEFINE_integer("train", _DEFAULT.train, "training pairs", lower_bound=0)
flags.DEFINE_integer("tune", _DEFAULT.tune, "tuning sentences", lower_bound=0)
flags.DEFINE_integer("test", _DEFAULT.test, "test sentences", lower_bound=0)
flags.DEFINE_float(
  "noise",
  _DEFAULT.noise,
  "rate of lost and stray words and moved links in training",
  lower_bound=0.0,
  upper_bound=1.0,
)
flags.DEFINE_integer(
  "references",
  _DEFAULT.references,
  "references of tune and test",
  lower_bound=1,
)
flags.DEFINE_integer(
  "monolingual",
  _DEFAULT.monolingual,
  "further sentences for language models, written as mono.zh and mono.en",
  lower_bound=0,
)
flags.DEFINE_integer(
  "min_length", _DEFAULT.min_length, "source words, least", lower_bound=0
)
flags.DEFINE_integer(
  "max_length", _DEFAULT.max_length, "source words, most", lower_bound=0
)


def _write(folder: str, name: str, split: synthetic.Split) -> None:
  """Writes one split; a single reference has no number in its name."""

  def path(ending: str) -> str:
    return os.path.join(folder, f"{name}.{ending}")

  files.write_lines(path("zh"), split.source)
  files.write_lines(path("zh.tree"), split.trees)
  numbered = name != "train"
  for r, (lines, links) in enumerate(
    zip(split.references, split.links, strict=True)
  ):
    files.write_lines(path(f"en.{r}" if numbered else "en"), lines)
    files.write_lines(path(f"links.{r}" if numbered else "links"), links)


def main(argv: list[str]) -> None:
  """Generates, writes, describes."""
  del argv
  program.required(output=_OUTPUT.value)
  folder = str(_OUTPUT.value)
  values: dict[str, Any] = {
    field.name: flags.FLAGS[field.name].value
    for field in dataclasses.fields(synthetic.SyntheticConfig)
  }
  try:
    corpus = synthetic.generate(synthetic.SyntheticConfig(**values))
  except ValueError as error:
    raise InputError(str(error)) from error
  try:
    os.makedirs(folder, exist_ok=True)
  except OSError as error:
    raise InputError(str(error.strerror), path=folder) from error
  for name in ("train", "tune", "test"):
    _write(folder, name, getattr(corpus, name))
  if values["monolingual"]:
    more = corpus.monolingual
    files.write_lines(os.path.join(folder, "mono.zh"), more.source)
    files.write_lines(os.path.join(folder, "mono.en"), more.references[0])
  print(text_tables.text(statistics.statistics(corpus)))
  print()
  print(text_tables.text(statistics.phenomena(corpus)))


if __name__ == "__main__":
  program.run(main)
