"""Matching: every rule application on every span of some sentences.

A compiled walk over the source trie finds all patterns; a bottom-up pass then
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
import functools
from collections.abc import Sequence

import numpy as np

from jaxmt.grammar.match import match_kernel
from jaxmt.grammar.match.match_kernel import GLUE, GOAL, ORDINARY
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
  "constituents",
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Matches:
  """The applications of B sentences: C cells, N applications.

  Cells stand in an order in which children precede parents within a sentence.
  Rule `R` (one past the table) is the goal `GOAL -> S </s>`; rule `R + 1 + c`
  copies the c-th pass-through word.

  Attributes:
    sentence: sentence of each cell, int32 `[C]`.
    begin: first word of each cell, int32 `[C]`.
    end: one past its last word, int32 `[C]`.
    category: `ORDINARY`, `GLUE` or `GOAL`, int8 `[C]`.
    level: rises from children to parents of one category, int32 `[C]`.
    offsets: cell c's applications are `offsets[c] : offsets[c + 1]`, `[C + 1]`,
      by falling bound.
    rule: rule of each application, int32 `[N]`.
    child: child cells in source order, -1 beyond the arity, int32 `[N, A]`.
    goal: goal cell of each sentence, -1 for an empty sentence, int32 `[B]`.
    dropped: applications that fell to the per-cell limit, int64 `[B]`.
    place: row of each cell in a chart, from 1, int32 `[C]`; until a chart is
      laid out, in the order of the cells.
  """

  sentence: np.ndarray
  begin: np.ndarray
  end: np.ndarray
  category: np.ndarray
  level: np.ndarray
  offsets: np.ndarray
  rule: np.ndarray
  child: np.ndarray
  goal: np.ndarray
  dropped: np.ndarray
  place: np.ndarray

  def __len__(self) -> int:
    return len(self.sentence)

  @functools.cached_property
  def rules(self) -> np.ndarray:
    """The rules that are applied anywhere, int32, rising."""
    used = np.zeros(self.rule.max(initial=-1) + 1, bool)
    used[self.rule] = True
    return np.flatnonzero(used).astype(np.int32)

  @functools.cached_property
  def root(self) -> np.ndarray:
    """Row of each sentence's goal in a chart, 0 for an empty one, `[B]`."""
    root = np.zeros(len(self.goal), np.int32)
    root[self.goal >= 0] = self.place[self.goal[self.goal >= 0]]
    return root


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


def match(
  sentences: Ragged,
  *,
  table: RuleTable,
  trie: Trie,
  ranked: Ragged,
  scores: np.ndarray,
  copies: np.ndarray,
  config: MatchConfig,
  spans: Ragged | None = None,
  width: int | None = None,
) -> Matches:
  """Finds the applications of a batch of sentences.

  Args:
    sentences: source word ids, B rows of T words in all.
    table: R rules, glue rules among them.
    trie: the table's source sides, built for the config's substitution.
    ranked: rules of each trie node, best first (`trie.rank_rules`).
    scores: static scores `[R + 1 + P]`: rules, the goal, P copied words.
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
  cells, ends, applications, (goal, dropped) = match_kernel.match_batch(
    np.ascontiguousarray(sentences.flat, np.int32),
    np.asarray(sentences.offsets, np.int64),
    np.ascontiguousarray(copies, np.int32),
    np.ascontiguousarray(spans.flat, np.int32),
    np.asarray(spans.offsets, np.int64),
    (trie.keys, trie.children, ranked.flat, ranked.offsets),
    np.ascontiguousarray(table.lhs, np.int32),
    np.ascontiguousarray(scores, np.float32),
    (first, later, config.glue == "needed"),
    (config.span, config.applications, width),
    config.pass_through == "all",
    joins,
  )
  sentence, begin, end, category, level, _ = np.ascontiguousarray(cells.T)
  return Matches(
    sentence=sentence,
    begin=begin,
    end=end,
    category=category.astype(np.int8),
    level=level,
    offsets=ends.copy(),
    rule=applications[:, 0].copy(),
    child=applications[:, 1:].copy(),
    goal=goal,
    dropped=dropped,
    place=np.arange(1, len(sentence) + 1, dtype=np.int32),
  )
