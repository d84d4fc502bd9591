"""Translating the tuning and the test part with tuned weights."""

from typing import Any

import numpy as np

from jaxmt.decode import translate as translate_lib
from jaxmt.experiment.stages import system
from jaxmt.experiment.stages.corpus import PARTS, Corpus, Translations
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import SearchStageConfig, Theta, Tuned
from jaxmt.features import string_templates
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
) -> Translations:
  """Translates the tuning and the test part.

  Args:
    config: how to search.
    corpus: the text.
    grammar: the rules.
    lm: the language model.
    tuned: the weights.
    theta: rule probabilities, if not the grammar's own.
  """
  fields: dict[str, Any] = {}
  metrics = {}
  for part in PARTS:
    lines, derivations, score = translate_part(
      config,
      part,
      corpus=corpus,
      grammar=grammar,
      lm=lm,
      tuned=tuned,
      theta=theta,
    )
    fields[f"{part}_hypothesis"] = lines
    fields[f"{part}_derivations"] = derivations
    metrics[f"{part}_score"] = score
  return Translations(**fields, metrics=metrics)


def translate_part(
  config: SearchStageConfig,
  part: str,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  tuned: Tuned,
  theta: Theta | None = None,
) -> tuple[list[str], list[str], float]:
  """Translates one part: lines, derivations, mean model score."""
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
  pieces = translate_lib.cut_lines(lines, longest=_LONGEST)
  done = translate_lib.translate(
    model, pieces, config=settings, spans=spans, derivations="tree"
  )
  whole = translate_lib.assemble(done, pieces, size=len(lines))
  best = [one.text for one in whole]
  if set(tuned.templates) & set(string_templates.NGRAMS):
    # The search knows no n-gram features: they choose from its k-best list.
    best = _reranked(model, lines, settings, spans, tuned)
  score = sum(one.score for one in whole) / max(len(whole), 1)
  return best, [one.tree for one in whole], round(score, 4)


def _reranked(model, lines, settings, spans, tuned: Tuned) -> list[str]:
  """Returns the best of each sentence's k-best list by all features."""
  decode = kbest_decoder.make_decode(
    model, lines, config=settings, spans=spans, templates=tuned.templates
  )
  found = decode(tuned.weights, np.arange(len(lines)))
  best = [""] * len(lines)
  sentences, first = np.unique(found.sentence, return_index=True)
  for sentence, row in zip(sentences.tolist(), first.tolist(), strict=True):
    best[sentence] = found.lines[row]
  return best
