"""What the beam loss does: ranks of the chosen derivations, changed counts.

loss_beam can matter only if derivations that are learned from have parts near
the edge of the decoder's beam. Every iteration therefore reports

- the mean loss_beam of the chosen derivations, and the histogram of the ranks
  of their parts in the training search;
- for a part of the batches, which are searched twice more: the histogram of the
  same parts' ranks in the plain decoder's beams (α1 = α2 = 0), and the share of
  the counts that the beam loss changes, ½ Σ |c - c'| / Σ c, where c' are the
  counts with α1 = 0. Forest counts are compared without the constraint: with it
  they are means over draws, whose noise is no change.

Both further searches run the program of the first with other parameters: there
is nothing to compile.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmt.decode import node_features
from jaxmt.decode.chart import search
from jaxmt.decode.chart.decoder import Result
from jaxmt.decode.model import Model
from jaxmt.grammar.match.matching import GLUE, ORDINARY
from jaxmt.hypergraph import Forest
from jaxmt.text.ragged import Ragged
from jaxmt.train.counts import Contributions

# Last rank of each bin of the histograms; beyond it there is one more bin.
LAST = (1, 2, 3, 5, 10, 20, 30, 50, 100)
BINS = (
  *("1", "2", "3", "4-5", "6-10", "11-20", "21-30", "31-50", "51-100"),
  "over 100",
)


def below_root(forest: Forest, derivations: Ragged) -> Ragged:
  """Drops the goal's edges: returns the edges that apply a rule, D rows."""
  roots = forest.node_offsets[1:] - 1
  heads = forest.heads[derivations.flat]
  row = np.searchsorted(forest.node_offsets, heads, side="right") - 1
  rule = heads != roots[row]
  ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(rule)])
  return Ragged(flat=derivations.flat[rule], offsets=ends[derivations.offsets])


def node_ranks(forest: Forest, derivations: Ragged) -> Ragged:
  """Ranks, from 1, of the parts of derivations in the search of the forest."""
  edges = below_root(forest, derivations)
  ranks = forest.nodes.rank[forest.heads[edges.flat]].astype(np.int64) + 1
  return Ragged(flat=ranks, offsets=edges.offsets)


def plain_ranks(
  model: Model, forest: Forest, derivations: Ragged, decoded: Result
) -> Ragged:
  """Ranks, from 1, that the parts of derivations have in another search.

  1 + the hypotheses of the part's cell that have a better model score; whether
  the part itself is among them does not matter.

  Args:
    model: the rules.
    forest: B sentences, with the model scores of both searches.
    derivations: edges in preorder, at most one derivation a sentence, B rows.
    decoded: a search of the same batch.
  """
  edges = below_root(forest, derivations)
  matches, scores = decoded.matches, decoded.beams.score
  keys = zip(
    matches.sentence.tolist(),
    matches.begin.tolist(),
    matches.end.tolist(),
    matches.category.tolist(),
    strict=True,
  )
  cells = dict(zip(keys, matches.place.tolist(), strict=True))
  glue = node_features.is_glue(model, forest.edges.rule[edges.flat])
  ranks = np.ones(len(edges.flat), np.int64)
  for row in range(len(edges)):
    partial: dict[int, float] = {}
    # In preorder, parts stand after what they are part of.
    for place in range(edges.offsets[row + 1] - 1, edges.offsets[row] - 1, -1):
      edge = edges.flat[place]
      node = forest.heads[edge]
      tails = forest.tails[edge]
      partial[node] = float(forest.score[edge]) + sum(
        partial[tail] for tail in tails[tails >= 0].tolist()
      )
      span = (int(forest.nodes.begin[node]), int(forest.nodes.end[node]))
      cell = cells[row, *span, GLUE if glue[place] else ORDINARY]
      better = scores[cell] > partial[node] + search.TIE
      ranks[place] = 1 + int(np.sum(better))
  return Ragged(flat=ranks, offsets=edges.offsets)


def first_rank(name: str) -> int:
  """Returns the first rank of a bin of `BINS`."""
  return (1, *(last + 1 for last in LAST))[BINS.index(name)]


def histograms(ranks: Ragged) -> np.ndarray:
  """Counts each row's ranks by bin, float64 `[D, len(BINS)]`."""
  which = np.searchsorted(LAST, ranks.flat, side="left")
  row = np.repeat(np.arange(len(ranks)), ranks.lengths)
  out = np.zeros((len(ranks), len(BINS)))
  np.add.at(out, (row, which), 1.0)
  return out


def changed(one: Contributions, other: Contributions) -> np.ndarray:
  """Returns ½ Σ |c - c'| of each sentence's counts in rules, float64 `[B]`."""
  out = np.zeros(len(one))
  for row in range(len(one)):
    sums: dict[int, int] = {}
    for contributions, sign in ((one, 1), (other, -1)):
      low, high = (
        contributions.rules.offsets[row],
        contributions.rules.offsets[row + 1],
      )
      for rule, units in zip(
        contributions.rules.flat[low:high].tolist(),
        contributions.units[low:high].tolist(),
        strict=True,
      ):
        sums[rule] = sums.get(rule, 0) + sign * units
    out[row] = 0.5 * sum(map(abs, sums.values()))
  return out


def record(columns: Callable[[str], np.ndarray]) -> dict[str, Any]:
  """Returns what an iteration reports of the beam.

  Args:
    columns: values of the sentences by name (`shard_counting.COLUMNS`), `[N]`.
  """
  plain = np.array([columns(f"plain {name}").sum() for name in BINS])
  ranks = np.array([columns(f"rank {name}").sum() for name in BINS])
  loss, admissible = columns("beam loss"), columns("near")
  searched_again = columns("diagnosed") > 0
  mass = float(columns("diagnosed").sum())
  moved = float(columns("changed").sum())
  known, listed = ~np.isnan(loss), ~np.isnan(admissible)
  return {
    "beam_loss": round(float(loss[known].mean()), 6) if known.any() else None,
    "near_share": round(float(admissible[listed].mean()), 6)
    if listed.any()
    else None,
    "ranks": _histogram(ranks),
    "plain_ranks": _histogram(plain),
    "diagnosed": int(searched_again.sum()),
    "beam_changes": round(moved / mass, 6) if mass else None,
  }


def _histogram(counts: np.ndarray) -> dict[str, int]:
  """Returns the bins that are not empty by name."""
  return {
    name: int(count)
    for name, count in zip(BINS, counts.tolist(), strict=True)
    if count
  }
