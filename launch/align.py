r"""Links the words of a bitext; one line of Pharaoh links per sentence pair.

    python launch/align.py --source=S --target=T --output=L \
        --model=diagonal --symmetrize=grow-diag-final-and

Learns the model in both directions from the text itself. Lines without words
on one side get an empty line. The result is a function of the input alone.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses

import jax
from absl import flags

from jaxmt.align import aligner, em, lexicon, registry, symmetrize
from jaxmt.errors import InputError
from jaxmt.runtime import parallel, progress
from jaxmt.text import bitext, files, links, vocabulary
from jaxmt.text.ragged import Ragged

_SOURCE = flags.DEFINE_string("source", "", "source side, one sentence a line")
_TARGET = flags.DEFINE_string("target", "", "target side")
_OUTPUT = flags.DEFINE_string("output", "", "links; '-' for standard output")
_MODEL = flags.DEFINE_enum(
  "model", "diagonal", registry.names(), "alignment model"
)
_SYMMETRIZE = flags.DEFINE_enum(
  "symmetrize",
  "grow-diag-final-and",
  symmetrize.METHODS,
  "how to combine the two directions",
)
_ITERATIONS = flags.DEFINE_integer(
  "iterations", 5, "passes over the bitext; the last one links"
)
_WARM_UP = flags.DEFINE_integer(
  "warm_up", 5, "iterations of Model 1 before those of the HMM"
)
_NULL = flags.DEFINE_float(
  "null_probability",
  None,
  "of a word without a link (diagonal: 0.08, hmm: 0.4)",
)
_ALPHA = flags.DEFINE_float(
  "alpha",
  None,
  "Dirichlet prior on word translations, 0 for none (model1: 0, else 0.01)",
)
_TENSION = flags.DEFINE_float(
  "tension", 4.0, "initial tension of the diagonal model"
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
  "threshold", 0.5, "lowest posterior probability of a link"
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
_DEVICES = flags.DEFINE_integer("devices", 0, "number of devices, 0 for all")
_COORDINATOR = flags.DEFINE_string(
  "coordinator", "", "host:port of process 0 of a run on several hosts"
)
_PROCESSES = flags.DEFINE_integer("num_processes", 1, "processes of that run")
_PROCESS = flags.DEFINE_integer("process_id", 0, "number of this process")


def main(argv: list[str]) -> None:
  """Reads a bitext, aligns it and writes the links."""
  del argv
  program.check_paths(
    outputs=("output", "lexicon"), inputs=("source", "target")
  )
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
  source, source_words = _words(source_lines)
  target, target_words = _words(target_lines)
  result, first_process = _align(source, target, config)
  if _SYMMETRIZE.value in ("forward", "backward"):
    linked = result.links[_SYMMETRIZE.value]
  else:
    linked = symmetrize.symmetrize(
      result.links["forward"],
      result.links["backward"],
      method=_SYMMETRIZE.value,
    )
  if not first_process:
    return
  if _LEXICON.value:
    size = len(source_words)
    if _LEXICON_FROM.value == "links":
      table = lexicon.from_links(source, target, linked, source_size=size)
    else:
      table = lexicon.from_alignment(result, source_size=size)
    forward, backward = lexicon.to_lines(table, source_words, target_words)
    files.write_lines(f"{_LEXICON.value}.f2e", forward)
    files.write_lines(f"{_LEXICON.value}.e2f", backward)
  files.write_lines(_OUTPUT.value, links.format_links(linked))


def _config() -> aligner.AlignConfig:
  """Returns the settings of the flags; absent flags keep the model's usual."""
  optional = {"null_probability": _NULL.value, "alpha": _ALPHA.value}
  return registry.default_config(
    _MODEL.value,
    iterations=_ITERATIONS.value,
    warm_up=_WARM_UP.value,
    tension=_TENSION.value,
    optimize_tension=_OPTIMIZE.value,
    tension_gradient=_GRADIENT.value,
    decoder=_DECODER.value,
    threshold=_THRESHOLD.value,
    **{name: value for name, value in optional.items() if value is not None},
  )


def _words(lines: list[str]) -> tuple[Ragged, list[str]]:
  """Returns word ids from 1 and the words; id 0 is the NULL word."""
  ids, words = vocabulary.intern(lines)
  return dataclasses.replace(ids, flat=ids.flat + 1), ["NULL", *words]


def _align(source: Ragged, target: Ragged, config: aligner.AlignConfig):
  """Returns the alignment, and whether this process writes the output."""
  # The devices start here, after the input has been read and checked.
  try:
    parallel.initialize(
      devices=_DEVICES.value,
      coordinator=_COORDINATOR.value,
      num_processes=_PROCESSES.value,
      process_id=_PROCESS.value,
    )
    mesh = parallel.make_mesh(_DEVICES.value)
  except ValueError as error:
    raise InputError(f"--{error}") from error
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
