"""The n-grams of a sentence's references as a trie in flat arrays.

Node 0 is the empty n-gram; every other node is its parent's n-gram and one more
token. A child is found by hashing (parent, token) into an open table and
comparing both, so matching is exact. A hypothesis is matched by walking down
from each of its positions: where an n-gram is unknown, so is every longer one.

Tries live only as long as the kernel works on one sentence: they are rebuilt in
the same few kilobytes for the next one.
"""

from typing import NamedTuple

import numpy as np

from jaxmt.text.kernels import njit


class ReferenceTrie(NamedTuple):
  """Room for M nodes.

  Attributes:
    keys: open hash table of `parent << 32 | token + 1`, 0 where free; uint64
      `[Z]`, Z a power of two.
    nodes: the node of each key, int32 `[Z]`.
    limits: how often a hypothesis may match the node; int32 `[M]`.
    counts: how often it occurred so far in the text at hand; int32 `[M]`.
    state: the number of nodes and the mask of the part of `keys` in use;
      int64 `[2]`.
  """

  keys: np.ndarray
  nodes: np.ndarray
  limits: np.ndarray
  counts: np.ndarray
  state: np.ndarray


@njit
def largest_group(offsets, first, low, high, sentences):
  """Returns the most reference tokens any of the sentences has, at least 1."""
  most = 1
  for group in range(low, high):
    sentence = sentences[group]
    tokens = offsets[first[sentence + 1]] - offsets[first[sentence]]
    most = max(most, tokens)
  return most


@njit
def allocate(capacity):
  """Returns a trie with room for `capacity` n-gram occurrences."""
  size = 16
  while size < 2 * (capacity + 1):
    size *= 2
  return ReferenceTrie(
    np.zeros(size, np.uint64),
    np.zeros(size, np.int32),
    np.zeros(capacity + 1, np.int32),
    np.zeros(capacity + 1, np.int32),
    np.zeros(2, np.int64),
  )


@njit
def reset(trie, capacity):
  """Empties the trie and prepares it for `capacity` n-gram occurrences."""
  size = 16
  while size < 2 * (capacity + 1):
    size *= 2
  trie.keys[:size] = 0
  trie.state[0] = 1
  trie.state[1] = size - 1


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
def find(keys, nodes, mask, parent, token):
  """Returns the child of `parent` by `token`, or 0 if there is none.

  It takes `trie.keys, trie.nodes, trie.state[1]`, not the trie: fields read
  outside the loop make matching four times as fast.
  """
  key = _key(parent, token)
  slot = _slot(keys, mask, key)
  return nodes[slot] if keys[slot] == key else np.int32(0)


@njit
def find_or_add(trie, parent, token):
  """Returns the child of `parent` by `token`, which is new if need be."""
  keys, nodes, state = trie.keys, trie.nodes, trie.state
  key = _key(parent, token)
  slot = _slot(keys, state[1], key)
  if keys[slot] == 0:
    node = np.int32(state[0])
    state[0] += 1
    keys[slot] = key
    nodes[slot] = node
    trie.limits[node] = 0
    trie.counts[node] = 0
  return nodes[slot]


@njit
def add_reference(trie, flat, start, end, order):
  """Adds a reference; a node's limit is its largest count over references."""
  limits, counts = trie.limits, trie.counts
  for position in range(start, end):
    node = np.int32(0)
    for index in range(position, min(position + order, end)):
      node = find_or_add(trie, node, flat[index])
      counts[node] += 1
  for node in range(1, trie.state[0]):
    limits[node] = max(limits[node], counts[node])
    counts[node] = 0


@njit
def count_matches(trie, flat, start, end, order, matches):
  """Adds the clipped number of matching n-grams of each order to `matches`."""
  keys, nodes, mask = trie.keys, trie.nodes, trie.state[1]
  limits, counts = trie.limits, trie.counts
  for position in range(start, end):
    node = np.int32(0)
    for length in range(min(order, end - position)):
      node = find(keys, nodes, mask, node, flat[position + length])
      if not node:
        break
      if counts[node] < limits[node]:
        counts[node] += 1
        matches[length] += 1
  for node in range(trie.state[0]):
    counts[node] = 0
