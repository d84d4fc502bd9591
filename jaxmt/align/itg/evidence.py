"""What simpler aligners say about links: the features of ITG alignment.

Model 1, the HMM and the diagonal model are learnt in both directions on the
whole bitext. Of a pair of words in a sentence pair the features are (Liu, Li &
Zhou, Coling 2010 and ACL 2010): translation probabilities, the conditional link
probability of Moore (2005) and the rank of the association score, the distance
of relative positions, stop words; and beyond the papers posteriors of links,
those of the two diagonal neighbours, and equal spelling.

Of a word with 0, 1, 2, 3 or more links: its fertility, which stands in for
IBM Model 4. n(links | word) is counted on the HMM's symmetrised links and mixed
with n(links) of all words; there are no relative distortions and no search over
Model 4's alignments.

P: word pairs. W: width of a batch. B: sentence pairs of a batch.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from jaxmt.align import aligner as contract
from jaxmt.align import cooccurrence, em, registry, symmetrize
from jaxmt.align.itg.terminals import FERTILITIES, FeatureArrays
from jaxmt.text import ragged
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets

MODELS = ("model1", "hmm", "diagonal")
LINK_FEATURES = (
  *(f"{model} {side}" for model in MODELS for side in em.DIRECTIONS),
  *(
    f"{model} {side} posterior"
    for model in MODELS[1:]
    for side in em.DIRECTIONS
  ),
  "both posteriors",
  "mean posterior",
  "diagonal neighbours",
  "link probability",
  "association rank of target",
  "association rank of source",
  "distance",
  "stop words",
  "one stop word",
  "same spelling",
  "links",
)
WORD_FEATURES = (
  "fertility",
  "unlinked",
  "unlinked stop word",
  "unlinked posterior",
  "several links",
)
_FLOOR = 1e-6  # least probability, before logarithms
_RANKS = 4  # association ranks above this are one
_DISCOUNT = 0.4  # of Moore's link counts
_SMOOTHING = 2.0  # pseudo-counts of the mean fertility
_STOP_WORDS = 100  # most frequent words of a side
_CELLS = 1 << 15  # of a batch


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
  """What has been learnt of a bitext.

  Attributes:
    table: its P word pairs.
    keys: `source << 32 | target` of each pair, rising, int64 `[P]`.
    configs: settings of each model.
    parameters: of each model and direction.
    link_probability: Moore's, then 0, float32 `[P + 1]`.
    association: log-likelihood ratio, then 0, float32 `[P + 1]`.
    fertility: ln n(links | word) of source and target words, float32 `[V, 4]`.
    stop: whether a word is among the most frequent, per side, bool `[V]`.
    spelling: a number per word, equal for equal spelling on both sides, int32
      `[V]` per side.
    links: symmetrised links of the HMM.
    ratio: target words per source word.
  """

  table: cooccurrence.PairTable
  keys: np.ndarray
  configs: dict[str, contract.AlignConfig]
  parameters: dict[str, dict[str, contract.Parameters]]
  link_probability: np.ndarray
  association: np.ndarray
  fertility: tuple[np.ndarray, np.ndarray]
  stop: tuple[np.ndarray, np.ndarray]
  spelling: tuple[np.ndarray, np.ndarray]
  links: Ragged
  ratio: float


def learn(
  source: Ragged,
  target: Ragged,
  *,
  source_words: Sequence[str] = (),
  target_words: Sequence[str] = (),
  iterations: int = 5,
  symmetrization: str = "grow-diag-final-and",
  mesh: Mesh | None = None,
  report: Callable[[em.Progress], None] = lambda progress: None,
) -> Evidence:
  """Learns the simpler aligners from a bitext.

  Args:
    source: word ids per line.
    target: word ids per line.
    source_words: the word of each source id, for equal spelling; may be empty.
    target_words: likewise.
    iterations: passes of each model; the HMM has as many of Model 1 before.
    symmetrization: of the HMM's links, which link probabilities, fertilities
      and rules are counted on.
    mesh: devices; None for all.
    report: called after every pass.
  """
  configs, parameters, found = {}, {}, None
  for model in MODELS:
    configs[model] = registry.default_config(
      model, iterations=iterations, warm_up=iterations
    )
    result = em.align(source, target, configs[model], mesh=mesh, report=report)
    parameters[model] = result.parameters
    found = result if model == "hmm" else found
  assert found is not None
  linked = symmetrize.symmetrize(
    found.links["forward"], found.links["backward"], method=symmetrization
  )
  counts = _joint_counts(source, target)
  sizes = (found.table.source_size, found.table.target_size)
  return with_links(
    Evidence(
      table=found.table,
      keys=_pair_keys(found.table.source, found.table.target),
      configs=configs,
      parameters=parameters,
      link_probability=counts.astype(np.float32),
      association=_association(found.table, counts, source, target),
      fertility=(np.zeros((1, 1)), np.zeros((1, 1))),
      stop=(_frequent(source, sizes[0]), _frequent(target, sizes[1])),
      spelling=_spelling(source_words, target_words, sizes),
      links=linked,
      ratio=len(target.flat) / max(len(source.flat), 1),
    ),
    source,
    target,
    linked,
    counts=counts,
  )


def with_links(
  evidence: Evidence,
  source: Ragged,
  target: Ragged,
  links: Ragged,
  *,
  counts: np.ndarray | None = None,
) -> Evidence:
  """Returns the evidence with what is counted on other links.

  Link probabilities and fertilities are estimated anew; the models stay.

  Args:
    evidence: of the same bitext.
    source: word ids per line.
    target: word ids per line.
    links: pairs (source, target) per line.
    counts: sentence pairs that have each word pair, `[P]`; counted if None.
  """
  counts = _joint_counts(source, target) if counts is None else counts
  row = np.repeat(np.arange(len(links)), links.lengths)
  flat = links.flat.reshape(-1, 2)
  first = source.flat[source.offsets[row] + flat[:, 0]]
  second = target.flat[target.offsets[row] + flat[:, 1]]
  place = np.searchsorted(evidence.keys, _pair_keys(first, second))
  linked = np.bincount(place, minlength=len(evidence.keys))
  share = np.maximum(linked - _DISCOUNT, 0.0) / np.maximum(counts, 1)
  return dataclasses.replace(
    evidence,
    links=links,
    link_probability=np.append(np.minimum(share, 1.0), 0).astype(np.float32),
    fertility=(
      _fertility(source, links, 0, evidence.table.source_size),
      _fertility(target, links, 1, evidence.table.target_size),
    ),
  )


def _pair_keys(source, target) -> np.ndarray:
  return (np.asarray(source, np.int64) << 32) | np.asarray(target, np.int64)


def _fertility(text: Ragged, links: Ragged, side: int, size: int) -> np.ndarray:
  """Returns ln n(links | word), smoothed by all words, float32 `[V, 4]`."""
  row = np.repeat(np.arange(len(links)), links.lengths)
  places = text.offsets[row] + links.flat.reshape(-1, 2)[:, side]
  number = np.bincount(places, minlength=len(text.flat))
  number = np.minimum(number, FERTILITIES - 1)
  counts = np.zeros((size, FERTILITIES))
  np.add.at(counts, (text.flat, number), 1.0)
  mean = (counts.sum(0) + 1.0) / (counts.sum() + FERTILITIES)
  total = counts.sum(1, keepdims=True) + _SMOOTHING
  return np.log((counts + _SMOOTHING * mean) / total).astype(np.float32)


def _frequent(text: Ragged, size: int) -> np.ndarray:
  """Which words are among the most frequent, bool `[size]`."""
  counts = np.bincount(text.flat, minlength=size)
  out = np.zeros(size, np.bool_)
  out[np.argsort(-counts, kind="stable")[:_STOP_WORDS]] = True
  return out & (counts > 0)


def _spelling(source_words, target_words, sizes):
  """One number per spelling; words without a spelling have their own."""
  index: dict[str, int] = {}

  def numbered(words, size, other):
    numbers = np.full(size, other, np.int32)
    for place, word in enumerate(words[:size]):
      numbers[place] = index.setdefault(word, len(index))
    return numbers

  return (
    numbered(source_words, sizes[0], -1),
    numbered(target_words, sizes[1], -2),
  )


def _joint_counts(source: Ragged, target: Ragged) -> np.ndarray:
  """How many sentence pairs have each word pair, int64 `[P]`."""
  index = cooccurrence.build(source, target)
  counts = np.zeros(len(index.table) + 1, np.int64)
  stamp = np.full(len(index.table) + 1, -1, np.int64)
  for bucket in index.buckets:
    _count_rows(bucket.pairs, bucket.sentences, stamp, counts)
  return counts[:-1]


@njit
def _count_rows(pairs, sentences, stamp, counts):
  """Counts each word pair once per sentence pair."""
  for row in range(len(pairs)):
    for i in range(pairs.shape[1]):
      for j in range(pairs.shape[2]):
        pair = pairs[row, i, j]
        if stamp[pair] != sentences[row]:
          stamp[pair] = sentences[row]
          counts[pair] += 1


def _association(table, counts, source, target) -> np.ndarray:
  """Log-likelihood ratios (Dunning, 1993), then 0, float32 `[P + 1]`.

  Negative where words occur together less often than by chance.
  """
  total = max(len(source), 1)
  first = _sentences_with(source, table.source_size)[table.source]
  second = _sentences_with(target, table.target_size)[table.target]
  cells = np.stack(
    [counts, first - counts, second - counts, total - first - second + counts]
  ).astype(np.float64)
  chance = np.stack(
    [
      first * second,
      first * (total - second),
      (total - first) * second,
      (total - first) * (total - second),
    ]
  ) / float(total)
  terms = np.where(
    cells > 0,
    cells * np.log(np.maximum(cells, 1) / np.maximum(chance, 1e-9)),
    0,
  )
  ratio = 2.0 * terms.sum(0) * np.where(cells[0] >= chance[0], 1.0, -1.0)
  return np.append(ratio, 0).astype(np.float32)


def _sentences_with(text: Ragged, size: int) -> np.ndarray:
  """How many lines have each word, int64 `[size]`."""
  row = np.repeat(np.arange(len(text)), text.lengths)
  keys = np.unique(_pair_keys(text.flat, row))
  return np.bincount(keys >> 32, minlength=size).astype(np.int64)


# --- batches ------------------------------------------------------------------


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Matrices:
  """Features of a batch on the device, source x target.

  Attributes:
    link: float32 `[B, W, W, L]`.
    source: float32 `[B, W, 4, S]`.
    target: float32 `[B, W, 4, S]`.
    model1: Model 1's p(target | source), float32 `[B, W, W]`.
    posterior: mean of the HMM's two posteriors, float32 `[B, W, W]`.
    source_length: int32 `[B]`.
    target_length: int32 `[B]`.
  """

  link: jax.Array
  source: jax.Array
  target: jax.Array
  model1: jax.Array
  posterior: jax.Array
  source_length: jax.Array
  target_length: jax.Array


def batches(
  evidence: Evidence, source: Ragged, target: Ragged, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, Matrices]]:
  """Yields features of sentence pairs, grouped by length into few shapes.

  Args:
    evidence: learnt on a bitext that has all their word pairs.
    source: word ids per line.
    target: word ids per line.
    rows: lines, with words on both sides.

  Yields:
    Lines `[N]`, and their features; `N <= B`, the rest is padding.
  """
  constants = _constants(evidence)
  longest = np.maximum(source.lengths[rows], target.lengths[rows])
  widths = np.array([ragged.bucket(max(8, size)) for size in longest.tolist()])
  for width in np.unique(widths).tolist():
    own = rows[widths == width]
    size = max(1, _CELLS // (width * width))
    for start in range(0, len(own), size):
      lines = own[start : start + size]
      yield (
        lines,
        _matrices(evidence, constants, source, target, lines, width, size),
      )


def _constants(evidence: Evidence):
  """Arrays that all batches look up, on the device."""
  columns = np.stack(
    [
      np.maximum(evidence.parameters[model][side].pairs, np.log(_FLOOR))
      for model in MODELS
      for side in em.DIRECTIONS
    ]
    + [evidence.link_probability, evidence.association],
    axis=1,
  )
  pad = lambda array: np.concatenate([array, array[:1]])
  return jax.tree.map(
    jnp.asarray,
    {
      "columns": columns.astype(np.float32),
      "fertility": tuple(map(pad, evidence.fertility)),
      "stop": tuple(map(pad, evidence.stop)),
      "spelling": tuple(map(pad, evidence.spelling)),
      "parameters": {
        model: {
          side: dataclasses.replace(
            evidence.parameters[model][side],
            model=evidence.parameters[model][side].model
            if model == "hmm"
            else {},
          )
          for side in em.DIRECTIONS
        }
        for model in MODELS[1:]
      },
    },
  )


def _matrices(evidence, constants, source, target, lines, width, size):
  """Pads some lines and computes their features."""
  table = evidence.table
  blank = size - len(lines)
  sides, lengths = [], []
  for text, fill in ((source, table.source_size), (target, table.target_size)):
    words, _ = ragged.pad(ragged.select(text, lines), width=width, fill=fill)
    sides.append(
      np.pad(words.astype(np.int32), ((0, blank), (0, 0)), constant_values=fill)
    )
    lengths.append(np.pad(text.lengths[lines].astype(np.int32), (0, blank)))
  inside = (sides[0] < table.source_size)[:, :, None] & (
    sides[1] < table.target_size
  )[:, None, :]
  keys = _pair_keys(sides[0][:, :, None], sides[1][:, None, :])[inside]
  pairs = np.full(inside.shape, len(table), np.int32)
  pairs[inside] = np.searchsorted(evidence.keys, keys)
  # The diagonal model's partition sums are those of the batch's own sizes.
  own = {
    side: registry.find("diagonal").initialise(
      contract.Sizes(
        generated=np.maximum(lengths[given], 1).astype(np.int64),
        conditioning=np.maximum(lengths[1 - given], 1).astype(np.int64),
        count=np.ones(size, np.int64),
        width=width,
      ),
      dataclasses.replace(
        evidence.configs["diagonal"],
        tension=float(evidence.parameters["diagonal"][side].model["tension"]),
      ),
    )
    for side, given in (("forward", 1), ("backward", 0))
  }
  null = tuple(evidence.configs[model].null_probability for model in MODELS[1:])
  batch = contract.Batch(
    pairs=np.moveaxis(pairs, 0, -1)[None],
    source=sides[0].T[None],
    target=sides[1].T[None],
    source_length=lengths[0][None],
    target_length=lengths[1][None],
    size=np.arange(size, dtype=np.int32)[None],
  )
  return _features(constants, batch, own, null=null)


@functools.partial(jax.jit, static_argnames="null")
def _features(constants, batch, own, *, null):
  """Computes `Matrices`; arrays of the engine have sentence pairs last."""
  n, m = batch.source_length[0], batch.target_length[0]
  posteriors, nulls = {}, {}
  for model, share in zip(MODELS[1:], null, strict=True):
    config = registry.default_config(model, null_probability=share)
    for side in em.DIRECTIONS:
      grid = contract.seen_from(batch, direction=side)
      grid = jax.tree.map(lambda leaf: leaf[0], grid)
      parameters = constants["parameters"][model][side]
      size = parameters.null.shape[0] - 1
      grid = dataclasses.replace(grid, words=jnp.minimum(grid.words, size))
      if model == "diagonal":
        parameters = dataclasses.replace(parameters, model=own[side])
      found = registry.find(model).expectation(parameters, grid, config)
      links = found.links if side == "backward" else found.links.swapaxes(0, 1)
      posteriors[model, side] = jnp.moveaxis(links, -1, 0)
      nulls[model, side] = found.null.T
  pairs = jnp.moveaxis(batch.pairs[0], -1, 0)
  columns = constants["columns"][pairs]
  real = pairs < len(constants["columns"]) - 1
  words = batch.source[0].T, batch.target[0].T
  one = posteriors["hmm", "forward"]
  two = posteriors["hmm", "backward"]
  mean = 0.5 * (one + two)
  stops = _looked_up(constants["stop"], words)
  same = [_looked_up(constants["spelling"], words)[side] for side in range(2)]
  distance = jnp.abs(
    _relative(n, pairs.shape[1])[:, :, None]
    - _relative(m, pairs.shape[1])[:, None, :]
  )
  both = stops[0][:, :, None] & stops[1][:, None, :]
  either = stops[0][:, :, None] ^ stops[1][:, None, :]
  score = jnp.where(real, columns[..., -1], -jnp.inf)
  link = jnp.concatenate(
    [
      columns[..., :6],
      jnp.log(jnp.stack(list(posteriors.values()), -1) + _FLOOR),
      jnp.stack(
        [
          jnp.sqrt(one * two),
          mean,
          _neighbours(mean),
          columns[..., 6],
          _rank(score, 2),
          _rank(score, 1),
          distance,
          both,
          either,
          same[0][:, :, None] == same[1][:, None, :],
          real,
        ],
        -1,
      ),
    ],
    -1,
  )
  sides = []
  for side, direction in ((0, "backward"), (1, "forward")):
    fertility = _looked_up(constants["fertility"], words)[side]
    sides.append(
      _word_features(fertility, stops[side], nulls["hmm", direction])
    )
  return Matrices(
    link=jnp.where(real[..., None], link, 0.0),
    source=sides[0],
    target=sides[1],
    model1=jnp.where(real, jnp.exp(columns[..., 0]), 0.0),
    posterior=jnp.where(real, mean, 0.0),
    source_length=n,
    target_length=m,
  )


def _looked_up(tables, words):
  """Values of the words of both sides; padding looks up the last row."""
  return [
    table[jnp.minimum(own, len(table) - 1)]
    for table, own in zip(tables, words, strict=True)
  ]


def _relative(length, width):
  """Positions over lengths, `[B, W]`."""
  return (jnp.arange(width) + 0.5) / jnp.maximum(length, 1)[:, None]


def _neighbours(posterior):
  """Mean of the values above left and below right of each cell."""
  padded = jnp.pad(posterior, ((0, 0), (1, 1), (1, 1)))
  return 0.5 * (padded[:, :-2, :-2] + padded[:, 2:, 2:])


def _rank(score, axis):
  """How many cells of its line along `axis` are higher, at most `_RANKS`."""
  higher = jnp.expand_dims(score, axis) > jnp.expand_dims(score, axis + 1)
  return jnp.minimum(higher.sum(axis + 1), _RANKS).astype(jnp.float32)


def _word_features(fertility, stop, null):
  """`WORD_FEATURES` by number of links, `[B, W, 4, S]`."""
  number = jnp.arange(FERTILITIES)
  none = jnp.broadcast_to(number == 0, fertility.shape)
  return jnp.stack(
    [
      fertility,
      none,
      none & stop[..., None],
      jnp.where(none, jnp.log(null + _FLOOR)[..., None], 0.0),
      jnp.broadcast_to(number > 1, fertility.shape),
    ],
    -1,
  ).astype(jnp.float32)


def arrays(matrices: Matrices, number: int) -> FeatureArrays:
  """Returns the features of the first sentence pairs of a batch on the host.

  Args:
    matrices: the batch.
    number: how many pairs are no padding.
  """
  n = np.asarray(matrices.source_length)[:number].astype(np.int64)
  m = np.asarray(matrices.target_length)[:number].astype(np.int64)
  width = matrices.link.shape[1]
  rows = np.arange(width) < n[:, None]
  columns = np.arange(width) < m[:, None]
  cells = rows[:, :, None] & columns[:, None, :]
  return FeatureArrays(
    link=np.asarray(matrices.link)[:number][cells],
    source=np.asarray(matrices.source)[:number][rows],
    target=np.asarray(matrices.target)[:number][columns],
    cell_offsets=row_offsets(n * m),
    source_offsets=row_offsets(n),
    target_offsets=row_offsets(m),
  )
