"""Matching: every rule application on every span of some sentences.

A compiled walk over the source trie finds all patterns (`find_patterns`, once
for a text); a bottom-up pass (`applications.select`, for some weights) then
gives each cell (span) its applications with the bound

    bound(application) = static(rule) + Σ_children inside(child),
    inside(cell) = max over its applications of the bound

and keeps the best of them. This is the chart without language model states;
the search (`jaxmt.decode.chart`) fills it with hypotheses.

Spans are limited for Hiero rules; tree-to-string rules match constituents of
any length whose label is their left-hand side, and their sites are filled by
constituents too (whatever their label: substitution is fuzzy). With
`substitution="exact"` the cells of a sentence with a tree are the nodes of the
tree, and only rules whose fragments match there apply (`tree_kernel`). Glue
cells `[0, j)` of category `GLUE` join the cells from left to right without a
limit; one `GOAL` cell per sentence ends it. A word that no rule translates
alone gets a pass-through application, so every sentence has a derivation.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmt.grammar.match import applications, source_trie
from jaxmt.grammar.match.applications import (
  GLUE,
  GOAL,
  ORDINARY,
  Matches,
  Patterns,
)
from jaxmt.grammar.match.source_trie import Trie
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.text.ragged import Ragged
from jaxmt.text.trees import Trees

__all__ = (
  "GLUE",
  "GOAL",
  "ORDINARY",
  "MatchConfig",
  "Matches",
  "Patterns",
  "constituents",
  "find_patterns",
  "joining_rules",
  "match",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchConfig:
  """Limits of matching.

  Attributes:
    span: longest span of Hiero rules; glue and constituents are exempt.
    targets: target sides per source pattern.
    applications: applications per cell.
    pass_through: "unknown" copies words that no rule translates alone, "all"
      offers to copy every word.
    glue: "always" joins parts at every place; "needed" only where no rule
      covers all words up to there, as for bracketing grammars.
    substitution: of tree-to-string rules: "fuzzy" compares spans, and labels by
      a feature; "exact" matches fragments with the tree.
  """

  span: int = 10
  targets: int = 20
  applications: int = 128
  pass_through: str = "unknown"
  glue: str = "always"
  substitution: str = "fuzzy"


def constituents(trees: Trees, labels: Sequence[str]) -> Ragged:
  """Lists each tree's constituents as (begin, end, label), int32 `[M, 3]`.

  Labels are numbered as in `labels`; others become -1 (no rule starts there,
  yet the span may fill a site).
  """
  index = {label: number for number, label in enumerate(labels)}
  numbers = np.array([index.get(name, -1) for name in trees.labels], np.int32)
  label = numbers[trees.label] if len(trees.label) else trees.label
  return Ragged(
    flat=np.stack([trees.start, trees.end, label], axis=1).astype(np.int32),
    offsets=np.asarray(trees.offsets, np.int64),
  )


def joining_rules(table: RuleTable) -> np.ndarray:
  """Returns the rules for tree nodes that no fragment matches, int32 `[3]`.

  They are pass-through rules with sites: one of a single child, then two that
  join two children. The last joins parts of a longer list of children, which
  must cost nothing.

  Raises:
    ValueError: if the table does not have them.
  """
  arities = table.arities
  copying = table.kind == Kind.PASS_THROUGH
  single = np.flatnonzero(copying & (arities == 1))
  double = np.flatnonzero(copying & (arities == 2))
  if len(single) != 1 or len(double) != 2:
    raise ValueError("exact substitution needs the rules that join children")
  return np.concatenate([single, double]).astype(np.int32)


def find_patterns(
  sentences: Ragged,
  *,
  table: RuleTable,
  trie: Trie,
  copies: np.ndarray,
  config: MatchConfig,
  spans: Ragged | None = None,
  width: int | None = None,
) -> Patterns:
  """Prepares a batch of sentences for matching under any weights.

  Args:
    sentences: source word ids, B rows of T words in all.
    table: R rules, glue rules among them.
    trie: the table's source sides, built for the config's substitution.
    copies: which of the P copied words each token is, int32 `[T]`.
    config: limits.
    spans: constituents per sentence (`constituents`), for tree-to-string.
    width: A, columns of `Matches.child`; what the table needs if None.

  Raises:
    ValueError: if the table has no glue rule of arity 1 or none of arity 2, or
      for exact substitution not all rules of `joining_rules`.
  """
  arities = table.arities
  glue = table.kind == Kind.GLUE
  first = np.flatnonzero(glue & (arities == 1)).astype(np.int32)
  later = np.flatnonzero(glue & (arities == 2)).astype(np.int32)
  if not len(first) or not len(later):
    raise ValueError("the table needs glue rules of arity 1 and of arity 2")
  if config.pass_through not in ("unknown", "all"):
    raise ValueError(f"pass_through {config.pass_through!r}")
  if config.glue not in ("always", "needed"):
    raise ValueError(f"glue {config.glue!r}")
  if config.substitution not in ("fuzzy", "exact"):
    raise ValueError(f"substitution {config.substitution!r}")
  joins = np.zeros(0, np.int32)
  if config.substitution == "exact":
    joins = joining_rules(table)
  if spans is None:
    spans = Ragged(
      flat=np.zeros((0, 3), np.int32),
      offsets=np.zeros(len(sentences) + 1, np.int64),
    )
  usable = arities[trie.end >= 0]
  width = max(int(usable.max(initial=0)), 2, width or 0)
  places = source_trie.find_patterns(
    sentences, spans, trie, span=config.span, width=width
  )
  return Patterns(
    sentences=(
      np.ascontiguousarray(sentences.flat, np.int32),
      np.asarray(sentences.offsets, np.int64),
    ),
    copies=np.ascontiguousarray(copies, np.int32),
    spans=(
      np.ascontiguousarray(spans.flat, np.int32),
      np.asarray(spans.offsets, np.int64),
    ),
    places=places,
    trie=(trie.keys, trie.children),
    lhs=np.ascontiguousarray(table.lhs, np.int32),
    glue=(first, later, config.glue == "needed"),
    width=width,
    copy_all=config.pass_through == "all",
    joins=joins,
  )


def match(
  sentences: Ragged,
  *,
  ranked: Ragged,
  scores: np.ndarray,
  config: MatchConfig,
  **options: Any,
) -> Matches:
  """Finds the applications of a batch of sentences under some weights.

  Args:
    sentences: source word ids, B rows.
    ranked: rules of each trie node, best first (`applications.rank_rules`).
    scores: static scores `[R + 1 + P]`: rules, the goal, P copied words.
    config: limits.
    **options: table, trie, copies, spans and width, see `find_patterns`.
  """
  patterns = find_patterns(sentences, config=config, **options)
  return applications.select(
    patterns,
    (ranked.flat, ranked.offsets),
    scores,
    limit=config.applications,
  )
