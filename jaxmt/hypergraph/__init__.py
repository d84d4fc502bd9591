"""Packed forests and everything that is computed on them.

Nothing here knows what the forests are of: chart cells, phrase stacks, parse
trees. Whatever searches returns a `Forest`; then these functions apply.
"""

from jaxmt.hypergraph.archive import from_arrays, load, save, to_arrays
from jaxmt.hypergraph.derivations import (
  DerivationLists,
  EdgeStrings,
  sum_values,
)
from jaxmt.hypergraph.device_layout import lay_out
from jaxmt.hypergraph.envelopes import Envelopes, envelope
from jaxmt.hypergraph.forest import (
  Forest,
  concatenate,
  restrict,
  root_edges,
  select,
)
from jaxmt.hypergraph.kbest_lists import kbest
from jaxmt.hypergraph.passes import (
  Viterbi,
  best_derivations,
  expectations,
  inside,
  log_totals,
  marginals,
  max_marginals,
  outside,
  prune,
  viterbi,
)
from jaxmt.hypergraph.sampling import sample
from jaxmt.hypergraph.semirings import LOG, MAX, Semiring

__all__ = (
  "LOG",
  "MAX",
  "DerivationLists",
  "EdgeStrings",
  "Envelopes",
  "Forest",
  "Semiring",
  "Viterbi",
  "best_derivations",
  "concatenate",
  "envelope",
  "expectations",
  "from_arrays",
  "inside",
  "kbest",
  "lay_out",
  "load",
  "log_totals",
  "marginals",
  "max_marginals",
  "outside",
  "prune",
  "restrict",
  "root_edges",
  "sample",
  "save",
  "select",
  "sum_values",
  "to_arrays",
  "viterbi",
)
