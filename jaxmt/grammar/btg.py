"""Bracketing transduction grammars: phrase pairs and two rules that join them.

    X -> <X0 X1, X0 X1>   straight
    X -> <X0 X1, X1 X0>   inverted

(Wu 1997; with phrases as terminals Xiong, Liu & Lin 2006). They are rules of
the table like any other, so the chart search, forests and tuning need nothing
more. What makes one order likelier than the other is a feature:
`features.maxent_reordering`.
"""

import numpy as np

from jaxmt.grammar import table as table_lib
from jaxmt.grammar.table import RuleTable, X
from jaxmt.text import ragged

STRAIGHT, INVERTED = "straight", "inverted"
NAMES = (STRAIGHT, INVERTED)  # of the features that count the two rules


def with_joining_rules(table: RuleTable) -> RuleTable:
  """Returns the table with the two rules, if it does not have them.

  They come last, so that rules keep their numbers. Rules with non-terminals and
  words stay, too; a phrase table has none.
  """
  if set(NAMES) <= set(table.feature_names):
    return table
  rules = table_lib.make_table(
    source_words=table.source_words,
    target_words=table.target_words,
    source=ragged.from_rows([[-1 - X, -1 - X]] * 2),
    target=ragged.from_rows([[-1, -2], [-2, -1]]),
  )
  rules = table_lib.with_features(rules, NAMES, np.eye(2))
  return table_lib.concatenate([table, rules])
