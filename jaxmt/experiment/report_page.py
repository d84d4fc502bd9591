"""The report of an experiment: what `jaxmt/report/static` draws, as data.

The page holds one block of numbers, the texts of all test sentences, and
derivations, charts and lists in compressed blocks that are unpacked when a
sentence is opened. Charts are the largest: sentences that changed most come
first, as many as there is room for in a page of `_PAGE_BYTES`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.experiment import config as config_lib
from jaxmt.experiment import systems as system_names
from jaxmt.experiment.outcome import Outcome, TreeArtefacts
from jaxmt.experiment.stages.inspect import Inspection, sentence_scores
from jaxmt.inspection import phrase_tree_views
from jaxmt.metrics import named_metrics
from jaxmt.report import blocks, html, page
from jaxmt.report.views import AlignmentView
from jaxmt.runtime import code_versions
from jaxmt.text import links as links_lib
from jaxmt.train import beam_diagnosis

_CHUNK = 50  # sentences of a block
_PAGE_BYTES = 4_600_000  # that charts may fill the page to
_CHART_BYTES = 300_000  # of charts at least, however large the rest is
_EXAMPLES = 8  # training pairs whose links are shown
_START = "jaxmt.report(); jaxmt.start();"


def make_page(
  workdir: str, outcome: Outcome, comparison: Sequence[Mapping[str, Any]]
) -> str:
  """Returns the report.

  Args:
    workdir: of the run, for commands that the page names.
    outcome: the finished experiment.
    comparison: one row for each system.
  """
  index = _index(outcome)
  parts = [blocks.packed("index", _json(index))]
  views: dict[str, Any] = {"charts": [], "features": [], "weights": []}
  if outcome.inspection is not None:
    views = _inspected(outcome.inspection.value, index, outcome, parts)
  commit = code_versions.commit()["commit"] or "unknown"
  data = {
    "workdir": workdir,
    "chunk": _CHUNK,
    "size": len(index["source"]),
    "baseline": next(iter(outcome.translations)),
    "outputs": list(outcome.translations),
    "systems": list(outcome.systems),
    "comparison": [dict(row) for row in comparison],
    "about": _about(outcome),
    "made": f"jaxmt, commit {commit}",
    **_scores(outcome),
    **_data(outcome),
    **_learning(outcome),
    **views,
  }
  parts.insert(0, blocks.plain("report", data))
  return page.page(
    "jaxmt experiment",
    [*parts, *_pictures(outcome)],
    footer=f"commit {commit}",
    scripts=page.REPORT,
    start=_START,
  )


def _pictures(outcome: Outcome) -> list[str]:
  """Sections with the trees over phrases of the first test sentences."""
  lines = outcome.corpus.value.test_source
  sections = []
  for name, system in outcome.others.items():
    if not isinstance(system, TreeArtefacts):
      continue
    drawn = [
      html.drawn(phrase_tree_views.view_of(picture, line.split()))
      for picture, line in zip(
        system.decode.value.pictures, lines, strict=False
      )
      if picture
    ]
    sections.append(page.section(f"Trees over phrases: {name}", *drawn))
  return sections


def _json(value: Any) -> str:
  return json.dumps(
    value, ensure_ascii=False, separators=(",", ":"), allow_nan=False
  )


def _index(outcome: Outcome) -> dict[str, Any]:
  """The texts of all test sentences, and what they are sorted by."""
  corpus = outcome.corpus.value
  known = {word for line in corpus.train_source for word in line.split()}
  unknown = [
    [word for word in line.split() if word not in known]
    for line in corpus.test_source
  ]
  statistics = outcome.scores["test"].value.statistics
  scores = {
    name: {
      system: np.round(row, 1).tolist()
      for system, row in zip(
        outcome.translations, sentence_scores(name, values), strict=True
      )
    }
    for name, values in statistics.items()
  }
  return {
    "source": corpus.test_source,
    "references": corpus.test_references,
    "outputs": {
      name: one.value.test_hypothesis
      for name, one in outcome.translations.items()
    },
    "scores": scores,
    "length": [len(line.split()) for line in corpus.test_source],
    "unknown": [len(words) for words in unknown],
    "unknownWords": sorted({word for words in unknown for word in words}),
    "errors": {},
  }


def _inspected(
  views: Inspection,
  index: dict[str, Any],
  outcome: Outcome,
  parts: list[str],
) -> dict[str, Any]:
  """Adds the blocks of single sentences; returns what the page says of them."""
  sentences = [json.loads(line) for line in views.sentences]
  charts: dict[int, str] = {}
  for number, one in enumerate(sentences):
    if "x" in one:
      charts[number] = _json(one.pop("x"))
    if "m" in one:
      index["errors"][number] = one.pop("m")
  parts[0] = blocks.packed("index", _json(index))  # now with search errors
  parts.append(blocks.packed("rules", blocks.joined(list(views.rules))))
  parts.append(blocks.packed("training", _json(_quotes(views, outcome))))
  for first in range(0, len(sentences), _CHUNK):
    some = [_json(one) for one in sentences[first : first + _CHUNK]]
    name = f"sentences-{first // _CHUNK}"
    parts.append(blocks.packed(name, blocks.joined(some)))
  room = max(_PAGE_BYTES - sum(map(len, parts)), _CHART_BYTES)
  shown = []
  for number in _by_change(outcome, index, list(charts)):
    block = blocks.packed(f"chart-{number}", charts[number])
    if len(block) <= room:
      room -= len(block)
      shown.append(number)
      parts.append(block)
  figures = [{"system": row["system"], **row["figure"]} for row in views.search]
  plain = [
    {name: value for name, value in row.items() if name != "figure"}
    for row in views.search
  ]
  series: dict[str, list[list[float]]] = {}
  for row in views.beams:
    points = series.setdefault(row["system"], [])
    points.append([row["beam"], row["missed %"]])
  numbers = views.metrics
  stacks = outcome.config.grammar.kind == "phrase"
  reach = (
    f"Of {numbers['sample']} test sentences, evenly spread, the rules can"
    f" derive the first reference of {numbers['sample_reached']}. Where they"
    " cannot, the page compares with the best translation that any system's"
    " list has. launch/force.py tells it of whole texts, with reasons."
  )
  if stacks:
    reach = (
      "References are not derived with phrase tables. The page compares with"
      " the best translation that any system's list has."
    )
  return {
    "stacks": stacks,
    "charts": sorted(shown),
    "features": views.features,
    "weights": views.weights,
    "searchRows": plain,
    "ranks": figures,
    "fill": [
      {"system": row["system"], "points": row["fill"]} for row in figures
    ],
    "beams": views.beams,
    "beamSeries": series,
    "moved": views.moved,
    "importance": views.importance,
    "reach": reach,
  }


def rank_shares(outcome: Outcome) -> list[dict[str, Any]]:
  """Returns how the ranks of parts of chosen derivations spread, in percent.

  In the training search, and in the plain decoder's beams.
  """
  rows = []
  for system, artefacts in outcome.systems.items():
    for record in artefacts.history:
      for kind, label in (("ranks", "training"), ("plain_ranks", "decoder")):
        counts = record.get(kind)
        if not counts:
          continue
        total = sum(counts.values())
        shares = {
          f"rank {name}": round(100 * counts.get(name, 0) / total, 1)
          for name in beam_diagnosis.BINS
        }
        rows.append(
          {
            "system": system,
            "iteration": record["iteration"],
            "beam of": label,
            "parts": total,
            **shares,
          }
        )
  return rows


def _quotes(views: Inspection, outcome: Outcome) -> dict[str, Any]:
  """Training pairs that hold rules: their rows by rule, and their texts."""
  corpus = outcome.corpus.value
  rows = sorted({row for _, some in views.pairs for row in some})
  return {
    "rules": {str(rule): some for rule, some in views.pairs},
    "texts": {
      str(row): [corpus.train_source[row], corpus.train_target[row]]
      for row in rows
    },
  }


def _by_change(
  outcome: Outcome, index: dict[str, Any], numbers: list[int]
) -> list[int]:
  """Sentences by how much the first metric differs between the systems."""
  metric = outcome.config.evaluate.metrics[0]
  rows = np.array(
    [index["scores"][metric][name] for name in outcome.systems]
  ).reshape(len(outcome.systems), -1)
  change = np.abs(rows - rows[:1]).max(0)
  return sorted(numbers, key=lambda number: (-change[number], number))


def _about(outcome: Outcome) -> str:
  """Says in one paragraph what is compared."""
  config = outcome.config
  corpus = outcome.corpus.value
  text = (
    f"{len(corpus.train_source):,} training pairs,"
    f" {len(corpus.tune_source):,} sentences to tune on,"
    f" {len(corpus.test_source):,} to test on. "
  )
  for name in outcome.systems:
    method = system_names.SYSTEMS[name]["method"]
    rules = "phrases" if config.grammar.kind == "phrase" else "rules"
    told = {
      "primary": f"takes relative frequencies of the extracted {rules}",
      "loss-augmented": (
        "trains rule probabilities with loss-augmented search: rules of"
        " derivations that are near the reference, and that a beam keeps, gain"
      ),
    }.get(method, f"trains rule probabilities with the method {method}")
    text += f"{name} {told}. "
  if outcome.systems:
    text += (
      f"Weights are tuned with {config.tune.method}; the grammar is"
      f" {config.grammar.kind}, the beam {config.search.beam}. "
    )
  return text + "gloss translates word by word: the floor under all systems."


def _scores(outcome: Outcome) -> dict[str, Any]:
  """Metrics, intervals, significance, time, settings."""
  test = outcome.scores["test"].value
  metrics = []
  for name in outcome.config.evaluate.metrics:
    kind = named_metrics.find(name)
    label = {"bleu": "BLEU", "ter": "TER", "chrf": "chrF"}.get(name, name)
    metrics.append(
      {"name": name, "label": label, "higher": kind.higher_is_better}
    )
  names = ("system", "metric", "score", "margin", "p_value")
  config = config_lib.plain(outcome.config)
  usual = config_lib.plain(type(outcome.config)())
  return {
    "metrics": metrics,
    "scores": [{k: row[k] for k in names if k in row} for row in test.rows],
    "pairwise": test.pairwise,
    "stages": [
      {
        "stage": name,
        "seconds": one.seconds,
        "peak memory, MB": one.megabytes,
        "reused": "yes" if one.reused else "",
      }
      for name, one in outcome.stages.items()
    ],
    "changes": list(_changes(usual, config)),
    "config": config,
    "signatures": [
      {"metric": name, "signature": value}
      for name, value in test.signatures.items()
    ],
  }


def _changes(usual: Any, config: Any, path: str = ""):
  """Yields rows of settings that differ."""
  if isinstance(usual, Mapping) and isinstance(config, Mapping):
    for name, value in config.items():
      key = f"{path}.{name}" if path else name
      yield from _changes(usual.get(name), value, key)
  elif usual != config:
    show = lambda value: (
      ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    )
    yield {"setting": path, "default": show(usual), "here": show(config)}


def _data(outcome: Outcome) -> dict[str, Any]:
  """What the section on the data shows."""
  corpus = outcome.corpus.value
  parts = {
    "train": corpus.train_source,
    "tune": corpus.tune_source,
    "test": corpus.test_source,
  }
  known = {word for line in corpus.train_source for word in line.split()}
  align = dict(outcome.links.value.metrics or {})
  align.pop("perplexity", None)
  grammar = outcome.grammar
  return {
    "corpus": outcome.described.value.rows,
    "lengths": {
      name: [len(line.split()) for line in lines[:5000]]
      for name, lines in parts.items()
      if lines
    },
    "unknownCounts": [
      sum(word not in known for word in line.split())
      for line in corpus.test_source
    ],
    "reach": "",
    "alignment": [{"model": outcome.config.align.model, **align}],
    "alignments": _alignments(outcome),
    "lm": [outcome.lm.value.metrics],
    "grammar": []
    if grammar is None
    else [{"kind": outcome.config.grammar.kind, **grammar.value.metrics}],
  }


def _alignments(outcome: Outcome) -> list[dict[str, Any]]:
  """Some training pairs with their word links."""
  corpus = outcome.corpus.value
  layers = [(outcome.config.align.model, outcome.links.value.links)]
  if corpus.train_links is not None and outcome.config.align.model != "given":
    layers.append(("given", corpus.train_links))
  size = min(_EXAMPLES, len(corpus.train_source))
  read = [(name, links_lib.parse_links(lines[:size])) for name, lines in layers]
  return [
    AlignmentView(
      source=corpus.train_source[row].split(),
      target=corpus.train_target[row].split(),
      layers=[(name, rows[row].tolist()) for name, rows in read],
    ).values()
    for row in range(size)
  ]


def _learning(outcome: Outcome) -> dict[str, Any]:
  """What the sections on tuning and training show."""
  dropped = ("features", "nonzero", "idle")
  return {
    "tuneMetric": outcome.config.tune.metric,
    "tuning": {
      name: [
        {key: value for key, value in row.items() if key not in dropped}
        for row in system.tune.value.history
      ]
      for name, system in outcome.systems.items()
    },
    "training": {
      name: [
        {k: v for k, v in row.items() if not isinstance(v, dict)}
        for row in system.history
      ]
      for name, system in outcome.systems.items()
      if system.history
    },
    "trainingRanks": rank_shares(outcome),
    **{name: [] for name in ("searchRows", "ranks", "fill", "beams")},
    **{"moved": [], "importance": [], "beamSeries": {}},
  }
