"""Extracts a synchronous grammar from a word-aligned bitext.

    python launch/extract.py --source=S --target=T --links=L [--trees=P] \
      --kind=hiero|t2s|joint|phrase|btg --output=G [--format=native|cdec|...] \
      [--reordering=R] [--filter=S2]

Writes the rules with their features: relative frequencies, lexical weights,
indicators, glue and pass-through rules. The corpus may be larger than memory.

--kind=phrase writes a phrase table: all consistent pairs of up to --max_phrase
words (7 if not given) on either side, with a lexicalised reordering model in
six more columns; --format=moses writes the model to the file --reordering.

--kind=btg writes such phrase pairs with the two rules of a bracketing grammar
and, in the same folder, a maximum-entropy reordering model of neighbouring
blocks, and says how well it predicts the order in every 20th sentence, which is
left out of its training. For translate.py and tune.py --kind=btg.

--significance drops phrase pairs that could be chance, --similarity rules whose
sides differ in meaning, as a model of `embed.py --model=brae` sees it.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from absl import flags

from jaxmt.errors import InputError
from jaxmt.grammar import btg, native, pair_quality, reordering
from jaxmt.grammar import filter as filter_lib
from jaxmt.grammar import provenance as provenance_lib
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.extract import (
  aligned_text,
  block_pairs,
  extraction,
  ghkm,
  orientations,
  phrase_smoothing,
  phrases,
  shards,
)
from jaxmt.grammar.extract.ghkm import GhkmOptions
from jaxmt.grammar.extract.hiero import HieroOptions, check_options
from jaxmt.grammar.extract.phrases import PhraseOptions
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
flags.DEFINE_enum(
  "kind", "hiero", ["hiero", "t2s", "joint", "phrase", "btg"], "which rules"
)
flags.DEFINE_string("output", None, "where the grammar goes")
flags.DEFINE_enum("format", "native", FORMATS, "the grammar's format")
flags.DEFINE_string("filter", None, "keep only rules usable on this text")
flags.DEFINE_string("glue", None, "where the glue grammar of --format goes")
flags.DEFINE_string(
  "reordering", None, "where the reordering model of --kind=phrase goes"
)
flags.DEFINE_enum(
  "orientation",
  "word",
  [*orientations.KINDS, "none"],
  "what tells the orientation of phrases; none: no reordering model",
)
flags.DEFINE_enum(
  "smoothing",
  "none",
  phrase_smoothing.METHODS,
  "of the probabilities of phrase pairs",
)
flags.DEFINE_string(
  "significance",
  "",
  "drop phrase pairs that could be chance: a+e, a-e, or the least -ln p",
)
flags.DEFINE_string(
  "similarity_model", None, "folder of embed.py --model=brae, for --similarity"
)
flags.DEFINE_float(
  "similarity",
  None,
  "drop rules whose sides are less similar in both directions (-1 to 1)",
  lower_bound=-1.0,
  upper_bound=1.0,
)
flags.DEFINE_integer(
  "similar_best",
  10,
  "most similar rules of a source side that stay anyway",
  lower_bound=0,
)
flags.DEFINE_integer("max_phrase", 10, "longest source span", lower_bound=0)
flags.DEFINE_integer(
  "max_target_phrase", 10, "longest target span", lower_bound=0
)
flags.DEFINE_integer(
  "max_symbols", 5, "most source symbols of a rule", lower_bound=0
)
flags.DEFINE_integer(
  "max_words", 5, "most source words of a phrase pair", lower_bound=0
)
flags.DEFINE_integer(
  "max_nonterminals", 2, "0 for phrase pairs only", lower_bound=0
)
flags.DEFINE_integer(
  "min_hole", 1, "fewest words under a non-terminal", lower_bound=0
)
flags.DEFINE_bool("adjacent", False, "allow adjacent source non-terminals")
flags.DEFINE_bool("tight", True, "no unaligned words at phrase edges")
flags.DEFINE_bool("fractional", False, "a phrase pair's rules share one count")
flags.DEFINE_integer(
  "tree_size", 4, "most minimal rules in a tree rule", lower_bound=0
)
flags.DEFINE_integer(
  "tree_sites", 5, "most non-terminals of a tree rule", lower_bound=0
)
flags.DEFINE_integer(
  "tree_source", 12, "most source symbols of a tree rule", lower_bound=0
)
flags.DEFINE_integer(
  "tree_target", 20, "most target symbols of a tree rule", lower_bound=0
)
flags.DEFINE_enum(
  "attach", "tight", ghkm.ATTACH, "where unaligned target words may go"
)
flags.DEFINE_integer(
  "max_attach", 16, "most such ways for one tree rule", lower_bound=0
)
flags.DEFINE_bool("binarize", False, "make trees binary, left-heavy")
flags.DEFINE_integer(
  "min_count", 1, "drop rules seen less often (word pairs stay)", lower_bound=0
)
flags.DEFINE_float(
  "alpha", 0.0, "add-alpha smoothing of the frequencies", lower_bound=0.0
)
flags.DEFINE_bool("provenance", False, "keep which sentence gave which rule")
flags.DEFINE_string(
  "pair_weights",
  None,
  "weights of the sentence pairs, as clean.py writes them, for two more"
  " translation probabilities of every rule",
)
flags.DEFINE_bool("skip_bad", False, "skip bad sentences and count them")
flags.DEFINE_enum("runner", "threads", runner_lib.KINDS, "where to work")
flags.DEFINE_integer("workers", 2, "shards worked on at once", lower_bound=0)
flags.DEFINE_string("ray_address", None, "a running Ray cluster")
flags.DEFINE_integer(
  "memory", 1024, "budget in MB before spilling to disk", lower_bound=0
)


def _phrase_options() -> PhraseOptions:
  """The options of --kind=phrase."""
  return PhraseOptions(
    length=FLAGS.max_phrase if FLAGS["max_phrase"].present else 7,
    smoothing=FLAGS.smoothing,
    significance=FLAGS.significance,
    reordering="" if FLAGS.orientation == "none" else FLAGS.orientation,
  )


def _options():
  """The options the flags ask for."""
  if FLAGS.kind in ("phrase", "btg"):
    options = _phrase_options()
    try:
      phrases.check_options(options)
    except ValueError as error:
      raise InputError(str(error)) from error
    hiero = options.limits
  else:
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
  extractors: list[shards.Extractor] = []
  if FLAGS.kind in ("hiero", "joint", "phrase", "btg"):
    extractors.append(functools.partial(extraction.hiero_rules, options=hiero))
  if FLAGS.kind in ("t2s", "joint"):
    extractors.append(functools.partial(ghkm.tree_rules, options=trees))
  return extractors


class _Skipped(progress.Skipped):
  """Counts failed parses too."""

  def __init__(self):
    super().__init__()
    self.without_tree = 0


def _shown(
  aligned: Iterator[AlignedShard], total: int, skipped: _Skipped
) -> Iterator[AlignedShard]:
  with progress.steps(label="extract", total=total) as advance:
    for shard in aligned:
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
    outputs=("output", "glue", "reordering"),
    inputs=(
      *("source", "target", "links", "trees", "filter", "pair_weights"),
      "similarity_model",
    ),
  )
  if (FLAGS.similarity is None) != (FLAGS.similarity_model is None):
    raise InputError("--similarity and --similarity_model need each other")
  if FLAGS.similar_best < 0:
    raise InputError("--similar_best must not be negative")
  program.required(
    source=FLAGS.source,
    target=FLAGS.target,
    links=FLAGS.links,
    output=FLAGS.output,
  )
  if FLAGS.kind in ("t2s", "joint"):
    program.required(trees=FLAGS.trees)
  _check_phrases()
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
    trees=FLAGS.trees if FLAGS.kind in ("t2s", "joint") else None,
  )
  aligned_text.check_paths(paths)
  skipped = _Skipped()
  beside = "grammar" if FLAGS.output == "-" else FLAGS.output
  with contextlib.ExitStack() as stack:
    scratch = stack.enter_context(array_folder.scratch(beside))
    stack.enter_context(runner_lib.session(runner))
    direct = FLAGS.format == "native" and FLAGS.filter is None
    direct &= FLAGS.kind not in ("phrase", "btg")
    direct &= FLAGS.pair_weights is None and FLAGS.similarity is None
    path = FLAGS.output if direct else os.path.join(scratch, "table")
    count = CountOptions(
      min_count=FLAGS.min_count,
      provenance=FLAGS.provenance or FLAGS.pair_weights is not None,
      memory=FLAGS.memory << 20,
      spill=scratch,
    )
    weights = _pair_weights()
    sentences = _extract(paths, extractors, runner, count, path, skipped)
    if weights is not None and len(weights) != sentences:
      raise InputError(
        f"{len(weights)} weights for {sentences} sentence pairs",
        path=FLAGS.pair_weights,
      )
    if direct:
      rules = len(native.read(path))
    else:
      rules = _deliver(path, paths, runner, count, weights)
  note = f", {skipped.count} bad skipped" if skipped.count else ""
  if skipped.without_tree:
    note += f", {skipped.without_tree} without a tree"
  progress.say(
    f"{rules:,} rules from {sentences:,} sentence pairs{note}"
    f" in {time.perf_counter() - start:.1f} s"
  )


def _pair_weights() -> np.ndarray | None:
  """The weights of the sentence pairs, or None."""
  if FLAGS.pair_weights is None:
    return None
  lines = files.read_lines(FLAGS.pair_weights)
  return pair_quality.parse_weights(lines, path=FLAGS.pair_weights)


def _check_phrases() -> None:
  """Raises for flags of phrase tables that do not go together."""
  if FLAGS.kind != "phrase":
    for name in ("reordering", "significance"):
      if getattr(FLAGS, name):
        raise InputError(f"--{name} needs --kind=phrase")
    if FLAGS.smoothing != "none":
      raise InputError("--smoothing needs --kind=phrase")
    if FLAGS.kind == "btg" and FLAGS.format != "native":
      raise InputError("--kind=btg has --format=native")
    return
  if FLAGS.provenance or FLAGS.alpha:
    raise InputError("--kind=phrase has no --provenance and no --alpha")
  if FLAGS.reordering and FLAGS.orientation == "none":
    raise InputError("--reordering needs an --orientation")
  if FLAGS.format not in ("native", "moses"):
    raise InputError("--kind=phrase has --format=native or moses")
  if FLAGS.format == "moses" and FLAGS.pair_weights:
    raise InputError("Moses' phrase tables have no --pair_weights")
  if FLAGS.format == "moses" and FLAGS.orientation != "none":
    program.required(reordering=FLAGS.reordering)


def _extract(paths, extractors, runner, count, path, skipped) -> int:
  """Writes the table in its own format at `path`; returns the corpus size."""
  on_bad = skipped if FLAGS.skip_bad else aligned_text.refuse
  source_words, size = aligned_text.read_vocabulary(paths.source)
  target_words, _ = aligned_text.read_vocabulary(paths.target)
  labels = table_lib.LABELS
  if paths.trees is not None:
    labels = aligned_text.read_labels(
      paths.trees, binarize=FLAGS.binarize, on_bad=lambda error: None
    )
  aligned = aligned_text.read_shards(
    paths,
    source_words=source_words,
    target_words=target_words,
    tokens=shards.tokens_per_shard(memory=count.memory, workers=runner.workers),
    labels=labels,
    binarize=FLAGS.binarize,
    on_bad=on_bad,
  )
  parts, pairs = shards.count_rules(
    _shown(aligned, size, skipped), extractors, options=count, runner=runner
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


def _read_again(table, paths, runner, count) -> Iterator[AlignedShard]:
  """The corpus in shards, encoded as the table is."""
  return aligned_text.read_shards(
    paths,
    source_words=table.source_words,
    target_words=table.target_words,
    tokens=shards.tokens_per_shard(memory=count.memory, workers=runner.workers),
    # Bad sentences were reported when the pairs were extracted.
    on_bad=(lambda error: None) if FLAGS.skip_bad else aligned_text.refuse,
  )


def _train_reordering(table, paths, runner, count) -> dict[str, Any]:
  """The reordering model of a BTG, as it is stored."""
  from jaxmt.features import maxent_reordering  # slow to load

  options = maxent_reordering.MaxEntOptions()
  blocks = block_pairs.find_all(
    _read_again(table, paths, runner, count), longest=options.longest
  )
  model, report = maxent_reordering.train(
    blocks.words,
    blocks.inverted,
    blocks.sentence,
    source_words=table.source_words,
    target_words=table.target_words,
    options=options,
  )
  progress.say(
    f"reordering: {report.examples:,} pairs of blocks,"
    f" {100 * report.inverted:.1f} % inverted; held out: accuracy"
    f" {report.accuracy:.4f}, majority {report.majority:.4f}"
  )
  return maxent_reordering.to_values(model)


def _finish_phrases(table, paths, runner, count, weighted):
  """The phrase table of extracted pairs; its corpus is read again.

  `weighted` are the weighted probabilities of the pairs, or None.
  """
  phrase_table, rules = phrases.finish(
    table,
    lambda: _read_again(table, paths, runner, count),
    options=_phrase_options(),
    count=count,
    runner=runner,
  )
  if weighted is None:
    return phrase_table
  return table_lib.with_features(
    phrase_table, pair_quality.NAMES, weighted[rules]
  )


def _deliver(path: str, paths, runner, count, weights) -> int:
  """Filters and converts what lies at `path`; returns the number of rules."""
  table = native.read(path, verify=False)
  weighted = None
  if weights is not None:
    weighted = pair_quality.weighted_probabilities(
      table,
      native.read_provenance(path, verify=False),
      weights,
      alpha=FLAGS.alpha,
    )
  if FLAGS.kind == "phrase":
    table = _finish_phrases(table, paths, runner, count, weighted)
  elif weighted is not None:
    table = table_lib.with_features(table, pair_quality.NAMES, weighted)
  beside = {}
  if FLAGS.kind == "btg":
    beside = _train_reordering(table, paths, runner, count)
    table = btg.with_joining_rules(table)
  origin = None
  if FLAGS.provenance:
    origin = native.read_provenance(path, verify=False)
  if FLAGS.similarity is not None:
    from jaxmt.features import sentence_models

    stays = sentence_models.similar_rules(
      sentence_models.read_all([FLAGS.similarity_model], table),
      table,
      threshold=FLAGS.similarity,
      best=FLAGS.similar_best,
    )
    table = table_lib.select(table, stays)
    origin = provenance_lib.select(origin, stays) if origin else None
  if FLAGS.filter is not None:
    lines = files.read_lines(FLAGS.filter)
    usable = filter_lib.usable(
      table, vocabulary.encode(table.source_words, lines)
    )
    table = table_lib.select(table, usable)
    origin = provenance_lib.select(origin, usable) if origin else None
  if FLAGS.reordering:
    phrase = table_lib.select(table, table.kind == table_lib.Kind.HIERO)
    reordering.write(phrase, FLAGS.reordering)
  if FLAGS.format == "native":
    native.write(FLAGS.output, table, provenance=origin, beside=beside)
  elif FLAGS.kind == "phrase":
    from jaxmt.grammar import formats  # slow to load, seldom needed

    formats.write(phrases.for_moses(table), FLAGS.output, "moses-phrases")
  else:
    from jaxmt.grammar import formats  # slow to load, seldom needed

    formats.write(table, FLAGS.output, FLAGS.format)
    if FLAGS.glue is not None:
      files.write_lines(FLAGS.glue, formats.glue_lines(FLAGS.format))
  return len(table)


if __name__ == "__main__":
  program.run(main)
