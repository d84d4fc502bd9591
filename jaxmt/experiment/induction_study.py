"""A study of unsupervised parsers: languages, models, starts and seeds.

Each run is a JSON file of a workdir, with the settings it was made with. A run
whose file is there, with the same settings, is not repeated.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.parse import attachment_scores, induction
from jaxmt.parse.induction import InductionConfig
from jaxmt.text import files, treebank

_SCORES = ("short_words_accuracy", "words_accuracy")


@dataclasses.dataclass(frozen=True, kw_only=True)
class InductionRun:
  """One parser of a study."""

  language: str
  config: InductionConfig

  @property
  def name(self) -> str:
    """What it is called in tables: its start, or its model if alone."""
    config = self.config
    return config.start if config.model == "dmv" else f"{config.model} alone"

  @property
  def file(self) -> str:
    """Its file below the workdir."""
    config = self.config
    return f"{self.language}.{config.model}.{config.start}.{config.seed}.json"

  def settings(self, data: str) -> dict[str, Any]:
    """All that the result depends on, as JSON has it."""
    return {
      **dataclasses.asdict(self.config),
      "language": self.language,
      "data": data,
      "verbs": sorted(self.config.verbs),
    }


_SETTINGS = ("data", "published")  # and the lists and numbers
_LISTS = ("languages", "models", "starts", "verbs")
_LEAST = {
  **{"max_length": 1, "iterations": 0, "concave_iterations": 1, "seeds": 1}
}


def _check(config: Any) -> None:
  """Raises `InputError` for a config that is none of a study, or is empty."""
  for name in (*_SETTINGS, *_LISTS, *_LEAST):
    if name not in config:
      raise InputError(f"--config: no study of parsers, it has no '{name}'")
  for name in _LISTS:
    values = config[name]
    if isinstance(values, str) or not all(isinstance(x, str) for x in values):
      raise InputError(f"--config.{name}: not names")
    if not values and name != "verbs":
      raise InputError(f"--config.{name} is empty")
  for name, least in _LEAST.items():
    if type(config[name]) is not int or config[name] < least:
      raise InputError(f"--config.{name} must be at least {least}")
  known = {"model": induction.MODELS, "start": induction.STARTS}
  for name, every in known.items():
    for one in config[f"{name}s"]:
      if one not in every:
        cause = f"no {name} '{one}'; there are: {', '.join(every)}"
        raise InputError(f"--config.{name}s: {cause}")
  for name in config.languages:  # a part of the names of files
    if "/" in name:
      raise InputError(f"--config.languages: '{name}' is in another folder")


def runs(config: Any) -> list[InductionRun]:
  """Returns the runs of a config, see `configs/induction.py`.

  Raises:
    InputError: for a config that makes no sense.
  """
  _check(config)
  base = InductionConfig(
    max_length=config.max_length,
    iterations=config.iterations,
    concave_iterations=config.concave_iterations,
    verbs=frozenset(config.verbs),
  )
  kinds: list[dict[str, Any]] = []
  for model in config.models:
    starts = config.starts if model == "dmv" else ("uniform",)
    for start in starts:
      for seed in range(config.seeds if start == "random" else 1):
        kinds.append({"model": model, "start": start, "seed": seed})
  return [
    InductionRun(language=language, config=dataclasses.replace(base, **kind))
    for language in config.languages
    for kind in kinds
  ]


def execute(
  work: Sequence[InductionRun], data: str, workdir: str
) -> Iterator[tuple[InductionRun, dict[str, Any]]]:
  """Yields every run and its result; what is in the workdir is not redone."""
  files.make_folder(workdir)
  done = set(files.list_folder(workdir))
  language, banks = "", ()
  for run in work:
    path = f"{workdir}/{run.file}"
    settings = run.settings(data)
    if run.file in done:
      result = _read(path)
      if result.get("settings") == settings:
        yield run, result
        continue
    if run.language != language:
      language = run.language
      banks = tuple(
        treebank.read_treebank(f"{data}/{language}.{part}.gz")
        for part in ("train", "test")
      )
      treebank.check_lengths(banks[1], f"{data}/{language}.test.gz")
    try:
      parser, history = induction.learn(banks[0], run.config)
    except ValueError as error:
      raise InputError(
        str(error), path=f"{data}/{language}.train.gz"
      ) from error
    scores = attachment_scores.attachment(
      banks[1], induction.parse(parser, banks[1])
    )
    result = {
      "settings": settings,
      "log_likelihood": history[-1] if history else 0.0,
      **scores,
    }
    files.write_text(path, json.dumps(result) + "\n")
    yield run, result


def _read(path: str) -> dict[str, Any]:
  values = files.read_json(path)
  if not isinstance(values, dict) or not all(
    isinstance(values.get(name), float) for name in _SCORES
  ):
    raise InputError("not the result of a run", path=path)
  return values


def table(
  results: Sequence[tuple[InductionRun, Mapping[str, Any]]],
  published: Mapping[str, Mapping[str, str]],
) -> list[dict[str, str]]:
  """Returns a row for each language: `short/all` of each start.

  Several seeds give their mean. Published figures stand in columns of their
  own. The last row has the means over languages.
  """
  names = list(dict.fromkeys(run.name for run, _ in results))
  languages = list(dict.fromkeys(run.language for run, _ in results))
  cells = {
    (language, name): np.mean(
      [
        [result[score] for score in _SCORES]
        for run, result in results
        if (run.language, run.name) == (language, name)
      ],
      axis=0,
    )
    for language in languages
    for name in names
  }
  pair = lambda values: f"{values[0]:.1f}/{values[1]:.1f}"
  rows = []
  for language in languages:
    row = {"language": language}
    for name in names:
      row[name] = pair(cells[language, name])
      if language in published.get(name, {}):
        row[f"{name}, thesis"] = published[name][language]
    rows.append(row)
  mean = {"language": "mean"}
  for name in names:
    mean[name] = pair(np.mean([cells[one, name] for one in languages], axis=0))
    known = [published.get(name, {}).get(language) for language in languages]
    if all(known):
      values = [[float(x) for x in str(text).split("/")] for text in known]
      mean[f"{name}, thesis"] = pair(np.mean(values, axis=0))
  return [*rows, mean]
