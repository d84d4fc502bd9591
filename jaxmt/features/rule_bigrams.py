"""Rule bigrams: which rules stand in the sites of which (survey, 2.3.2).

    RuleBi:X>ne_[X]_pas/did_not_[0]|X>va/go    the second in a site of the
                                               first

They are not local, since an edge of a forest does not know the rules of its
tails. Glue has none: what it joins are neighbours by chance.
"""

from collections.abc import Sequence

import numpy as np

from jaxmt.features import local_features, sparse
from jaxmt.features.string_templates import RULE_PREFIX
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.text.ragged import row_offsets


def rule_bigrams(
  table: RuleTable,
  words: Sequence[str],
  *,
  offsets: np.ndarray,
  rule: np.ndarray,
  child: np.ndarray,
) -> tuple[sparse.SparseRows, tuple[str, ...]]:
  """Returns how often each pair of rules occurs in D derivations.

  Args:
    table: R rules.
    words: distinct words of the source text, which rules from R + 1 on copy.
    offsets: nodes of each derivation, `[D + 1]`.
    rule: of each node, int `[T]`.
    child: nodes in the sites of each node, -1 for none, int `[T, A]`.

  Returns:
    `(rows, names)`: D sparse vectors.
  """
  parent, site = np.nonzero(child >= 0)
  below = rule[child[parent, site]].astype(np.int64)
  above = rule[parent].astype(np.int64)
  proper = ~(_is_glue(table, above) | _is_glue(table, below))
  parent, above, below = parent[proper], above[proper], below[proper]
  size = int(max(above.max(initial=0), below.max(initial=0))) + 1
  used, ids = np.unique(above * size + below, return_inverse=True)
  spelled: dict[int, str] = {}
  for one in np.unique(np.concatenate(np.divmod(used, size))).tolist():
    label, source, target = local_features.spell_rule(table, words, one)
    spelled[one] = f"{label}>{'_'.join(source)}/{'_'.join(target)}"
  names = tuple(
    f"{RULE_PREFIX}{spelled[key // size]}|{spelled[key % size]}"
    for key in used.tolist()
  )
  owner = np.searchsorted(offsets, parent, side="right") - 1
  counts = np.bincount(owner, minlength=len(offsets) - 1)
  return sparse.canonical(
    ids.astype(np.int32), np.ones(len(ids)), row_offsets(counts)
  ), names


def _is_glue(table: RuleTable, rule: np.ndarray) -> np.ndarray:
  """Whether rules are glue; those beyond the table copy words."""
  known = rule < len(table)
  out = np.zeros(len(rule), bool)
  out[known] = table.kind[rule[known]] == Kind.GLUE
  return out
