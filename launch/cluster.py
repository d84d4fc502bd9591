r"""Clusters words by class-based bigrams (Brown et al. 1992).

    python launch/cluster.py --text=T --clusters=100 --output=F [--min_count=2]

T has one tokenised sentence a line. F has a line `bits TAB word TAB count` for
each word: words of a cluster have the same bits, and clusters that were merged
late share few of them.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

from absl import flags

from jaxmt.errors import InputError
from jaxmt.runtime import progress
from jaxmt.text import files, word_clusters

_TEXT = flags.DEFINE_string("text", "", "text to cluster the words of")
_CLUSTERS = flags.DEFINE_integer(
  "clusters", 100, "number of clusters", lower_bound=0
)
_MIN_COUNT = flags.DEFINE_integer(
  "min_count", 1, "leave out rarer words", lower_bound=0
)
_OUTPUT = flags.DEFINE_string("output", "-", "file of clusters")


def main(argv: list[str]) -> None:
  """Reads a text and writes its clusters."""
  del argv
  program.check_paths(outputs=("output",), inputs=("text",))
  path = program.given(_TEXT)
  try:
    clusters = word_clusters.cluster_words(
      files.read_lines(path),
      clusters=_CLUSTERS.value,
      min_count=_MIN_COUNT.value,
    )
  except ValueError as error:
    cause = error.cause if isinstance(error, InputError) else str(error)
    raise InputError(cause, path=path) from error
  files.write_lines(_OUTPUT.value, word_clusters.to_lines(clusters))
  progress.say(
    f"{len(clusters.words):,} words in {len(clusters.paths)} clusters,"
    f" mutual information {clusters.information:.4f} nats"
  )


if __name__ == "__main__":
  program.run(main)
