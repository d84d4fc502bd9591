"""Exact search with a model: matching without limits, then `exact_search`."""

import dataclasses

import numpy as np

from jaxmt.decode.chart import decoder, exact_kernel, sparse_scores
from jaxmt.decode.chart.exact_kernel import ExactResult
from jaxmt.decode.model import Model, Source
from jaxmt.errors import InputError
from jaxmt.grammar.match import matching, source_trie
from jaxmt.grammar.match.matching import Matches


def without_limits(model: Model) -> Model:
  """Returns the model with all target sides of every source pattern."""
  size = max(len(model.table), 1)
  return dataclasses.replace(
    model,
    limits=dataclasses.replace(model.limits, targets=size, applications=size),
    ranked=source_trie.rank_rules(
      model.trie,
      model.columns.score[: len(model.table)],
      model.table.lhs,
      limit=size,
    ),
  )


def search_exactly(
  model: Model, source: Source, *, limit: int
) -> tuple[Matches, ExactResult, np.ndarray]:
  """Searches every derivation of the sentences.

  Those are the derivations of the rules in `Model.ranked`, which holds only
  some target sides of each source pattern: see `without_limits`.

  Args:
    model: the model.
    source: N sentences.
    limit: candidates a sentence may take.

  Returns:
    The rule applications, the result, and each sentence's root cell among
    `result.beams`, int `[N]`; cell 0 is that of no derivation.

  Raises:
    InputError: if the model has sparse features beyond those of rules alone.
  """
  if sparse_scores.need_sentences(model):
    raise InputError(
      "exact search cannot use Word-Edges or other features of sentences"
    )
  limits = dataclasses.replace(
    model.limits, applications=max(len(model.table), 1)
  )
  found = matching.match(
    source.ids,
    table=model.table,
    trie=model.trie,
    ranked=model.ranked,
    scores=np.concatenate([model.columns.score, source.columns.score]),
    copies=source.copies,
    config=limits,
    spans=source.spans,
    width=model.arity,
  )
  result = exact_kernel.exact_search(
    found,
    rules=model.columns,
    copies=source.columns,
    lm=model.lm,
    weights=decoder.search_weights(model),
    limit=limit,
  )
  return found, result, np.where(found.goal >= 0, found.goal + 1, 0)
