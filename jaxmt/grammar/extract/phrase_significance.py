"""Significance pruning of phrase tables (Johnson et al., EMNLP 2007).

A phrase pair is tested against chance by Fisher's exact test on the number of
sentence pairs that have its source side, its target side, and both. A pair
whose sides occur once each, together, has -ln p = ln N for N sentence pairs:
thresholds are counted from there. "a+e" drops such pairs and all that are less
significant, "a-e" keeps them and drops what is less significant.
"""

import math
from collections.abc import Iterable

import numpy as np

from jaxmt.grammar.extract.shards import AlignedShard
from jaxmt.grammar.match import source_trie
from jaxmt.grammar.table import RuleTable
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

EPSILON = 1e-3


def threshold(text: str, sentences: int) -> float:
  """Returns the least -ln p: of `a+e`, `a-e`, or a number.

  Raises:
    ValueError: for anything else.
  """
  base = math.log(max(sentences, 1))
  if text in ("a+e", "a-e"):
    return base + (EPSILON if text == "a+e" else -EPSILON)
  try:
    value = float(text)
  except ValueError:
    value = math.nan
  if not math.isfinite(value) or value < 0:
    raise ValueError(f"significance '{text}' is none of a+e, a-e, a number")
  return value


def significances(
  table: RuleTable, shards: Iterable[AlignedShard]
) -> tuple[np.ndarray, int]:
  """Returns -ln p of each phrase pair, float64 `[R]`, and N.

  Args:
    table: R rules without non-terminals; others get infinity.
    shards: the sentence pairs, N in all.
  """
  lexical = _lexical(table)
  source_trie_, source_of, source_size = _side(table.source, lexical)
  target_trie_, target_of, target_size = _side(table.target, lexical)
  rules = np.flatnonzero(lexical)
  order = rules[np.argsort(source_of[rules], kind="stable")]
  starts = np.zeros(source_size + 1, np.int64)
  np.cumsum(
    np.bincount(source_of[rules], minlength=source_size), out=starts[1:]
  )
  once = np.zeros(source_size, np.int64), np.zeros(target_size, np.int64)
  both = np.zeros(len(table), np.int64)
  sentences = 0
  for shard in shards:
    _count(
      (shard.source.flat, shard.source.offsets),
      (shard.target.flat, shard.target.offsets),
      source_trie_,
      target_trie_,
      (starts, order, target_of),
      once[0],
      once[1],
      both,
    )
    sentences += len(shard.source)
  out = np.full(len(table), np.inf)
  out[rules] = _log_tails(
    both[rules], once[0][source_of[rules]], once[1][target_of[rules]], sentences
  )
  return out, sentences


def _lexical(table: RuleTable) -> np.ndarray:
  """Which rules match by pattern and have words only."""
  holes = np.zeros(len(table), bool)
  row = np.repeat(np.arange(len(table)), table.source.lengths)
  holes[row[table.source.flat < 0]] = True
  trie = source_trie.build_trie(table)
  return (trie.end >= 0) & ~holes & (table.target.lengths > 0)


def _side(rows: Ragged, used: np.ndarray):
  """The trie of the distinct rows, and the number of each; nodes count."""
  root = np.where(used, source_trie.LEXICAL, -1).astype(np.int32)
  keys, children, end, size = source_trie.insert(rows, root)
  is_end = np.zeros(size, np.bool_)
  is_end[end[end >= 0]] = True
  return (keys, children, is_end), end, size


@njit
def _present(words, trie, stamp, seen):
  """The rows of a trie that occur in a sentence, each once."""
  keys, children, is_end = trie
  nodes = np.empty(64, np.int32)
  size = 0
  for start in range(len(words)):
    node = np.int32(0)
    for place in range(start, len(words)):
      node = source_trie.step(keys, children, node, words[place])
      if node < 0:
        break
      if is_end[node] and seen[node] != stamp:
        seen[node] = stamp
        if size == len(nodes):
          nodes = np.concatenate((nodes, np.empty_like(nodes)))
        nodes[size] = node
        size += 1
  return nodes[:size]


@njit
def _count(source, target, one, other, pairs, first, second, both):
  """Adds up the sentence pairs of a shard."""
  starts, order, target_of = pairs
  left = np.full(len(first), -1, np.int64)
  right = np.full(len(second), -1, np.int64)
  for sentence in range(len(source[1]) - 1):
    words = source[0][source[1][sentence] : source[1][sentence + 1]]
    others = target[0][target[1][sentence] : target[1][sentence + 1]]
    for node in _present(others, other, sentence, right):
      second[node] += 1
    for node in _present(words, one, sentence, left):
      first[node] += 1
      for place in range(starts[node], starts[node + 1]):
        rule = order[place]
        if right[target_of[rule]] == sentence:
          both[rule] += 1


@njit
def _log_tails(both, first, second, sentences):
  """-ln P(X >= both) of the hypergeometric distribution, float64 `[R]`."""
  out = np.empty(len(both))
  whole = math.lgamma(sentences + 1.0)
  for row in range(len(both)):
    a, b, n = float(first[row]), float(second[row]), float(sentences)
    fixed = (
      math.lgamma(a + 1)
      + math.lgamma(n - a + 1)
      + math.lgamma(b + 1)
      + math.lgamma(n - b + 1)
      - whole
    )
    # The terms fall quickly: the sum of the rest, in units of the first.
    k = float(both[row])
    largest = fixed - (
      math.lgamma(k + 1)
      + math.lgamma(a - k + 1)
      + math.lgamma(b - k + 1)
      + math.lgamma(n - a - b + k + 1)
    )
    total, term = 1.0, 1.0
    while k < min(a, b) and term > 1e-12 * total:
      term *= (a - k) * (b - k) / ((k + 1) * (n - a - b + k + 1))
      total += term
      k += 1
    out[row] = -(largest + math.log(total))
  return out
