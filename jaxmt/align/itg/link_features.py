"""Features of links and words for ITG alignment, in batches on the device.

Of a pair of words in a sentence pair (Liu, Li & Zhou, Coling 2010 and ACL
2010): translation probabilities, the conditional link probability of Moore
(2005) and the rank of the association score, the distance of relative
positions, stop words; and beyond the papers posteriors of links, those of the
two diagonal neighbours, equal spelling, the same of stems, and the scores of
`word_pieces`. Of a word with 0, 1, 2, 3 or more links: its fertility.

P: word pairs. W: width of a batch. B: sentence pairs of a batch.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.align import aligner as contract
from jaxmt.align import em, named_aligners
from jaxmt.align.itg import word_pieces
from jaxmt.align.itg.evidence import MODELS, Evidence
from jaxmt.align.itg.terminals import FERTILITIES, FeatureArrays
from jaxmt.align.itg.word_pieces import pair_keys
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged, row_offsets

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
  "stems forward",
  "stems backward",
  "stems forward posterior",
  "stems backward posterior",
  "stems both posteriors",
  "stems mean posterior",
  "stems diagonal neighbours",
  *word_pieces.PAIR_SCORES,
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
_CELLS = 1 << 15  # of a batch


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Matrices:
  """Features of a batch on the device, source x target.

  Attributes:
    link: float32 `[B, W, W, L]`.
    source: float32 `[B, W, 4, S]`.
    target: float32 `[B, W, 4, S]`.
    model1: Model 1's p(target | source), float32 `[B, W, W]`.
    posterior: mean of the posteriors of the two HMMs, of words and of stems,
      in both directions, float32 `[B, W, W]`.
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
  evidence: Evidence,
  source: Ragged,
  target: Ragged,
  rows: np.ndarray,
  *,
  tables: Any = None,
) -> Iterator[tuple[np.ndarray, Matrices]]:
  """Yields features of sentence pairs, grouped by length into few shapes.

  Args:
    evidence: learnt on a bitext that has all their word pairs.
    source: word ids per line.
    target: word ids per line.
    rows: lines, with words on both sides.
    tables: `device_tables` of the evidence, made anew if None.

  Yields:
    Lines `[N]`, and their features; `N <= B`, the rest is padding.
  """
  constants = device_tables(evidence) if tables is None else tables
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


def device_tables(evidence: Evidence) -> Any:
  """Returns the arrays that all batches look up, on the device."""
  columns = np.stack(
    [
      np.maximum(evidence.parameters[model][side].pairs, np.log(_FLOOR))
      for model in MODELS
      for side in em.DIRECTIONS
    ]
    + [evidence.link_probability],
    axis=1,
  )
  columns = np.concatenate(
    [columns, evidence.pair_scores, evidence.association[:, None]], axis=1
  )
  stems = evidence.stems
  pad = lambda array: np.concatenate([array, array[:1]])
  return jax.tree.map(
    jnp.asarray,
    {
      "columns": columns.astype(np.float32),
      "fertility": tuple(map(pad, evidence.fertility)),
      "stop": tuple(map(pad, evidence.stop)),
      "spelling": tuple(map(pad, evidence.spelling)),
      "stems": stems.parameters,
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
  blank = size - len(lines)
  lengths = [
    np.pad(text.lengths[lines].astype(np.int32), (0, blank))
    for text in (source, target)
  ]
  batch = _batch(
    (source, target), lines, lengths, evidence.table, evidence.keys, width, size
  )
  stems = evidence.stems
  texts = [
    dataclasses.replace(text, flat=own[text.flat])
    for text, own in zip((source, target), stems.stems, strict=True)
  ]
  stem_batch = _batch(
    texts, lines, lengths, stems.table, stems.keys, width, size
  )
  # The diagonal model's partition sums are those of the batch's own sizes.
  own = {
    side: named_aligners.find("diagonal").initialise(
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
  return _features(constants, batch, stem_batch, own, null=null)


def _batch(texts, lines, lengths, table, keys, width, size) -> contract.Batch:
  """Pads some lines of word ids; one part, as for one device."""
  sides = []
  fills = (table.source_size, table.target_size)
  for text, fill in zip(texts, fills, strict=True):
    words, _ = ragged.pad(ragged.select(text, lines), width=width, fill=fill)
    blank = ((0, size - len(lines)), (0, 0))
    sides.append(np.pad(words.astype(np.int32), blank, constant_values=fill))
  inside = (sides[0] < fills[0])[:, :, None] & (sides[1] < fills[1])[:, None, :]
  wanted = pair_keys(sides[0][:, :, None], sides[1][:, None, :])[inside]
  pairs = np.full(inside.shape, len(table), np.int32)
  pairs[inside] = np.searchsorted(keys, wanted)
  return contract.Batch(
    pairs=np.moveaxis(pairs, 0, -1)[None],
    source=sides[0].T[None],
    target=sides[1].T[None],
    source_length=lengths[0][None],
    target_length=lengths[1][None],
    size=np.arange(size, dtype=np.int32)[None],
  )


def _posteriors(model, batch, side, parameters, config):
  """Returns posteriors of links `[B, W, W]` (source x target) and of NULL."""
  grid = contract.seen_from(batch, direction=side)
  grid = jax.tree.map(lambda leaf: leaf[0], grid)
  last = parameters.null.shape[0] - 1
  grid = dataclasses.replace(grid, words=jnp.minimum(grid.words, last))
  found = named_aligners.find(model).expectation(parameters, grid, config)
  links = found.links if side == "backward" else found.links.swapaxes(0, 1)
  return jnp.moveaxis(links, -1, 0), found.null.T


@functools.partial(jax.jit, static_argnames="null")
def _features(constants, batch, stem_batch, own, *, null):
  """Computes `Matrices`; arrays of the engine have sentence pairs last."""
  n, m = batch.source_length[0], batch.target_length[0]
  posteriors, nulls = {}, {}
  for model, share in zip(MODELS[1:], null, strict=True):
    config = named_aligners.default_config(model, null_probability=share)
    for side in em.DIRECTIONS:
      parameters = constants["parameters"][model][side]
      if model == "diagonal":
        parameters = dataclasses.replace(parameters, model=own[side])
      posteriors[model, side], nulls[model, side] = _posteriors(
        model, batch, side, parameters, config
      )
  stems = _stem_features(constants["stems"], stem_batch, null[0])
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
        ],
        -1,
      ),
      stems,
      columns[..., 7:-1],
      real[..., None],
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
    posterior=jnp.where(real, 0.5 * (mean + stems[..., 5]), 0.0),
    source_length=n,
    target_length=m,
  )


def _stem_features(parameters, batch, null):
  """Features of links by the HMM of stems, `[B, W, W, 7]`."""
  config = named_aligners.default_config("hmm", null_probability=null)
  found = [
    _posteriors("hmm", batch, side, parameters[side], config)[0]
    for side in em.DIRECTIONS
  ]
  pairs = jnp.moveaxis(batch.pairs[0], -1, 0)
  translation = [
    jnp.maximum(parameters[side].pairs[pairs], jnp.log(_FLOOR))
    for side in em.DIRECTIONS
  ]
  mean = 0.5 * (found[0] + found[1])
  return jnp.stack(
    [
      *translation,
      *(jnp.log(posterior + _FLOOR) for posterior in found),
      jnp.sqrt(found[0] * found[1]),
      mean,
      _neighbours(mean),
    ],
    -1,
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
