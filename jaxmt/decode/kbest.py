"""K-best lists of translation forests: words, strings and derivations.

found = kbest.best(model, source, forest, size=100, unique=True)
texts = kbest.strings(model, source, found)
values = sum_values(found.edges, edge_features(model, source, forest))
"""

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode import derivation
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source
from jaxmt.hypergraph.derivations import (
  DerivationLists,
  EdgeStrings,
  link_children,
)
from jaxmt.hypergraph.forest import Forest


def edge_strings(model: Model, source: Source, forest: Forest) -> EdgeStrings:
  """Returns the target sides of the edges; the rule table is not copied.

  Args:
    model: the rules.
    source: the sentences of the forest. Copied words that the target vocabulary
      has, too, stand under their id there, so that equal strings are equal
      rows.
    forest: with the rules of its edges.
  """
  known = model.table.target_words
  rule = forest.edges.rule
  first = len(model.table) + 1
  used = np.unique(rule[rule >= first] - first)
  size = int(used.max(initial=-1)) + 1
  extra = np.arange(-1, size, dtype=np.int32)  # the goal's one tail, then words
  extra[1:] += len(known)
  for copy in used.tolist():
    extra[1 + copy] = known.index.get(source.words[copy], extra[1 + copy])
  return EdgeStrings(row=rule, symbols=model.table.target, extra=extra)


def best(
  model: Model,
  source: Source,
  forest: Forest,
  *,
  size: int,
  unique: bool = False,
  diversity: float = 0.0,
  scores: np.ndarray | None = None,
  threads: int = 1,
) -> DerivationLists:
  """Returns the best derivations of each sentence; see `hypergraph.kbest`.

  Words are as in `derivation.Yields`, but equal strings are equal rows: see
  `edge_strings`.

  Raises:
    ValueError: for sizes that cannot be.
  """
  if len(source) != len(forest):
    raise ValueError(f"{len(source)} sentences, {len(forest)} forests")
  return hypergraph.kbest(
    forest,
    size=size,
    strings=edge_strings(model, source, forest),
    unique=unique,
    diversity=diversity,
    scores=scores,
    threads=threads,
  )


def strings(model: Model, source: Source, found: DerivationLists) -> list[str]:
  """Spells all derivations, words separated by spaces; D strings."""
  return derivation.strings(model, source, found.words)


def derivations(forest: Forest, found: DerivationLists) -> Derivations:
  """Returns all as derivations, D of them, for words, links and trees."""
  rows, edges = found.edges.offsets, found.edges.flat
  goal = np.zeros(len(edges), bool)
  goal[rows[:-1]] = True
  below = edges[~goal]
  heads = (
    np.searchsorted(forest.edge_offsets, below, side="right").astype(np.int32)
    - 1
  )
  return Derivations(
    offsets=rows - np.arange(len(rows)),
    rule=forest.edges.rule[below],
    begin=forest.nodes.begin[heads],
    end=forest.nodes.end[heads],
    child=link_children(rows, edges, np.ascontiguousarray(forest.tails)),
    score=found.score.astype(np.float32),
  )
