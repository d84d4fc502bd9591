r"""Learns dependency parsers from treebanks, parses, and scores trees.

    python launch/parse.py --model=arc|sibling|dmv|ccv1|ccv2 --train=TREEBANK \
        --output=M
    python launch/parse.py --load=M --input=TREEBANK [--evaluate --json] \
        [--output=CONLLU] [--page=HTML]
    python launch/parse.py --trees=P [--head_rules=chinese] --output=CONLLU
    python launch/parse.py --random --input=TREEBANK --output=CONLLU

The arc-factored parser (arc) learns from trees by any of the structured losses,
the one with pairs of siblings (sibling) by likelihood or margins, online. The
dependency model with
valence (dmv) and the concave models (ccv1, ccv2) learn from tags alone, without
punctuation, from sentences of at most --max_length words. Treebanks are CoNLL-U
or `form TAB tag TAB head TAB label`; parsing looks at words and tags only. M is
a folder of arrays; several sibling parsers (M1,M2,...) parse together, by the
mean of their posteriors. Accuracies are percentages of right heads. --trees
turns constituents (Penn Treebank brackets, one tree a line) into dependencies.
--random draws projective trees, all of them equally likely. --page draws the
first parses as arcs over words, beside the trees of --input.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
import json
from collections.abc import Callable

from absl import flags

from jaxmt.errors import InputError
from jaxmt.inspection import list_views
from jaxmt.parse import (
  arc_parser,
  attachment_scores,
  concave,
  head_rules,
  induction,
  saved_parsers,
  sibling_parser,
  tagger,
  tree_forest,
)
from jaxmt.report import html, page, text_tables
from jaxmt.runtime import progress
from jaxmt.text import files, treebank, trees
from jaxmt.text.ragged import Ragged
from jaxmt.text.treebank import Treebank

_MODEL = flags.DEFINE_enum(
  "model",
  "arc",
  ("arc", "sibling", *induction.MODELS),
  "kind of parser to learn",
)
_TRAIN = flags.DEFINE_string("train", "", "treebank to learn from")
_OUTPUT = flags.DEFINE_string(
  "output", "", "folder of the learnt parser, or parsed treebank in CoNLL-U"
)
_LOAD = flags.DEFINE_string(
  "load", "", "folder of a parser, or of several sibling parsers: M1,M2,.."
)
_INPUT = flags.DEFINE_string("input", "", "treebank to parse")
_TREES = flags.DEFINE_string("trees", "", "constituent trees to convert")
_HEAD_RULES = flags.DEFINE_enum(
  "head_rules", "english", tuple(head_rules.RULES), "heads of constituents"
)
_RANDOM = flags.DEFINE_bool("random", False, "draw trees in place of parsing")
_EVALUATE = flags.DEFINE_bool(
  "evaluate", False, "print accuracies against the heads of --input"
)
_PAGE = flags.DEFINE_string("page", "", "page with pictures of the parses")
_JSON = flags.DEFINE_bool("json", False, "print them as a JSON object")
_MAX_LENGTH = flags.DEFINE_integer(
  "max_length",
  None,
  "learn from sentences of at most this many words (arc: all, others: 10)",
  lower_bound=0,
)
_LOSS = flags.DEFINE_enum(
  "loss", "likelihood", tuple(arc_parser.LOSSES), "loss of arc"
)
_EPOCHS = flags.DEFINE_integer(
  "epochs",
  None,
  "passes of arc (5) or sibling (10) over the treebank",
  lower_bound=1,
)
_RATE = flags.DEFINE_float("rate", 0.05, "step of Adagrad", lower_bound=0.0)
_DECAY = flags.DEFINE_float(
  "decay",
  0.03,
  "share of the weights that a step of size 1 takes away",
  lower_bound=0.0,
)
_BITS = flags.DEFINE_integer(
  "bits",
  None,
  "arc (20) and sibling (22) have 2^bits weights, 10 to 26",
  lower_bound=0,
)
_SIBLING_LOSS = flags.DEFINE_enum(
  "sibling_loss", "likelihood", sibling_parser.LOSSES, "loss of sibling"
)
_STEP = flags.DEFINE_float(
  "step",
  0.05,
  "largest step of an update of sibling by margins",
  lower_bound=0.0,
)
_LEAST_RISK = flags.DEFINE_bool(
  "least_risk", True, "arc: trees with most expected right arcs, not the best"
)
_START = flags.DEFINE_enum(
  "start", "ccv2", induction.STARTS, "what EM of dmv starts from"
)
_ITERATIONS = flags.DEFINE_integer(
  "iterations", 200, "steps of EM of dmv", lower_bound=0
)
_CONCAVE = flags.DEFINE_integer(
  "concave_iterations", 100, "steps of EM of ccv1 and ccv2", lower_bound=0
)
_VERBS = flags.DEFINE_list(
  "verbs", sorted(concave.VERBS), "tags of verbs, which ccv2 takes for roots"
)
_SEED = flags.DEFINE_integer(
  "seed", 0, "of random choices", lower_bound=0, upper_bound=2**32 - 1
)
_PICTURES = 50  # trees of a page


def main(argv: list[str]) -> None:
  """Learns or parses."""
  del argv
  program.check_paths(
    outputs=("output", "page"), inputs=("train", "load", "input", "trees")
  )
  if _TREES.value and not (_TRAIN.value or _LOAD.value or _INPUT.value):
    program.required(output=_OUTPUT.value)
    _convert(_TREES.value, _OUTPUT.value)
  elif _TRAIN.value and not (_LOAD.value or _INPUT.value):
    program.required(output=_OUTPUT.value)
    _learn(_TRAIN.value, _OUTPUT.value)
  elif bool(_LOAD.value) != _RANDOM.value and not _TRAIN.value:
    program.required(input=_INPUT.value)
    if not (_EVALUATE.value or _OUTPUT.value or _PAGE.value):
      raise InputError("--evaluate, --output or --page is required")
    _parse(_LOAD.value, _INPUT.value)
  else:
    raise InputError("give one of --train, --load, --random and --trees")


def _convert(path: str, output: str) -> None:
  parsed = trees.parse_trees(files.read_lines(path), path=path)
  bank, rows = head_rules.dependencies(
    parsed, head_rules.RULES[_HEAD_RULES.value]
  )
  if len(rows) < len(parsed):
    progress.say(f"{len(parsed) - len(rows)} lines without a tree left out")
  treebank.write_treebank(output, bank)


def _learn(path: str, output: str) -> None:
  bank = treebank.read_treebank(path)
  for flag, least in ((_ITERATIONS, 0), (_CONCAVE, 1)):
    if flag.value < least:
      raise InputError(f"--{flag.name} must be at least {least}")
  try:
    learners = {"arc": _learn_arcs, "sibling": _learn_siblings}
    parser = learners.get(_MODEL.value, _learn_tags)(bank)
  except InputError:
    raise
  except ValueError as error:
    raise InputError(str(error), path=path) from error
  saved_parsers.save(output, parser)


def _with_trees(bank: Treebank, bits: int) -> tuple[Treebank, int]:
  """What is learnt from, and the logarithm of the number of weights."""
  bits = bits if _BITS.value is None else _BITS.value
  if not 10 <= bits <= 26:
    raise InputError("--bits must be from 10 to 26")
  if _MAX_LENGTH.value is not None:
    words, _ = treebank.without_punctuation(bank)
    bank = treebank.select(bank, words.lengths <= _MAX_LENGTH.value)
  treebank.check_lengths(bank, _TRAIN.value)
  return bank, bits


def _learn_siblings(bank: Treebank) -> sibling_parser.SiblingParser:
  bank, bits = _with_trees(bank, 22)
  if not _STEP.value > 0:
    raise InputError("--step must be above 0")
  config = sibling_parser.SiblingConfig(
    loss=_SIBLING_LOSS.value,
    epochs=_EPOCHS.value or 10,
    aggressiveness=_STEP.value,
    bits=bits,
    seed=_SEED.value,
  )
  return sibling_parser.train(
    bank,
    config,
    report=lambda epoch, loss: progress.say(f"epoch {epoch}: loss {loss:.4f}"),
  )


def _learn_arcs(bank: Treebank) -> arc_parser.ArcParser:
  bank, bits = _with_trees(bank, 20)
  config = arc_parser.ArcConfig(
    loss=_LOSS.value,
    epochs=_EPOCHS.value or 5,
    rate=_RATE.value,
    decay=_DECAY.value,
    bits=bits,
    seed=_SEED.value,
  )
  return arc_parser.train(
    bank,
    config,
    report=lambda epoch, loss: progress.say(f"epoch {epoch}: loss {loss:.4f}"),
  )


def _learn_tags(bank: Treebank) -> induction.TagParser:
  config = induction.InductionConfig(
    model=_MODEL.value,
    start=_START.value,
    max_length=10 if _MAX_LENGTH.value is None else _MAX_LENGTH.value,
    iterations=_ITERATIONS.value,
    concave_iterations=_CONCAVE.value,
    seed=_SEED.value,
    verbs=frozenset(_VERBS.value),
  )

  def report(iteration, value):
    if iteration % 20 == 0:
      progress.say(f"iteration {iteration}: log likelihood {value:.6g}")

  return induction.learn(bank, config, report=report)[0]


def _load(paths: str) -> Callable[[Treebank], Ragged]:
  """What parses with one parser, or with several sibling parsers."""
  names = paths.split(",")
  parsers = [saved_parsers.load(name) for name in names]
  for name, parser in zip(names, parsers, strict=True):
    if isinstance(parser, tagger.Tagger):
      raise InputError("a tagger, not a parser", path=name)
    if len(parsers) > 1 and not (
      isinstance(parser, sibling_parser.SiblingParser)
      and parser.loss != "margin"
    ):
      raise InputError("only sibling parsers with likelihood parse together")
  parser = parsers[0]
  if len(parsers) > 1:
    return lambda bank: sibling_parser.parse_together(parsers, bank)
  if isinstance(parser, arc_parser.ArcParser):
    return lambda bank: arc_parser.parse(
      parser, bank, least_risk=_LEAST_RISK.value
    )
  if isinstance(parser, sibling_parser.SiblingParser):
    return lambda bank: sibling_parser.parse(parser, bank)
  return lambda bank: induction.parse(parser, bank)


def _parse(model: str, path: str) -> None:
  draw = lambda bank: tree_forest.random_trees(bank.lengths, seed=_SEED.value)
  parse = _load(model) if model else draw
  bank = treebank.read_treebank(path)
  treebank.check_lengths(bank, path)
  if _EVALUATE.value and not bank.has_trees.all():
    raise InputError("--evaluate needs heads", path=path)
  start = progress.clock()
  heads = parse(bank)
  seconds = progress.clock() - start
  if _OUTPUT.value:
    _write(_OUTPUT.value, bank, heads.flat)
  if _PAGE.value:
    files.write_text(_PAGE.value, _page(bank, heads))
  if _EVALUATE.value:
    scores = attachment_scores.attachment(bank, heads)
    scores["sentences_per_second"] = len(bank) / max(seconds, 1e-9)
    print(json.dumps(scores) if _JSON.value else text_tables.text([scores]))


def _page(bank: Treebank, heads: Ragged) -> str:
  """A page with the first parses; arcs that a tree has not are dashed."""
  shown = [
    list_views.dependency_view(bank, row, heads=heads[row])
    for row in range(min(len(bank), _PICTURES))
  ]
  return page.page(
    "Dependency trees",
    [
      page.section(f"Sentence {number}", html.drawn(view))
      for number, view in enumerate(shown, start=1)
    ],
    footer=f"{len(shown)} of {len(bank)} sentences",
    scripts=page.COMPONENTS,
  )


def _write(path: str, bank: Treebank, heads) -> None:
  """Writes the parse; labels are not predicted."""
  labels = ("_",)
  treebank.write_treebank(
    path,
    dataclasses.replace(
      bank, heads=heads, label_names=labels, labels=bank.labels * 0
    ),
  )


if __name__ == "__main__":
  program.run(main)
