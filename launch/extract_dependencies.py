r"""Extracts phrase dependencies from a word-aligned bitext with target trees.

    python launch/extract_dependencies.py --source=S --target=T --links=L \
        --target_trees=CONLLU [--clusters=C] [--grammar=G] --output=D

CONLLU has a dependency tree for each line of T that has words. D is a table of
how likely phrases depend on each other, with which order and gaps of their
source phrases (Gimpel 2012, section 4.3 and 4.4), for translate_trees.py
--dependencies. C are clusters of target words (cluster.py); without it, all
words are in one. With a phrase table G, only its phrases are kept: filter it
for the text to be translated, as extract.py --filter does.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import contextlib

from absl import flags

from jaxmt.decode import loading
from jaxmt.errors import InputError
from jaxmt.grammar import dependency_events as events
from jaxmt.grammar import dependency_table
from jaxmt.grammar.extract import parsed_pairs, phrase_dependencies
from jaxmt.grammar.extract.phrase_dependencies import DependencyOptions
from jaxmt.runtime import progress
from jaxmt.runtime.runner import KINDS, Runner
from jaxmt.text import array_folder, files, kernels, treebank, word_clusters

_SOURCE = flags.DEFINE_string("source", "", "source side")
_TARGET = flags.DEFINE_string("target", "", "target side")
_LINKS = flags.DEFINE_string("links", "", "word links, Pharaoh format")
_TREES = flags.DEFINE_string("target_trees", "", "target trees, CoNLL-U")
_CLUSTERS = flags.DEFINE_string("clusters", "", "clusters of target words")
_GRAMMAR = flags.DEFINE_string("grammar", "", "phrase table to filter by")
_DIALECT = flags.DEFINE_string("dialect", "jaxmt", "format of --grammar")
_MAX_PHRASE = flags.DEFINE_integer(
  "max_phrase", 7, "most words of a phrase", lower_bound=1
)
_OUTPUT = flags.DEFINE_string("output", "", "folder of the table")
_RUNNER = flags.DEFINE_enum("runner", "threads", KINDS, "where shards run")
_WORKERS = flags.DEFINE_integer(
  "workers", 0, "shards at a time; 0: one for each core", lower_bound=0
)
_ADDRESS = flags.DEFINE_string("ray_address", None, "a running Ray cluster")
_MEMORY = flags.DEFINE_integer(
  "memory", 1024, "megabytes for counts; the rest goes to disk", lower_bound=1
)


def main(argv: list[str]) -> None:
  """Extracts a table."""
  del argv
  program.check_paths(
    outputs=("output",),
    inputs=("source", "target", "links", "target_trees", "clusters", "grammar"),
  )
  program.required(
    source=_SOURCE.value,
    target=_TARGET.value,
    links=_LINKS.value,
    target_trees=_TREES.value,
    output=_OUTPUT.value,
  )
  clusters = {}
  if _CLUSTERS.value:
    clusters = word_clusters.read_lines(
      files.read_lines(_CLUSTERS.value), path=_CLUSTERS.value
    )
  known = None
  if _GRAMMAR.value:
    table = loading.read_table(_GRAMMAR.value, dialect=_DIALECT.value)
    known = parsed_pairs.known_phrases(table, clusters)
  bank = treebank.read_treebank(_TREES.value)
  try:
    pairs = parsed_pairs.from_lines(
      files.read_lines(_SOURCE.value),
      files.read_lines(_TARGET.value),
      files.read_lines(_LINKS.value),
      bank,
      clusters,
    )
  except ValueError as error:
    cause = error.cause if isinstance(error, InputError) else str(error)
    raise InputError(cause, path=_TREES.value) from error
  runner = Runner(
    kind=_RUNNER.value,
    workers=_WORKERS.value or kernels.available_threads(),
    address=_ADDRESS.value,
  )
  with contextlib.ExitStack() as stack:
    options = DependencyOptions(
      length=_MAX_PHRASE.value,
      known=known,
      memory=_MEMORY.value << 20,
      spill=stack.enter_context(array_folder.scratch(_OUTPUT.value)),
    )
    table = phrase_dependencies.extract(
      phrase_dependencies.split(pairs), options=options, runner=runner
    )
    dependency_table.save(_OUTPUT.value, table)
  sizes = ", ".join(
    f"{name} {size:,}"
    for name, size in zip(events.FEATURES, table.sizes.tolist(), strict=True)
  )
  progress.say(f"{len(table):,} events of {len(pairs):,} pairs: {sizes}")


if __name__ == "__main__":
  program.run(main)
