r"""Links the words of a bitext; one line of Pharaoh links per sentence pair.

    python launch/align.py --source=S --target=T --output=L \
        --model=diagonal --symmetrize=grow-diag-final-and

Learns the model in both directions from the text itself. Lines without words
on one side get an empty line, and so do pairs with a side of over --max_words:
they are left out, and counted on standard error. The result is a function of
the input alone.

With hand-aligned pairs PREFIX.fr, PREFIX.en, PREFIX.align, a discriminative
aligner learns from them, too:

    python launch/align.py --source=S --target=T --output=L \
        --model=itg --train_gold=PREFIX

    python launch/align.py --evaluate=L --gold=A [--json]

compares links with gold links (`i-j` sure, `i?j` possible).
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
import json

import jax
from absl import flags

from jaxmt.align import (
  aligner,
  em,
  gold_report,
  lexical_table,
  named_aligners,
  symmetrize,
  tree_symmetrize,
)
from jaxmt.align.itg import itg_model as itg_model
from jaxmt.align.itg import pruning, word_pieces
from jaxmt.align.neural import neural_hmm
from jaxmt.align.neural.neural_hmm import NeuralConfig
from jaxmt.errors import InputError
from jaxmt.models import vector_files
from jaxmt.models.fitting import FitOptions
from jaxmt.report import matrices, page, text_tables
from jaxmt.runtime import parallel, progress
from jaxmt.runtime import runner as runner_lib
from jaxmt.text import bitext, files, kernels, links, trees, vocabulary
from jaxmt.text.ragged import Ragged
from jaxmt.train import itg_training, supervised_alignment

_SOURCE = flags.DEFINE_string("source", "", "source side, one sentence a line")
_TARGET = flags.DEFINE_string("target", "", "target side")
_OUTPUT = flags.DEFINE_string("output", "", "links; '-' for standard output")
_MODEL = flags.DEFINE_enum(
  "model",
  "diagonal",
  (*named_aligners.names(), "itg", "neural"),
  "alignment model",
)
_SYMMETRIZE = flags.DEFINE_enum(
  "symmetrize",
  "grow-diag-final-and",
  (*symmetrize.METHODS, *tree_symmetrize.METHODS),
  "how to combine the two directions; not for itg, which has one",
)
_TREES = flags.DEFINE_string(
  "trees", "", "parse trees of a side, one a line, for idsg and idsg-diag"
)
_TREES_OF = flags.DEFINE_enum(
  "trees_of", "target", tree_symmetrize.SIDES, "which side --trees are of"
)
_TRAIN_GOLD = flags.DEFINE_string(
  "train_gold",
  "",
  "prefix of hand-aligned pairs: PREFIX.SRC, PREFIX.en, PREFIX.align (itg)",
)
_DICTIONARY = flags.DEFINE_string(
  "dictionary",
  "",
  "source words with translations, a feature of itg: WORD TAB A/B C/...",
)
_TEACHER = flags.DEFINE_enum(
  "teacher",
  "hmm",
  supervised_alignment.TEACHERS,
  "whose links the neural aligner learns from; itg needs --train_gold",
)
_EPOCHS = flags.DEFINE_integer(
  "epochs", 5, "passes of the neural aligner's network", lower_bound=0
)
_WINDOW = flags.DEFINE_integer(
  "window",
  5,
  "words on either side that the neural aligner sees",
  lower_bound=0,
)
_OBJECTIVE = flags.DEFINE_enum(
  "objective",
  "hinge",
  neural_hmm.OBJECTIVES,
  "of the neural aligner's network: the paper's local hinge, or the likelihood"
  " of the teacher's links",
)
_START = flags.DEFINE_float(
  "start",
  0.1,
  "the neural aligner's embeddings begin in plus or minus this",
  lower_bound=0.0,
)
_HIDDEN = flags.DEFINE_list(
  "hidden", ["120", "10"], "units of the neural aligner's hidden layers"
)
_EMBEDDING_EPOCHS = flags.DEFINE_integer(
  "embedding_epochs",
  0,
  "passes that learn embeddings from either side first",
  lower_bound=0,
)
_SOURCE_VECTORS = flags.DEFINE_string(
  "source_vectors", "", "word vectors that the neural aligner begins with"
)
_TARGET_VECTORS = flags.DEFINE_string("target_vectors", "", "likewise")
_FINE_TUNE = flags.DEFINE_bool(
  "fine_tune", False, "whether jumps and network learn together at the end"
)
_KIND = flags.DEFINE_enum(
  "kind",
  "hp",
  itg_model.KINDS,
  "ITG of word pairs (w), with phrase pairs (p), hierarchical pairs (h), both",
)
_BLOCKS = flags.DEFINE_bool(
  "blocks",
  True,
  "ITG may link one or two words with up to four neighbours without a rule",
)
_TRAINING = flags.DEFINE_enum(
  "training", "softmax", itg_training.methods(), "how ITG weights are learnt"
)
_METRIC = flags.DEFINE_enum(
  "training_metric",
  "aer",
  itg_training.METRICS,
  "what --training=mert and the threshold of posteriors optimise",
)
_PRUNER = flags.DEFINE_enum(
  "pruner", "dpdi", pruning.PRUNERS, "which bi-spans ITG parsing looks at"
)
_BEAM = flags.DEFINE_integer(
  "beam", 10, "target spans for each source span in ITG parsing", lower_bound=0
)
_EMD = flags.DEFINE_integer(
  "emd_rounds",
  0,
  "semi-supervised rounds of ITG: counts from its own links, at most",
  lower_bound=0,
)
_RUNNER = flags.DEFINE_enum(
  "runner", "threads", runner_lib.KINDS, "where ITG links shards of the bitext"
)
_WORKERS = flags.DEFINE_integer(
  "workers", 0, "shards at a time; 0: one for each core", lower_bound=0
)
_RAY = flags.DEFINE_string(
  "ray_address", None, "a running Ray cluster; a local one otherwise"
)
_MAX_WORDS = flags.DEFINE_integer(
  "max_words",
  1000,
  "pairs with a longer side are left out: time and memory of a pair grow with"
  " the product of its sides",
  lower_bound=1,
)
_SEED = flags.DEFINE_integer(
  "seed",
  0,
  "of random starts in training",
  lower_bound=0,
  upper_bound=2**32 - 1,
)
_EVALUATE = flags.DEFINE_string("evaluate", "", "links to compare with --gold")
_GOLD = flags.DEFINE_string("gold", "", "gold links: i-j sure, i?j possible")
_JSON = flags.DEFINE_bool("json", False, "print --evaluate as JSON")
_MATRICES = flags.DEFINE_string(
  "matrices",
  "",
  "with --evaluate, --source and --target: a page of alignment matrices",
)
_ITERATIONS = flags.DEFINE_integer(
  "iterations", 5, "passes over the bitext; the last one links", lower_bound=0
)
_WARM_UP = flags.DEFINE_integer(
  "warm_up", 5, "iterations of Model 1 before those of the HMM", lower_bound=0
)
_NULL = flags.DEFINE_float(
  "null_probability",
  None,
  "of a word without a link (diagonal: 0.08, hmm: 0.4)",
  lower_bound=0.0,
  upper_bound=1.0,
)
_ALPHA = flags.DEFINE_float(
  "alpha",
  None,
  "Dirichlet prior on word translations, 0 for none (model1: 0, else 0.01)",
  lower_bound=0.0,
)
_TENSION = flags.DEFINE_float(
  "tension", 4.0, "initial tension of the diagonal model", lower_bound=0.0
)
_OPTIMIZE = flags.DEFINE_bool("optimize_tension", True, "learn the tension")
_GRADIENT = flags.DEFINE_enum(
  "tension_gradient",
  "fast_align",
  aligner.GRADIENTS,
  "the gradient that fast_align computes, or the exact one",
)
_DECODER = flags.DEFINE_enum(
  "decoder",
  "viterbi",
  aligner.DECODERS,
  "the best alignment, or all links above --threshold",
)
_THRESHOLD = flags.DEFINE_float(
  "threshold",
  None,
  "lowest posterior probability of a link (0.5; itg: the best one on"
  " --train_gold)",
  lower_bound=0.0,
)
_LEXICON = flags.DEFINE_string(
  "lexicon",
  "",
  "also write word translation tables PREFIX.f2e (target source probability)"
  " and PREFIX.e2f (source target probability)",
)
_LEXICON_FROM = flags.DEFINE_enum(
  "lexicon_from",
  "links",
  ("links", "model"),
  "relative frequencies of the output links, or the learnt model",
)
_REPORT = flags.DEFINE_bool(
  "report", True, "print the likelihood of every pass on standard error"
)
_DEVICES = flags.DEFINE_integer(
  "devices", 0, "number of devices, 0 for all", lower_bound=0
)
_COORDINATOR = flags.DEFINE_string(
  "coordinator", "", "host:port of process 0 of a run on several hosts"
)
_PROCESSES = flags.DEFINE_integer(
  "num_processes", 1, "processes of that run", lower_bound=1
)
_PROCESS = flags.DEFINE_integer(
  "process_id", 0, "number of this process", lower_bound=0
)


def main(argv: list[str]) -> None:
  """Reads a bitext, aligns it and writes the links."""
  del argv
  program.check_paths(
    outputs=("output", "lexicon", "matrices"),
    inputs=(
      *("source", "target", "trees", "dictionary", "evaluate", "gold"),
      *("source_vectors", "target_vectors", "train_gold"),
    ),
    endings={
      "lexicon": (".f2e", ".e2f"),
      "train_gold": (".en", ".align"),
    },
  )
  if _EVALUATE.value:
    _evaluate()
    return
  program.required(
    source=_SOURCE.value, target=_TARGET.value, output=_OUTPUT.value
  )
  try:
    config = _config()
  except ValueError as error:
    raise InputError(f"--{error}") from error
  source_lines, target_lines = bitext.read_parallel(
    [_SOURCE.value, _TARGET.value]
  )
  parsed = _trees(source_lines, target_lines)
  source_lines, target_lines = _without_long(source_lines, target_lines)
  if _MODEL.value == "itg":
    alignment = _itg_links(source_lines, target_lines, _devices())
    _write(alignment, source_lines, target_lines)
    return
  if _MODEL.value == "neural":
    alignment = _neural_links(source_lines, target_lines)
    _write(alignment, source_lines, target_lines)
    return
  assert config is not None
  source, source_words = _words(source_lines)
  target, target_words = _words(target_lines)
  result, first_process = _align(source, target, config)
  linked = _symmetrized(result.links, parsed)
  if not first_process:
    return
  if _LEXICON.value:
    size = len(source_words)
    if _LEXICON_FROM.value == "links":
      table = lexical_table.from_links(source, target, linked, source_size=size)
    else:
      table = lexical_table.from_alignment(result, source_size=size)
    _write_lexicon(table, source_words, target_words)
  files.write_lines(_OUTPUT.value, links.format_links(linked))


def _without_long(
  source_lines: list[str], target_lines: list[str]
) -> tuple[list[str], list[str]]:
  """Empties pairs of over --max_words, and says how many there are."""
  source, target, rows = bitext.without_long_pairs(
    source_lines, target_lines, _MAX_WORDS.value
  )
  if len(rows):
    progress.say(
      f"{len(rows):,} of {len(source):,} pairs left out: over"
      f" {_MAX_WORDS.value} words (--max_words), first in line {rows[0] + 1}"
    )
  return source, target


def _trees(source_lines: list[str], target_lines: list[str]):
  """Returns the trees of --trees, or None if they are not needed."""
  if _SYMMETRIZE.value not in tree_symmetrize.METHODS[1:]:
    if _TREES.value:
      raise InputError("--trees is for --symmetrize=idsg or idsg-diag")
    return None
  program.required(trees=_TREES.value)
  parsed = trees.parse_trees(files.read_lines(_TREES.value), path=_TREES.value)
  lines = source_lines if _TREES_OF.value == "source" else target_lines
  words = bitext.word_counts(lines)
  bitext.check_line_count(len(parsed), path=_TREES.value, expected=len(words))
  sizes = parsed.words.lengths
  for row, (leaves, count) in enumerate(zip(sizes, words, strict=True)):
    if leaves and leaves != count:
      raise InputError(
        f"{leaves} leaves for {count} words", path=_TREES.value, line=row + 1
      )
  return parsed


def _symmetrized(directions: dict[str, Ragged], parsed) -> Ragged:
  """Combines the two directions as --symmetrize says."""
  method = _SYMMETRIZE.value
  if method in em.DIRECTIONS:
    return directions[method]
  if method in tree_symmetrize.METHODS:
    return tree_symmetrize.symmetrize(
      directions["forward"],
      directions["backward"],
      method=method,
      trees=parsed,
      side=_TREES_OF.value,
    )
  return symmetrize.symmetrize(
    directions["forward"], directions["backward"], method=method
  )


def _itg_links(source_lines: list[str], target_lines: list[str], mesh):
  """Trains an ITG aligner on hand-aligned pairs and returns its links."""
  if not _TRAIN_GOLD.value:
    raise InputError("ITG alignment needs --train_gold")
  say = progress.say if _REPORT.value else lambda line: None
  entries = []
  if _DICTIONARY.value:
    entries = word_pieces.read_dictionary(_DICTIONARY.value)
  return supervised_alignment.align_itg(
    source_lines,
    target_lines,
    supervised_alignment.read_gold(_TRAIN_GOLD.value),
    itg_training.ItgConfig(
      kind=_KIND.value,
      method=_TRAINING.value,
      metric=_METRIC.value,
      pruner=_PRUNER.value,
      beam=_BEAM.value,
      blocks=_BLOCKS.value,
    ),
    dictionary=entries,
    iterations=_ITERATIONS.value,
    rounds=_EMD.value,
    decoder=_DECODER.value,
    threshold=_THRESHOLD.value,
    seed=_SEED.value,
    mesh=mesh,
    runner=_runner(),
    report=say,
    progress=lambda news: say(_summary(news)),
  ).links


def _runner() -> runner_lib.Runner:
  """Where shards are linked."""
  found = runner_lib.Runner(
    kind=_RUNNER.value,
    workers=_WORKERS.value or kernels.available_threads(),
    address=_RAY.value,
  )
  try:
    runner_lib.check_runner(found)
  except ValueError as error:
    raise InputError(f"--workers: {error}") from error
  return found


def _neural_links(source_lines: list[str], target_lines: list[str]) -> Ragged:
  """Trains a neural aligner on a teacher's links and returns its own."""
  try:
    config = NeuralConfig(
      window=_WINDOW.value,
      objective=_OBJECTIVE.value,
      start=_START.value,
      hidden=tuple(int(units) for units in _HIDDEN.value),
      embedding_epochs=_EMBEDDING_EPOCHS.value,
      fine_tune=_FINE_TUNE.value,
      fit=FitOptions(epochs=_EPOCHS.value, batch=512, rate=0.003),
      seed=_SEED.value,
    )
  except ValueError as error:
    raise InputError(f"--{error}") from error
  source, source_words = _words(source_lines)
  target, target_words = _words(target_lines)
  vectors = (
    _vectors(_SOURCE_VECTORS.value, source_words),
    _vectors(_TARGET_VECTORS.value, target_words),
  )
  if _TEACHER.value == "itg":
    mesh = _devices()
    teacher = _itg_links(source_lines, target_lines, mesh)
  else:
    settings = named_aligners.default_config(
      _TEACHER.value, iterations=_ITERATIONS.value
    )
    mesh = _devices()
    taught = em.align(source, target, settings, mesh=mesh)
    teacher = symmetrize.symmetrize(
      taught.links["forward"],
      taught.links["backward"],
      method=_SYMMETRIZE.value,
    )
  return supervised_alignment.align_neural(
    source,
    target,
    teacher,
    config,
    symmetrization=_SYMMETRIZE.value,
    vectors=vectors,
    mesh=mesh if parallel.size(mesh) > 1 else None,
    report=progress.say if _REPORT.value else lambda line: None,
  )


def _vectors(path: str, words: list[str]):
  """Vectors of the words from a file, or None."""
  if not path:
    return None
  return supervised_alignment.vectors_of(words, vector_files.read(path))


def _write(
  alignment: Ragged, source_lines: list[str], target_lines: list[str]
) -> None:
  """Writes links, and word translation tables of them."""
  if _LEXICON.value:
    source, source_words = _words(source_lines)
    target, target_words = _words(target_lines)
    table = lexical_table.from_links(
      source, target, alignment, source_size=len(source_words)
    )
    _write_lexicon(table, source_words, target_words)
  files.write_lines(_OUTPUT.value, links.format_links(alignment))


def _evaluate() -> None:
  """Compares links with gold links and prints the report."""
  program.required(gold=_GOLD.value)
  lengths: dict = {"source_lengths": None, "target_lengths": None}
  texts = None
  if _SOURCE.value and _TARGET.value:
    texts = bitext.read_parallel([_SOURCE.value, _TARGET.value])
    lengths = {
      "source_lengths": bitext.word_counts(texts[0]),
      "target_lengths": bitext.word_counts(texts[1]),
    }
  sure, possible = links.parse_gold(
    files.read_lines(_GOLD.value), path=_GOLD.value, **lengths
  )
  predicted = links.parse_links(
    files.read_lines(_EVALUATE.value), path=_EVALUATE.value, **lengths
  )
  if len(predicted) != len(sure):
    raise InputError(
      f"{len(predicted)} lines, but '{_GOLD.value}' has {len(sure)}",
      path=_EVALUATE.value,
    )
  if not len(sure):
    raise InputError("no sentence pairs", path=_GOLD.value)
  report = gold_report.evaluate(predicted, sure, possible, **lengths)
  if _MATRICES.value:
    if texts is None:
      raise InputError("--matrices needs --source and --target")
    _write_matrices(texts, predicted, sure, possible)
  if _JSON.value:
    print(json.dumps(report))
    return
  print(text_tables.text(gold_report.summary_rows(report)))
  print(text_tables.text(report["types"]))


def _write_matrices(texts, predicted, sure, possible) -> None:
  """Writes a page with a matrix for each sentence pair."""
  pairs = lambda rows, row: [tuple(link) for link in rows[row].tolist()]
  drawn = [
    matrices.alignment_matrix(
      texts[0][row].split(),
      texts[1][row].split(),
      pairs(predicted, row),
      sure=pairs(sure, row),
      possible=pairs(possible, row),
      title=f"{row + 1}",
    )
    for row in range(len(predicted))
  ]
  section = page.section(
    "Alignment matrices",
    page.paragraph(
      "Dots are predicted links, red if wrong; filled cells are gold links,"
      " pale if only possible."
    ),
    *drawn,
  )
  files.write_text(_MATRICES.value, page.page("Word links", [section]))


def _write_lexicon(table, source_words, target_words) -> None:
  """Writes the two files of --lexicon."""
  forward, backward = lexical_table.to_lines(table, source_words, target_words)
  files.write_lines(f"{_LEXICON.value}.f2e", forward)
  files.write_lines(f"{_LEXICON.value}.e2f", backward)


def _config() -> aligner.AlignConfig | None:
  """Returns the settings of the flags; absent flags keep the model's usual.

  None for models that learn from hand-aligned pairs.
  """
  if _MODEL.value in ("itg", "neural"):
    if _SYMMETRIZE.value not in symmetrize.METHODS:
      raise InputError(
        f"--symmetrize={_SYMMETRIZE.value} is not for --model={_MODEL.value}"
      )
    if _LEXICON.value and _LEXICON_FROM.value == "model":
      raise InputError(
        f"--lexicon_from=model is not for --model={_MODEL.value}"
      )
    named_aligners.default_config(
      "hmm", iterations=_ITERATIONS.value, **_given(threshold=_THRESHOLD.value)
    )
    return None
  if _TRAIN_GOLD.value:
    raise InputError("--train_gold is for --model=itg")
  optional = _given(
    null_probability=_NULL.value,
    alpha=_ALPHA.value,
    threshold=_THRESHOLD.value,
  )
  return named_aligners.default_config(
    _MODEL.value,
    iterations=_ITERATIONS.value,
    warm_up=_WARM_UP.value,
    tension=_TENSION.value,
    optimize_tension=_OPTIMIZE.value,
    tension_gradient=_GRADIENT.value,
    decoder=_DECODER.value,
    **optional,
  )


def _given(**values: float | None) -> dict[str, float]:
  """Returns the values that are not None."""
  return {name: value for name, value in values.items() if value is not None}


def _words(lines: list[str]) -> tuple[Ragged, list[str]]:
  """Returns word ids from 1 and the words; id 0 is the NULL word."""
  ids, words = vocabulary.intern(lines)
  return dataclasses.replace(ids, flat=ids.flat + 1), ["NULL", *words]


def _devices():
  """Starts the devices, after the input has been read; returns their mesh."""
  try:
    parallel.initialize(
      devices=_DEVICES.value,
      coordinator=_COORDINATOR.value,
      num_processes=_PROCESSES.value,
      process_id=_PROCESS.value,
    )
    return parallel.make_mesh(_DEVICES.value)
  except ValueError as error:
    raise InputError(f"--{error}") from error


def _align(source: Ragged, target: Ragged, config: aligner.AlignConfig):
  """Returns the alignment, and whether this process writes the output."""
  mesh = _devices()
  directions = em.DIRECTIONS
  from_model = _LEXICON.value and _LEXICON_FROM.value == "model"
  if _SYMMETRIZE.value in directions and not from_model:
    directions = (_SYMMETRIZE.value,)
  first_process = jax.process_index() == 0
  report = lambda news: None
  if _REPORT.value and first_process:
    report = lambda news: progress.say(_summary(news))
    progress.say(
      f"{len(source):,} sentence pairs, {len(source.flat):,} source and"
      f" {len(target.flat):,} target words"
    )
  result = em.align(
    source, target, config, mesh=mesh, directions=directions, report=report
  )
  return result, first_process


def _summary(news) -> str:
  """One line about a pass."""
  parts = []
  for side, value in news.log_likelihood.items():
    part = f"{side} ln p {value:.6g}, perplexity {news.perplexity[side]:.5g}"
    for name, number in news.scalars[side].items():
      part += f", {name} {number:.4g}"
    parts.append(part)
  head = f"{news.model} {news.iteration}/{news.iterations}"
  return f"{head}: {'; '.join(parts)}"


if __name__ == "__main__":
  program.run(main)
