r"""Learns part-of-speech taggers from treebanks, tags, and scores tags.

    python launch/tag.py --model=plain|features --train=TREEBANK --output=M
    python launch/tag.py --model=features --tags=40 --train=TREEBANK --output=M
    python launch/tag.py --model=concave --dictionary=TREEBANK2 \
        --train=TREEBANK --output=M
    python launch/tag.py --model=features --start=M --train=TREEBANK --output=M2
    python launch/tag.py --load=M --input=TREEBANK [--evaluate --json] \
        [--output=CONLLU]
    python launch/tag.py --load=M --text=T --output=CONLLU

Hidden Markov models: relative frequencies (plain), or emissions with features
of the word's form, learnt by gradient (features). With --tags=N it finds N tags
from the words alone, and is scored many-to-one. The concave model learns from
words and from the tags that those of --dictionary may have there; its tags are
learnt further, without the dictionary, with --start. T has one tokenised
sentence a line. M is a folder of arrays.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
import json
from collections.abc import Callable

from absl import flags

from jaxmt.errors import InputError
from jaxmt.parse import concave_tagger, saved_parsers, tagger
from jaxmt.report import text_tables
from jaxmt.runtime import progress
from jaxmt.text import files, treebank
from jaxmt.text.treebank import Treebank

_MODEL = flags.DEFINE_enum(
  "model",
  "plain",
  ("plain", "features", "concave"),
  "kind of tagger to learn",
)
_DICTIONARY = flags.DEFINE_string(
  "dictionary", "", "tagged words, for the tags that concave allows them"
)
_LEAST = flags.DEFINE_integer(
  "dictionary_count",
  1,
  "words that it has less often may have any tag",
  lower_bound=0,
)
_START = flags.DEFINE_string(
  "start", "", "folder of the tagger whose tags features learns further"
)
_TRAIN = flags.DEFINE_string("train", "", "treebank to learn from")
_OUTPUT = flags.DEFINE_string(
  "output", "", "folder of the learnt tagger, or tagged text in CoNLL-U"
)
_TAGS = flags.DEFINE_integer(
  "tags", 0, "find this many tags by itself", lower_bound=0
)
_ITERATIONS = flags.DEFINE_integer(
  "iterations", 100, "of L-BFGS, or of EM", lower_bound=0
)
_PENALTY = flags.DEFINE_float(
  "penalty", 0.1, "of squared weights", lower_bound=0.0
)
_SEED = flags.DEFINE_integer(
  "seed", 0, "of the start with --tags", lower_bound=0, upper_bound=2**32 - 1
)
_LOAD = flags.DEFINE_string("load", "", "folder of a tagger")
_INPUT = flags.DEFINE_string("input", "", "treebank to tag")
_TEXT = flags.DEFINE_string("text", "", "text to tag")
_EVALUATE = flags.DEFINE_bool(
  "evaluate", False, "print the accuracy against the tags of --input"
)
_JSON = flags.DEFINE_bool("json", False, "print it as a JSON object")


def main(argv: list[str]) -> None:
  """Learns or tags."""
  del argv
  program.check_paths(
    outputs=("output",),
    inputs=("train", "load", "input", "text", "dictionary", "start"),
  )
  if _TRAIN.value and not _LOAD.value:
    program.required(output=_OUTPUT.value)
    _learn(_TRAIN.value)
  elif _LOAD.value and not _TRAIN.value:
    if bool(_INPUT.value) == bool(_TEXT.value):
      raise InputError("give either --input or --text")
    if not (_EVALUATE.value or _OUTPUT.value):
      raise InputError("--evaluate or --output is required")
    if _EVALUATE.value and _TEXT.value:
      raise InputError("--evaluate needs the tags of --input")
    _tag()
  else:
    raise InputError("give either --train to learn or --load to tag")


def _learn(path: str) -> None:
  model = _MODEL.value
  if _TAGS.value < 0 or (_TAGS.value and model != "features"):
    raise InputError("--tags needs --model=features and a number above 0")
  if bool(_DICTIONARY.value) != (model == "concave"):
    raise InputError("--model=concave needs --dictionary, others have none")
  if _START.value and (model != "features" or _TAGS.value):
    raise InputError("--start needs --model=features without --tags")
  if _ITERATIONS.value < 1 or _LEAST.value < 1:
    raise InputError("--iterations and --dictionary_count must be at least 1")
  bank = treebank.read_treebank(path)
  try:
    found = _learners()[model](bank)
  except ValueError as error:
    raise InputError(str(error), path=path) from error
  saved_parsers.save(_OUTPUT.value, found)


def _learners() -> dict[str, Callable[[Treebank], tagger.Tagger]]:
  """What learns each kind of model."""
  report = lambda step, value: progress.say(f"iteration {step}: {value:.6g}")
  config = tagger.FeatureConfig(
    tags=_TAGS.value,
    iterations=_ITERATIONS.value,
    penalty=_PENALTY.value,
    seed=_SEED.value,
  )
  return {
    "plain": tagger.count,
    "features": lambda bank: tagger.fit(
      bank,
      config,
      start=_load(_START.value) if _START.value else None,
      report=report,
    ),
    "concave": lambda bank: concave_tagger.fit(
      bank,
      treebank.read_treebank(_DICTIONARY.value),
      iterations=_ITERATIONS.value,
      least=_LEAST.value,
      report=report,
    ),
  }


def _load(path: str) -> tagger.Tagger:
  model = saved_parsers.load(path)
  if not isinstance(model, tagger.Tagger):
    raise InputError("a parser, not a tagger", path=path)
  return model


def _tag() -> None:
  model = _load(_LOAD.value)
  if _TEXT.value:
    bank = treebank.from_lines(files.read_lines(_TEXT.value))
  else:
    bank = treebank.read_treebank(_INPUT.value)
  start = progress.clock()
  tags = tagger.tag(model, bank)
  seconds = progress.clock() - start
  if _OUTPUT.value:
    _write(bank, tags, model.tag_names)
  if _EVALUATE.value:
    scores = {
      "sentences": len(bank),
      "words": len(tags),
      "accuracy": tagger.accuracy(model, bank, tags),
      "sentences_per_second": len(bank) / max(seconds, 1e-9),
    }
    print(json.dumps(scores) if _JSON.value else text_tables.text([scores]))


def _write(bank: Treebank, tags, names) -> None:
  treebank.write_treebank(
    _OUTPUT.value, dataclasses.replace(bank, tags=tags, tag_names=names)
  )


if __name__ == "__main__":
  program.run(main)
