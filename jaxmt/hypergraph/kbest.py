"""The k best derivations of forests.

    found = kbest.best(model, source, forest, size=100, unique=True)
    texts = kbest.strings(model, source, found)
    values = kbest.features(found, edge_features(model, source, forest))

Derivations are enumerated lazily, best first (Huang & Chiang 2005, algorithm
3); see `kbest_kernel`. With `unique`, derivations with the words of a better
one are left out, at every node: the rest of a derivation adds the same to both,
so the better one stands for them wherever they could be used.

With `diversity`, the list is chosen greedily from ten times as many strings,
each next one by

    model score - diversity · number of bigrams shared with those chosen before

(Gimpel et al. 2013, "A systematic exploration of diversity in machine
translation"; a bigram counts once for each earlier string that has it, the
ends of a string count as words). The choice is then listed by model score.
"""

import concurrent.futures
import dataclasses

import numpy as np

from jaxmt.decode import derivation
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source
from jaxmt.hypergraph import kbest_diverse, kbest_kernel
from jaxmt.hypergraph.forest import Forest
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged

_POOL = 10  # strings to choose from, for each one that is wanted
_SKIPS = 200  # repeated strings per one wanted before the list stays short
_LEAST_SKIPS = 20_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class KBest:
  """D derivations of B sentences, best first within each.

  Attributes:
    offsets: sentence b's derivations are `offsets[b] : offsets[b + 1]`, int64
      `[B + 1]`; there are none for a sentence without a forest.
    score: their scores, float64 `[D]`.
    edges: the edges of each in preorder, tails in source order; the goal's
      edge comes first. D rows of int32.
    words: their target words as in `derivation.Yields`, D rows; but copied
      words that the target vocabulary has, too, stand under their id there, so
      that equal strings are equal rows.
  """

  offsets: np.ndarray
  score: np.ndarray
  edges: Ragged
  words: Ragged

  def __len__(self) -> int:
    return len(self.offsets) - 1

  @property
  def sentence(self) -> np.ndarray:
    """The sentence of each derivation, int64 `[D]`."""
    return np.repeat(np.arange(len(self)), np.diff(self.offsets))


def best(
  model: Model,
  source: Source,
  forest: Forest,
  *,
  size: int,
  unique: bool = False,
  diversity: float = 0.0,
  scores: np.ndarray | None = None,
  threads: int = 1,
) -> KBest:
  """Returns the best derivations of each sentence.

  Args:
    model: the rules.
    source: the sentences of the forest.
    forest: their forests.
    size: k, derivations per sentence; fewer if there are not so many.
    unique: whether all strings of a sentence differ. Lists may stay short if
      very many derivations say the same.
    diversity: penalty per shared bigram, see above; implies `unique`.
    scores: what each edge adds, `[E]`; `forest.score` if None. The lists are by
      these scores, and `KBest.score` holds them.
    threads: sentences in work at a time.

  Raises:
    ValueError: for sizes that cannot be.
  """
  if size < 1:
    raise ValueError(f"k-best lists of size {size}")
  if not 0 <= diversity < np.inf:
    raise ValueError(f"diversity must be finite and not below 0: {diversity}")
  scores = forest.score if scores is None else scores
  if len(scores) != len(forest.rule):
    raise ValueError(f"{len(scores)} scores for {len(forest.rule)} edges")
  if len(source) != len(forest):
    raise ValueError(f"{len(source)} sentences, {len(forest)} forests")
  wanted = size * _POOL if diversity else size
  found = _enumerate(
    model,
    source,
    forest,
    np.ascontiguousarray(scores, np.float64),
    size=wanted,
    unique=unique or diversity > 0,
    threads=threads,
  )
  if not diversity:
    return found
  chosen = kbest_diverse.choose(
    found.offsets,
    found.score,
    found.words,
    size=size,
    weight=float(diversity),
  )
  return KBest(
    offsets=_offsets(chosen)[found.offsets],
    score=found.score[chosen],
    edges=ragged.select(found.edges, chosen),
    words=ragged.select(found.words, chosen),
  )


def _enumerate(
  model, source, forest, scores, *, size, unique, threads
) -> KBest:
  table = model.table
  columns = (
    np.ascontiguousarray(forest.edge_offsets, np.int64),
    np.ascontiguousarray(forest.tails, np.int32),
    scores,
    np.ascontiguousarray(forest.rule, np.int32),
  )
  target = (
    table.target.flat,
    table.target.offsets,
    _copied_ids(model, source, forest),
  )
  limit = max(_SKIPS * size, _LEAST_SKIPS)
  batch = len(forest)
  parts = max(min(threads, batch), 1)
  cuts = np.linspace(0, batch, parts + 1).astype(np.int64).tolist()

  def work(part: int):
    return kbest_kernel.enumerate_forests(
      (cuts[part], cuts[part + 1]),
      np.ascontiguousarray(forest.node_offsets, np.int64),
      size,
      unique,
      limit,
      columns,
      target,
    )

  if parts == 1:
    done = [work(0)]
  else:
    with concurrent.futures.ThreadPoolExecutor(parts) as pool:
      done = list(pool.map(work, range(parts)))
  counts, score, ends, edges, words = zip(*done, strict=True)
  return KBest(
    offsets=_offsets(np.concatenate(counts)),
    score=np.concatenate(score),
    edges=_joined(edges, [one[:, 0] for one in ends]),
    words=_joined(words, [one[:, 1] for one in ends]),
  )


def _copied_ids(model, source, forest) -> np.ndarray:
  """Target word id of each pass-through word: equal words have equal ids."""
  known = model.table.target_words
  first = len(model.table) + 1
  ids = np.arange(len(source.words), dtype=np.int32) + len(known)
  used = np.unique(forest.rule[forest.rule >= first] - first)
  for copy in used.tolist():
    ids[copy] = known.index.get(source.words[copy], ids[copy])
  return ids


def _offsets(lengths) -> np.ndarray:
  return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _joined(flats, ends) -> Ragged:
  """Rows laid end to end, each part with the ends of its own rows."""
  shift = _offsets([len(flat) for flat in flats])
  moved = [one + base for one, base in zip(ends, shift[:-1], strict=True)]
  return Ragged(
    flat=np.concatenate(flats),
    offsets=np.concatenate([np.zeros(1, np.int64), *moved]),
  )


def strings(model: Model, source: Source, found: KBest) -> list[str]:
  """Spells all derivations, words separated by spaces; D strings."""
  return derivation.strings(model, source, found.words)


def features(found: KBest, values: np.ndarray) -> np.ndarray:
  """Adds up the values of the edges of each derivation.

  Args:
    found: D derivations.
    values: what each edge has, `[E, F]` or `[E]`.

  Returns:
    float64 `[D, F]` or `[D]`.
  """
  values = np.asarray(values)
  if not len(found.score):
    return np.zeros((0, *values.shape[1:]))
  # Every derivation has an edge, as `reduceat` needs.
  return np.add.reduceat(
    values[found.edges.flat].astype(np.float64, copy=False),
    found.edges.offsets[:-1],
    axis=0,
  )


def derivations(forest: Forest, found: KBest) -> Derivations:
  """Returns all as derivations, D of them, for words, links and trees."""
  rows, edges = found.edges.offsets, found.edges.flat
  goal = np.zeros(len(edges), bool)
  goal[rows[:-1]] = True
  below = edges[~goal]
  heads = (
    np.searchsorted(forest.edge_offsets, below, side="right").astype(np.int32)
    - 1
  )
  return Derivations(
    offsets=rows - np.arange(len(rows)),
    rule=forest.rule[below],
    begin=forest.begin[heads],
    end=forest.end[heads],
    child=kbest_kernel.link_children(rows, edges, forest.tails),
    score=found.score.astype(np.float32),
  )
