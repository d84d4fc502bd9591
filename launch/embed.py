r"""Learns word vectors from text.

    python launch/embed.py --text=T --output=V [--model=skip-gram|ranking] \
        [--size=50] [--window=5] [--epochs=5] [--min_count=1] [--workdir=D]

Writes one line a word, the word and its numbers, after a line with the number
of words and of numbers (the text format of word2vec). Words seen less often
than --min_count share the vector of <unk>. With --workdir a run that was killed
resumes after its last finished epoch.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import hashlib
import pathlib
import time

from absl import flags

from jaxmt.errors import InputError
from jaxmt.runtime import checkpoint, parallel, progress
from jaxmt.text import files, vocabulary

FLAGS = flags.FLAGS
flags.DEFINE_string("text", None, "one sentence a line, tokenised")
flags.DEFINE_string("output", None, "where the vectors go; '-' for stdout")
flags.DEFINE_string("workdir", None, "folder of finished epochs")
flags.DEFINE_enum(
  "model", "skip-gram", ["skip-gram", "ranking"], "what is learned"
)
flags.DEFINE_integer("size", 50, "numbers of a word")
flags.DEFINE_integer("window", 5, "context words on either side")
flags.DEFINE_integer("negatives", 5, "random words for each context word")
flags.DEFINE_integer("hidden", 40, "units of the ranking network")
flags.DEFINE_integer("min_count", 1, "rarer words are <unk>")
flags.DEFINE_integer("epochs", 5, "passes over the text")
flags.DEFINE_integer("batch", 1024, "words of a step")
flags.DEFINE_float("rate", 0.01, "of the optimizer; it falls to 0")
flags.DEFINE_integer("seed", 0, "of everything random")
flags.DEFINE_integer("devices", 1, "devices that share each step; 0 for all")


def _epochs_folder(lines, options) -> pathlib.Path:
  """The folder of the epochs of this text with these options."""
  told = repr((options, FLAGS.min_count, FLAGS.devices))
  content = "\n".join([told, *lines]).encode()
  name = hashlib.sha256(content).hexdigest()[:16]
  return pathlib.Path(FLAGS.workdir) / f"epochs-{name}"


def main(argv: list[str]) -> None:
  """Reads flags, learns, writes."""
  del argv
  program.check_paths(outputs=("output",), inputs=("text",))
  program.required(text=FLAGS.text, output=FLAGS.output)
  if FLAGS.min_count < 1 or FLAGS.seed < 0 or FLAGS.devices < 0:
    raise InputError("--min_count must be at least 1, --seed and --devices 0")
  parallel.initialize(devices=FLAGS.devices)
  from jaxmt.models import vector_files, word_vectors  # imports JAX
  from jaxmt.models.fitting import FitOptions

  start = time.perf_counter()
  options = word_vectors.WordVectorOptions(
    model=FLAGS.model,
    size=FLAGS.size,
    window=FLAGS.window,
    negatives=FLAGS.negatives,
    hidden=FLAGS.hidden,
    fit=FitOptions(
      epochs=FLAGS.epochs,
      batch=FLAGS.batch,
      rate=FLAGS.rate,
      seed=FLAGS.seed,
    ),
  )
  word_vectors.check_options(options)
  lines = files.read_lines(FLAGS.text)
  words = vocabulary.build([lines], min_count=FLAGS.min_count)
  text = vocabulary.encode(words, lines)
  mesh = None if FLAGS.devices == 1 else parallel.make_mesh(FLAGS.devices)
  store = None
  if FLAGS.workdir:
    store = checkpoint.Partial(_epochs_folder(lines, options))
  learned = []
  with progress.steps(label="epochs", total=options.fit.epochs) as advance:
    for learned in word_vectors.train_vectors(
      text, words.words, options, mesh=mesh, store=store
    ):
      advance(1, f"loss {learned[1]:.4f}")
  vectors = learned[0]
  vector_files.write(FLAGS.output, vectors)
  progress.say(
    f"{len(vectors):,} words of {len(text.flat):,}"
    f" in {time.perf_counter() - start:.1f} s"
  )


if __name__ == "__main__":
  program.run(main)
