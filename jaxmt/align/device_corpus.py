"""A bitext on the devices: batches, sentence lengths, what to normalise by."""

import dataclasses

import jax
import numpy as np
from jax.sharding import Mesh

from jaxmt.align import cooccurrence
from jaxmt.align.aligner import Batch, Sizes
from jaxmt.runtime import parallel


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeviceCorpus:
  """A bitext on the devices; dictionaries have an entry per direction.

  Attributes:
    mesh: the devices.
    batches: sentence pairs with words on both sides.
    lines: their line numbers from 0, -1 where padded, int64 `[D, B]` each.
    line_count: of the bitext.
    sizes: sentence lengths.
    conditioning: conditioning word of each word pair, int32 `[P]`.
    group_types: word pairs per conditioning word, float32 `[V]`.
    word_types: distinct generated words, float32 `[]`.
    words: generated words of the text.
  """

  mesh: Mesh
  batches: list[Batch]
  lines: list[np.ndarray]
  line_count: int
  sizes: dict[str, Sizes]
  conditioning: dict[str, jax.Array]
  group_types: dict[str, jax.Array]
  word_types: dict[str, jax.Array]
  words: dict[str, int]


def place(
  index: cooccurrence.Cooccurrence,
  mesh: Mesh,
  *,
  cells_per_batch: int = 1 << 20,
) -> DeviceCorpus:
  """Cuts a bitext into batches and puts it on the devices.

  Args:
    index: the bitext.
    mesh: the devices.
    cells_per_batch: how many cells of grids a batch has, about.
  """
  lengths = np.stack([index.source_lengths, index.target_lengths], axis=1)
  lengths[lengths.min(axis=1) == 0] = 0
  unique, size_of, count = np.unique(
    lengths, axis=0, return_inverse=True, return_counts=True
  )
  batches, lines = [], []
  for bucket in index.buckets:
    sizes = size_of.ravel()[bucket.sentences].astype(np.int32)
    parts = _parts(
      len(bucket.sentences),
      max(1, cells_per_batch // bucket.width**2),
      parallel.size(mesh),
    )
    for part in parts:
      batches.append(parallel.split(mesh, _batch(index, bucket, sizes, part)))
      lines.append(np.where(part < 0, -1, bucket.sentences[part]))
  width = max((bucket.width for bucket in index.buckets), default=1)
  table = index.table
  vocabulary = max(table.source_size, table.target_size, 1)
  views = {
    "forward": (table.source, table.target, unique[:, ::-1]),
    "backward": (table.target, table.source, unique),
  }
  sizes, conditioning, group_types, word_types = {}, {}, {}, {}
  for side, (given, generated, shape) in views.items():
    real = shape[:, 0] > 0
    sizes[side] = Sizes(
      generated=np.maximum(shape[:, 0], 1),
      conditioning=np.maximum(shape[:, 1], 1),
      count=np.where(real, count, 0),
      width=width,
    )
    seen = np.bincount(given, minlength=vocabulary).astype(np.float32)
    conditioning[side] = parallel.copied(mesh, given)
    group_types[side] = parallel.copied(mesh, seen)
    distinct = np.count_nonzero(np.bincount(generated))
    word_types[side] = parallel.copied(mesh, np.float32(distinct))
  return DeviceCorpus(
    mesh=mesh,
    batches=batches,
    lines=lines,
    line_count=len(lengths),
    sizes=sizes,
    conditioning=conditioning,
    group_types=group_types,
    word_types=word_types,
    words={
      "forward": int(lengths[:, 1].sum()),
      "backward": int(lengths[:, 0].sum()),
    },
  )


def _parts(total: int, most: int, devices: int) -> list[np.ndarray]:
  """Returns which of a bucket's rows each batch takes, -1 for none, `[D, B]`.

  Batches are of one shape, so that one program serves them all, and have
  about `most` rows.
  """
  count = -(-total // most)
  rows = -(-total // (count * devices))
  numbers = np.arange(count * devices * rows)
  numbers[total:] = -1
  return list(numbers.reshape(count, devices, rows))


def _batch(index, bucket, sizes: np.ndarray, part: np.ndarray) -> Batch:
  """Returns the rows `part` of a bucket, sentence pairs last."""
  table = index.table
  vocabulary = max(table.source_size, table.target_size)

  def pick(values: np.ndarray, fill: int) -> np.ndarray:
    chosen = values[part]
    chosen[part < 0] = fill
    return np.ascontiguousarray(np.moveaxis(chosen, 1, -1))

  def words(values: np.ndarray, size: int) -> np.ndarray:
    chosen = pick(values, size)
    chosen[chosen == size] = vocabulary
    return chosen

  return Batch(
    pairs=pick(bucket.pairs, len(table)),
    source=words(bucket.source, table.source_size),
    target=words(bucket.target, table.target_size),
    source_length=pick(bucket.source_length, 0),
    target_length=pick(bucket.target_length, 0),
    size=pick(sizes, 0),
  )
