"""Translating the tuning and the test part with tuned weights."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxmt.decode import translate as translate_lib
from jaxmt.experiment.stages import system
from jaxmt.experiment.stages.corpus import PARTS
from jaxmt.experiment.stages.system import SearchStageConfig
from jaxmt.features import string_templates
from jaxmt.tune import kbest_decoder

_LONGEST = 250  # source words; longer lines are translated in pieces


def translate(
  config: SearchStageConfig,
  *,
  corpus: dict[str, Any],
  grammar: dict[str, Any],
  lm: dict[str, Any],
  tuned: dict[str, Any],
  theta: dict[str, Any] | None = None,
) -> dict[str, Any]:
  """Translates both parts.

  Args:
    config: how to search.
    corpus: as `jaxmt.experiment.stages.corpus` makes it.
    grammar: from `jaxmt.experiment.stages.grammar`.
    lm: from `jaxmt.experiment.stages.lm`.
    tuned: "weights" and "templates", from `jaxmt.experiment.stages.tune`.
    theta: "theta", if not the grammar's own.

  Returns:
    For each part "{part}_hypothesis": lines, and "{part}_derivations":
    as `derivation_text.tree_lines` writes them; "metrics": mean model scores.
  """
  made: dict[str, Any] = {"metrics": {}}
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
    made[f"{part}_hypothesis"] = lines
    made[f"{part}_derivations"] = derivations
    made["metrics"][f"{part}_score"] = score
  return made


def translate_part(
  config: SearchStageConfig,
  part: str,
  *,
  corpus: Mapping[str, Any],
  grammar: Mapping[str, Any],
  lm: Mapping[str, Any],
  tuned: Mapping[str, Any],
  theta: Mapping[str, Any] | None = None,
) -> tuple[list[str], list[str], float]:
  """Translates one part: lines, derivations, mean model score."""
  lines = corpus[f"{part}_source"]
  table = system.rule_table(grammar, theta, lines=lines)
  model = system.make_model(
    config, table=table, lm=lm, weights=tuned["weights"]
  )
  spans = system.constituents(model, corpus, part, binarize=grammar["binarize"])
  # With forests: the program that tuning has compiled already.
  settings = system.decode_config(config, model, forest=True)
  pieces = translate_lib.cut_lines(lines, longest=_LONGEST)
  done = translate_lib.translate(
    model, pieces, config=settings, spans=spans, derivations="tree"
  )
  whole = translate_lib.assemble(done, pieces, size=len(lines))
  best = [one.text for one in whole]
  if set(tuned["templates"]) & set(string_templates.NGRAMS):
    # The search knows no n-gram features: they choose from its k-best list.
    best = _reranked(model, lines, settings, spans, tuned)
  score = sum(one.score for one in whole) / max(len(whole), 1)
  return best, [one.tree for one in whole], round(score, 4)


def _reranked(model, lines, settings, spans, tuned) -> list[str]:
  """The best of each sentence's k-best list by all features."""
  decode = kbest_decoder.make_decode(
    model, lines, config=settings, spans=spans, templates=tuned["templates"]
  )
  found = decode(tuned["weights"], np.arange(len(lines)))
  best = [""] * len(lines)
  sentences, first = np.unique(found.sentence, return_index=True)
  for sentence, row in zip(sentences.tolist(), first.tolist(), strict=True):
    best[sentence] = found.lines[row]
  return best
