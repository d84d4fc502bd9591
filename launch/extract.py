"""Extracts a synchronous grammar from a word-aligned bitext.

    python launch/extract.py --source=S --target=T --links=L [--trees=P] \
      --kind=hiero|t2s|joint --output=G [--format=native|cdec|...] [--filter=S2]

Writes the rules with their features: relative frequencies, lexical weights,
indicators, glue and pass-through rules. The corpus may be larger than memory.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Iterator

from absl import flags

from jaxmt.errors import InputError
from jaxmt.grammar import filter as filter_lib
from jaxmt.grammar import native
from jaxmt.grammar import provenance as provenance_lib
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.extract import aligned_text, extraction, ghkm, shards
from jaxmt.grammar.extract.ghkm import GhkmOptions
from jaxmt.grammar.extract.hiero import HieroOptions, check_options
from jaxmt.grammar.extract.shards import AlignedShard, CountOptions
from jaxmt.runtime import progress
from jaxmt.runtime import runner as runner_lib
from jaxmt.text import array_folder, files, vocabulary

FORMATS = ("native", "cdec", "moses", "joshua", "travatar")

FLAGS = flags.FLAGS
flags.DEFINE_string("source", None, "source side, one sentence a line")
flags.DEFINE_string("target", None, "target side")
flags.DEFINE_string("links", None, "word links, Pharaoh format")
flags.DEFINE_string("trees", None, "source trees, for --kind=t2s and joint")
flags.DEFINE_enum("kind", "hiero", ["hiero", "t2s", "joint"], "which rules")
flags.DEFINE_string("output", None, "where the grammar goes")
flags.DEFINE_enum("format", "native", FORMATS, "the grammar's format")
flags.DEFINE_string("filter", None, "keep only rules usable on this text")
flags.DEFINE_string("glue", None, "where the glue grammar of --format goes")
flags.DEFINE_integer("max_phrase", 10, "longest source span")
flags.DEFINE_integer("max_target_phrase", 10, "longest target span")
flags.DEFINE_integer("max_symbols", 5, "most source symbols of a rule")
flags.DEFINE_integer("max_words", 5, "most source words of a phrase pair")
flags.DEFINE_integer("max_nonterminals", 2, "0 for phrase pairs only")
flags.DEFINE_integer("min_hole", 1, "fewest words under a non-terminal")
flags.DEFINE_bool("adjacent", False, "allow adjacent source non-terminals")
flags.DEFINE_bool("tight", True, "no unaligned words at phrase edges")
flags.DEFINE_bool("fractional", False, "a phrase pair's rules share one count")
flags.DEFINE_integer("tree_size", 4, "most minimal rules in a tree rule")
flags.DEFINE_integer("tree_sites", 5, "most non-terminals of a tree rule")
flags.DEFINE_integer("tree_source", 12, "most source symbols of a tree rule")
flags.DEFINE_integer("tree_target", 20, "most target symbols of a tree rule")
flags.DEFINE_enum(
  "attach", "tight", ghkm.ATTACH, "where unaligned target words may go"
)
flags.DEFINE_integer("max_attach", 16, "most such ways for one tree rule")
flags.DEFINE_bool("binarize", False, "make trees binary, left-heavy")
flags.DEFINE_integer(
  "min_count", 1, "drop rules seen less often (word pairs stay)"
)
flags.DEFINE_float("alpha", 0.0, "add-alpha smoothing of the frequencies")
flags.DEFINE_bool("provenance", False, "keep which sentence gave which rule")
flags.DEFINE_bool("skip_bad", False, "skip bad sentences and count them")
flags.DEFINE_enum("runner", "threads", runner_lib.KINDS, "where to work")
flags.DEFINE_integer("workers", 2, "shards worked on at once")
flags.DEFINE_string("ray_address", None, "a running Ray cluster")
flags.DEFINE_integer("memory", 1024, "budget in MB before spilling to disk")


def _options():
  """The options the flags ask for."""
  hiero = HieroOptions(
    **{
      field.name: getattr(FLAGS, field.name)
      for field in dataclasses.fields(HieroOptions)
    }
  )
  runner = runner_lib.Runner(
    kind=FLAGS.runner, workers=FLAGS.workers, address=FLAGS.ray_address
  )
  trees = GhkmOptions(
    max_size=FLAGS.tree_size,
    max_sites=FLAGS.tree_sites,
    max_source=FLAGS.tree_source,
    max_target=FLAGS.tree_target,
    attach=FLAGS.attach,
    max_attach=FLAGS.max_attach,
  )
  try:
    check_options(hiero)
    ghkm.check_options(trees)
    runner_lib.check_runner(runner)
  except ValueError as error:
    raise InputError(str(error)) from error
  if FLAGS.memory < 1 or FLAGS.min_count < 0 or FLAGS.alpha < 0:
    raise InputError("--memory, --min_count and --alpha must not be negative")
  return hiero, trees, runner


def _extractors(
  hiero: HieroOptions, trees: GhkmOptions
) -> list[shards.Extractor]:
  """What finds the rules of each kind."""
  found: list[shards.Extractor] = []
  if FLAGS.kind in ("hiero", "joint"):
    found.append(functools.partial(extraction.hiero_rules, options=hiero))
  if FLAGS.kind in ("t2s", "joint"):
    found.append(functools.partial(ghkm.tree_rules, options=trees))
  return found


class _Skipped(progress.Skipped):
  """Counts failed parses too."""

  def __init__(self):
    super().__init__()
    self.without_tree = 0


def _shown(
  found: Iterator[AlignedShard], total: int, skipped: _Skipped
) -> Iterator[AlignedShard]:
  with progress.steps(label="extract", total=total) as advance:
    for shard in found:
      if shard.trees is not None:
        # Sentences that were skipped as bad have no words left.
        failed = shard.trees.failed & (shard.source.lengths > 0)
        skipped.without_tree += int(failed.sum())
      yield shard
      advance(len(shard.source))


def main(argv: list[str]) -> None:
  """Reads flags, extracts, writes."""
  del argv
  program.check_paths(
    outputs=("output", "glue"),
    inputs=("source", "target", "links", "trees", "filter"),
  )
  program.required(
    source=FLAGS.source,
    target=FLAGS.target,
    links=FLAGS.links,
    output=FLAGS.output,
  )
  if FLAGS.kind != "hiero":
    program.required(trees=FLAGS.trees)
  if FLAGS.format != "native" and FLAGS.provenance:
    raise InputError(f"--format={FLAGS.format} has no room for --provenance")
  if FLAGS.format == "native" and FLAGS.glue:
    raise InputError("--format=native has its glue rules inside: no --glue")
  start = time.perf_counter()
  hiero, trees, runner = _options()
  extractors = _extractors(hiero, trees)
  paths = aligned_text.Paths(
    source=FLAGS.source,
    target=FLAGS.target,
    links=FLAGS.links,
    trees=FLAGS.trees if FLAGS.kind != "hiero" else None,
  )
  aligned_text.check_paths(paths)
  skipped = _Skipped()
  near = "grammar" if FLAGS.output == "-" else FLAGS.output
  with contextlib.ExitStack() as stack:
    scratch = stack.enter_context(array_folder.scratch(near))
    stack.enter_context(runner_lib.session(runner))
    direct = FLAGS.format == "native" and FLAGS.filter is None
    path = FLAGS.output if direct else os.path.join(scratch, "table")
    sentences = _extract(paths, extractors, runner, scratch, path, skipped)
    rules = _deliver(path) if not direct else len(native.read(path))
  note = f", {skipped.count} bad skipped" if skipped.count else ""
  if skipped.without_tree:
    note += f", {skipped.without_tree} without a tree"
  progress.say(
    f"{rules:,} rules from {sentences:,} sentence pairs{note}"
    f" in {time.perf_counter() - start:.1f} s"
  )


def _extract(paths, extractors, runner, scratch, path, skipped) -> int:
  """Writes the table in its own format at `path`; returns the corpus size."""
  on_bad = skipped if FLAGS.skip_bad else aligned_text.refuse
  source_words, size = aligned_text.read_vocabulary(paths.source)
  target_words, _ = aligned_text.read_vocabulary(paths.target)
  labels = table_lib.LABELS
  if paths.trees is not None:
    labels = aligned_text.read_labels(
      paths.trees, binarize=FLAGS.binarize, on_bad=lambda error: None
    )
  memory = FLAGS.memory << 20
  found = aligned_text.read_shards(
    paths,
    source_words=source_words,
    target_words=target_words,
    tokens=shards.tokens_per_shard(memory=memory, workers=runner.workers),
    labels=labels,
    binarize=FLAGS.binarize,
    on_bad=on_bad,
  )
  count = CountOptions(
    min_count=FLAGS.min_count,
    provenance=FLAGS.provenance,
    memory=memory,
    spill=scratch,
  )
  parts, pairs = shards.count_rules(
    _shown(found, size, skipped), extractors, options=count, runner=runner
  )
  extraction.write(
    path,
    parts,
    pairs,
    extraction.TableOptions(
      labels=labels,
      source_words=source_words,
      target_words=target_words,
      sentences=size,
      alpha=FLAGS.alpha,
      count=count,
      runner=runner,
    ),
  )
  return size


def _deliver(path: str) -> int:
  """Filters and converts what lies at `path`; returns the number of rules."""
  table = native.read(path, verify=False)
  origin = None
  if FLAGS.provenance:
    origin = native.read_provenance(path, verify=False)
  if FLAGS.filter is not None:
    lines = files.read_lines(FLAGS.filter)
    kept = filter_lib.usable(
      table, vocabulary.encode(table.source_words, lines)
    )
    table = table_lib.select(table, kept)
    origin = provenance_lib.select(origin, kept) if origin else None
  if FLAGS.format == "native":
    native.write(FLAGS.output, table, provenance=origin)
  else:
    from jaxmt.grammar import formats  # slow to load, seldom needed

    formats.write(table, FLAGS.output, FLAGS.format)
    if FLAGS.glue is not None:
      files.write_lines(FLAGS.glue, formats.glue_lines(FLAGS.format))
  return len(table)


if __name__ == "__main__":
  program.run(main)
