"""Packed forests and everything that is computed on them.

Nothing here knows what the forests are of: chart cells, phrase stacks, parse
trees. Whatever searches returns a `Forest`; then these functions apply.
"""

from jaxmt.hypergraph.archive import from_arrays as from_arrays
from jaxmt.hypergraph.archive import load as load
from jaxmt.hypergraph.archive import save as save
from jaxmt.hypergraph.archive import to_arrays as to_arrays
from jaxmt.hypergraph.derivations import DerivationLists as DerivationLists
from jaxmt.hypergraph.derivations import EdgeStrings as EdgeStrings
from jaxmt.hypergraph.derivations import sum_values as sum_values
from jaxmt.hypergraph.device_layout import lay_out as lay_out
from jaxmt.hypergraph.envelopes import Envelopes as Envelopes
from jaxmt.hypergraph.envelopes import envelope as envelope
from jaxmt.hypergraph.forest import Forest as Forest
from jaxmt.hypergraph.forest import concatenate as concatenate
from jaxmt.hypergraph.forest import restrict as restrict
from jaxmt.hypergraph.forest import root_edges as root_edges
from jaxmt.hypergraph.forest import select as select
from jaxmt.hypergraph.kbest_lists import kbest as kbest
from jaxmt.hypergraph.passes import Viterbi as Viterbi
from jaxmt.hypergraph.passes import best_derivations as best_derivations
from jaxmt.hypergraph.passes import expectations as expectations
from jaxmt.hypergraph.passes import inside as inside
from jaxmt.hypergraph.passes import log_totals as log_totals
from jaxmt.hypergraph.passes import marginals as marginals
from jaxmt.hypergraph.passes import max_marginals as max_marginals
from jaxmt.hypergraph.passes import outside as outside
from jaxmt.hypergraph.passes import prune as prune
from jaxmt.hypergraph.passes import viterbi as viterbi
from jaxmt.hypergraph.sampling import sample as sample
from jaxmt.hypergraph.semirings import LOG as LOG
from jaxmt.hypergraph.semirings import MAX as MAX
from jaxmt.hypergraph.semirings import Semiring as Semiring
