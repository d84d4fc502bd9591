"""Experiments: which stages run, and what people see of them.

`launch/train.py` runs one, `launch/sweep.py` many. A config of the shape of
`ExperimentConfig` says what; `configs/` has them.
"""

import dataclasses
import io
import zipfile
from typing import Any

import ml_collections
import numpy as np

from jaxmt import config as config_lib
from jaxmt import pipeline, provenance
from jaxmt.data import files
from jaxmt.data.synthetic import SyntheticConfig
from jaxmt.errors import InputError
from jaxmt.pipeline import Artefact, Run
from jaxmt.report import page, plots, tables
from jaxmt.stages import align, corpus, evaluate, gloss, lm
from jaxmt.stages.align import AlignStageConfig
from jaxmt.stages.corpus import FilesConfig
from jaxmt.stages.evaluate import EvaluateConfig
from jaxmt.stages.lm import LmStageConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
  """Where the corpus comes from.

  Attributes:
    kind: "synthetic" for the embedded corpus, or "files".
    synthetic: the embedded corpus; its seed is the experiment's.
    files: the files.
  """

  kind: str = "synthetic"
  synthetic: SyntheticConfig = dataclasses.field(
    default_factory=SyntheticConfig
  )
  files: FilesConfig = dataclasses.field(default_factory=FilesConfig)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
  """A whole experiment.

  Attributes:
    seed: of everything random.
    data: the corpus.
    aligners: alignment models; each makes a system of its own.
    align: settings they share.
    lm: the language model.
    evaluate: metrics and significance test.
  """

  seed: int = 0
  data: DataConfig = dataclasses.field(default_factory=DataConfig)
  aligners: tuple[str, ...] = ("diagonal", "hmm", "given")
  align: AlignStageConfig = dataclasses.field(default_factory=AlignStageConfig)
  lm: LmStageConfig = dataclasses.field(default_factory=LmStageConfig)
  evaluate: EvaluateConfig = dataclasses.field(default_factory=EvaluateConfig)


def freeze(config: ml_collections.ConfigDict) -> ExperimentConfig:
  """Returns the checked, frozen form of a config file's values."""
  frozen = config_lib.freeze(ExperimentConfig, config)
  if frozen.data.kind not in ("synthetic", "files"):
    raise InputError(
      f"config key 'data.kind': '{frozen.data.kind}' is neither 'synthetic'"
      " nor 'files'"
    )
  embedded = dataclasses.replace(frozen.data.synthetic, seed=frozen.seed)
  data = dataclasses.replace(frozen.data, synthetic=embedded)
  return dataclasses.replace(frozen, data=data)


def run(run: Run, config: ExperimentConfig) -> str:
  """Runs what is not done yet; writes results and report.

  Returns:
    The comparison as a text table.
  """
  text = _corpus(run, config.data)
  links = {
    model: run.stage(
      f"align-{model}",
      align.align,
      config=dataclasses.replace(config.align, model=model),
      corpus=text,
    )
    for model in config.aligners
  }
  model = run.stage("lm", lm.language_model, config=config.lm, corpus=text)
  choice = gloss.GlossConfig(part=config.evaluate.part)
  systems = {
    f"gloss_{name}": run.stage(
      f"gloss-{name}", gloss.gloss, config=choice, corpus=text, links=found
    )
    for name, found in links.items()
  }
  systems["copy"] = run.stage("copy", gloss.copy, config=choice, corpus=text)
  scores = run.stage(
    "evaluate",
    evaluate.evaluate,
    config=config.evaluate,
    corpus=text,
    **systems,
  )
  described = run.stage("describe", corpus.describe, corpus=text)
  return _publish(run, config, described, links, model, systems, scores, text)


def _corpus(run: Run, config: DataConfig) -> Artefact:
  if config.kind == "synthetic":
    return run.stage("corpus", corpus.embedded, config=config.synthetic)
  inputs = {
    parameter: pipeline.source_file(path)
    for parameter, path in corpus.input_paths(config.files).items()
  }
  return run.stage("corpus", corpus.from_files, config=config.files, **inputs)


def comparison(scores: Artefact, metrics: tuple[str, ...]) -> list[dict]:
  """Returns one row for each system: its scores, `*` where p < 0.05."""
  rows: dict[str, dict[str, Any]] = {}
  for row in scores["rows"]:
    own = rows.setdefault(row["system"], {"system": row["system"]})
    mark = "*" if row.get("p_value", 1.0) < 0.05 else ""
    own[row["metric"]] = f"{row['score']:.2f}{mark}"
  return [
    {key: row[key] for key in ("system", *metrics)} for row in rows.values()
  ]


def _publish(run, config, described, links, model, systems, scores, text):
  """Writes results.json, statistics.npz and report.html; returns the table."""
  found: dict[str, dict[str, float]] = {}
  for row in scores["rows"]:
    found.setdefault(row["system"], {})[row["metric"]] = row["score"]
  aligned = [
    {"model": name, **artefact.values.get("metrics", {})}
    for name, artefact in links.items()
  ]
  for row in aligned:
    row.pop("perplexity", None)
  run.write_json(
    "results.json",
    {
      "systems": found,
      "baseline": next(iter(systems)),
      "signatures": scores["signatures"],
      "alignment": aligned,
      "language_model": model["metrics"],
      "corpus": described["rows"],
    },
  )
  arrays = {
    f"{system}/{metric}": scores[f"statistics_{metric}"][number]
    for metric in config.evaluate.metrics
    for number, system in enumerate(systems)
  }
  _write_arrays(str(run.workdir / "statistics.npz"), arrays)
  table = comparison(scores, config.evaluate.metrics)
  samples = _samples(text, systems, config.evaluate.part)
  html = _report(config, table, described, aligned, model, scores, samples)
  files.write_text(str(run.workdir / "report.html"), html)
  parts = [
    ("Corpus", tables.text(described["rows"])),
    ("Alignment against the given links", tables.text(aligned)),
    (
      f"Language model, order {config.lm.order}",
      tables.text([model["metrics"]]),
    ),
    (
      f"Systems on {config.evaluate.part} (*: differs from "
      f"{next(iter(systems))}, p < 0.05)",
      tables.text(table),
    ),
  ]
  return "\n\n".join(f"{title}\n\n{body}" for title, body in parts)


def _write_arrays(path: str, arrays: dict[str, np.ndarray]) -> None:
  """Writes an npz without time stamps: equal arrays give equal bytes."""
  with files.atomic_writer(path) as out:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
      for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        archive.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getvalue())


def _samples(text, systems, part: str) -> list[dict[str, str]]:
  """The first sentences with what each system makes of them."""
  return [
    {
      "source": text[f"{part}_source"][number],
      "reference": text[f"{part}_references"][number][0],
      **{name: s["hypothesis"][number] for name, s in systems.items()},
    }
    for number in range(min(8, len(text[f"{part}_source"])))
  ]


def _report(config, table, described, aligned, model, scores, samples) -> str:
  metric = config.evaluate.metrics[0]
  rows = [row for row in scores["rows"] if row["metric"] == metric]
  chart = plots.bars(
    {row["system"]: row["score"] for row in rows},
    label=f"{metric} on {config.evaluate.part} (95 % interval)",
    errors={row["system"]: row.get("margin", 0.0) for row in rows},
  )
  pictures = [page.image(chart, "scores of the systems")] if chart else []
  commit = provenance.commit()["commit"] or "unknown"
  signatures = [
    {"metric": name, "signature": value}
    for name, value in scores["signatures"].items()
  ]
  return page.page(
    "jaxmt experiment",
    [
      page.section("Comparison", tables.as_html(table), *pictures),
      page.section("Examples", tables.as_html(samples)),
      page.section("Corpus", tables.as_html(described["rows"])),
      page.section("Alignment", tables.as_html(aligned)),
      page.section("Language model", tables.as_html([model["metrics"]])),
      page.section("Signatures", tables.as_html(signatures)),
      page.section("Config", page.preformatted(config_lib.to_json(config))),
    ],
    footer=f"commit {commit}",
  )
