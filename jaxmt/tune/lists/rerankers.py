"""Non-linear re-rankers of candidate lists (survey, section 8.1).

additive  score = w.h + sum over the target bigrams (a, b) of a candidate of
          v.tanh(M [x_a; x_b] + c), with word vectors x: an additive neural
          network (Liu et al. 2013), whose local units are bigrams here,
          since lists have no rules
kernel    score = w.h + sum_m a_m exp(-|z - z_m|^2 / (2 D width^2)), with z the
          dense features less their mean over the list, in units of their
          deviation, and z_m those of some training candidates

Both begin as the linear model they are given (v = a = 0) and minimise a loss of
`jaxmt.losses.registry` by Adam. Every fifth sentence is held out; the
iterate of its best score is returned.
"""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from jaxmt.decode.candidate_lists import CandidateLists, take_sentences
from jaxmt.errors import InputError
from jaxmt.features import sparse
from jaxmt.losses import registry as losses
from jaxmt.text import vocabulary
from jaxmt.text.ragged import row_offsets
from jaxmt.tune import costs, options
from jaxmt.tune.lists import objective
from jaxmt.tune.pool import best, find_metric, scores

MODELS = ("additive", "kernel")
_UNKNOWN, _BEGIN, _END = range(3)
_EVERY = 5  # every fifth sentence is held out
_CHUNK = 10  # steps between two looks at the held-out sentences


@dataclasses.dataclass(frozen=True, kw_only=True)
class RerankConfig:
  """What to learn, and how.

  Attributes:
    model: one of `MODELS`.
    metric: whose costs to learn from.
    loss: a name in `jaxmt.losses.registry`; not one of corpus statistics.
    steps: of Adam, on all sentences at once.
    rate: of Adam.
    l2: penalty on all parameters but the linear ones.
    vector: length of word vectors (additive).
    hidden: units (additive).
    min_count: words of fewer training candidates are unknown (additive).
    landmarks: m (kernel).
    width: of the kernel.
  """

  model: str = "additive"
  metric: str = "bleu"
  loss: str = "risk"
  steps: int = 100
  rate: float = 0.01
  l2: float = 1e-4
  vector: int = 16
  hidden: int = 16
  min_count: int = 5
  landmarks: int = 100
  width: float = 1.0

  def __post_init__(self):
    find_metric(self.metric)
    options.one_of(self, model=MODELS, loss=losses.names())
    options.at_least(self, steps=1, l2=0, vector=1, hidden=1, min_count=1)
    options.at_least(self, landmarks=1)
    options.above(self, rate=0, width=0)
    if losses.find(self.loss).statistics_of:
      raise InputError(f"loss '{self.loss}' is no sum over sentences")


class AdditiveNetwork(nn.Module):
  """Scores of candidates from dense features and bigrams.

  Attributes:
    words: size of the vocabulary.
    vector: length of word vectors.
    hidden: units.
  """

  words: int
  vector: int
  hidden: int

  @nn.compact
  def __call__(self, inputs: dict[str, Array]) -> Array:
    """Returns `[B, K]`.

    Args:
      inputs: `dense` `[B, K, D]`; `bigrams` int32 `[U, 2]`, distinct ones;
        `ids` `[B, K, P]` and `values` `[B, K, P]`, bigrams of candidates.
    """
    linear = nn.Dense(1, use_bias=False, name="linear")(inputs["dense"])
    table = self.param(
      "vectors", nn.initializers.normal(0.3), (self.words, self.vector)
    )
    pairs = table[inputs["bigrams"]].reshape(len(inputs["bigrams"]), -1)
    units = jnp.tanh(nn.Dense(self.hidden, name="hidden")(pairs))
    local = nn.Dense(
      1, use_bias=False, kernel_init=nn.initializers.zeros, name="local"
    )(units)[:, 0]
    return linear[..., 0] + jnp.sum(
      inputs["values"] * local[inputs["ids"]], axis=-1
    )


class KernelNetwork(nn.Module):
  """Scores of candidates from dense features and Gaussian kernels.

  Attributes:
    width: of the kernel, for each feature.
  """

  width: float

  @nn.compact
  def __call__(self, inputs: dict[str, Array]) -> Array:
    """Returns `[B, K]`.

    Args:
      inputs: `dense` `[B, K, D]`; `centred` `[B, K, D]`; `landmarks` `[M, D]`.
    """
    linear = nn.Dense(1, use_bias=False, name="linear")(inputs["dense"])
    points, marks = inputs["centred"], inputs["landmarks"]
    square = (
      jnp.sum(points**2, -1)[..., None]
      - 2 * points @ marks.T
      + jnp.sum(marks**2, -1)
    )
    scale = 2 * max(marks.shape[1], 1) * self.width**2
    kernel = jnp.exp(-jnp.maximum(square, 0.0) / scale)
    return (linear + nn.Dense(
      1, use_bias=False, kernel_init=nn.initializers.zeros, name="kernel"
    )(kernel))[..., 0]  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reranker:
  """A fitted re-ranker.

  Attributes:
    config: how it was learnt.
    parameters: of the network.
    names: dense features, D.
    deviations: of the dense features, `[D]`.
    weights: of sparse features, by name: they stay as they were.
    words: numbers of known words (additive).
    landmarks: `[M, D]` (kernel).
    history: one record for each look at the held-out sentences.
  """

  config: RerankConfig
  parameters: Any
  names: tuple[str, ...]
  deviations: np.ndarray
  weights: dict[str, float]
  words: dict[str, int]
  landmarks: np.ndarray
  history: list[dict]


def _network(config: RerankConfig, words: int) -> nn.Module:
  if config.model == "kernel":
    return KernelNetwork(width=config.width)
  return AdditiveNetwork(
    words=words, vector=config.vector, hidden=config.hidden
  )


def _known_words(lines: list[str], least: int) -> dict[str, int]:
  """Numbers of words that are in at least `least` lines."""
  ids, words = vocabulary.intern(lines)
  owner = np.repeat(np.arange(len(lines)), ids.lengths)
  pairs = np.unique(ids.flat.astype(np.int64) * (len(lines) + 1) + owner)
  counts = np.bincount(pairs // (len(lines) + 1), minlength=len(words))
  numbers = np.flatnonzero(counts >= least).tolist()
  return {words[number]: _END + 1 + n for n, number in enumerate(numbers)}


def _bigram_rows(lines: list[str], words: dict[str, int]):
  """Bigrams of candidates: `(distinct ones [U, 2], rows)`."""
  ids, vocabulary_words = vocabulary.intern(lines)
  table = np.array([words.get(w, _UNKNOWN) for w in vocabulary_words], np.int64)
  size = len(words) + _END + 1
  offsets = ids.offsets + np.arange(len(ids.offsets))
  # Each word with the one before it, and the end with the last word.
  left = np.full(offsets[-1], _BEGIN, np.int64)
  right = np.full(offsets[-1], _END, np.int64)
  inner = np.ones(offsets[-1], bool)
  inner[offsets[1:] - 1] = False
  right[inner] = table[ids.flat] if len(ids.flat) else 0
  left[np.flatnonzero(inner) + 1] = right[inner]
  distinct, place = np.unique(left * size + right, return_inverse=True)
  pairs = np.stack(np.divmod(distinct, size), axis=1).astype(np.int32)
  return pairs, sparse.canonical(place, np.ones(len(place)), offsets)


def _centred(dense: np.ndarray, lists: CandidateLists) -> np.ndarray:
  """Features less their mean over the list, `[N, D]`."""
  lengths = np.diff(lists.offsets)
  filled = np.flatnonzero(lengths)
  sums = np.add.reduceat(dense, lists.offsets[:-1][filled], axis=0)
  mean = sums / lengths[filled][:, None]
  return dense - np.repeat(mean, lengths[filled], axis=0)


def _inputs(
  lists: CandidateLists, fitted: Reranker, mask: np.ndarray
) -> dict[str, Array]:
  """Arrays that a network takes; the lists have its dense features."""

  def spread(rows: np.ndarray, dtype: Any = np.float32) -> Array:
    out = np.zeros((*mask.shape, *rows.shape[1:]), dtype)
    out[mask] = rows
    return jnp.asarray(out)

  width = len(fitted.names)
  dense = lists.dense[:, :width] / fitted.deviations
  inputs = {"dense": spread(dense)}
  if fitted.config.model == "kernel":
    inputs["centred"] = spread(_centred(dense, lists))
    inputs["landmarks"] = jnp.asarray(fitted.landmarks, jnp.float32)
    return inputs
  pairs, rows = _bigram_rows(lists.lines, fitted.words)
  ids, values = sparse.pad(rows)
  inputs["bigrams"] = jnp.asarray(pairs)
  inputs["ids"], inputs["values"] = spread(ids, np.int32), spread(values)
  return inputs


def _mask(lists: CandidateLists) -> np.ndarray:
  lengths = np.diff(lists.offsets)
  return np.arange(max(lists.width, 1)) < lengths[:, None]


def _fixed(lists: CandidateLists, fitted: Reranker) -> np.ndarray:
  """What sparse features add to scores, `[N]`."""
  vector = np.array(
    [fitted.weights.get(name, 0.0) for name in lists.names], np.float64
  )
  return scores(lists, vector)


def rerank_scores(lists: CandidateLists, fitted: Reranker) -> np.ndarray:
  """Returns the scores of candidates, float64 `[N]`.

  Args:
    lists: their first dense features are those of the re-ranker.
    fitted: from `fit`.

  Raises:
    InputError: if the dense features are others.
  """
  if lists.names[: len(fitted.names)] != fitted.names:
    raise InputError("the lists have other dense features than the re-ranker")
  if not len(lists):
    return np.zeros(0)
  mask = _mask(lists)
  network = _network(fitted.config, len(fitted.words) + _END + 1)
  inputs = _inputs(lists, fitted, mask)
  values: Any = network.apply(fitted.parameters, inputs)
  return np.asarray(values, np.float64)[mask] + _fixed(lists, fitted)


def fit(
  pool: CandidateLists, weights: np.ndarray, config: RerankConfig, seed: int
) -> Reranker:
  """Learns a re-ranker.

  Args:
    pool: with statistics of `config.metric`.
    weights: of the linear model to begin with, `[D + F]`; those of sparse
      features stay.
    config: see `RerankConfig`.
    seed: of parameters and landmarks.
  """
  held_out = np.arange(pool.sentences) % _EVERY == _EVERY - 1
  train = take_sentences(pool, np.flatnonzero(~held_out))
  rest = (
    take_sentences(pool, np.flatnonzero(held_out)) if held_out.any() else train
  )
  width = pool.dense.shape[1]
  loss = losses.find(config.loss)
  start = np.array(weights, np.float64)
  largest = np.abs(start[:width]).max(initial=0.0)
  if loss.start_scale and largest:
    start *= loss.start_scale / largest
  deviations = _centred(pool.dense, pool).std(0)
  deviations = np.where(deviations > 1e-9, deviations, 1.0)
  rng = np.random.default_rng(seed)
  marks = np.zeros((0, width))
  if config.model == "kernel" and len(train):
    rows = rng.choice(
      len(train), min(config.landmarks, len(train)), replace=False
    )
    marks = _centred(train.dense / deviations, train)[np.sort(rows)]
  fitted = Reranker(
    config=config,
    parameters=None,
    names=pool.names[:width],
    deviations=deviations,
    weights=dict(zip(pool.names[width:], start[width:].tolist(), strict=True)),
    words=_known_words(train.lines, config.min_count),
    landmarks=marks,
    history=[],
  )
  if not len(train):
    raise InputError("no candidates to learn a re-ranker from")
  inputs = _inputs(train, fitted, _mask(train))
  network = _network(config, len(fitted.words) + _END + 1)
  initial: Any = network.init(jax.random.key(seed), inputs)
  linear = (start[:width] * deviations)[:, None]
  initial["params"]["linear"]["kernel"] = jnp.asarray(linear, jnp.float32)
  return _trained(fitted, network, initial, inputs, train, rest)


def _trained(fitted, network, parameters, inputs, train, rest) -> Reranker:
  """The re-ranker with the parameters of the best held-out score."""
  config = fitted.config
  record = losses.find(config.loss)
  padded = objective.pad(
    train,
    config.metric,
    costs.candidate_costs(
      train, np.zeros(len(train.names)), metric=config.metric, kind=record.costs
    ),
    features=False,
  )
  goal = objective.Objective(loss=config.loss, cost_scale=record.cost_scale)
  mask = _mask(train)
  fixed = np.zeros(mask.shape, np.float32)
  fixed[mask] = _fixed(train, fitted)
  optimizer = optax.adam(config.rate)

  def value(parameters, inputs, padded, fixed):
    scores = network.apply(parameters, inputs) + fixed
    bent = {k: v for k, v in parameters["params"].items() if k != "linear"}
    size = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(bent))
    return objective.score_value(scores, padded, goal) + 0.5 * config.l2 * size

  @jax.jit
  def chunk(parameters, state, inputs, padded, fixed):
    def step(carry, _):
      parameters, state = carry
      level, slopes = jax.value_and_grad(value)(
        parameters, inputs, padded, fixed
      )
      updates, state = optimizer.update(slopes, state, parameters)
      return (optax.apply_updates(parameters, updates), state), level

    return jax.lax.scan(step, (parameters, state), None, length=_CHUNK)

  state = optimizer.init(parameters)
  history: list[dict] = []
  top = (-np.inf, parameters)
  for number in range(-(-config.steps // _CHUNK) + 1):
    now = dataclasses.replace(fitted, parameters=parameters)
    score = held_out_score(rest, now)
    sign = 1.0 if find_metric(config.metric).higher_is_better else -1.0
    history.append({"step": number * _CHUNK, "held_out": score})
    if sign * score > top[0]:
      top = (sign * score, parameters)
    if number * _CHUNK < config.steps:
      (parameters, state), level = chunk(
        parameters, state, inputs, padded, jnp.asarray(fixed)
      )
      history[-1]["loss"] = float(level[0])
  return dataclasses.replace(fitted, parameters=top[1], history=history)


def held_out_score(lists: CandidateLists, fitted: Reranker) -> float:
  """Returns the corpus score of the best candidates by a re-ranker."""
  return chosen_score(lists, rerank_scores(lists, fitted), fitted.config.metric)


def chosen_score(
  lists: CandidateLists, values: np.ndarray, metric: str
) -> float:
  """Returns the corpus score of the candidates with the highest values."""
  chosen = best(values, lists.offsets)
  total = lists.statistics[metric][chosen].sum(0, dtype=np.float64)
  return float(find_metric(metric).corpus_score(total))


def ranks(values: np.ndarray, lists: CandidateLists) -> np.ndarray:
  """Returns 1 for the best candidate of a list, falling to 0 for the last."""
  order = np.lexsort((np.arange(len(values)), -values, lists.sentence))
  lengths = np.diff(lists.offsets)
  first = np.repeat(row_offsets(lengths)[:-1], lengths)
  place = np.empty(len(values), np.int64)
  place[order] = np.arange(len(values)) - first
  return 1.0 - place / np.maximum(np.repeat(lengths, lengths) - 1, 1)
