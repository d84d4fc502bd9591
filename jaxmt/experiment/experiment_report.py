"""The results of an experiment: numbers, statistics and the report."""

import dataclasses
import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.experiment import config as config_lib
from jaxmt.experiment.pipeline import Artefact, Run
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus, Description, Translations
from jaxmt.experiment.stages.evaluate import Scores
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import Theta, Tuned
from jaxmt.experiment.stages.theta import LearnedTheta
from jaxmt.report import page, plots, tables
from jaxmt.runtime import provenance
from jaxmt.text import files

_EXAMPLES = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class SystemArtefacts:
  """The artefacts of one system.

  Attributes:
    learned: θ of the last epoch, None if the system trains none.
    theta: the same mixed with the baseline's, or None.
    tune: weights of the last epoch.
    decode: translations.
  """

  learned: Artefact[LearnedTheta] | None
  theta: Artefact[Theta] | None
  tune: Artefact[Tuned]
  decode: Artefact[Translations]

  @property
  def stages(self) -> dict[str, Artefact]:
    """The artefacts by name, without those that the system lacks."""
    names = [field.name for field in dataclasses.fields(self)]
    found = {name: getattr(self, name) for name in names}
    return {name: one for name, one in found.items() if one is not None}

  @property
  def history(self) -> list[dict[str, Any]]:
    """One record for each iteration of training θ."""
    return [] if self.learned is None else self.learned.value.history


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
  """A finished experiment.

  Attributes:
    config: the `ExperimentConfig`.
    corpus: the text.
    described: sizes of the corpus.
    links: word links.
    lm: the language model.
    grammar: the rules, or None without any system.
    systems: the artefacts of each system.
    translations: of each system, and the glosses.
    scores: evaluation by part.
  """

  config: Any
  corpus: Artefact[Corpus]
  described: Artefact[Description]
  links: Artefact[Links]
  lm: Artefact[LanguageModel]
  grammar: Artefact[Grammar] | None
  systems: Mapping[str, SystemArtefacts]
  translations: Mapping[str, Artefact[Translations]]
  scores: Mapping[str, Artefact[Scores]]


def publish(run: Run, outcome: Outcome) -> str:
  """Writes results.json, statistics.npz and report.html; returns the table."""
  statistics = outcome.scores["test"].value.statistics
  arrays = {
    f"{system}/{metric}": statistics[metric][number]
    for metric in outcome.config.evaluate.metrics
    for number, system in enumerate(outcome.translations)
  }
  _write_arrays(str(run.workdir / "statistics.npz"), arrays)
  run.write_json("results.json", results(outcome))
  files.write_text(str(run.workdir / "report.html"), _report(outcome))
  baseline = next(iter(outcome.translations))
  parts = [("Corpus", outcome.described.value.rows)]
  parts += [
    (title, rows)
    for title, rows in (
      ("Alignment against the given links", _alignment(outcome)),
      (f"Language model, order {outcome.config.lm.order}", _lm(outcome)),
      ("Grammar", _grammar(outcome)),
      ("Rule probabilities, by iteration", _training(outcome)),
      ("Tuning, by round", _tuning(outcome)),
      ("Seconds", _seconds(outcome)),
      ("Examples", _examples(outcome, count=3)),
      (f"Systems (*: differs from {baseline}, p < 0.05)", comparison(outcome)),
    )
    if rows
  ]
  return "\n\n".join(f"{title}\n\n{tables.text(rows)}" for title, rows in parts)


def results(outcome: Outcome) -> dict[str, Any]:
  """Returns the numbers of an experiment.

  All but "measures" are the same whenever it is run again.
  """
  signatures = outcome.scores["test"].value.signatures
  return {
    "systems": _scores(outcome, "test"),
    "tune": _scores(outcome, "tune"),
    "baseline": next(iter(outcome.translations)),
    "significance": _p_values(outcome),
    "signatures": signatures,
    "alignment": _alignment(outcome),
    "language_model": outcome.lm.value.metrics,
    "grammar": outcome.grammar.value.metrics if outcome.grammar else {},
    "corpus": outcome.described.value.rows,
    "test_references": _digest(outcome.corpus.value.test_references),
    "measures": _all_measures(outcome),
  }


def _digest(references: Sequence[Sequence[str]]) -> str:
  """Tells test sets apart: equal for the same references in the same order."""
  text = config_lib.to_json(list(references))
  return hashlib.sha256(text.encode()).hexdigest()


def _scores(outcome: Outcome, part: str) -> dict[str, dict[str, float]]:
  found: dict[str, dict[str, float]] = {}
  for row in outcome.scores[part].value.rows:
    found.setdefault(row["system"], {})[row["metric"]] = row["score"]
  return found


def _p_values(outcome: Outcome) -> dict[str, dict[str, float]]:
  """On test, against the baseline."""
  found: dict[str, dict[str, float]] = {}
  for row in outcome.scores["test"].value.rows:
    if "p_value" in row:
      found.setdefault(row["system"], {})[row["metric"]] = row["p_value"]
  return found


def _all_measures(outcome: Outcome) -> dict[str, dict[str, float]]:
  """What was measured of each system; of the baseline, its extraction too."""
  found = {name: _measures(own) for name, own in outcome.systems.items()}
  if outcome.grammar and outcome.grammar.seconds and found:
    pairs = len(outcome.corpus.value.train_source)
    speed = round(pairs / outcome.grammar.seconds, 3)
    found[next(iter(found))].setdefault("sentences_per_second", speed)
  return found


def _measures(own: SystemArtefacts) -> dict[str, float]:
  """Seconds of a system's own stages, and what training reports.

  The speed is that of the fastest iteration: others may include compilation.
  """
  found = {f"{name}_seconds": one.seconds for name, one in own.stages.items()}
  found["seconds"] = round(sum(found.values()), 3)
  found["rounds"] = (own.tune.value.metrics or {})["rounds"]
  if own.learned is not None:
    for name, value in own.learned.value.metrics.items():
      if isinstance(value, int | float):
        found[name] = value
  speeds = [
    record["sentences_per_second"]
    for record in own.history
    if record.get("sentences_per_second")
  ]
  if speeds:
    found["sentences_per_second"] = max(speeds)
  return found


def comparison(outcome: Outcome) -> list[dict[str, Any]]:
  """Returns one row for each system: its scores, `*` where p < 0.05.

  Tune scores are of the first metric only.
  """
  metrics = outcome.config.evaluate.metrics
  tuned, rows = _scores(outcome, "tune"), {}
  for row in outcome.scores["test"].value.rows:
    name = row["system"]
    own = rows.setdefault(
      name,
      {"system": name, f"tune {metrics[0]}": f"{tuned[name][metrics[0]]:.2f}"},
    )
    mark = "*" if row.get("p_value", 1.0) < 0.05 else ""
    own[row["metric"]] = f"{row['score']:.2f}{mark}"
    if row["metric"] == metrics[0] and "p_value" in row:
      own["p"] = f"{row['p_value']:.4f}"
  first = [*metrics, "p"]
  return [
    {k: row[k] for k in ("system", f"tune {metrics[0]}", *first) if k in row}
    for row in rows.values()
  ]


def _alignment(outcome: Outcome) -> list[dict[str, Any]]:
  row = dict(outcome.links.value.metrics or {})
  row.pop("perplexity", None)
  return [{"model": outcome.config.align.model, **row}] if row else []


def _lm(outcome: Outcome) -> list[dict[str, Any]]:
  return [outcome.lm.value.metrics]


def _grammar(outcome: Outcome) -> list[dict[str, Any]]:
  if outcome.grammar is None:
    return []
  return [
    {"kind": outcome.config.grammar.kind, **outcome.grammar.value.metrics}
  ]


def _training(outcome: Outcome) -> list[dict[str, Any]]:
  rows = []
  for name, own in outcome.systems.items():
    for record in own.history:
      flat = {k: v for k, v in record.items() if not isinstance(v, dict)}
      rows.append({"system": name, **flat})
  return rows


def _tuning(outcome: Outcome) -> list[dict[str, Any]]:
  return [
    {
      "system": name,
      "round": record["round"],
      "score": record["score"],
      "length ratio": record["length_ratio"],
      "pool": record.get("pool"),
      "new": record.get("new"),
      "loss": record.get("loss"),
      "change": record.get("change"),
    }
    for name, own in outcome.systems.items()
    for record in own.tune.value.history
  ]


def _seconds(outcome: Outcome) -> list[dict[str, Any]]:
  common = {
    "align": outcome.links,
    "lm": outcome.lm,
    "grammar": outcome.grammar,
  }
  rows = [
    {"system": "all", "stage": name, "seconds": one.seconds}
    for name, one in common.items()
    if one is not None
  ]
  return rows + [
    {"system": name, "stage": stage, "seconds": one.seconds}
    for name, own in outcome.systems.items()
    for stage, one in own.stages.items()
  ]


def _examples(outcome: Outcome, *, count: int) -> list[dict[str, str]]:
  """Sentences side by side, where the systems differ first."""
  lines = {
    name: one.value.test_hypothesis
    for name, one in outcome.translations.items()
  }
  own = [lines[name] for name in outcome.systems]
  total = len(outcome.corpus.value.test_source)
  differ = [n for n in range(total) if len({line[n] for line in own}) > 1]
  chosen = (differ + [n for n in range(total) if n not in set(differ)])[:count]
  rows = []
  for number in chosen:
    rows += [
      {"": "source", "text": outcome.corpus.value.test_source[number]},
      {
        "": "reference",
        "text": outcome.corpus.value.test_references[number][0],
      },
      *({"": name, "text": line[number]} for name, line in lines.items()),
    ]
  return rows


def _write_arrays(path: str, arrays: dict[str, np.ndarray]) -> None:
  """Writes an npz without time stamps: equal arrays give equal bytes."""
  with files.atomic_writer(path) as out:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
      for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        archive.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getvalue())


def _pictures(outcome: Outcome) -> dict[str, list[str]]:
  """The plots, by section."""
  metric = outcome.config.evaluate.metrics[0]
  rows = [r for r in outcome.scores["test"].value.rows if r["metric"] == metric]
  drawn = {
    "Comparison": plots.bars(
      {row["system"]: row["score"] for row in rows},
      label=f"{metric} on test (95 % interval)",
      errors={row["system"]: row.get("margin", 0.0) for row in rows},
    )
  }
  curves = {
    name: _curve(own.tune.value.history, "round", "score")
    for name, own in outcome.systems.items()
  }
  if curves:
    drawn["Tuning"] = plots.lines(
      curves,
      x_label="round",
      y_label=f"{outcome.config.tune.metric} on tune, decoded",
    )
  learning = {
    name: _curve(own.history, "iteration", "model_score")
    for name, own in outcome.systems.items()
    if own.learned is not None
    and all("model_score" in record for record in own.history)
  }
  if learning:
    drawn["Training"] = plots.lines(
      learning, x_label="iteration", y_label="model score of the best"
    )
  return {
    title: [page.image(png, title)] for title, png in drawn.items() if png
  }


def _curve(
  history: Sequence[Mapping[str, Any]], x: str, y: str
) -> tuple[list[float], list[float]]:
  return [row[x] for row in history], [row[y] for row in history]


def _report(outcome: Outcome) -> str:
  pictures = _pictures(outcome)
  commit = provenance.commit()["commit"] or "unknown"
  signatures = [
    {"metric": name, "signature": value}
    for name, value in outcome.scores["test"].value.signatures.items()
  ]
  weights = [
    {"weight": name}
    | {
      system: own.tune.value.weights.get(name)
      for system, own in outcome.systems.items()
    }
    for name in _weight_names(outcome)
  ]
  titled = [
    ("Comparison", comparison(outcome)),
    ("Examples", _examples(outcome, count=_EXAMPLES)),
    ("Training", _training(outcome)),
    ("Tuning", _tuning(outcome)),
    ("Weights", weights),
    ("Seconds", _seconds(outcome)),
    ("Corpus", outcome.described.value.rows),
    ("Alignment", _alignment(outcome)),
    ("Language model", _lm(outcome)),
    ("Grammar", _grammar(outcome)),
    ("Signatures", signatures),
  ]
  sections = [
    page.section(title, tables.as_html(rows), *pictures.get(title, ()))
    for title, rows in titled
    if rows
  ]
  shown = page.preformatted(config_lib.to_json(outcome.config))
  return page.page(
    "jaxmt experiment",
    [*sections, page.section("Config", shown)],
    footer=f"commit {commit}",
  )


def _weight_names(outcome: Outcome) -> list[str]:
  """Names of all dense weights, in order of first appearance."""
  return list(
    dict.fromkeys(
      name
      for own in outcome.systems.values()
      for name in own.tune.value.weights
      if ":" not in name  # sparse ones are too many to show
    )
  )
