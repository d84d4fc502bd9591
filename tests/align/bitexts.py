"""Tiny bitexts and random parameters for the alignment tests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.align import aligner, cooccurrence, device_corpus, named_aligners
from jaxmt.runtime import parallel
from jaxmt.text import ragged
from tests.reference import alignment as reference

SOURCE = [[1, 2], [3], [1, 3, 2], [2, 2], [4, 1, 3]]
TARGET = [[1, 2, 3], [2], [4, 1], [3, 3], [1, 5, 2]]


def place(source, target, devices: int = 1) -> device_corpus.DeviceCorpus:
  index = cooccurrence.build(ragged.from_rows(source), ragged.from_rows(target))
  return device_corpus.place(index, parallel.make_mesh(devices))


def grids(data: device_corpus.DeviceCorpus, side: str) -> list[aligner.Grid]:
  """The batches of a corpus on one device, without the device axis."""
  seen = [aligner.seen_from(batch, direction=side) for batch in data.batches]
  return [jax.tree.map(lambda leaf: leaf[0], grid) for grid in seen]


def oriented(source, target, side: str):
  """The sentence pairs as (given, generated)."""
  first, second = (source, target) if side == "forward" else (target, source)
  return list(zip(first, second, strict=True))


def random_tables(table: cooccurrence.PairTable, side: str, seed: int):
  """Returns `(pairs [P + 1], null [V + 1], {(e, f): p}, {f: p})`."""
  rng = np.random.default_rng(seed)
  size = max(table.source_size, table.target_size)
  pairs = rng.uniform(0.05, 1.0, len(table) + 1)
  null = rng.uniform(0.05, 1.0, size + 1)
  given, generated = table.source.tolist(), table.target.tolist()
  if side == "backward":
    given, generated = generated, given
  keys = zip(given, generated, strict=True)
  plain = dict(zip(keys, pairs[:-1].tolist(), strict=True))
  with np.errstate(divide="ignore"):
    log_pairs = np.log(np.append(pairs[:-1], 0.0)).astype(np.float32)
    log_null = np.log(np.append(null[:-1], 1.0)).astype(np.float32)
  return log_pairs, log_null, plain, dict(enumerate(null.tolist()))


def jump_weights(width, seed):
  rng = np.random.default_rng(seed)
  return rng.uniform(0.1, 1.0, 2 * width + 1).astype(np.float32)


def setting(model, side, *, seed=0, source=SOURCE, target=TARGET):
  """Returns parameters, corpus, settings, the oracle's prior and tables."""
  data = place(source, target)
  settings = named_aligners.default_config(
    model, tension=3.0, uniform_jump=0.3, tension_gradient="exact"
  )
  index = cooccurrence.build(ragged.from_rows(source), ragged.from_rows(target))
  pairs, null, table, null_table = random_tables(index.table, side, seed)
  own = named_aligners.find(model).initialise(data.sizes[side], settings)
  prior = reference.model1_prior
  if model == "diagonal":
    prior = functools.partial(
      reference.diagonal_prior,
      tension=settings.tension,
      null_probability=settings.null_probability,
    )
  if model == "hmm":
    width = data.sizes[side].width
    weights = jump_weights(width, seed)
    own = {"jump": jnp.asarray(weights)}
    prior = functools.partial(
      reference.hmm_prior,
      jump={d: float(weights[d + width]) for d in range(-width, width + 1)},
      uniform=settings.uniform_jump,
      null_probability=settings.null_probability,
    )
  parameters = aligner.Parameters(
    pairs=jnp.asarray(pairs), null=jnp.asarray(null), model=own
  )
  return parameters, data, settings, prior, table, null_table
