"""What the server does with lines: translations, lists, forests and charts."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmt import api
from jaxmt.decode import decoding, nbest, translator
from jaxmt.decode import model as models
from jaxmt.decode.phrase.phrase_decoder import PhraseResult
from jaxmt.decode.translator import Translator
from jaxmt.hypergraph.forest import Forest
from jaxmt.inspection import (
  chart_views,
  derivation_views,
  list_views,
  phrase_views,
  searched,
)
from jaxmt.inspection.derivation_views import ComparedModels, RuleBook
from jaxmt.report.views import number
from jaxmt.text import raw_text
from jaxmt.train import explain

BEST, LISTS, VIEWS = "best", "lists", "views"  # kinds of work


@dataclasses.dataclass(frozen=True, kw_only=True)
class Service:
  """A system that translates.

  Attributes:
    model: its model and search.
    system: its name.
    source_language: of raw text; empty if lines are tokenised.
    target_language: likewise.
  """

  model: Translator
  system: str
  source_language: str = ""
  target_language: str = ""

  @property
  def features(self) -> list[str]:
    """The names of the features."""
    return list(self.model.model.feature_names)

  @property
  def weights(self) -> list[float]:
    """Their weights."""
    known = self.model.weights
    return [round(known.get(name, 0.0), 6) for name in self.features]

  def work(
    self, kind: str, lines: Sequence[str], size: int
  ) -> list[dict[str, Any]]:
    """Returns a result for each line, as JSON has it.

    Args:
      kind: `BEST`, `LISTS` or `VIEWS`.
      lines: the lines, as `tokenised` returns them.
      size: translations of a list.
    """
    if kind == VIEWS:
      return [self._views(line, size) for line in lines]
    out = api.decode(self.model, list(lines), forests=kind == LISTS)
    texts = self._detokenised(out.text)
    translations: list[dict[str, Any]] = [
      {"text": text, "score": number(score)}
      for text, score in zip(texts, out.scores.tolist(), strict=True)
    ]
    if kind == LISTS:
      lists = api.kbest(out, size).flat
      views = list_views.kbest_views(lists, self.features)
      for one, view in zip(translations, views, strict=True):
        one["nbest"] = view.values()
    return translations

  def tokenised(self, lines: Sequence[str]) -> list[str]:
    """Returns lines of words, as the system knows them."""
    if not self.source_language:
      return list(lines)
    words = self.model.model.table.source_words.words
    return raw_text.tokenize(lines, language=self.source_language, words=words)

  def _detokenised(self, lines: Sequence[str]) -> list[str]:
    if not self.target_language:
      return list(lines)
    words = self.model.model.table.target_words.words
    return raw_text.detokenize(
      lines,
      language=self.target_language,
      capitalize=raw_text.is_lower(words),
    )

  def _views(self, line: str, size: int) -> dict[str, Any]:
    """Everything about one sentence: derivation, chart, list, forest."""
    model = self.model.model
    source = models.make_source(model, [line])
    empty = {
      "source": line.split(),
      "rules": [],
      "parts": [],
      "derivation": None,
    }
    config = translator.decode_config(self.model, forest=True)
    results = [
      result
      for parts in decoding.decode(model, source, config=config)
      for result in parts
    ]
    if not line or not results:
      return empty | {"text": "", "chart": None, "kbest": [], "forest": None}
    (result,) = results
    grown = decoding.forest(model, result)
    compared = ComparedModels(
      names=[self.system], models=[model], source=source
    )
    book = RuleBook()
    best = result.best()
    (view,) = derivation_views.derivation_views(compared, best, book)
    lists = nbest.lists(
      model,
      source,
      grown,
      nbest.ListSettings(size=size, unique=True),
      rows=np.arange(1),
    )
    (kbest,) = list_views.kbest_views(lists, self.features)
    if isinstance(result, PhraseResult):
      chart = phrase_views.stack_view(model, result, 0, hypotheses=30)
      lattice = phrase_views.lattice_view(model, result, grown, 0)
      drawn = {"chart": chart.values(), "lattice": lattice.values()}
      ranks = phrase_views.ranks_in(
        model, source, best, [result], tolerance=searched.TIE
      )
    else:
      chart = chart_views.chart_view(model, result, 0, hypotheses=30)
      drawn = {"chart": chart.values()}
      ranks = explain.ranks_in(
        model, source, best, [result], tolerance=searched.TIE
      )
    parts = derivation_views.part_views(model, best, ranks, 0)
    return {
      "source": line.split(),
      "text": lists.lines[0],
      "rules": [rule.values() for rule in book.views(compared)],
      "derivation": None if view is None else view.values(),
      "parts": [part.values() for part in parts],
      "kbest": kbest.values(),
      "forest": forest_values(grown),
      **drawn,
    }


def forest_values(forest: Forest) -> dict[str, Any]:
  """Returns the forest of one sentence as JSON has it.

  "nodes" are [begin, end, rank], tails before heads, the root last; "edges" are
  [head, tails, rule, score].
  """
  spans, tails = forest.nodes, forest.tails
  nodes = np.stack([spans.begin, spans.end, spans.rank], axis=1)
  heads = forest.heads.tolist()
  return {
    "nodes": nodes.tolist(),
    "edges": [
      [head, [tail for tail in row if tail >= 0], rule, number(score)]
      for head, row, rule, score in zip(
        heads,
        tails.tolist(),
        forest.edges.rule.tolist(),
        forest.score.tolist(),
        strict=True,
      )
    ],
  }


def warm_up(service: Service, lines: Sequence[str], *, largest: int) -> None:
  """Compiles the programs of single sentences, and of full batches.

  Those of sizes between are compiled when the first such batch comes.

  Args:
    service: the system.
    lines: text as it will come.
    largest: lines of the largest batch.
  """
  for kind, size in ((BEST, 1), (VIEWS, 1), (BEST, largest)):
    some = [lines[n % len(lines)] for n in range(size)]
    service.work(kind, service.tokenised(some), 5)
