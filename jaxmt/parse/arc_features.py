"""Hashed features of dependency arcs, computed on the device.

The templates are those of McDonald, Crammer and Pereira (2005): words and tags
of head and dependent, alone and together, with the tags around them; with
prefixes, suffixes, lower-cased words and neighbouring words besides; each with
the direction of the arc, and again with direction and distance. Further ones
count the words between that have the tag of the head, or that of the dependent.
A feature's weight stands at the hash of its template and values in one table,
so there is no dictionary of features. Tags between head and dependent have a
table of their own, indexed by (direction, tag of the head, tag of the
dependent, tag between).

B: sentences. N: words of the longest sentence. L: tags, the unknown included.
"""

import dataclasses
import zlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.text.treebank import Treebank

_PRIME = np.uint32(0x01000193)
_MIX = np.uint32(0x9E3779B1)
_OUTSIDE, _ROOT = 1, 2  # words and tags that are none; tag 0 is unknown
SPECIAL_TAGS = 3
AFFIX = 3  # characters


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class SentenceBatch:
  """A batch of padded sentences.

  Attributes:
    words: hashes of the words, uint32 `[B, N]`.
    lower: hashes of the words in lower case, uint32 `[B, N]`.
    suffixes: hashes of their last characters, uint32 `[B, N]`.
    prefixes: hashes of their first characters, uint32 `[B, N]`.
    tags: tag numbers, from `SPECIAL_TAGS`; 0 is unknown; int32 `[B, N]`.
    lengths: int32 `[B]`.
  """

  words: jax.Array | np.ndarray
  lower: jax.Array | np.ndarray
  suffixes: jax.Array | np.ndarray
  prefixes: jax.Array | np.ndarray
  tags: jax.Array | np.ndarray
  lengths: jax.Array | np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenHashes:
  """What features see of each of T tokens, see `SentenceBatch`."""

  words: np.ndarray
  lower: np.ndarray
  suffixes: np.ndarray
  prefixes: np.ndarray
  tags: np.ndarray


def token_hashes(bank: Treebank, tag_names: Sequence[str]) -> TokenHashes:
  """Returns hashes of the tokens of a treebank; tags are numbered anew."""
  known = {name: place for place, name in enumerate(tag_names, SPECIAL_TAGS)}
  tags = np.array([known.get(name, 0) for name in bank.tag_names], np.int32)
  crc = lambda texts: np.array(
    [zlib.crc32(text.encode()) for text in texts], np.uint32
  )
  flat = bank.words.flat
  return TokenHashes(
    words=crc(bank.forms)[flat],
    lower=crc([form.lower() for form in bank.forms])[flat],
    suffixes=crc([form[-AFFIX:].lower() for form in bank.forms])[flat],
    prefixes=crc([form[:AFFIX].lower() for form in bank.forms])[flat],
    tags=tags[bank.tags],
  )


def batch_of(
  hashes: TokenHashes, offsets: np.ndarray, rows: np.ndarray, size: int
) -> SentenceBatch:
  """Returns some sentences, padded to `size` words.

  Args:
    hashes: of all tokens.
    offsets: where sentences start, `[N + 1]`.
    rows: numbers of the sentences, -1 for an empty one.
    size: N.
  """
  lengths = np.where(rows >= 0, np.diff(offsets)[rows], 0).astype(np.int32)
  place = np.arange(size)
  there = place < lengths[:, None]
  token = np.where(there, offsets[rows][:, None] + place, 0)
  pick = lambda flat: np.where(there, flat[token], flat.dtype.type(_OUTSIDE))
  return SentenceBatch(
    words=pick(hashes.words),
    lower=pick(hashes.lower),
    suffixes=pick(hashes.suffixes),
    prefixes=pick(hashes.prefixes),
    tags=pick(hashes.tags),
    lengths=lengths,
  )


def _mixed(*parts):
  """Hash of a template's number and values, uint32."""
  value = jnp.uint32(0x811C9DC5)
  for part in parts:
    value = (value ^ part.astype(jnp.uint32)) * _PRIME
    value = (value ^ (value >> 15)) * _MIX
  return value ^ (value >> 13)


def _sides(batch: SentenceBatch):
  """Columns of heads `[B, N + 1, 1]` and of dependents `[B, 1, N]`."""

  def with_root(column):
    root = jnp.full((len(column), 1), _ROOT, column.dtype)
    return jnp.concatenate([root, column], axis=1)

  def shifted(column, step):
    rolled = jnp.roll(column, -step, axis=1)
    place = jnp.arange(column.shape[1]) + step
    inside = (place >= 0) & (place < column.shape[1])
    return jnp.where(inside, rolled, column.dtype.type(_OUTSIDE))

  columns = {
    "w": batch.words,
    "l": batch.lower,
    "s": batch.suffixes,
    "x": batch.prefixes,
    "t": batch.tags,
    "p": shifted(batch.tags, -1),  # tag before
    "n": shifted(batch.tags, 1),  # tag after
    "q": shifted(batch.tags, -2),  # tag before that
    "m": shifted(batch.tags, 2),  # tag after that
    "b": shifted(batch.lower, -1),  # word before
    "a": shifted(batch.lower, 1),  # word after
  }
  heads = {
    key: with_root(jnp.asarray(c))[:, :, None] for key, c in columns.items()
  }
  children = {key: jnp.asarray(c)[:, None, :] for key, c in columns.items()}
  return heads, children


# Letters as in `_sides`: of the head, of the dependent.
_TEMPLATES = (
  *(("w", ""), ("t", ""), ("wt", ""), ("", "w"), ("", "t"), ("", "wt")),
  *(("wt", "wt"), ("t", "wt"), ("wt", "t"), ("w", "w"), ("t", "t")),
  *(("t", "s"), ("s", "t"), ("s", "s")),
  *(("tn", "pt"), ("pt", "pt"), ("tn", "tn"), ("pt", "tn")),
  *(("tn", "t"), ("pt", "t"), ("t", "pt"), ("t", "tn")),
  *(("ptn", "t"), ("t", "ptn"), ("ptn", "ptn"), ("pqt", "t"), ("t", "pqt")),
  *(("tnm", "t"), ("t", "tnm"), ("l", "l"), ("l", "t"), ("t", "l")),
  *(("tx", "t"), ("t", "tx"), ("lt", "s"), ("s", "lt"), ("lt", "ptn")),
  *(("ptn", "lt"), ("t", "bt"), ("t", "ta"), ("bt", "t"), ("ta", "t")),
)
_BOTH = 2  # with the direction, and with direction and distance


def _distance(size):
  """Bucket of the distance `[N + 1, N]` and the direction, from 0."""
  head = np.arange(-1, size)[:, None]
  child = np.arange(size)[None]
  far = np.digitize(np.abs(child - head), [2, 3, 4, 5, 8, 12])
  far = np.where(head < 0, 7, far)
  right = (head < child).astype(np.int64)
  return (1 + right).astype(np.uint32), (4 + 2 * far + right).astype(np.uint32)


def feature_rows(batch: SentenceBatch, *, bits: int) -> jax.Array:
  """Returns the features of each arc, int32 `[F, B, N + 1, N]`."""
  heads, children = _sides(batch)
  direction, distance = map(jnp.asarray, _distance(batch.tags.shape[1]))
  rows = []
  for number, (head, child) in enumerate(_TEMPLATES):
    parts = [jnp.uint32(number), *(heads[key] for key in head)]
    base = _mixed(*parts, *(children[key] for key in child))
    rows += [_mixed(base, direction), _mixed(base, distance)]
  same_head, same_child = _repeated(batch)
  for number, count in enumerate((same_head, same_child), len(_TEMPLATES)):
    parts = [jnp.uint32(number), heads["t"], children["t"]]
    base = _mixed(*parts, count, direction)
    rows += [base, _mixed(base, heads["l"])]
  shift = np.uint32(32 - bits)
  shape = (len(batch.lengths), *direction.shape)
  return jnp.stack(
    [jnp.broadcast_to(row >> shift, shape) for row in rows]
  ).astype(jnp.int32)


def num_features() -> int:
  """Returns F."""
  return _BOTH * len(_TEMPLATES) + 4


def _repeated(batch: SentenceBatch):
  """Words between that have the head's tag, and the dependent's: 0, 1, 2.

  The first count is that of the dependent's tag where the head is the root.
  """
  tags = jnp.asarray(batch.tags)
  size = tags.shape[1]
  same = tags[:, :, None] == tags[:, None, :]
  # Words up to a place with the tag of each word: [B, word, place].
  upto = jnp.pad(jnp.cumsum(same, axis=2), ((0, 0), (0, 0), (1, 0)))
  low, high = _ends(size)
  word = np.arange(size)
  of = lambda which: (
    upto[:, which, high] - upto[:, which, np.minimum(low + 1, high)]
  )
  child = np.broadcast_to(word[None], (size + 1, size))
  head = np.where(
    np.arange(-1, size)[:, None] < 0, child, np.arange(-1, size)[:, None]
  )
  cut = lambda counts: jnp.minimum(counts, 2).astype(jnp.uint32)
  return cut(of(head)), cut(of(child))


def _ends(size):
  """The lower and the higher one of head and child, `[N + 1, N]`."""
  head = np.arange(-1, size)[:, None]
  child = np.arange(size)[None]
  return np.minimum(head, child), np.maximum(head, child)


def tags_between(tags: jax.Array, *, num_tags: int) -> jax.Array:
  """Returns which tags stand between two words, `[B, N + 1, N, L]`."""
  size = tags.shape[1]
  there = jax.nn.one_hot(tags, num_tags, dtype=jnp.float32)
  before = jnp.pad(jnp.cumsum(there, axis=1), ((0, 0), (1, 0), (0, 0)))
  low, high = _ends(size)
  counts = before[:, high] - before[:, np.minimum(low + 1, high)]
  return (counts > 0.5).astype(jnp.float32)


def arc_scores(
  weights: dict[str, jax.Array], batch: SentenceBatch
) -> jax.Array:
  """Returns scores of arcs, `[B, N + 1, N]`.

  Args:
    weights: `hashed [2^bits]` and `between [2, L, L, L]`.
    batch: the sentences.
  """
  bits = int(weights["hashed"].shape[0]).bit_length() - 1
  rows = feature_rows(batch, bits=bits)
  scores = jnp.sum(weights["hashed"][rows], axis=0)
  num_tags = weights["between"].shape[1]
  tags = jnp.asarray(batch.tags)
  root = jnp.full((len(tags), 1), _ROOT, tags.dtype)
  head = jnp.concatenate([root, tags], axis=1)
  size = tags.shape[1]
  right = np.arange(-1, size)[:, None] < np.arange(size)[None]
  table = weights["between"][
    right.astype(np.int32), head[:, :, None], tags[:, None, :]
  ]
  between = tags_between(tags, num_tags=num_tags)
  return scores + jnp.sum(table * between, axis=-1)
