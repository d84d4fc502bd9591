"""Events of phrase dependencies, whose relative frequencies are features.

A phrase dependency links a child phrase to its parent in a target tree. Its
parts are the two target phrases, the same as sequences of word clusters, the
source phrases they are aligned to, and

    direction    side of the child: left, right; root
    orientation  whether the source phrases stand in the same order: same, swap
    gaps         whether words stand between both phrases, in source and target

Each feature is the probability of an event given a context, as in table 4.3 and
section 4.4 of Gimpel (2012): `FEATURES`. Events and contexts are known by
64-bit keys, made from keys of words, so that no table needs a vocabulary.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from jaxmt.text.kernels import GOLDEN, mixed, njit

LEFT, RIGHT, ROOT = 0, 1, 2  # directions; ROOT is also an orientation, a gap
TARGET_TREE = (
  *("dep_phrase", "dep_phrase_cluster", "dep_word", "dep_word_cluster"),
)
STRING_TO_TREE = (
  *("dep_given_source", "dep_given_source_cluster"),
  *("dep_order", "dep_order_cluster"),
  *("dep_given_source_order", "dep_given_source_order_cluster"),
  *("dep_gaps", "dep_gaps_cluster"),
  *("dep_pair", "dep_pair_order", "dep_pair_gaps"),
)
FEATURES = (*TARGET_TREE, *STRING_TO_TREE)
WORD, WORD_CLUSTER = 2, 3  # kinds of events looked up through others
# Two kinds more are counted for the lexical features: arcs between words.
WORD_ARC, CLUSTER_ARC = len(FEATURES), len(FEATURES) + 1
KINDS = len(FEATURES) + 2
KIND_SHIFT = np.uint64(59)  # the kind stands in the upper bits of a context
_BODY = np.uint64((1 << 59) - 1)
ROOT_KEY = np.uint64(0x5DEECE66D1234567)  # in the place of the parent's phrase
_PRIME = np.uint64(0x9FB21C651E98DF25)
# Places in the array of parts.
CHILD, PARENT, CHILD_CLUSTERS, PARENT_CLUSTERS, CHILD_SOURCE, PARENT_SOURCE = (
  range(6)
)
PARTS = 6


def word_keys(words: Sequence[str]) -> np.ndarray:
  """Returns a key for each word, uint64 `[N]`, never 0."""
  digest = lambda word: hashlib.blake2b(word.encode(), digest_size=8).digest()
  keys = np.frombuffer(b"".join(map(digest, words)), np.dtype("<u8"))
  return keys.astype(np.uint64) | np.uint64(1)


@njit
def joined(key, part):
  """Returns the key of a sequence with one part more."""
  return mixed((key ^ (part * _PRIME)) * GOLDEN + part)


@njit
def phrase_key(keys, begin, end):
  """Returns the key of a phrase from those of its words; never 0."""
  key = GOLDEN
  for place in range(begin, end):
    key = joined(key, keys[place])
  return key | np.uint64(1)


@njit
def row_keys(keys, offsets):
  """Returns the keys of phrases, one for each row of keys of words."""
  out = np.empty(len(offsets) - 1, np.uint64)
  for row in range(len(out)):
    out[row] = phrase_key(keys, offsets[row], offsets[row + 1])
  return out


@njit
def context_key(kind, first, second, third, numbers):
  """Returns the key of a context: its kind, three parts and a number."""
  key = joined(joined(joined(np.uint64(kind + 1), first), second), third)
  key = joined(key, np.uint64(numbers + 1))
  return (key & _BODY) | (np.uint64(kind) << KIND_SHIFT)


@njit
def event_key(context, outcome):
  """Returns the key of an event: an outcome in a context; never 0."""
  return mixed(context ^ (outcome * _PRIME)) | np.uint64(1)


@njit
def lexical_context(kind, key):
  """Returns the context of the word arcs of an event of phrases."""
  return (mixed(key) & _BODY) | (np.uint64(kind) << KIND_SHIFT)


@njit
def arc_key(child, parent, direction):
  """Returns the key of an arc between words; never 0."""
  return joined(joined(child, parent), np.uint64(direction + 1)) | np.uint64(1)


@njit
def event(kind, parts, direction, order, source_gap, target_gap):
  """Returns context and outcome of an event of a phrase dependency.

  Parts that are 0 are unknown: a context with such a part is 0, an outcome with
  one is 0.

  Args:
    kind: place of the feature in `FEATURES`; not of the lexical ones.
    parts: keys of the phrases, uint64 `[PARTS]`.
    direction: `LEFT`, `RIGHT` or `ROOT`.
    order: 0 same, 1 swap, or `ROOT`.
    source_gap: 0, 1 or `ROOT`.
    target_gap: the same.
  """
  none = np.uint64(1)  # in the place of a part that a context does not have
  if kind >= 12:
    # Both target phrases with their direction, given both source phrases.
    outcome = np.uint64(0)
    if parts[CHILD] != 0 and parts[PARENT] != 0:
      outcome = arc_key(parts[CHILD], parts[PARENT], direction)
    numbers = 0 if kind == 12 else order + 1
    if kind == 14:
      numbers += 4 * (source_gap + 1)
      if outcome != 0:
        outcome = joined(outcome, np.uint64(target_gap + 1)) | np.uint64(1)
    first, second, third = parts[CHILD_SOURCE], parts[PARENT_SOURCE], none
  else:
    clusters = kind in (1, 7, 11)  # of both; 5 and 9: of the parent only
    outcome = parts[CHILD_CLUSTERS] if clusters else parts[CHILD]
    first = parts[PARENT]
    if clusters or kind in (5, 9):
      first = parts[PARENT_CLUSTERS]
    with_source = kind in (4, 5, 8, 9)
    second, third = parts[CHILD_SOURCE] if with_source else none, none
    numbers = direction
    if kind >= 6:
      numbers += 3 * (order + 1)
    if kind >= 10:
      numbers += 12 * (3 * source_gap + target_gap + 1)
  if first == 0 or second == 0:
    return np.uint64(0), outcome
  return context_key(kind, first, second, third, numbers), outcome
