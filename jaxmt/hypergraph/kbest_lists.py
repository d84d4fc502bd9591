"""Lists of the k best derivations of each sentence.

Derivations are enumerated lazily, best first (Huang & Chiang 2005, algorithm
3); see `lazy_kbest`. With `unique`, derivations with the words of a better one
are left out, at every node: the rest of a derivation adds the same to both, so
the better one stands for them wherever they could be used.

With `diversity`, the list is chosen greedily from ten times as many strings,
each next one by

    score - diversity · number of bigrams shared with those chosen before

(Gimpel et al. 2013, "A systematic exploration of diversity in machine
translation"; a bigram counts once for each earlier string that has it, the
ends of a string count as words). The choice is then listed by score.
"""

import concurrent.futures

import numpy as np

from jaxmt.hypergraph import lazy_kbest
from jaxmt.hypergraph.derivations import (
  DerivationLists,
  EdgeStrings,
  no_strings,
)
from jaxmt.hypergraph.forest import Forest, edge_scores
from jaxmt.text import ragged
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets

_POOL = 10  # strings to choose from, for each one of a diverse list
_SKIPS = 200  # repeated strings per list entry before the list stays short
_LEAST_SKIPS = 20_000


def kbest(
  forest: Forest,
  *,
  size: int,
  strings: EdgeStrings | None = None,
  unique: bool = False,
  diversity: float = 0.0,
  scores: np.ndarray | None = None,
  threads: int = 1,
) -> DerivationLists:
  """Returns the best derivations of each sentence, best first.

  Args:
    forest: the forests.
    size: k, derivations per sentence; fewer if there are fewer.
    strings: what edges add to the strings of derivations, needed for `unique`
      and `diversity`.
    unique: whether all strings of a sentence differ. Lists may stay short if
      very many derivations yield the same string.
    diversity: penalty per shared bigram, see above; implies `unique`.
    scores: what each edge adds, `[E]`; `forest.score` if None. The lists are by
      these scores, and `DerivationLists.score` holds them.
    threads: sentences in work at a time.

  Raises:
    ValueError: for sizes that cannot be, or missing strings.
  """
  if size < 1:
    raise ValueError(f"k-best lists of size {size}")
  if not 0 <= diversity < np.inf:
    raise ValueError(f"diversity must be finite and not below 0: {diversity}")
  if strings is None and (unique or diversity):
    raise ValueError("unique and diverse lists need the strings of edges")
  strings = no_strings(forest) if strings is None else strings
  if len(strings.row) != forest.num_edges:
    raise ValueError(
      f"{len(strings.row)} edge strings for {forest.num_edges} edges"
    )
  lists = _enumerate(
    forest,
    strings,
    edge_scores(forest, scores),
    size=size * _POOL if diversity else size,
    unique=unique or diversity > 0,
    threads=threads,
  )
  if not diversity:
    return lists
  chosen = _choose_diverse(lists, size=size, weight=float(diversity))
  return DerivationLists(
    offsets=row_offsets(chosen)[lists.offsets],
    score=lists.score[chosen],
    edges=ragged.select(lists.edges, chosen),
    words=ragged.select(lists.words, chosen),
  )


def _enumerate(
  forest, strings, scores, *, size, unique, threads
) -> DerivationLists:
  columns = (
    np.ascontiguousarray(forest.edge_offsets, np.int64),
    np.ascontiguousarray(forest.tails, np.int32),
    scores,
  )
  limit = max(_SKIPS * size, _LEAST_SKIPS)
  batch = len(forest)
  parts = max(min(threads, batch), 1)
  cuts = np.linspace(0, batch, parts + 1).astype(np.int64).tolist()

  def work(part: int):
    return lazy_kbest.enumerate_forests(
      (cuts[part], cuts[part + 1]),
      np.ascontiguousarray(forest.node_offsets, np.int64),
      size,
      unique,
      limit,
      columns,
      strings.columns,
    )

  if parts == 1:
    done = [work(0)]
  else:
    with concurrent.futures.ThreadPoolExecutor(parts) as pool:
      done = list(pool.map(work, range(parts)))
  counts, score, ends, edges, words = zip(*done, strict=True)
  return DerivationLists(
    offsets=row_offsets(np.concatenate(counts)),
    score=np.concatenate(score),
    edges=_joined(edges, [one[:, 0] for one in ends]),
    words=_joined(words, [one[:, 1] for one in ends]),
  )


def _joined(flats, ends) -> Ragged:
  """Rows laid end to end, each part with the ends of its own rows."""
  shift = row_offsets([len(flat) for flat in flats])
  moved = [one + base for one, base in zip(ends, shift[:-1], strict=True)]
  return Ragged(
    flat=np.concatenate(flats),
    offsets=np.concatenate([np.zeros(1, np.int64), *moved]),
  )


def _choose_diverse(
  lists: DerivationLists, *, size: int, weight: float
) -> np.ndarray:
  """Chooses strings of each sentence greedily.

  Args:
    lists: D candidates.
    size: how many to choose.
    weight: penalty of one bigram shared with one string chosen before.

  Returns:
    Which candidates are chosen, bool `[D]`.
  """
  words = lists.words
  rows = words.offsets + np.arange(len(words.offsets))
  ends = np.full((2, rows[-1]), -1, np.int64)  # a row of n words, n + 1 bigrams
  is_word = np.ones(rows[-1], bool)
  is_word[rows[1:] - 1] = False
  ends[1, is_word] = words.flat
  ends[0, np.flatnonzero(is_word) + 1] = words.flat
  kinds, bigrams = np.unique(
    (ends[0] + 1) << 32 | (ends[1] + 1), return_inverse=True
  )
  return _choose(
    lists.offsets, lists.score, bigrams, rows, len(kinds), size, weight
  )


@njit
def _choose(offsets, scores, bigrams, rows, kinds, size, weight):
  """Greedy choice of `size` strings per sentence with few bigrams in common.

  Args:
    offsets: candidates of each sentence, int64 `[B + 1]`.
    scores: their scores, `[D]`.
    bigrams: the number of each of their bigrams, below `kinds`.
    rows: offsets of the candidates in `bigrams`, int64 `[D + 1]`.
    kinds: how many different bigrams there are.
    size: how many to choose.
    weight: penalty of one bigram shared with one string chosen before.

  Returns:
    Which candidates are chosen, bool `[D]`.
  """
  chosen = np.zeros(len(scores), np.bool_)
  penalty = np.zeros(len(scores))
  holder = np.full(kinds, -1, np.int64)  # the last string chosen that has it
  for row in range(len(offsets) - 1):
    low, high = offsets[row], offsets[row + 1]
    for _ in range(min(size, high - low)):
      pick = np.int64(-1)
      for item in range(low, high):
        if not chosen[item] and (
          pick < 0
          or scores[item] - penalty[item] > scores[pick] - penalty[pick]
        ):
          pick = item
      chosen[pick] = True
      for place in range(rows[pick], rows[pick + 1]):
        holder[bigrams[place]] = pick
      for item in range(low, high):
        shared = 0
        for place in range(rows[item], rows[item + 1]):
          shared += holder[bigrams[place]] == pick
        penalty[item] += weight * shared
  return chosen
