"""The results of an experiment: numbers, statistics and the report."""

import hashlib
import io
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmt.experiment import config as config_lib
from jaxmt.experiment import report_page
from jaxmt.experiment.outcome import Outcome, SystemArtefacts
from jaxmt.experiment.pipeline import Run
from jaxmt.experiment.stages.corpus import PARTS
from jaxmt.metrics import bleu
from jaxmt.report import layouts, text_tables
from jaxmt.text import files

# Of what tuning or learning of weights measures, what studies may show.
_TUNING_MEASURES = (
  "rounds",
  "nonzero",
  "reached_percent",
  "words_reached_percent",
  "valid_percent",
  "learning_sentences_per_second",
)


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
  page = report_page.make_page(str(run.workdir), outcome, comparison(outcome))
  files.write_text(str(run.workdir / "report.html"), page)
  baseline = next(iter(outcome.translations))
  parts = [("Corpus", outcome.described.value.rows)]
  parts += [
    (title, rows)
    for title, rows in (
      ("Alignment against the given links", _alignment(outcome)),
      (f"Language model, order {outcome.config.lm.order}", _lm(outcome)),
      ("Grammar", _grammar(outcome)),
      ("Rule probabilities, by iteration", _training(outcome)),
      (
        "Ranks of what is learned from, in percent",
        report_page.rank_shares(outcome),
      ),
      ("Tuning, by round", _tuning(outcome)),
      ("Seconds", _seconds(outcome)),
      ("Examples", _examples(outcome, count=3)),
      (f"Systems (*: differs from {baseline}, p < 0.05)", comparison(outcome)),
    )
    if rows
  ]
  return "\n\n".join(
    f"{title}\n\n{text_tables.text(rows)}" for title, rows in parts
  )


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
    "curves": {
      name: [[row["round"], row["score"]] for row in system.value.history]
      for name, system in outcome.tuned.items()
    },
    "measures": _all_measures(outcome),
  }


def _digest(references: Sequence[Sequence[str]]) -> str:
  """Tells test sets apart: equal for the same references in the same order."""
  text = config_lib.to_json(list(references))
  return hashlib.sha256(text.encode()).hexdigest()


def _scores(outcome: Outcome, part: str) -> dict[str, dict[str, float]]:
  scores: dict[str, dict[str, float]] = {}
  for row in outcome.scores[part].value.rows:
    scores.setdefault(row["system"], {})[row["metric"]] = row["score"]
  return scores


def _p_values(outcome: Outcome) -> dict[str, dict[str, float]]:
  """On test, against the baseline."""
  p_values: dict[str, dict[str, float]] = {}
  for row in outcome.scores["test"].value.rows:
    if "p_value" in row:
      p_values.setdefault(row["system"], {})[row["metric"]] = row["p_value"]
  return p_values


def _all_measures(outcome: Outcome) -> dict[str, dict[str, float]]:
  """What was measured of each system; of the first, extraction, too."""
  measures = {
    name: _measures(system) for name, system in outcome.systems.items()
  }
  for name, system in outcome.others.items():
    stages = system.stages.items()
    measures[name] = {f"{stage}_seconds": one.seconds for stage, one in stages}
    measures[name]["seconds"] = round(sum(measures[name].values()), 3)
  if outcome.grammar and outcome.grammar.seconds and measures:
    pairs = len(outcome.corpus.value.train_source)
    speed = round(pairs / outcome.grammar.seconds, 3)
    first = measures[next(iter(measures))]
    first.setdefault("sentences_per_second", speed)
    first["rules"] = outcome.grammar.value.metrics["rules"]
  for part in PARTS:
    for name, values in _lengths(outcome, part).items():
      if name in measures:
        measures[name] |= values
  for name, share in _changes(outcome).items():
    if name in measures:
      measures[name]["test_changed"] = share
  return measures


def _changes(outcome: Outcome) -> dict[str, float]:
  """The percentage of test translations unlike the baseline's, by system."""
  lines = {
    name: artefact.value.hypothesis("test")
    for name, artefact in outcome.translations.items()
  }
  baseline, *others = lines
  share = lambda name: np.mean(
    [
      one != other
      for one, other in zip(lines[name], lines[baseline], strict=True)
    ]
    or [0]
  )
  return {name: round(100 * float(share(name)), 2) for name in others}


def _lengths(outcome: Outcome, part: str) -> dict[str, dict[str, float]]:
  """Tells what of BLEU is of lengths: of a score, precision and penalty.

  Returns:
    By system, words of the output per reference word, the brevity penalty, and
    BLEU without it in percent.
  """
  scores, order = outcome.scores[part].value, outcome.config.evaluate.order
  measures = {}
  for number, name in enumerate(outcome.translations):
    if "bleu" not in scores.statistics:
      break
    sums = np.asarray(scores.statistics["bleu"][number], np.float64).sum(0)
    length, reference = sums[order], sums[2 * order]
    penalty = float(bleu.brevity_penalty(np, length, reference))
    value = 100 * float(bleu.score(sums, order=order))
    measures[name] = {
      f"{part}_length_ratio": round(float(length / max(reference, 1)), 4),
      f"{part}_brevity_penalty": round(penalty, 4),
      f"{part}_precision": round(value / max(penalty, 1e-9), 3),
    }
  return measures


def _measures(system: SystemArtefacts) -> dict[str, float]:
  """Seconds of a system's own stages, and what training reports.

  The speed is that of the fastest iteration: others may include compilation.
  """
  measures = {
    f"{name}_seconds": one.seconds for name, one in system.stages.items()
  }
  measures["seconds"] = round(sum(measures.values()), 3)
  for name, value in (system.tune.value.metrics or {}).items():
    if name in _TUNING_MEASURES:
      measures[name] = value
  if system.learned is not None:
    for name, value in system.learned.value.metrics.items():
      if isinstance(value, int | float):
        measures[name] = value
  speeds = [
    record["sentences_per_second"]
    for record in system.history
    if record.get("sentences_per_second")
  ]
  if speeds:
    measures["sentences_per_second"] = max(speeds)
  return measures


def comparison(outcome: Outcome) -> list[dict[str, Any]]:
  """Returns one row for each system: its scores, `*` where p < 0.05.

  Tune scores are of the first metric only. Beside the scores of a trained
  system stands the share of its counts that are not of derivations it chose.
  """
  metrics = outcome.config.evaluate.metrics
  tuned, rows = _scores(outcome, "tune"), {}
  measures = _all_measures(outcome)
  for row in outcome.scores["test"].value.rows:
    name = row["system"]
    line = rows.setdefault(
      name,
      {"system": name, f"tune {metrics[0]}": f"{tuned[name][metrics[0]]:.2f}"},
    )
    mark = "*" if row.get("p_value", 1.0) < 0.05 else ""
    line[row["metric"]] = f"{row['score']:.2f}{mark}"
    if row["metric"] == metrics[0] and "p_value" in row:
      line["p"] = f"{row['p_value']:.4f}"
    if "fallback_mass_share" in measures.get(name, {}):
      line[layouts.FALLBACK] = layouts.percent(
        measures[name]["fallback_mass_share"]
      )
  first = [*metrics, "p", layouts.FALLBACK]
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
  for name, system in outcome.systems.items():
    for record in system.history:
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
    for name, system in outcome.tuned.items()
    for record in system.value.history
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
    for name, stages in outcome.system_stages.items()
    for stage, one in stages.items()
  ]


def _examples(outcome: Outcome, *, count: int) -> list[dict[str, str]]:
  """Sentences side by side, where the systems differ first."""
  lines = {
    name: one.value.test_hypothesis
    for name, one in outcome.translations.items()
  }
  outputs = [lines[name] for name in outcome.systems]
  total = len(outcome.corpus.value.test_source)
  differ = [n for n in range(total) if len({line[n] for line in outputs}) > 1]
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
