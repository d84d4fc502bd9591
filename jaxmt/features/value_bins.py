"""Binned probabilities of rules: one weight for each bin of ln p.

    Bin_target_given_source_3    ln p is in (-4, -3]

A linear model makes a rule's score a multiple of ln p; with a weight for each
bin it can be any step function of it (survey, section 8.1; Clark, Dyer and
Lavie 2014, "Locally non-linear learning for statistical machine translation via
discretization and structured regularization", without their regulariser). All
bins are 1 wide; what is below the last one is in it. A template of
`rule_templates`, in the search like all of them. Columns that a table lacks
have no bins, and neither have glue and copied words.
"""

import numpy as np

from jaxmt.features import local_features
from jaxmt.features.local_features import SentenceFeature
from jaxmt.grammar import estimate, lexical
from jaxmt.grammar.table import RuleTable

BINS = 10
COLUMNS = (*estimate.THETA, *lexical.NAMES)
NAME = "bins"


def names() -> tuple[str, ...]:
  """Returns the names of all bins, those of a column together."""
  return tuple(f"Bin_{name}_{k}" for name in COLUMNS for k in range(BINS))


def values(
  table: RuleTable, rules: np.ndarray, sentence: tuple[str, ...]
) -> np.ndarray:
  """Returns 1 for the bin of each value, else 0, `[N, columns * BINS]`."""
  del sentence
  out = np.zeros((len(rules), len(COLUMNS), BINS))
  for place, name in enumerate(COLUMNS):
    if name not in table.feature_names:
      continue
    logs = table.features[rules, table.feature_names.index(name)]
    which = np.clip(np.floor(-logs.astype(np.float64)), 0, BINS - 1)
    out[np.arange(len(rules)), place, which.astype(np.int64)] = 1.0
  return out.reshape(len(rules), -1)


local_features.register(
  SentenceFeature(name=NAME, values=values, columns=names())
)
