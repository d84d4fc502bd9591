"""Translating the tuning and the test part with tuned weights."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmt.decode import derivation_rows
from jaxmt.decode import translate as translate_lib
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.phrase.lattice_search import LatticeOptions
from jaxmt.decode.translate import Pieces
from jaxmt.experiment.stages import system
from jaxmt.experiment.stages.corpus import PARTS, Corpus, Translations
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import (
  SearchStageConfig,
  Theta,
  TrainedModels,
  Tuned,
)
from jaxmt.features import frequent_events, string_templates
from jaxmt.tune import kbest_decoder

_LONGEST = 250  # source words; longer lines are translated in pieces


def translate(
  config: SearchStageConfig,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  tuned: Tuned,
  theta: Theta | None = None,
  models: TrainedModels | None = None,
) -> Translations:
  """Translates the tuning and the test part.

  Args:
    config: how to search.
    corpus: the text.
    grammar: the rules.
    lm: the language model.
    tuned: the weights.
    theta: rule probabilities, if not the grammar's own.
    models: trained features beside those of the grammar.
  """
  grammar = system.with_models(grammar, models)
  fields: dict[str, Any] = {}
  metrics = {}
  for part in PARTS:
    done = translate_part(
      config,
      part,
      corpus=corpus,
      grammar=grammar,
      lm=lm,
      tuned=tuned,
      theta=theta,
    )
    fields[f"{part}_hypothesis"] = done.lines
    fields[f"{part}_derivations"] = done.trees
    metrics[f"{part}_score"] = done.score
    if part == "test":
      fields["test_nodes"] = derivation_rows.to_array(done.derivations)
      fields["test_node_offsets"] = done.derivations.offsets
      fields["test_node_scores"] = done.derivations.score
  return Translations(**fields, metrics=metrics)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartTranslations:
  """The translations of a part.

  Attributes:
    lines: target lines.
    trees: their derivations, lines of `derivation_text.tree_lines`.
    derivations: the same of the pieces that `cut` returns, with rules of the
      part's model.
    score: mean model score.
  """

  lines: list[str]
  trees: list[str]
  derivations: Derivations
  score: float


def cut(lines: Sequence[str]) -> Pieces:
  """Returns the pieces that lines are translated in."""
  return translate_lib.cut_lines(lines, longest=_LONGEST)


def translate_part(
  config: SearchStageConfig,
  part: str,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  tuned: Tuned,
  theta: Theta | None = None,
) -> PartTranslations:
  """Translates one part."""
  lines = corpus.part(part).source
  model, spans = system.part_model(
    config,
    part,
    corpus=corpus,
    grammar=grammar,
    lm=lm,
    weights=tuned.weights,
    theta=theta,
  )
  # With forests: the program that tuning has compiled already.
  settings = system.decode_config(config, model, forest=True)
  pieces = cut(lines)
  done: list[Any] = [None] * len(pieces.lines)
  translations, rows = [], []
  for result, read in translate_lib.stream(
    model, pieces, config=settings, spans=spans, derivations="tree"
  ):
    translations.append(result.best())
    rows.append(result.rows)
    for row, one in zip(result.rows.tolist(), read, strict=True):
      done[row] = one
  whole = translate_lib.assemble(done, pieces, size=len(lines))
  best = [one.text for one in whole]
  others = (*string_templates.NAMES, frequent_events.NAME)
  if set(tuned.templates) & set(others):
    # The search knows no such features: they choose from its k-best list, or
    # walk its lattice.
    best = _reranked(model, lines, settings, spans, tuned)
  score = sum(one.score for one in whole) / max(len(whole), 1)
  return PartTranslations(
    lines=best,
    trees=[one.tree for one in whole],
    derivations=derivation_rows.by_row(
      translations, rows, size=len(pieces.lines), arity=model.arity
    ),
    score=round(score, 4),
  )


def _reranked(model, lines, settings, spans, tuned: Tuned) -> list[str]:
  """Returns the best of each sentence's k-best list by all features."""
  decode = kbest_decoder.make_decode(
    model,
    lines,
    kbest_decoder.ListOptions(
      templates=tuned.templates,
      events=frequent_events.of_weights(tuned.weights),
      lattice=LatticeOptions(**(tuned.lattice or {})),
    ),
    config=settings,
    spans=spans,
  )
  lists = decode(tuned.weights, np.arange(len(lines)))
  best = [""] * len(lines)
  sentences, first = np.unique(lists.sentence, return_index=True)
  for sentence, row in zip(sentences.tolist(), first.tolist(), strict=True):
    best[sentence] = lists.lines[row]
  return best
