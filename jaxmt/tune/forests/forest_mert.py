"""Minimum error rate training on forests (Kumar et al. 2009).

As `mert`, but a line search sees every derivation of the decoder's forests, not
k of them. The forests are those of the latest decoding. What earlier rounds
found stays as the k-best pool, whose lines are added to each sentence's
envelope: so the search does not go back to weights that earlier rounds have
shown to be bad, while memory does not grow with forests, and a round depends on
nothing but the loop's own state and can be done again after an interruption.
"""

import concurrent.futures
import dataclasses

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.hypergraph import EdgeStrings
from jaxmt.text.ragged import row_offsets
from jaxmt.tune import options
from jaxmt.tune.forests.forest_pool import ForestPool, StringStatistics
from jaxmt.tune.lists import envelope, mert


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestMertConfig(mert.MertConfig):
  """How to search; see `mert.MertConfig`.

  Attributes:
    density: edges kept for each source word, those of the best derivations; 0
      keeps all.
  """

  restarts: int = 1
  random_directions: int = 2
  density: float = 50.0

  def __post_init__(self):
    super().__post_init__()
    options.at_least(self, density=0)
    plain = (self.starts, self.margin, self.gradient, self.regularizer)
    if plain != ("uniform", 0.0, False, "none"):
      raise InputError(
        "MERT on forests has no options starts, margin, gradient, regularizer"
      )


class ForestLines:
  """The lines of a pool and of forests along directions."""

  def __init__(self, pool: CandidateLists, forests: ForestPool, metric: str):
    """Prepares arrays.

    Args:
      pool: candidates found earlier, with statistics of `metric`; only dense
        features.
      forests: of the same sentences, with references.
      metric: what statistics to give.
    """
    self._pool = pool
    self._statistics_of = StringStatistics(forests, metric)
    self._statistics = pool.statistics[metric]
    self._forest = forests.spelled.forest
    self._strings = EdgeStrings(
      row=np.arange(self._forest.num_edges, dtype=np.int32),
      symbols=forests.spelled.target,
    )
    index = {name: place for place, name in enumerate(forests.names)}
    values = forests.spelled.features
    self.columns = np.zeros((len(pool.names), len(values)))
    for place, name in enumerate(pool.names):
      if name in index:
        self.columns[place] = values[:, index[name]]

  def trace(
    self, weights: np.ndarray, direction: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """Returns breakpoints and statistics as `envelope.trace` does.

    Args:
      weights: float64 `[F]`, where step 0 is.
      direction: float64 `[F]`.
    """
    traced = hypergraph.envelope(
      self._forest,
      weights @ self.columns,
      direction @ self.columns,
      strings=self._strings,
    )
    counts = np.diff(traced.offsets)
    sentence = np.repeat(np.arange(len(counts)), counts)
    statistics = self._statistics_of(traced.words, sentence)
    lines = (traced.intercept, traced.slope)
    return self._merged(weights, direction, counts, lines, statistics)

  def _merged(self, weights, direction, counts, lines, statistics):
    """Adds the lines of the pool's candidates."""
    pool = self._pool
    both = np.diff(pool.offsets) + counts
    offsets = row_offsets(both)
    old = np.arange(len(pool)) + np.repeat(
      offsets[:-1] - pool.offsets[:-1], np.diff(pool.offsets)
    )
    is_new = np.ones(offsets[-1], bool)
    is_new[old] = False
    values = np.empty((2, offsets[-1]))
    values[0, is_new], values[1, is_new] = lines
    values[0, old] = pool.dense @ weights
    values[1, old] = pool.dense @ direction
    table = np.empty((offsets[-1], statistics.shape[1]), statistics.dtype)
    table[is_new], table[old] = statistics, self._statistics
    return envelope.trace(values[0], values[1], offsets, table)


def optimise(
  pool: CandidateLists, weights: np.ndarray, config: ForestMertConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """Tunes the weights on a pool that has forests.

  Args:
    pool: with `forests` and statistics of `config.metric`.
    weights: float64 `[F]`, the first start.
    config: see `ForestMertConfig`.
    seed: of the random starts and directions.

  Returns:
    The best weights over all starts, scaled to the largest being 1 in absolute
    value, and one record per start.

  Raises:
    InputError: if there are no forests, or sparse features.
  """
  if config.variant not in ("best", "powell"):
    raise ValueError(f"variant '{config.variant}' is not best or powell")
  width = pool.dense.shape[1]
  if pool.forests is None:
    raise InputError("forest-mert needs forests: tune with a decoder")
  if width != len(pool.names):
    raise InputError("forest-mert tunes dense features only")
  lines = ForestLines(pool, pool.forests, config.metric)
  rng = np.random.default_rng(seed)
  starts = [np.array(weights, np.float64)]
  for _ in range(config.restarts - 1):
    starts.append(rng.uniform(-config.spread, config.spread, width))
  directions = [
    np.concatenate(
      [np.eye(width), rng.normal(size=(config.random_directions, width))]
    )
    for _ in starts
  ]
  with concurrent.futures.ThreadPoolExecutor(
    config.threads or None
  ) as executor:
    climbed = list(
      executor.map(
        lambda number: _climb(
          lines, starts[number], directions[number], config=config
        ),
        range(len(starts)),
      )
    )
  history = [
    {"start": number, "score": score, "rounds": rounds}
    for number, (_, score, rounds) in enumerate(climbed)
  ]
  best = max(range(len(climbed)), key=lambda number: climbed[number][1])
  result = climbed[best][0]
  largest = np.abs(result).max(initial=0.0)
  return result / largest if largest > 0 else result, history


def _climb(lines, weights, directions, *, config):
  """Climbs from one start: `(weights, score, rounds)`."""
  weights = weights.copy()
  search = lambda direction: mert.best_interval(
    *lines.trace(weights, direction),
    metric=config.metric,
    plateau=config.plateau,
  )
  _, score = search(np.zeros(len(weights)))
  rounds = 0
  while rounds < config.max_rounds:
    rounds += 1
    before = score
    best = (0.0, score, -1)
    for number, direction in enumerate(directions):
      step, value = search(direction)
      if config.variant == "powell" and value > score:
        weights += step * direction
        score = value
      elif value > best[1]:
        best = (step, value, number)
    if config.variant == "best" and best[2] >= 0:
      weights += best[0] * directions[best[2]]
      score = best[1]
    if score - before < config.min_gain:
      break
  return weights, score, rounds
