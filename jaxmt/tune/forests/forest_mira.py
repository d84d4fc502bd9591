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
from jaxmt.metrics import compiled_bleu
from jaxmt.text.kernels import njit
from jaxmt.tune import options
from jaxmt.tune.best_iterate import Chooser
from jaxmt.tune.forests import forest_data, forest_viterbi
from jaxmt.tune.forests.forest_loss_config import check_metric
from jaxmt.tune.learner import Learner, begin
from jaxmt.tune.lists import mira

_STATISTICS = compiled_bleu.SIZE - 1


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
def mira_pass(
  forest,
  features,
  origin,
  statistics,
  references,
  order,
  weights,
  lagged,
  document,
  steps,
  *settings,
):
  """One pass; changes weights, lagged and document in place.

  Args:
    forest: (node offsets, edge offsets, tails) of B sentences.
    features: of the decoder's edges, `[E', F]`.
    origin: the decoder's edge of each edge, `[E]`.
    statistics: of edges, `[E, 8]`.
    references: reference lengths, `[B]`.
    order: sentences in the order of the pass.
    weights: `[F]`.
    lagged: see `mira.mira_pass`, `[F]`.
    document: the pseudo-document, `[9]`.
    steps: sentences seen before this pass.
    *settings: cap, decay, constraints, model_background.

  Returns:
    `(steps, number of updates, summed loss)`.
  """
  cap, decay, constraints, model_background = settings
  node_offsets, edge_offsets, tails = forest
  width = len(weights)
  room = forest_viterbi.workspace(node_offsets)
  edges = np.empty(64, np.int64)
  slopes = np.empty(_STATISTICS)
  present = np.zeros(compiled_bleu.SIZE)
  good = np.zeros(compiled_bleu.SIZE)
  bad = np.zeros(compiled_bleu.SIZE)
  hope = np.empty(width)
  fear = np.empty(width)
  ways = np.empty((constraints, width))
  gram = np.zeros((constraints, constraints))
  losses = np.zeros(constraints)
  alpha = np.zeros(constraints)
  updates, total_loss = 0, 0.0
  for sentence in order:
    low, high = node_offsets[sentence], node_offsets[sentence + 1]
    if low == high:
      continue
    first, last = edge_offsets[low], edge_offsets[high]
    scores = np.empty(last - first)
    gains = np.empty(last - first)
    # The present translation, and gains around the document with it.
    _scores(features, origin, weights, first, last, scores)
    edges, count = forest_viterbi.best_derivation(
      low, high, edge_offsets, tails, scores, first, room, edges
    )
    _sum(features, origin, statistics, edges, count, fear, present)
    present[_STATISTICS] = references[sentence]
    compiled_bleu.slopes(document + present, slopes)
    slopes *= document[_STATISTICS] + references[sentence]
    for edge in range(first, last):
      gains[edge - first] = 0.0
      for s in range(_STATISTICS):
        gains[edge - first] += slopes[s] * statistics[edge, s]
    # The hope.
    edges, count = forest_viterbi.best_derivation(
      low, high, edge_offsets, tails, scores + gains, first, room, edges
    )
    _sum(features, origin, statistics, edges, count, hope, good)
    good[_STATISTICS] = references[sentence]
    # Fears, each under the weights that the ones before lead to.
    before = weights.copy()
    number = 0
    while number < constraints:
      edges, count = forest_viterbi.best_derivation(
        low, high, edge_offsets, tails, scores - gains, first, room, edges
      )
      _sum(features, origin, statistics, edges, count, fear, bad)
      lead = 0.0
      for s in range(_STATISTICS):
        lead += slopes[s] * (good[s] - bad[s])
      ways[number] = hope - fear
      now = lead - weights @ ways[number]
      size = ways[number] @ ways[number]
      if lead <= 0.0 or now <= 1e-9 or size <= 0.0:
        break
      losses[number] = lead - before @ ways[number]
      number += 1
      total_loss += now if number == 1 else 0.0
      for j in range(number):
        for k in range(number):
          gram[j, k] = ways[j] @ ways[k]
      mira.solve(gram, losses, number, cap / number, alpha)
      weights[:] = before
      for j in range(number):
        weights += alpha[j] * ways[j]
      if number < constraints:
        _scores(features, origin, weights, first, last, scores)
    if number:
      lagged += steps * (weights - before)
      updates += 1
    steps += 1
    chosen = present if model_background else good
    for s in range(len(document)):
      document[s] = decay * document[s] + chosen[s]
  return steps, updates, total_loss


def passes(
  pool: CandidateLists, learner: Learner, config: ForestMiraConfig, seed: int
) -> Iterator[tuple[Learner, dict]]:
  """Yields the learner and a record after each pass; see `mira.passes`."""
  data = forest_data.prepare(pool, learner.weights, config.metric)
  rng = np.random.default_rng(seed)
  if not len(learner.document):
    learner.document = np.ones(compiled_bleu.SIZE)
  forest = data.split.forest
  for number in range(config.passes):
    order = np.arange(len(forest))
    if config.shuffle:
      order = rng.permutation(len(forest))
    learner.steps, updates, loss = mira_pass(
      (forest.node_offsets, forest.edge_offsets, forest.tails),
      data.features,
      data.split.edge,
      data.split.statistics,
      data.references,
      order,
      learner.weights,
      learner.lagged,
      learner.document,
      learner.steps,
      config.cap,
      config.decay,
      config.constraints,
      config.background == "model",
    )
    yield learner, {"pass": number, "updates": updates, "loss": loss}


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
    judge=forest_data.Judge(pool, config.metric),
  )
  for now, record in passes(pool, begin(weights), config, seed):
    chooser.offer(now.average, record)
  return chooser.best, chooser.history
