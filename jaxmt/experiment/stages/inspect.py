"""What the report shows of single sentences: derivations, charts, lists.

All test sentences get the derivation of every system, scored by every system.
Some sentences are searched again, so that the report has their charts, k-best
lists and the ranks of what other systems and the reference derive: those whose
translations changed most, and a sample for statistics.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import derivation_rows
from jaxmt.decode import translate as translate_lib
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.phrase.phrase_decoder import PhraseResult
from jaxmt.decode.translate import Pieces
from jaxmt.experiment.record import Record
from jaxmt.experiment.stages import decode, system
from jaxmt.experiment.stages.corpus import Corpus, Translations
from jaxmt.experiment.stages.evaluate import Scores
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import SearchStageConfig, Theta, Tuned
from jaxmt.grammar import estimate
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.inspection import (
  chart_views,
  derivation_views,
  list_views,
  phrase_views,
  search_statistics,
  training_evidence,
)
from jaxmt.inspection import searched as searching
from jaxmt.inspection.derivation_views import ComparedModels, RuleBook
from jaxmt.inspection.searched import Searched
from jaxmt.metrics import named_metrics
from jaxmt.parse import head_rules
from jaxmt.text import trees
from jaxmt.train import explain

_REFERENCE = "reference"
_BEAM_SAMPLE = 20  # sentences that are decoded with other beams


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectConfig:
  """How much the report shows.

  Attributes:
    changed: sentences to search again because their translations changed most.
    sample: sentences to search again for statistics, evenly spread.
    words: longest sentence to search again.
    nbest: candidates of a list.
    hypotheses: hypotheses shown of a cell.
    pruned: pruned candidates shown of a cell.
    options: phrases shown of a phrase lattice.
    head_rules: how the dependencies of source trees are found, one of
      `jaxmt.parse.head_rules.RULES`; empty to show none.
    beams: other beams to decode some of the sample with, for search errors.
    moved: rules to show that gained, and that lost probability.
    pairs: training pairs to quote for a rule at most.
    quoted: training pairs to quote from, the first ones.
  """

  changed: int = 60
  sample: int = 40
  words: int = 60
  nbest: int = 20
  hypotheses: int = 8
  pruned: int = 3
  options: int = 60
  head_rules: str = "chinese"
  beams: tuple[int, ...] = (10, 60)
  moved: int = 10
  pairs: int = 2
  quoted: int = 20000


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectionConfig:
  """Everything the stage depends on.

  Attributes:
    inspect: how much to show.
    search: how the systems decode.
  """

  inspect: InspectConfig = dataclasses.field(default_factory=InspectConfig)
  search: SearchStageConfig = dataclasses.field(
    default_factory=SearchStageConfig
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inspection(Record):
  """Views of test sentences, see `jaxmt.report.views`.

  Attributes:
    systems: M systems; the first one is the baseline.
    features: names of the F features.
    weights: `M` lists of `F` weights.
    rules: every rule of a derivation, as JSON.
    sentences: for each sentence, as JSON: "d" the derivation of each system,
      "r" one of the reference or the best translation known, "e" whether it
      is the reference, "why" if not, and for sentences that were searched
      again "x", for each system its chart, list and ranks of the derivations,
      and of a phrase table its lattice; "p" and "h" the nodes of its tree, and
      the tags, heads and labels of its dependencies.
    search: see `search_statistics.rank_rows`.
    beams: search errors of other beams on the sample, see `search_report`.
    moved: for each trained system, rules that gained and lost most.
    importance: for each system, how much each feature decides.
    pairs: [rule, rows of the training pairs that hold its sides] for rules that
      only some of a sentence's derivations use.
    metrics: numbers of sentences.
  """

  systems: list[str]
  features: list[str]
  weights: list[list[float]]
  rules: list[str]
  sentences: list[str]
  search: list[dict[str, Any]]
  beams: list[dict[str, Any]]
  moved: list[dict[str, Any]]
  importance: list[dict[str, Any]]
  pairs: list[Any]
  metrics: dict[str, Any]


def check(config: InspectConfig) -> None:
  """Raises `ValueError`, naming the field, for sizes that make no sense."""
  for name in ("changed", "sample", "words", "pruned", "moved", "quoted"):
    if getattr(config, name) < 0:
      raise ValueError(f"{name} must not be negative")
  if config.head_rules and config.head_rules not in head_rules.RULES:
    raise ValueError(f"head_rules is none of {', '.join(head_rules.RULES)}")
  for name in ("nbest", "hypotheses", "options", "pairs"):
    if getattr(config, name) < 1:
      raise ValueError(f"{name} must be at least 1")
  if any(beam < 1 for beam in config.beams):
    raise ValueError("beams must be at least 1")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Part:
  """The test part as all systems see it.

  Attributes:
    config: the stage's.
    compared: the models, with the pieces of the sentences as source.
    pieces: the pieces.
    references: of each piece its first reference, empty for a part of a line.
    trees: trees of the lines, or None.
    derivations: of each system, and of the reference.
    uses: of rules in training, see `training_evidence.rule_uses`.
    training: source and target lines of the training pairs.
  """

  config: InspectionConfig
  compared: ComparedModels
  pieces: Pieces
  references: list[str]
  trees: list[str] | None
  derivations: Mapping[str, Derivations]
  uses: Mapping[str, np.ndarray]
  training: tuple[Sequence[str], Sequence[str]]


def inspect(
  config: InspectionConfig,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  scores: Scores,
  **systems: Any,
) -> Inspection:
  """Looks inside the systems of an experiment.

  Args:
    config: see `InspectionConfig`.
    corpus: the text.
    grammar: the rules.
    lm: the language model.
    scores: of the test part, the systems in their order.
    **systems: values of `Tuned`, `Translations` and, if it has them, `Theta`
      and `LearnedTheta` of each system, named "tuned-S", "decode-S", "theta-S"
      and "learned-S".
  """
  names = [n.removeprefix("tuned-") for n in systems if n.startswith("tuned-")]
  pieces = decode.cut(corpus.test_source)
  built, spans = [], None
  for name in names:
    theta = systems.get(f"theta-{name}")
    model, spans = system.part_model(
      config.search,
      "test",
      corpus=corpus,
      grammar=grammar,
      lm=lm,
      weights=Tuned.from_values(systems[f"tuned-{name}"]).weights,
      theta=None if theta is None else Theta.from_values(theta),
    )
    built.append(model)
  source = translate_lib.piece_source(built[0], pieces, spans)
  compared = ComparedModels(names=names, models=built, source=source)
  known, counts = {}, {}
  for name in names:
    translations = Translations.from_values(systems[f"decode-{name}"])
    known[name] = _derivations(translations)
    counts[name] = grammar.table.counts
    if f"learned-{name}" in systems:
      trained = np.asarray(systems[f"learned-{name}"]["counts"])
      counts[name] = trained / COUNT_UNIT
  part = _Part(
    config=config,
    compared=compared,
    pieces=pieces,
    references=_piece_references(corpus.test_references, pieces),
    trees=corpus.test_trees,
    derivations=known,
    uses=training_evidence.rule_uses(
      grammar.table, counts, lines=corpus.test_source
    ),
    training=(corpus.train_source, corpus.train_target),
  )
  thetas = {
    name: Theta.from_values(systems[f"theta-{name}"])
    for name in names
    if f"theta-{name}" in systems
  }
  return _inspect(part, scores, _moved(config.inspect, grammar, thetas))


def _moved(
  config: InspectConfig, grammar: Grammar, thetas: Mapping[str, Theta]
) -> list[dict[str, Any]]:
  """For each trained system the rules that gained and lost most."""
  if not thetas:
    return []
  table = grammar.table
  before = estimate.theta_values(table)
  return [
    {
      "system": name,
      "rows": explain.moved_rules(
        table, before, np.asarray(probabilities.theta), number=config.moved
      ),
    }
    for name, probabilities in thetas.items()
  ]


def _derivations(translations: Translations) -> Derivations:
  assert (
    translations.test_nodes is not None
    and translations.test_node_offsets is not None
  )
  assert translations.test_node_scores is not None
  return derivation_rows.from_array(
    translations.test_nodes,
    translations.test_node_offsets,
    translations.test_node_scores,
  )


def _piece_references(references, pieces: Pieces) -> list[str]:
  cut = set(pieces.cut)
  return [
    "" if row in cut or not references[row] else references[row][0]
    for row in pieces.row.tolist()
  ]


def _inspect(
  part: _Part, scores: Scores, moved: list[dict[str, Any]]
) -> Inspection:
  compared, pieces = part.compared, part.pieces
  settings, search = part.config.inspect, part.config.search
  chosen, sample = _choose(part, scores)
  configs = {
    name: system.decode_config(search, compared.model(name), forest=True)
    for name in compared.names
  }
  searched = searching.search_again(
    compared,
    chosen,
    part.references,
    configs=configs,
    nbest_size=settings.nbest,
  )
  good = searching.good_derivations(searched)
  place = np.full(len(pieces.row), -1, np.int64)
  place[chosen] = np.arange(len(chosen))
  every = {
    **part.derivations,
    _REFERENCE: derivation_rows.in_order(
      [good.derivations], place, arity=compared.models[0].arity
    ),
  }
  book = RuleBook()
  sentences = _sentences(part, every, book)
  for row, number in enumerate(pieces.row[chosen].tolist()):
    if sentences[number].get("r"):
      sentences[number]["e"] = int(good.reached[row])
    if good.reasons[row]:
      sentences[number]["why"] = good.reasons[row]
  _add_charts(part, searched, every, sentences)
  rows = search_statistics.rank_rows(
    searched, good.derivations, np.isin(chosen, sample)
  )
  _add_errors(part, every, rows, sentences)
  beams = sorted({search.beam, *settings.beams}) if settings.beams else []
  rules = book.views(compared, part.uses)
  return Inspection(
    systems=list(compared.names),
    features=list(compared.models[0].feature_names),
    weights=[[round(x, 6) for x in row] for row in compared.weights.tolist()],
    rules=[_json(view.values()) for view in rules],
    sentences=[_json(one) for one in sentences],
    search=rows,
    beams=search_statistics.beam_errors(
      compared,
      sample[:: max(len(sample) // _BEAM_SAMPLE, 1)],
      sizes=[(k, max(search.pop * k // search.beam, k)) for k in beams],
      configs=configs,
    ),
    moved=moved,
    importance=search_statistics.importance(searched),
    pairs=training_evidence.pairs(
      rules,
      [[own and own["n"] for own in one["d"]] for one in sentences],
      *part.training,
      number=settings.pairs,
      limit=settings.quoted,
    ),
    metrics={
      "sentences": len(sentences),
      "searched": len(chosen),
      "reached": int(np.sum(good.reached)),
      "sample": len(sample),
      "sample_reached": int(np.sum(good.reached[place[sample]])),
    },
  )


def _add_errors(
  part: _Part,
  every: Mapping[str, Any],
  rows: list[dict[str, Any]],
  sentences: list[dict[str, Any]],
) -> None:
  """Adds proven search errors: numbers to the systems' rows, marks to texts."""
  compared = part.compared
  proven = [
    search_statistics.proven_errors(compared, every, name)
    for name in compared.names
  ]
  for row, errors in zip(rows, proven, strict=True):
    row["proven search errors"] = int(errors.sum())
    row["test sentences"] = len(sentences)
  flags = np.stack(proven, axis=1)
  for piece in np.flatnonzero(flags.any(1)).tolist():
    number = part.pieces.row[piece]
    sentences[number]["m"] = flags[piece].astype(int).tolist()


def _json(value: Any) -> str:
  return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _sentences(
  part: _Part, every: Mapping[str, Derivations], book: RuleBook
) -> list[dict[str, Any]]:
  """The derivations and the parse of every line."""
  pieces = part.pieces
  out: list[dict[str, Any]] = [
    {"d": [None] * len(part.derivations)}
    for _ in range(int(pieces.row.max(initial=-1)) + 1)
  ]
  for place, (name, derivations) in enumerate(every.items()):
    views = derivation_views.derivation_views(
      part.compared, derivations, book, shift=pieces.first
    )
    for view, row in zip(views, pieces.row.tolist(), strict=True):
      if name == _REFERENCE and view is not None:
        out[row]["r"] = view.values()
      elif name != _REFERENCE:
        before = out[row]["d"][place]
        out[row]["d"][place] = derivation_views.joined(before, view)
  if part.trees is not None:
    parsed = trees.parse_trees(part.trees)
    for row, sentence in enumerate(out):
      nodes = list_views.parse_view(parsed, row, ()).values()["nodes"]
      if nodes:
        sentence["p"] = nodes
    _add_dependencies(part.config.inspect, parsed, out)
  return out


def _add_dependencies(
  config: InspectConfig, parsed: trees.Trees, sentences: list[dict[str, Any]]
) -> None:
  """Adds the tags and heads of words that the trees imply."""
  if not config.head_rules:
    return
  bank, rows = head_rules.dependencies(
    parsed, head_rules.RULES[config.head_rules]
  )
  for place, row in enumerate(rows.tolist()):
    view = list_views.dependency_view(bank, place)
    _, heads, labels = view.trees[0]
    sentences[row]["h"] = [list(view.tags), list(heads), list(labels)]


def _choose(part: _Part, scores: Scores) -> tuple[np.ndarray, np.ndarray]:
  """The pieces to search again, rising, and those that are the sample."""
  settings, pieces = part.config.inspect, part.pieces
  lengths = part.compared.source.ids.lengths
  able = (lengths > 0) & (lengths <= settings.words)
  rows = np.flatnonzero(able & ~np.isin(pieces.row, pieces.cut))
  count = min(settings.sample, len(rows))
  spread = np.linspace(0, len(rows), count, endpoint=False).astype(int)
  sample = rows[spread]
  change = np.zeros(len(rows))
  if scores.statistics:
    first = next(iter(scores.statistics))
    values = sentence_scores(first, scores.statistics[first])
    moved = values[: len(part.compared.names), pieces.row[rows]]
    change = np.abs(moved - moved[:1]).max(0, initial=0.0)
  order = np.argsort(-change, kind="stable")[: settings.changed]
  return np.union1d(sample, rows[order[change[order] > 0]]), sample


def sentence_scores(name: str, statistics: np.ndarray) -> np.ndarray:
  """Returns sentence-level scores as people read them, `[M, N]`.

  Args:
    name: of the metric; BLEU is smoothed (BLEU+1).
    statistics: `[M, N, S]`.
  """
  metric = named_metrics.find("bleu+1" if name == "bleu" else name)
  values = np.asarray(metric.sentence_score(np.asarray(statistics)))
  return 100.0 * values if metric.percent else values


def _add_charts(
  part: _Part,
  searched: Searched,
  every: Mapping[str, Derivations],
  sentences: list[dict[str, Any]],
) -> None:
  """Adds charts, lists and ranks of the sentences that were searched."""
  compared, settings = part.compared, part.config.inspect
  some = {
    name: derivation_rows.select(derivations, searched.rows)
    for name, derivations in every.items()
  }
  for name in compared.names:
    model = compared.model(name)
    ranks = {
      other: searched.ranks(name, derivations)
      for other, derivations in some.items()
    }
    lists: dict[int, Any] = {}
    for row, batch, place in searched.places(name):
      if id(batch) not in lists:
        lists[id(batch)] = list_views.kbest_views(
          batch.lists, model.feature_names, costs=batch.costs
        )
      limits = {"hypotheses": settings.hypotheses, "pruned": settings.pruned}
      result, lattice = batch.result, {}
      if isinstance(result, PhraseResult):
        chart = phrase_views.stack_view(model, result, place, **limits)
        view = phrase_views.lattice_view(
          model, result, batch.forest, place, options=settings.options
        )
        lattice = {"lattice": view.values()}
      else:
        chart = chart_views.chart_view(model, result, place, **limits)
      parts = [
        derivation_views.part_views(model, derivations, ranks[other], row)
        for other, derivations in some.items()
      ]
      line = part.pieces.row[searched.rows[row]]
      sentences[line].setdefault("x", []).append(
        {
          "chart": chart.values(),
          "kbest": lists[id(batch)][place].values(),
          "ranks": [[view.values() for view in views] for views in parts],
          **lattice,
        }
      )
