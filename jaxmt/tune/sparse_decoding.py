"""Sparse features of what the decoder found, to be tuned with the dense ones.

rule, count, shape, pairs, edges   `rule_templates`: in the search, too
unigrams, bigrams, trigrams        of the target: they only re-rank a list,
                                   since a rule does not know its
                                   neighbours' words
"""

from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt.decode import candidate_lists
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.decode.chart import sparse_scores
from jaxmt.decode.model import Model, Source
from jaxmt.features import rule_templates, sparse
from jaxmt.features.rule_templates import Applications, TemplateConfig
from jaxmt.features.sparse import SparseRows
from jaxmt.features.string_templates import NGRAMS
from jaxmt.hypergraph import DerivationLists, Forest
from jaxmt.text.ragged import Ragged


def split(names: Sequence[str]) -> tuple[TemplateConfig, tuple[int, ...]]:
  """Returns the templates of the search and the orders of n-grams.

  Raises:
    InputError: for a template that does not exist.
  """
  orders = tuple(NGRAMS[name] for name in names if name in NGRAMS)
  rest = [name for name in names if name not in NGRAMS]
  return rule_templates.parse(rest), orders


def of_edges(forest: Forest, edges: np.ndarray) -> Applications:
  """Returns the applications of some edges of a forest."""
  head = np.searchsorted(forest.edge_offsets, edges, side="right") - 1
  return Applications(
    rule=forest.edges.rule[edges],
    begin=forest.nodes.begin[head],
    end=forest.nodes.end[head],
    sentence=np.searchsorted(forest.node_offsets, head, side="right") - 1,
  )


def kbest_rows(
  model: Model, source: Source, forest: Forest, found: DerivationLists
) -> tuple[SparseRows, tuple[str, ...]]:
  """Returns the sparse features of the D derivations of a k-best list.

  Raises:
    ValueError: if the model has no templates.
  """
  if model.templates is None:
    raise ValueError("the model has no sparse features")
  edges, place = np.unique(found.edges.flat, return_inverse=True)
  text = sparse_scores.make_text(model.templates, source)
  rows, names = rule_templates.extract(
    model.templates, text, of_edges(forest, edges)
  )
  members = Ragged(flat=place, offsets=found.edges.offsets)
  return rule_templates.sum_rows(rows, members), names


def rerank(
  lists: CandidateLists, weights: Mapping[str, float]
) -> CandidateLists:
  """Returns each sentence's candidates by falling score, ties as they were."""
  vector = np.array([weights.get(name, 0.0) for name in lists.names])
  score = sparse.dot(lists.features, vector)
  return candidate_lists.take(lists, np.lexsort((-score, lists.sentence)))
