"""Topic vectors of sentences (Cui et al. 2014).

A sentence is the query for N documents in a TF-IDF vector space. The words of
these documents together are a binary vector x, which a denoising auto-encoder
of one hidden layer learns to rebuild,

    z = ReLU(W x~ + b),  loss = || sigmoid(W' z + b') - x ||^2,

with x~ = x without a random part of its ones. Both languages are then tuned
together: with sim the cosine, (f, e) a sentence pair and (f', e') another one,

    max(0, eta - sim(f, e) + sim(f, e')),  eta = 1/2 - sim(f, f'),

where eta is a number, not a function to differentiate. It may be negative.

M: documents. V: words. N: documents of a sentence. L: numbers of a vector. S:
sentences.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh
from scipy import sparse

from jaxmt.errors import InputError
from jaxmt.models import fitting
from jaxmt.models.fitting import EpochStore, FitOptions, StorePart
from jaxmt.text import vocabulary
from jaxmt.text.vocabulary import SPECIALS, Vocabulary

_QUERIES = 256  # sentences whose documents are found together
NO_DOCUMENT = -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class TopicOptions:
  """What is learned, and how.

  Attributes:
    size: L.
    documents: N.
    words: most content words, the most frequent ones.
    common: words in a larger share of all documents are no content words.
    mask: share of the ones that the auto-encoder does not see.
    negatives: other pairs that are drawn for each pair.
    different: share of target content words in which another pair must differ.
    fit: of the auto-encoders.
    tune: of the ranking; no epochs: none.
  """

  size: int = 100
  documents: int = 10
  words: int = 20_000
  common: float = 0.3
  mask: float = 0.3
  negatives: int = 10
  different: float = 0.3
  fit: FitOptions = dataclasses.field(
    default_factory=lambda: FitOptions(epochs=5, batch=128, rate=0.001)
  )
  tune_epochs: int = 3
  tune_rate: float = 0.0003


def check_options(options: TopicOptions) -> None:
  """Raises `InputError` for settings that make no sense."""
  for name in ("size", "documents", "words", "negatives"):
    if getattr(options, name) < 1:
      raise InputError(f"option '{name}' must be at least 1")
  for name in ("mask", "different"):
    if not 0 <= getattr(options, name) < 1:
      raise InputError(f"option '{name}' must be from 0 to below 1")
  if not 0 < options.common <= 1:
    raise InputError("option 'common' must be above 0 and at most 1")
  if options.tune_epochs < 0 or not 0 < options.tune_rate < float("inf"):
    raise InputError("options 'tune_epochs' and 'tune_rate' are out of range")
  fitting.check_options(options.fit)


# --- documents --------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentIndex:
  """M documents in a vector space of V content words.

  Attributes:
    words: the content words; other words are `UNK` and count nothing.
    offsets: first entry of each document, int64 `[M + 1]`.
    ids: its different words, rising, int32.
    weights: TF-IDF of each, documents having length 1, float32.
    idf: of each word, 0 of special words, float32 `[V]`.
  """

  words: Vocabulary
  offsets: np.ndarray
  ids: np.ndarray
  weights: np.ndarray
  idf: np.ndarray

  def __len__(self) -> int:
    return len(self.offsets) - 1

  @functools.cached_property
  def by_word(self) -> sparse.csr_matrix:
    """TF-IDF, `[V, M]`."""
    return self._matrix(self.weights).T.tocsr()

  @functools.cached_property
  def members(self) -> sparse.csr_matrix:
    """Which words each document has, float32 `[M, V]`."""
    return self._matrix(np.ones_like(self.weights))

  def _matrix(self, values: np.ndarray) -> sparse.csr_matrix:
    shape = (len(self), len(self.words))
    return sparse.csr_matrix((values, self.ids, self.offsets), shape=shape)

  @property
  def binary(self) -> np.ndarray:
    """Which words each document has, uint8 `[M, V]`."""
    out = np.zeros((len(self), len(self.words)), np.uint8)
    row = np.repeat(np.arange(len(self)), np.diff(self.offsets))
    out[row, self.ids] = 1
    return out


def index_documents(
  documents: Sequence[str], options: TopicOptions
) -> DocumentIndex:
  """Returns the vector space of documents, a string of words each.

  Raises:
    InputError: if there are none, or no content words.
  """
  if not documents:
    raise InputError("no documents")
  every = vocabulary.build([list(documents)])
  counts = word_counts(every, documents)
  spread = np.bincount(counts.indices, minlength=len(every))
  content = (spread > 0) & (spread <= max(1, options.common * len(documents)))
  content[: len(SPECIALS)] = False
  chosen = np.flatnonzero(content)[: options.words]  # by falling count
  if not len(chosen):
    raise InputError("the documents have no content words")
  words = Vocabulary(
    words=(*SPECIALS, *(every.words[word] for word in chosen.tolist()))
  )
  bags = word_counts(words, documents)
  spread = np.bincount(bags.indices, minlength=len(words))
  idf = np.log1p(len(documents) / np.maximum(spread, 1)).astype(np.float32)
  idf[: len(SPECIALS)] = 0
  weights = bags.data * idf[bags.indices]
  row = np.repeat(np.arange(len(documents)), np.diff(bags.indptr))
  norm = np.sqrt(np.bincount(row, weights**2, minlength=len(documents)))
  return DocumentIndex(
    words=words,
    offsets=bags.indptr.astype(np.int64),
    ids=bags.indices.astype(np.int32),
    weights=(weights / np.maximum(norm, 1e-30)[row]).astype(np.float32),
    idf=idf,
  )


def join(names: Sequence[str], lines: Sequence[str]) -> list[str]:
  """Returns documents: the lines of one name together, by first occurrence."""
  parts: dict[str, list[str]] = {}
  for name, line in zip(names, lines, strict=True):
    parts.setdefault(name, []).append(line)
  return [" ".join(part) for part in parts.values()]


def word_counts(words: Vocabulary, lines: Sequence[str]) -> sparse.csr_matrix:
  """Returns counts of words, `[N, V]`, without special words."""
  text = vocabulary.encode(words, list(lines))
  ones = np.where(text.flat < len(SPECIALS), 0.0, 1.0).astype(np.float32)
  shape = (len(lines), len(words))
  bags = sparse.csr_matrix((ones, text.flat, text.offsets), shape=shape)
  bags.sum_duplicates()
  bags.eliminate_zeros()
  return bags


def retrieve(
  index: DocumentIndex, lines: Sequence[str], count: int
) -> np.ndarray:
  """Returns the nearest documents of sentences, best first, int32 `[S, N]`.

  Nearest by the cosine of TF-IDF vectors; of two as near, the earlier one.
  `NO_DOCUMENT` where no more documents share a content word.
  """
  out = np.full((len(lines), count), NO_DOCUMENT, np.int32)
  for low in range(0, len(lines), _QUERIES):
    queries = word_counts(index.words, lines[low : low + _QUERIES])
    queries.data *= index.idf[queries.indices]
    _nearest((queries @ index.by_word).toarray(), count, out[low:])
  return out


def _nearest(similarity: np.ndarray, count: int, out: np.ndarray) -> None:
  """Writes the `count` most similar documents of each query, see `retrieve`.

  Args:
    similarity: float32 `[Q, M]`.
    count: N.
    out: int32, at least Q rows of N.
  """
  similarity = np.round(similarity, 5)
  size = similarity.shape[1]
  # None below the N-th value of a row can be among its N.
  least = np.zeros((len(similarity), 1), np.float32)
  if count < size:
    least = np.partition(similarity, size - count, axis=1)[
      :, size - count, None
    ]
  row, document = np.nonzero((similarity >= least) & (similarity > 0))
  order = np.lexsort((document, -similarity[row, document], row))
  row, document = row[order], document[order]
  place = np.arange(len(row)) - np.searchsorted(row, row)
  chosen = place < count
  out[row[chosen], place[chosen]] = document[chosen]


# --- the networks -----------------------------------------------------------


class TopicEncoder(nn.Module):
  """A denoising auto-encoder of binary vectors.

  Attributes:
    words: V.
    size: L.
  """

  words: int
  size: int

  def setup(self):
    """Makes the layers."""
    self.encoder = nn.Dense(self.size)
    self.decoder = nn.Dense(self.words)

  def encode(self, words: Array) -> Array:
    """Returns topic vectors `[B, L]` of vectors `[B, V]`."""
    return nn.relu(self.encoder(words))

  def __call__(self, words: Array) -> Array:
    """Returns the rebuilt vectors `[B, V]`."""
    return nn.sigmoid(self.decoder(self.encode(words)))


def unions(binary: Array, documents: Array) -> Array:
  """Returns the words of N documents together, float32 `[B, V]`.

  Args:
    binary: words of all documents, `[M, V]`.
    documents: int32 `[B, N]`, `NO_DOCUMENT` for none.
  """
  rows = jnp.where((documents >= 0)[..., None], binary[documents], 0)
  return rows.max(axis=1).astype(jnp.float32)


def cosine(one: Array, other: Array) -> Array:
  """Returns the cosines of vectors `[..., L]`, 0 if one has no length."""
  product = (one * other).sum(-1)
  squares = (one**2).sum(-1) * (other**2).sum(-1)
  return jnp.where(
    squares > 0, product / jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), 0.0
  )


@dataclasses.dataclass(frozen=True)
class DenoisingLoss:
  """The loss of an auto-encoder; rows are the documents of sentences."""

  module: TopicEncoder
  mask: float

  def __call__(self, parameters, constants, rows, key):
    """See `fitting.Loss`."""
    whole = unions(constants["binary"], rows)
    seen = jax.random.bernoulli(key, 1.0 - self.mask, whole.shape)
    rebuilt: Any = self.module.apply(parameters, whole * seen)
    return ((rebuilt - whole) ** 2).sum(), jnp.float32(len(rows))


@dataclasses.dataclass(frozen=True)
class RankingLoss:
  """The loss of both encoders; rows are pairs and their negatives."""

  source: TopicEncoder
  target: TopicEncoder

  def __call__(self, parameters, constants, rows, key):
    """See `fitting.Loss`; one of a pair's negatives is drawn."""
    pair, negatives = rows["pair"], rows["negatives"]
    logits = jnp.where(negatives >= 0, 0.0, -1e9)
    drawn = jax.random.categorical(key, logits)
    other = jnp.take_along_axis(negatives, drawn[:, None], 1)[:, 0]
    known = other >= 0

    def encode(side, module, chosen):
      words = unions(
        constants[f"{side}_binary"], constants[f"{side}_near"][chosen]
      )
      return module.apply(parameters[side], words, method="encode")

    f = encode("source", self.source, pair)
    f_other = encode("source", self.source, other)
    e = encode("target", self.target, pair)
    e_other = encode("target", self.target, other)
    loss = ranking(f, e, f_other, e_other)
    return jnp.where(known, loss, 0.0).sum(), known.sum().astype(jnp.float32)


def ranking(f: Array, e: Array, f_other: Array, e_other: Array) -> Array:
  """Returns the ranking loss of vectors of two pairs, `[B]`."""
  margin = jax.lax.stop_gradient(0.5 - cosine(f, f_other))
  return jax.nn.relu(margin - cosine(f, e) + cosine(f, e_other))


def draw_negatives(
  lines: Sequence[str], words: Vocabulary, options: TopicOptions
) -> np.ndarray:
  """Returns other pairs for each pair, -1 for none, int32 `[S, K]`.

  A pair stays only if enough content words of its target sentence are not those
  of the pair it is drawn for.

  Args:
    lines: target sentences.
    words: target content words.
    options: see `TopicOptions`.
  """
  rng = np.random.default_rng([options.fit.seed, 7])
  size = len(lines)
  drawn = rng.integers(0, size, (size, options.negatives)).astype(np.int32)
  bags = (word_counts(words, lines) > 0).astype(np.float32)
  counts = np.asarray(bags.sum(1))[:, 0]
  for column in range(drawn.shape[1]):
    other = drawn[:, column]
    shared = np.asarray(bags.multiply(bags[other]).sum(1))[:, 0]
    enough = counts[other] - shared >= options.different * counts[other]
    bad = ~enough | (counts[other] == 0) | (other == np.arange(size))
    drawn[bad, column] = -1
  return drawn


# --- learning ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Encoders:
  """The trained encoders of both languages.

  Attributes:
    weights: of the source and the target encoder, float32 `[V, L]` each.
    biases: likewise, float32 `[L]` each.
    near: documents of the source and target sentences, int32 `[S, N]` each.
    history: mean losses of the epochs, by part.
  """

  weights: tuple[np.ndarray, np.ndarray]
  biases: tuple[np.ndarray, np.ndarray]
  near: tuple[np.ndarray, np.ndarray]
  history: dict[str, list[float]]


def train_encoders(
  indices: tuple[DocumentIndex, DocumentIndex],
  bitext: tuple[Sequence[str], Sequence[str]],
  options: TopicOptions,
  *,
  mesh: Mesh | None = None,
  store: EpochStore | None = None,
) -> Iterator[tuple[str, int, float, Encoders | None]]:
  """Yields part, epoch, mean loss, and at the end the encoders.

  Args:
    indices: of source and target documents.
    bitext: source and target sentences, S each.
    options: see `TopicOptions`.
    mesh: devices, see `fitting.fit`.
    store: of epochs, see `fitting.fit`.

  Raises:
    InputError: for bad settings, or if no sentence has a document.
  """
  check_options(options)
  neighbours = [
    retrieve(index, lines, options.documents)
    for index, lines in zip(indices, bitext, strict=True)
  ]
  part = lambda name: None if store is None else StorePart(store, name)
  modules, learned, history = [], {}, {}
  constants: dict[str, Array] = {}
  for place, side in enumerate(("source", "target")):
    binary = jnp.asarray(indices[place].binary)
    module = TopicEncoder(words=binary.shape[1], size=options.size)
    key = jax.random.fold_in(jax.random.key(options.fit.seed), place)
    start = module.init(key, jnp.zeros((1, binary.shape[1])))
    rows = neighbours[place][(neighbours[place] >= 0).any(1)]
    if not len(rows):
      raise InputError(f"no document shares a word with a {side} sentence")
    for epoch in fitting.fit(
      DenoisingLoss(module, options.mask),
      start,
      rows,
      options.fit,
      constants={"binary": binary},
      mesh=mesh,
      store=part(side),
    ):
      history.setdefault(side, []).append(epoch.loss)
      learned[side] = epoch.parameters
      yield side, epoch.number, epoch.loss, None
    modules.append(module)
    constants |= {
      f"{side}_binary": binary,
      f"{side}_near": jnp.asarray(neighbours[place]),
    }
  negatives = draw_negatives(bitext[1], indices[1].words, options)
  useful = (negatives >= 0).any(1)
  useful &= (neighbours[0] >= 0).any(1) & (neighbours[1] >= 0).any(1)
  if options.tune_epochs and useful.any():
    rows = {
      "pair": np.flatnonzero(useful).astype(np.int32),
      "negatives": negatives[useful],
    }
    settings = dataclasses.replace(
      options.fit, epochs=options.tune_epochs, rate=options.tune_rate
    )
    for epoch in fitting.fit(
      RankingLoss(modules[0], modules[1]),
      learned,
      rows,
      settings,
      constants=constants,
      mesh=mesh,
      store=part("pairs"),
    ):
      history.setdefault("pairs", []).append(epoch.loss)
      learned = epoch.parameters
      yield "pairs", epoch.number, epoch.loss, None
  layers = [learned[side]["params"]["encoder"] for side in ("source", "target")]
  yield (
    "end",
    0,
    0.0,
    Encoders(
      weights=(
        np.asarray(layers[0]["kernel"]),
        np.asarray(layers[1]["kernel"]),
      ),
      biases=(np.asarray(layers[0]["bias"]), np.asarray(layers[1]["bias"])),
      near=(neighbours[0], neighbours[1]),
      history=history,
    ),
  )


def encode_documents(
  index: DocumentIndex, near: np.ndarray, weight: np.ndarray, bias: np.ndarray
) -> np.ndarray:
  """Returns the topic vectors of sentences, float32 `[S, L]`.

  Vectors of sentences without any document are 0.

  Args:
    index: the documents.
    near: of each sentence, int32 `[S, N]`.
    weight: of the encoder, `[V, L]`.
    bias: of the encoder, `[L]`.
  """
  is_document = near >= 0
  row = np.repeat(np.arange(len(near)), is_document.sum(1))
  ones = np.ones(len(row), np.float32)
  shape = (len(near), len(index))
  chosen = sparse.csr_matrix((ones, (row, near[is_document])), shape=shape)
  words = chosen @ index.members
  words.data = np.ones_like(words.data)
  vectors = np.maximum(words @ weight + bias, 0.0)
  return np.where(is_document.any(1, keepdims=True), vectors, 0.0).astype(
    np.float32
  )
