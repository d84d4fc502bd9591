"""Systems that translate: of finished runs, and as folders of their own.

A folder needs nothing of the run that it was exported from:

    grammar/          the rules with the system's probabilities
    lm.arpa.gz        the language model
    weights.txt       tuned weights
    settings.json     how to search, what the others are called
    README.md         how to translate with it

In the format of another toolkit the rules are a file, `grammar.gz`, weights
have the toolkit's names and units, and `glue` is its glue grammar, if it has
such a file.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from jaxmt.decode import dialect_systems, loading
from jaxmt.decode.translator import Translator
from jaxmt.errors import InputError
from jaxmt.experiment import finished_run
from jaxmt.experiment.finished_run import FinishedRun
from jaxmt.experiment.stages import system as system_lib
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.features import maxent_reordering, sentence_models
from jaxmt.features import weights as weight_files
from jaxmt.features.weights import DIALECTS
from jaxmt.grammar import formats, native
from jaxmt.text import array_folder, files
from jaxmt.text.binarize import LEFT_HEAVY

FORMAT = "jaxmt-system"
VERSION = 1
_SETTINGS = "settings.json"
_OWN = (  # what such a folder has
  *("grammar", "grammar.gz", "glue", "lm.arpa.gz", "weights.txt"),
  *(_SETTINGS, "README.md"),
)
_SIZES = ("beam", "pop", "batch_cells")


def load(
  path: str,
  system: str | None = None,
  *,
  store: str | None = None,
  lines: Sequence[str] | None = None,
) -> Translator:
  """Returns a translator with the settings of its run.

  Args:
    path: workdir of a finished run, or an exported folder.
    system: which one of the run; its last one if None.
    store: the run's artefacts, if they are not in the workdir.
    lines: keep only rules that these sentences can use.

  Raises:
    InputError: if the run, folder or system does not exist.
  """
  array_folder.recover(path, mark=_SETTINGS)
  if (pathlib.Path(path) / _SETTINGS).is_file():
    return _read_folder(path, system, lines)
  run = finished_run.read(path, store)
  return finished_run.translator(run, system, lines=lines)


def system_name(
  path: str, system: str | None = None, *, store: str | None = None
) -> str:
  """Returns the name of the system that `load` loads.

  Raises:
    InputError: if the run, folder or system does not exist.
  """
  place = pathlib.Path(path) / _SETTINGS
  if not place.is_file():
    return finished_run.find_system(finished_run.read(path, store), system)
  return finished_run.parse_record(
    files.read_text(str(place)), ("system",), str(place)
  )["system"]


def export(
  run: FinishedRun, system: str | None, output: str, *, form: str = "native"
) -> None:
  """Writes a system as a folder that appears, whole, only on success.

  Args:
    run: the finished run.
    system: which one of it; its last one if None.
    output: the folder; an older export there is replaced.
    form: "native", or one of `dialect_systems.FORMATS`.

  Raises:
    InputError: if the run has no such system, if the format has no place for
      its rules, or something else is at `output`.
  """
  name = finished_run.find_system(run, system)
  grammar, tuned = finished_run.system_grammar(run, name), run.tuned(name)
  table = system_lib.rule_table(grammar, finished_run.system_theta(run, name))
  weights, native_form = tuned.weights, form == "native"
  if not native_form:
    if (grammar.kind or "scfg") != "scfg":
      raise InputError(f"a {grammar.kind} system has the native format only")
    table, weights = dialect_systems.to_dialect(table, weights, form)
  settings = {
    "format": FORMAT,
    "version": VERSION,
    "system": name,
    "grammar": "grammar" if native_form else "grammar.gz",
    "lm": "lm.arpa.gz",
    "weights": "weights.txt",
    "dialect": "jaxmt" if native_form else form,
    "span": run.search.span,
    "targets": run.search.targets,
    "binarize": grammar.binarize,
    "kind": grammar.kind or "scfg",
    "orientation": grammar.orientation,
    "distortion": run.search.distortion,
    **{size: getattr(run.search, size) for size in _SIZES},
  }
  beside = sentence_models.to_values(grammar.models)
  if grammar.reordering is not None:
    beside |= maxent_reordering.to_values(grammar.reordering)
  with array_folder.new_folder(output, mark=_SETTINGS, own=_OWN) as folder:
    if native_form:
      native.write(str(folder / "grammar"), table, beside=beside)
    else:
      formats.write(table, str(folder / "grammar.gz"), form)
      if formats.glue_lines(form):
        files.write_lines(str(folder / "glue"), formats.glue_lines(form))
    files.write_lines(
      str(folder / "lm.arpa.gz"), run.record("lm", LanguageModel).arpa
    )
    lines = weight_files.format_weights(weights)
    files.write_lines(str(folder / "weights.txt"), lines)
    files.write_text(str(folder / "README.md"), _readme(settings))
    text = json.dumps(settings, indent=1) + "\n"
    files.write_text(str(folder / _SETTINGS), text)


def _readme(settings: Mapping[str, Any]) -> str:
  """How to translate with an exported folder."""
  sizes = " ".join(
    f"--{name}={settings[name]}" for name in ("span", "targets", *_SIZES)
  )
  if settings["kind"] == "phrase":
    more = ("kind", "distortion", "orientation")
    more = [f"--{name}={settings[name]}" for name in more if settings[name]]
    sizes = " ".join([sizes, *more])
  elif settings["kind"] != "scfg":
    sizes += f" --kind={settings['kind']}"
  trees = " --binarize" if settings["binarize"] else ""
  files_named = (
    "The same with every file and size named:\n\n"
    "    python launch/translate.py --grammar=FOLDER/grammar \\\n"
    "      --lm=FOLDER/lm.arpa.gz --weights=FOLDER/weights.txt \\\n"
    f"      {sizes} \\\n"
    "      --input=S --output=H\n\n"
  )
  if settings["dialect"] != "jaxmt":
    files_named = (
      "`grammar.gz`, `weights.txt` (`name value` lines) and `glue`, where there"
      f" is such\na file, are in the format and the units of"
      f" {settings['dialect']}.\n\n"
    )
  return (
    f"# jaxmt system `{settings['system']}`\n\n"
    "Tokenised text, one sentence a line; FOLDER is this folder:\n\n"
    "    python launch/translate.py --workdir=FOLDER --input=S --output=H\n\n"
    "Raw text: add `--source_language=.. --target_language=..`. Tree-to-string"
    f" rules\napply if there are trees of S: `--trees=P{trees}`.\n\n"
    f"{files_named}"
    "In Python: `jaxmt.load('FOLDER')`.\n"
  )


def _read_folder(
  path: str, system: str | None, lines: Sequence[str] | None
) -> Translator:
  """Loads what `export` wrote."""
  folder = pathlib.Path(path)
  place = str(folder / _SETTINGS)
  names = ("system", "grammar", "lm", "weights", "dialect", "span", "targets")
  settings = finished_run.parse_record(
    files.read_text(place), (*names, "binarize", *_SIZES), place
  )
  if settings.get("format") != FORMAT or settings.get("version") != VERSION:
    raise InputError(f"not {FORMAT} version {VERSION}", path=place)
  _check_settings(settings, place)
  if system is not None and system != settings["system"]:
    raise InputError(
      f"no system '{system}'; the folder has '{settings['system']}'", path=path
    )
  loaded = loading.load_files(
    str(folder / settings["grammar"]),
    lm=str(folder / settings["lm"]),
    weights=loading.read_weights(str(folder / settings["weights"])),
    dialect=settings["dialect"],
    span=settings["span"],
    targets=settings["targets"],
    lines=lines,
    kind=settings.get("kind", "scfg"),
    distortion=settings.get("distortion"),
    orientation=settings.get("orientation", ""),
    matching_of="jaxmt",  # whatever the format of the rules
  )
  sizes = {name: settings[name] for name in _SIZES}
  binarize = LEFT_HEAVY if settings["binarize"] else ""
  return dataclasses.replace(loaded, binarize=binarize, **sizes)


def _check_settings(settings: Mapping[str, Any], path: str) -> None:
  """Refuses settings that `export` does not write.

  Raises:
    InputError: naming the first one.
  """
  kinds = {
    **dict.fromkeys(("system", "grammar", "lm", "weights", "dialect"), str),
    **dict.fromkeys(("span", "targets", *_SIZES), int),
    "binarize": bool,
  }
  for name, kind in kinds.items():
    if type(settings[name]) is not kind:
      raise InputError(f"'{name}' is no {kind.__name__}", path=path)
  for name in ("grammar", "lm", "weights"):
    if settings[name] in ("", ".", "..") or "/" in settings[name]:
      raise InputError(f"'{name}' is not in this folder", path=path)
  if settings["dialect"] not in DIALECTS:
    raise InputError(f"no dialect '{settings['dialect']}'", path=path)
  sizes = {name: settings[name] for name in ("span", "targets", *_SIZES)}
  try:
    system_lib.check(system_lib.SearchStageConfig(**sizes))
  except ValueError as error:
    raise InputError(str(error), path=path) from error
