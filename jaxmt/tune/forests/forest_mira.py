"""MIRA with hope and fear found in forests.

As `mira`, but hope and fear are the best of all derivations of the forest with
the gain added to or taken from the score, not the best of k. The gain is BLEU
of the pseudo-document, linear around the document with the sentence's present
translation in it. Several fears of a sentence come one after the other, each
the worst offender of the weights that satisfy those before (Chiang 2012).
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.metrics import bleu
from jaxmt.text.kernels import njit
from jaxmt.tune import options
from jaxmt.tune.forests import forest_data
from jaxmt.tune.gradient_config import check_metric
from jaxmt.tune.learning import Chooser, Learner
from jaxmt.tune.lists import mira

_STATISTICS = bleu.SIZE - 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestMiraConfig(mira.MiraConfig):
  """How to update; see `mira.MiraConfig`, of which cost_scale is not used.

  Attributes:
    density: edges kept for each source word, those of the best derivations; 0
      keeps all.
  """

  passes: int = 20
  density: float = 50.0

  def __post_init__(self):
    check_metric(self.metric)
    super().__post_init__()
    options.at_least(self, density=0)


@njit
def _scores(features, origin, weights, low, high, out):
  """Fills the model scores of edges `low` to `high`."""
  for edge in range(low, high):
    total = 0.0
    for column in range(len(weights)):
      total += features[origin[edge], column] * weights[column]
    out[edge - low] = total


@njit
def _sum(features, origin, statistics, edges, count, vector, table):
  """Fills features and statistics of a derivation."""
  vector[:] = 0.0
  table[:_STATISTICS] = 0.0
  for k in range(count):
    vector += features[origin[edges[k]]]
    for s in range(_STATISTICS):
      table[s] += statistics[edges[k], s]


@njit
def _gains(statistics, slopes, low, high, out):
  """Fills the gains of edges `low` to `high`: linear in statistics."""
  for edge in range(low, high):
    out[edge - low] = 0.0
    for s in range(_STATISTICS):
      out[edge - low] += slopes[s] * statistics[edge, s]


@njit
def mira_pass(forests, order, state, steps, settings):
  """One pass; changes weights, lagged and document in place.

  Args:
    forests: (node offsets, edge offsets, tails) of B sentences; features of the
      decoder's edges, `[E', F]`; the decoder's edge of each edge, `[E]`;
      statistics of edges, `[E, 8]`; reference lengths, `[B]`.
    order: sentences in the order of the pass.
    state: weights `[F]`, lagged `[F]` (see `mira`), pseudo-document `[9]`.
    steps: sentences seen before this pass.
    settings: see `mira.Settings`.

  Returns:
    `(steps, number of updates, summed loss)`.
  """
  structure, features, origin, statistics, references = forests
  node_offsets, edge_offsets, tails = structure
  weights, lagged, document = state
  width = len(weights)
  room = forest_data.workspace(node_offsets)
  edges = np.empty(64, np.int64)
  slopes = np.empty(_STATISTICS)
  present, good = np.zeros(bleu.SIZE), np.zeros(bleu.SIZE)
  bad = np.zeros(bleu.SIZE)
  hope, fear = np.empty(width), np.empty(width)
  constraints = mira.make_constraints(settings.constraints, width)
  for row in range(settings.constraints):
    constraints.ids[row], constraints.sizes[row] = np.arange(width), width
  updates, total_loss = 0, 0.0
  for sentence in order:
    low, high = node_offsets[sentence], node_offsets[sentence + 1]
    if low == high:
      continue
    first, last = edge_offsets[low], edge_offsets[high]
    scores, gains = np.empty(last - first), np.empty(last - first)
    # The present translation, and gains around the document with it.
    _scores(features, origin, weights, first, last, scores)
    edges, count = forest_data.best_derivation(
      low, high, edge_offsets, tails, scores, first, room, edges
    )
    _sum(features, origin, statistics, edges, count, fear, present)
    present[_STATISTICS] = references[sentence]
    bleu.slopes(document + present, slopes)
    slopes *= document[_STATISTICS] + references[sentence]
    _gains(statistics, slopes, first, last, gains)
    # The hope.
    edges, count = forest_data.best_derivation(
      low, high, edge_offsets, tails, scores + gains, first, room, edges
    )
    _sum(features, origin, statistics, edges, count, hope, good)
    good[_STATISTICS] = references[sentence]
    # Fears, each under the weights that the ones before lead to.
    trial, number = weights.copy(), 0
    while number < settings.constraints:
      edges, count = forest_data.best_derivation(
        low, high, edge_offsets, tails, scores - gains, first, room, edges
      )
      _sum(features, origin, statistics, edges, count, fear, bad)
      lead = slopes @ (good - bad)[:_STATISTICS]
      way = constraints.values[number]
      way[:] = hope - fear
      now = lead - trial @ way
      if lead <= 0.0 or now <= 1e-9 or way @ way <= 0.0:
        break
      constraints.losses[number] = lead - weights @ way
      number += 1
      total_loss += now if number == 1 else 0.0
      mira.solve_constraints(constraints, number, settings.cap)
      trial[:] = weights
      mira.move(constraints, number, 1.0, trial)
      if number < settings.constraints:
        _scores(features, origin, trial, first, last, scores)
    if number:
      weights[:] = trial
      mira.move(constraints, number, steps, lagged)
      updates += 1
    steps += 1
    chosen = present if settings.model_background else good
    mira.add_to_document(document, chosen, settings.decay)
  return steps, updates, total_loss


def passes(
  pool: CandidateLists, learner: Learner, config: ForestMiraConfig, seed: int
) -> Iterator[tuple[Learner, dict]]:
  """Yields the learner and a record after each pass; see `mira.passes`."""
  data = forest_data.prepare(pool, learner.weights, config.metric)
  if not len(learner.document):
    learner.document = np.ones(bleu.SIZE)
  forest = data.split.forest
  forests = (
    (forest.node_offsets, forest.edge_offsets, forest.tails),
    data.features,
    data.split.edge,
    data.split.statistics,
    data.references,
  )
  one_pass = lambda order, state, steps, settings: mira_pass(
    forests, order, state, steps, settings
  )
  return mira.run_passes(one_pass, len(forest), learner, config, seed)


def optimise(
  pool: CandidateLists, weights: np.ndarray, config: ForestMiraConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """Tunes all weights; arguments and result as in `mira.optimise`."""
  forest_data.check_pool(pool, config.metric)
  chooser = Chooser(
    pool,
    weights,
    config.metric,
    explore=config.explore,
    judge=forest_data.ForestJudge(pool, config.metric),
  )
  for now, record in passes(pool, Learner(weights=weights), config, seed):
    chooser.offer(now.average, record)
  return chooser.best, chooser.history
