"""Tiny bitexts and random parameters for the alignment tests."""

import jax
import numpy as np

from jaxmt.align import cooccurrence, device_corpus, types
from jaxmt.runtime import parallel
from jaxmt.text import ragged

SOURCE = [[1, 2], [3], [1, 3, 2], [2, 2], [4, 1, 3]]
TARGET = [[1, 2, 3], [2], [4, 1], [3, 3], [1, 5, 2]]


def place(source, target, devices: int = 1) -> device_corpus.Corpus:
  index = cooccurrence.build(ragged.from_rows(source), ragged.from_rows(target))
  return device_corpus.place(index, parallel.make_mesh(devices))


def grids(data: device_corpus.Corpus, side: str) -> list[types.Grid]:
  """The batches of a corpus on one device, without the device axis."""
  seen = [types.seen_from(batch, direction=side) for batch in data.batches]
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
