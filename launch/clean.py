r"""Scores the sentence pairs of a bitext by how well they fit the rest of it.

    python launch/clean.py --source=S --target=T --links=L --output=SCORES \
        [--keep=0.95 --filtered=PREFIX] [--normalize=words]

Writes one number a line: the weight of each sentence pair, 1 on average, from a
random walk over sentence pairs and the phrase pairs they share. Pairs that are
no translations share few phrase pairs with others and get low weights; so do
correct but free ones: weight them (extract.py --pair_weights=SCORES) rather
than drop them. --filtered writes PREFIX.source, PREFIX.target and PREFIX.links
of the best pairs, in their order.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import time

import numpy as np
from absl import flags

from jaxmt.errors import InputError
from jaxmt.grammar import pair_quality
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.extract import aligned_text
from jaxmt.runtime import progress
from jaxmt.runtime import runner as runner_lib
from jaxmt.text import files

FLAGS = flags.FLAGS
_DEFAULTS = pair_quality.WalkOptions()
flags.DEFINE_string("source", None, "source side, one sentence a line")
flags.DEFINE_string("target", None, "target side")
flags.DEFINE_string("links", None, "word links, Pharaoh format")
flags.DEFINE_string("output", None, "where the weights go; '-' for stdout")
flags.DEFINE_float(
  "keep",
  1.0,
  "share of the pairs that --filtered has, the best ones",
  lower_bound=0.0,
  upper_bound=1.0,
)
flags.DEFINE_string("filtered", None, "prefix of the files of the best pairs")
flags.DEFINE_integer(
  "phrase_length",
  _DEFAULTS.phrase_length,
  "most words of a phrase",
  lower_bound=0,
)
flags.DEFINE_integer(
  "min_sentences",
  _DEFAULTS.min_sentences,
  "leave out phrase pairs of fewer sentence pairs",
  lower_bound=0,
)
flags.DEFINE_float(
  "damping",
  _DEFAULTS.damping,
  "of the random walk",
  lower_bound=0.0,
  upper_bound=1.0,
)
flags.DEFINE_float(
  "tolerance",
  _DEFAULTS.tolerance,
  "end when no value changes by more",
  lower_bound=0.0,
)
flags.DEFINE_integer(
  "max_steps", _DEFAULTS.max_steps, "or after N steps", lower_bound=0
)
flags.DEFINE_enum(
  "normalize",
  _DEFAULTS.normalize,
  pair_quality.NORMALIZATIONS,
  "divide the qualities by the number of words",
)
flags.DEFINE_enum("runner", "threads", runner_lib.KINDS, "where to work")
flags.DEFINE_integer("workers", 2, "shards worked on at once", lower_bound=0)
flags.DEFINE_string("ray_address", None, "a running Ray cluster")


def _options() -> tuple[pair_quality.WalkOptions, runner_lib.Runner]:
  options = pair_quality.WalkOptions(
    phrase_length=FLAGS.phrase_length,
    min_sentences=FLAGS.min_sentences,
    damping=FLAGS.damping,
    tolerance=FLAGS.tolerance,
    max_steps=FLAGS.max_steps,
    normalize=FLAGS.normalize,
  )
  runner = runner_lib.Runner(
    kind=FLAGS.runner, workers=FLAGS.workers, address=FLAGS.ray_address
  )
  try:
    pair_quality.check_options(options)
    runner_lib.check_runner(runner)
  except ValueError as error:
    raise InputError(str(error)) from error
  if not 0 < FLAGS.keep <= 1:
    raise InputError("--keep must be above 0 and at most 1")
  if (FLAGS.keep < 1) != bool(FLAGS.filtered):
    raise InputError("--keep and --filtered go together")
  return options, runner


def _read(paths: aligned_text.Paths):
  """The whole bitext: `(source, target, links, both vocabularies)`."""
  source_words, _ = aligned_text.read_vocabulary(paths.source)
  target_words, _ = aligned_text.read_vocabulary(paths.target)
  parts = list(
    aligned_text.read_shards(
      paths,
      source_words=source_words,
      target_words=target_words,
      tokens=1 << 20,
      on_bad=aligned_text.refuse,
    )
  )
  if not parts:
    raise InputError("no sentence pairs", path=paths.source)
  columns = [
    table_lib.stack_rows([getattr(part, name) for part in parts])
    for name in ("source", "target", "links")
  ]
  return *columns, source_words, target_words


def _write_best(paths: aligned_text.Paths, weights: np.ndarray) -> int:
  """Writes the best pairs; returns their number."""
  best = np.flatnonzero(pair_quality.best_pairs(weights, FLAGS.keep)).tolist()
  for name in ("source", "target", "links"):
    lines = files.read_lines(getattr(paths, name))
    files.write_lines(f"{FLAGS.filtered}.{name}", [lines[n] for n in best])
  return len(best)


def main(argv: list[str]) -> None:
  """Reads flags, scores, writes."""
  del argv
  program.check_paths(
    outputs=("output", "filtered"),
    inputs=("source", "target", "links"),
    endings={"filtered": (".source", ".target", ".links")},
  )
  program.required(
    source=FLAGS.source,
    target=FLAGS.target,
    links=FLAGS.links,
    output=FLAGS.output,
  )
  start = time.perf_counter()
  options, runner = _options()
  paths = aligned_text.Paths(
    source=FLAGS.source, target=FLAGS.target, links=FLAGS.links
  )
  aligned_text.check_paths(paths)
  with runner_lib.session(runner):
    source, target, links, source_words, target_words = _read(paths)
    weights = pair_quality.pair_weights(
      source,
      target,
      links,
      source_words=source_words,
      target_words=target_words,
      options=options,
      runner=runner,
    )
  files.write_lines(FLAGS.output, [f"{weight:.9g}" for weight in weights])
  note = ""
  if FLAGS.filtered:
    note = f", {_write_best(paths, weights):,} of them written"
  progress.say(
    f"{len(weights):,} sentence pairs{note}"
    f" in {time.perf_counter() - start:.1f} s"
  )


if __name__ == "__main__":
  program.run(main)
