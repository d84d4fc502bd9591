"""Lists of partial translations: search-aware tuning.

Liu and Huang (2014), "Search-aware tuning for machine translation": weights
should rank good partial translations high, too, or search drops them before
the rest is known. A stage is a number of source words that are translated from
the left: in a chart the group of glue over the first j words, in phrase-based
search the stack of j words. Every stage of a sentence has a list as the
sentence itself has; any method on lists learns from both (`loop.Stages`).

The metric is their "partial BLEU": matches are those with the whole reference,
whose length counts with the share of source words translated. (Their
"potential BLEU", which adds what the rest might become, is not here.)

B: sentences. N: stages of a sentence.
"""

import functools
from collections.abc import Sequence

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode import candidate_lists, translation_forest
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.decode.chart import chart_layout
from jaxmt.decode.decoding import AnyResult
from jaxmt.decode.model import Model, Source
from jaxmt.features import rule_templates
from jaxmt.features.rule_templates import RuleTemplates
from jaxmt.grammar.match.matching import GLUE, GOAL
from jaxmt.train.violation import differences, partial_derivations
from jaxmt.train.violation.differences import Chosen
from jaxmt.train.violation.partial_derivations import Partials
from jaxmt.tune.kbest_decoder import StageLists
from jaxmt.tune.loop import Stages


def words_of(lengths: np.ndarray, stages: int) -> np.ndarray:
  """Returns the source words of each stage, int64 `[B, N]`.

  They lie evenly between none and all. 0 stands for a stage that has no words,
  or those of the stage before.
  """
  lengths = np.asarray(lengths, np.int64)
  steps = np.arange(1, stages + 1)
  words = np.rint(lengths[:, None] * steps / (stages + 1)).astype(np.int64)
  same = np.zeros(words.shape, bool)
  same[:, 1:] = words[:, 1:] == words[:, :-1]
  return np.where(same | (words >= lengths[:, None]), 0, words)


def of_text(lengths: np.ndarray, stages: int) -> Stages:
  """Returns the stages of B sentences, as the loop needs them."""
  words = words_of(lengths, stages)
  shares = words / np.maximum(np.asarray(lengths)[:, None], 1)
  return Stages(
    sentence=np.repeat(np.arange(len(words)), stages),
    share=shares.reshape(-1),
  )


def of_lines(lines: Sequence[str], stages: int) -> Stages | None:
  """Returns the stages of a text, None if there are none."""
  if not stages:
    return None
  return of_text(np.array([len(line.split()) for line in lines]), stages)


def of_decoder(stages: int, size: int) -> StageLists | None:
  """Returns what makes the lists of a decoder, None if there are no stages."""
  if not stages:
    return None
  return functools.partial(lists, stages=stages, size=size)


def lists(
  model: Model, result: AnyResult, *, stages: int, size: int
) -> CandidateLists:
  """Returns the best hypotheses of each stage, the best first.

  Args:
    model: rules and weights.
    result: a search of B sentences.
    stages: N.
    size: hypotheses of a stage.

  Returns:
    Lists of B * N sentences: stage k of sentence b is sentence b * N + k.
  """
  searched = partial_derivations.of_beams(model, result)
  nodes, place = _staged(searched, result.source, stages, size)
  chosen = differences.read_chosen(
    model,
    result.source,
    searched.forest,
    np.arange(searched.forest.num_nodes),
    nodes=nodes,
    sentence=searched.node_sentence[nodes],
    category=searched.category,
  )
  candidates = candidate_lists.from_dense(
    place,
    translation_forest.spell(model, result.source, chosen.words),
    differences.dense_features(model, result.source, chosen),
    model.feature_names,
  )
  if model.templates is None:
    return candidates
  part = _sparse(model.templates, result.source, chosen)
  return candidate_lists.with_features(candidates, [part])


def _staged(
  searched: Partials, source: Source, stages: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
  """The hypotheses of all stages, and which stage each is of; int64 `[D]`."""
  nodes = searched.forest.nodes
  if searched.stack is None:
    allowed = (searched.category == GLUE) & (nodes.begin == 0)
    covered = nodes.end.astype(np.int64)
  else:
    allowed = searched.category != GOAL
    covered = searched.stack.astype(np.int64)
  words = words_of(source.ids.lengths, stages)
  sentence = searched.node_sentence
  which = np.full(len(sentence), -1, np.int64)
  for stage in range(stages):
    expected = words[sentence, stage]
    which[allowed & (expected > 0) & (covered == expected)] = stage
  rows = np.flatnonzero(which >= 0)
  place = sentence[rows] * stages + which[rows]
  score = hypergraph.viterbi(searched.forest).score
  order = np.lexsort((rows, -score[rows], place))
  rows, place = rows[order], place[order]
  rank = np.arange(len(rows)) - np.searchsorted(place, place)
  return rows[rank < size], place[rank < size]


def _sparse(templates: RuleTemplates, source: Source, chosen: Chosen):
  """Sparse features of partial derivations: `(rows, names)`."""
  text = chart_layout.make_text(templates, source)
  rows, names = rule_templates.extract(templates, text, chosen.applications)
  return rule_templates.sum_rows(rows, chosen.edges), names
