"""What every metric is: additive statistics and functions of their sums.

A metric looks at a hypothesis and the references of its sentence and returns S
numbers. Those numbers add up: the corpus score is a function of their sum over
sentences, never a mean of sentence scores. Statistics are computed for a whole
batch of k-best lists at once by a compiled kernel; scores are pure array
functions that take NumPy arrays, JAX arrays and tracers alike.

Kernels never see text. They compare integers: word ids, or code points for
character metrics (`jaxmt.metrics.encoded_text` makes both). Only equality with
a reference's tokens matters, so all tokens that no reference has may share one
id. Ids are not negative.

Metrics of n-grams compare by `ReferenceTrie`, the n-grams of a sentence's
references in flat arrays. Node 0 is the empty n-gram; every other node is its
parent's n-gram and one more token. A child is found by hashing (parent, token)
into an open table and comparing both, so matching is exact. A hypothesis is
matched by walking down from each of its positions: where an n-gram is unknown,
so is every longer one. Tries live only as long as the kernel works on one
sentence: they are rebuilt in the same few kilobytes for the next one.

H: hypotheses. N: sentences. S: statistics per hypothesis.
"""

import concurrent.futures
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxmt.text import kernels
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets

WORD = "word"
CHARACTER = "character"
# Each word is two numbers: its id and that of its stem.
STEMMED = "stemmed word"

# Below this many hypotheses, starting threads costs more than it saves.
_SERIAL_LIMIT = 256
_CHUNKS_PER_THREAD = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class References:
  """The references of N sentences, one or more each.

  Attributes:
    tokens: one row per reference; int32.
    first: the references of sentence n are the rows `first[n]` up to but not
      including `first[n + 1]`; int64 `[N + 1]`.
  """

  tokens: Ragged
  first: np.ndarray

  def __len__(self) -> int:
    return len(self.first) - 1

  @property
  def counts(self) -> np.ndarray:
    """How many references each sentence has, int64 `[N]`."""
    return np.diff(self.first)


def make_references(tokens: Ragged, counts: np.ndarray) -> References:
  """Builds `References` from rows and the number of rows per sentence.

  Raises:
    ValueError: if a sentence has no reference, or the counts do not add up to
      the rows.
  """
  counts = np.asarray(counts, np.int64)
  if counts.size and counts.min() < 1:
    raise ValueError(f"sentence {int(counts.argmin())} has no reference")
  if counts.sum() != len(tokens):
    raise ValueError(f"{len(tokens)} references, but counts {counts.sum()}")
  first = row_offsets(counts)
  return References(tokens=tokens, first=first)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Metric:
  """A metric as a record of pure functions.

  Attributes:
    name: what users call it.
    size: S.
    higher_is_better: False for error rates.
    percent: whether people multiply the score by 100.
    unit: what its tokens are, `WORD`, `CHARACTER` or `STEMMED`.
    prepare: `(References) -> prepared`; done once per set of references.
    statistics: `(prepared, hypotheses Ragged [H], sentence int [H]) ->
      [H, S]`, int32 if whole numbers by nature, else float64.
    corpus_score: `(summed statistics [..., S]) -> [...]`, in 0..1 for all
      that are percentages (error rates may exceed 1).
    sentence_score: `(statistics [..., S]) -> [...]`, fit for one sentence.
    settings: what was chosen, as pairs of name and value.
  """

  name: str
  size: int
  higher_is_better: bool
  percent: bool
  unit: str
  prepare: Callable[[References], Any]
  statistics: Callable[..., np.ndarray]
  corpus_score: Callable[[Any], Any]
  sentence_score: Callable[[Any], Any]
  settings: tuple[tuple[str, Any], ...] = ()


def array_module(statistics: Any) -> Any:
  """Returns `numpy` for NumPy input, `jax.numpy` for JAX arrays and tracers."""
  if hasattr(statistics, "__array_namespace__"):
    return statistics.__array_namespace__()
  return np


def ratio(xp: Any, above: Any, below: Any) -> Any:
  """Returns `above / below`, 0 where `below` is 0; gradients stay finite."""
  positive = below > 0
  return xp.where(positive, above / xp.where(positive, below, 1), 0.0)


class Groups(NamedTuple):
  """Hypotheses by sentence: group g has rows of `starts[g : g + 2]`."""

  sentences: np.ndarray  # int64 [G]
  starts: np.ndarray  # int64 [G + 1]
  rows: np.ndarray  # numbers of hypotheses, int64 [H]


class HypothesisTokens(NamedTuple):
  """Tokens of H hypotheses, as kernels take them."""

  flat: np.ndarray  # int32
  offsets: np.ndarray  # int64 [H + 1]


class ReferenceTokens(NamedTuple):
  """Tokens of all references; sentence n has those of `first[n : n + 2]`."""

  flat: np.ndarray  # int32
  offsets: np.ndarray  # of references, int64
  first: np.ndarray  # int64 [N + 1]


def run_kernel(
  kernel: Callable[..., None],
  references: References,
  hypotheses: Ragged,
  sentence: np.ndarray,
  *arguments: Any,
  size: int,
  threads: int | None = None,
) -> np.ndarray:
  """Runs a kernel over hypotheses grouped by sentence, on several threads.

  The kernel is `(low, high, groups, hypotheses, references, *arguments, out)`,
  with records `Groups`, `HypothesisTokens` and `ReferenceTokens`. Of groups
  `low <= g < high` it writes the hypotheses' rows of `out`. Groups are
  independent, so the result does not depend on the number of threads.

  Args:
    kernel: compiled, releases the interpreter lock.
    references: of N sentences.
    hypotheses: H rows, in any order.
    sentence: which sentence each row translates; int `[H]`, in `[0, N)`.
    *arguments: passed on to the kernel.
    size: S.
    threads: number of threads at most; all cores if None.

  Returns:
    float64 `[H, S]`.

  Raises:
    ValueError: if `sentence` has the wrong length or names a sentence without
      references.
  """
  sentence = np.asarray(sentence, np.int64)
  if sentence.shape != (len(hypotheses),):
    raise ValueError(
      f"sentence has shape {sentence.shape}, hypotheses are {len(hypotheses)}"
    )
  out = np.zeros((len(hypotheses), size), np.float64)
  if not len(hypotheses):
    return out
  if sentence.min() < 0 or sentence.max() >= len(references):
    raise ValueError(f"sentence numbers outside 0..{len(references) - 1}")
  rows = np.arange(len(sentence))
  if np.any(sentence[1:] < sentence[:-1]):
    rows = np.argsort(sentence, kind="stable")
  ordered = sentence[rows]
  breaks = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
  starts = np.concatenate([np.zeros(1, np.int64), breaks, [len(rows)]])
  sentences = ordered[starts[:-1]]

  inputs = (
    Groups(sentences, starts, rows),
    HypothesisTokens(
      read_only(hypotheses.flat, np.int32),
      read_only(hypotheses.offsets, np.int64),
    ),
    ReferenceTokens(
      read_only(references.tokens.flat, np.int32),
      read_only(references.tokens.offsets, np.int64),
      read_only(references.first, np.int64),
    ),
    *arguments,
  )

  def work(low: int, high: int) -> None:
    kernel(low, high, *inputs, out)

  threads = kernels.available_threads() if threads is None else threads
  if threads <= 1 or len(rows) < _SERIAL_LIMIT or len(sentences) == 1:
    work(0, len(sentences))
    return out
  targets = np.linspace(0, len(rows), threads * _CHUNKS_PER_THREAD + 1)
  cuts = np.unique(np.searchsorted(starts, targets))
  with concurrent.futures.ThreadPoolExecutor(threads) as pool:
    list(pool.map(work, cuts[:-1].tolist(), cuts[1:].tolist()))
  return out


def read_only(array: np.ndarray, dtype: Any) -> np.ndarray:
  """Returns a view that cannot be written to.

  Mapped files are read-only, fresh arrays are not; kernels would be compiled
  for each kind if they were not made alike.
  """
  view = np.ascontiguousarray(array, dtype).view()
  view.flags.writeable = False
  return view


# N-grams of references, with room for M nodes: (keys, nodes, limits, counts,
# state).
#
# keys: open hash table of `parent << 32 | token + 1`, 0 where free; uint64
#   `[Z]`, Z a power of two.
# nodes: the node of each key, int32 `[Z]`.
# limits: how often a hypothesis may match the node; int32 `[M]`.
# counts: how often it occurred so far in the text at hand; int32 `[M]`.
# state: the number of nodes and the mask of the part of `keys` in use; int64
#   `[2]`.
ReferenceTrie = tuple[
  np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray
]


@njit
def largest_group(groups, references, low, high):
  """Returns the most reference tokens any of the sentences has, at least 1."""
  sentences, (_, offsets, first) = groups.sentences, references
  most = 1
  for group in range(low, high):
    sentence = sentences[group]
    tokens = offsets[first[sentence + 1]] - offsets[first[sentence]]
    most = max(most, tokens)
  return most


@njit
def allocate_trie(capacity):
  """Returns a trie with room for `capacity` n-gram occurrences."""
  size = 16
  while size < 2 * (capacity + 1):
    size *= 2
  return (
    np.zeros(size, np.uint64),
    np.zeros(size, np.int32),
    np.zeros(capacity + 1, np.int32),
    np.zeros(capacity + 1, np.int32),
    np.zeros(2, np.int64),
  )


@njit
def reset_trie(trie, capacity):
  """Empties the trie and prepares it for `capacity` n-gram occurrences."""
  size = 16
  while size < 2 * (capacity + 1):
    size *= 2
  keys, _, _, _, state = trie
  keys[:size] = 0
  state[0] = 1
  state[1] = size - 1


@njit
def _key(parent, token):
  return (np.uint64(parent) << np.uint64(32)) | np.uint64(token + 1)


@njit
def _slot(keys, mask, key):
  """Where the key is, or would go."""
  mask = np.uint64(mask)
  slot = key * np.uint64(0x9E3779B97F4A7C15)
  slot = (slot ^ (slot >> np.uint64(32))) & mask
  while keys[slot] != key and keys[slot] != 0:
    slot = (slot + np.uint64(1)) & mask
  return slot


@njit
def find_child(keys, nodes, mask, parent, token):
  """Returns the child of `parent` by `token`, or 0 if there is none.

  It takes keys, nodes and mask of the trie: arrays read outside the loop make
  matching four times as fast.
  """
  key = _key(parent, token)
  slot = _slot(keys, mask, key)
  return nodes[slot] if keys[slot] == key else np.int32(0)


@njit
def find_or_add_child(trie, parent, token):
  """Returns the child of `parent` by `token`, which is new if need be."""
  keys, nodes, limits, counts, state = trie
  key = _key(parent, token)
  slot = _slot(keys, state[1], key)
  if keys[slot] == 0:
    node = np.int32(state[0])
    state[0] += 1
    keys[slot] = key
    nodes[slot] = node
    limits[node] = 0
    counts[node] = 0
  return nodes[slot]


@njit
def add_reference(trie, flat, start, end, order):
  """Adds a reference; a node's limit is its largest count over references."""
  _, _, limits, counts, state = trie
  for position in range(start, end):
    node = np.int32(0)
    for index in range(position, min(position + order, end)):
      node = find_or_add_child(trie, node, flat[index])
      counts[node] += 1
  for node in range(1, state[0]):
    limits[node] = max(limits[node], counts[node])
    counts[node] = 0


@njit
def count_matches(trie, flat, start, end, order, matches):
  """Adds the clipped number of matching n-grams of each order to `matches`."""
  keys, nodes, limits, counts, state = trie
  mask = state[1]
  for position in range(start, end):
    node = np.int32(0)
    for length in range(min(order, end - position)):
      node = find_child(keys, nodes, mask, node, flat[position + length])
      if not node:
        break
      if counts[node] < limits[node]:
        counts[node] += 1
        matches[length] += 1
  for node in range(state[0]):
    counts[node] = 0
