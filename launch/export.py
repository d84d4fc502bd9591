"""Exports a system of a finished run as a small folder of its own.

    python launch/export.py --workdir=runs/quickstart --system=primary \
        --output=DIR
    python launch/translate.py --workdir=DIR --input=S --output=H

The folder holds the grammar, the language model (ARPA), the weights, the
settings of the search and a README that says how to use them. It gives the
same translations as the run.

    python launch/export.py ... --format=moses|cdec|joshua|travatar

writes rules and weights as another toolkit has them, in its units. Joshua has
no tree-to-string rules; phrase-based and bracketing systems have the native
format only.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

from absl import flags

from jaxmt.runtime import progress

_WORKDIR = flags.DEFINE_string("workdir", "", "of launch/train.py")
_SYSTEM = flags.DEFINE_string(
  "system", "", "system of the run; its last one if not given"
)
_STORE = flags.DEFINE_string(
  "store", None, "its artefacts, if not in the workdir (as in a study)"
)
_OUTPUT = flags.DEFINE_string(
  "output", "", "folder to write; an older export there is replaced"
)


_FORMAT = flags.DEFINE_enum(
  "format",
  "native",
  ["native", "moses", "cdec", "joshua", "travatar"],
  "whose format the grammar and the weights have",
)


def main(argv: list[str]) -> None:
  """Reads a run and writes one of its systems."""
  del argv
  program.check_paths(outputs=("output",), inputs=("workdir", "store"))
  program.required(workdir=_WORKDIR.value, output=_OUTPUT.value)
  from jaxmt.experiment import finished_run, saved_systems

  run = finished_run.read(_WORKDIR.value, _STORE.value)
  name = finished_run.find_system(run, _SYSTEM.value or None)
  saved_systems.export(run, name, _OUTPUT.value, form=_FORMAT.value)
  progress.say(f"{name} is in {_OUTPUT.value}")


if __name__ == "__main__":
  program.run(main)
