"""Annotation of translation forests: spans of nodes, rules of edges."""

import dataclasses

import jax
import numpy as np

from jaxmt.hypergraph.forest import Forest


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Spans:
  """What N nodes of translation forests stand for.

  Attributes:
    begin: first source word under each node, int32 `[N]`.
    end: one past its last, int32 `[N]`.
    label: left-hand side of each node, int32 `[N]`.
    rank: how many hypotheses of its cell have a better model score, by more
      than rounding (`search_step.TIE`), int32 `[N]`; 0 for goals.
  """

  begin: np.ndarray
  end: np.ndarray
  label: np.ndarray
  rank: np.ndarray


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleUses:
  """The rule applications that E edges of translation forests are.

  Attributes:
    rule: rule of each edge as in `Matches.rule` (R: the goal; beyond: copied
      words), int32 `[E]`.
    lm: what it adds to ln p of the words (with `</s>` at the goal), `[E]`.
    matched: tails whose label is their site's, int32 `[E]`.
    mismatched: tails whose label is another, int32 `[E]`.
    augmented: of an augmented search, what the edge adds to the augmented
      score where its tails stand for their best derivations: the candidate's
      score minus its tails'. float32 `[E]`, or None.
  """

  rule: np.ndarray
  lm: np.ndarray
  matched: np.ndarray
  mismatched: np.ndarray
  augmented: np.ndarray | None = None


def derivation_ranks(forest: Forest, edges: np.ndarray) -> np.ndarray:
  """Returns where the parts of a derivation stood in the beams.

  Args:
    forest: forests of a search.
    edges: the derivation's edges, int `[D]`, of one or more sentences.

  Returns:
    (begin, end, label, rank) of the head of each edge, rank 0 being the best of
    its cell; without the goals', which are no cells of rules. int32 `[D', 4]`.
  """
  heads = np.searchsorted(forest.edge_offsets, edges, side="right") - 1
  heads = heads[~np.isin(heads, forest.roots)]
  at = forest.nodes
  columns = (at.begin, at.end, at.label, at.rank)
  return np.stack([column[heads] for column in columns], axis=1)
