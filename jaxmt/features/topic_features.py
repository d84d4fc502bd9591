"""Topics of rules and of the sentence that they translate (Cui et al. 2014).

Every rule has a topic vector for its source and one for its target side: means
of the vectors of the sentence pairs it was extracted from, weighted by how much
each pair counts for it. `models.topic_vectors` has the vectors of sentences.
Four features of a rule in a sentence s, with z_s its vector:

    TopicSource   ln cos(z_s, z_source)    TopicSourceEntropy  ln H(z_source)
    TopicTarget   ln cos(z_s, z_target)    TopicTargetEntropy  ln H(z_target)

H is the entropy of the vector scaled to sum to 1: small for rules of one topic.
The paper calls it sensitivity; its sign is left to tuning. Arguments of
logarithms are at least `FLOOR`. Rules that the model does not know have
features of 0.

Rules are known by hashes of their symbols, so a model serves every table with
the same rules, filtered, copied or in another order.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from jaxmt.errors import InputError
from jaxmt.features.local_features import SentenceFeature
from jaxmt.grammar.provenance import Provenance
from jaxmt.grammar.table import RuleTable
from jaxmt.models import topic_mixtures, topic_vectors
from jaxmt.models.topic_vectors import DocumentIndex
from jaxmt.text import vocabulary
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

NAMES = (
  "TopicSource",
  "TopicTarget",
  "TopicSourceEntropy",
  "TopicTargetEntropy",
)
FLOOR = 0.01
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SIDES = np.uint64(0xC2B2AE3D27D4EB4F)
_ARRAYS = {
  "topics_offsets": np.int64,
  "topics_ids": np.int32,
  "topics_weights": np.float32,
  "topics_idf": np.float32,
  "topics_encoder": np.float32,
  "topics_bias": np.float32,
  "topics_count": np.int32,
  "topics_mixtures": np.float32,
  "topics_keys": np.uint64,
  "topics_source": np.float32,
  "topics_target": np.float32,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TopicModel:
  """Topics of R rules, and what finds those of a sentence.

  Attributes:
    index: source documents.
    encoder: weights of the source encoder, float32 `[V, L]`.
    bias: float32 `[L]`.
    count: documents of a sentence.
    mixtures: topics of the documents, whose mean is a sentence's vector,
      float32 `[M, L]`; `[0, L]` if the encoder makes it of their words.
    keys: of the rules, rising, uint64 `[R]`.
    source: vectors of source sides, of length 1 or 0, float32 `[R, L]`.
    target: likewise of target sides.
  """

  index: DocumentIndex
  encoder: np.ndarray
  bias: np.ndarray
  count: int
  mixtures: np.ndarray
  keys: np.ndarray
  source: np.ndarray
  target: np.ndarray

  def features(self) -> tuple[SentenceFeature, ...]:
    """Returns the four features as one."""
    return (
      SentenceFeature(
        name="Topics", values=self.values, batch=self.batch, columns=NAMES
      ),
    )

  @functools.cached_property
  def _entropies(self) -> np.ndarray:
    """Ln H of both sides, float32 `[R, 2]`."""
    return np.stack(
      [
        np.log(np.maximum(entropy(z), FLOOR))
        for z in (self.source, self.target)
      ],
      axis=1,
    ).astype(np.float32)

  @functools.cached_property
  def _latest(self) -> dict[str, Any]:
    return {}

  def _rows(self, table: RuleTable) -> np.ndarray:
    """Where the rules of a table stand, -1 for unknown ones; int64 `[R]`."""
    latest = self._latest.get("rows")
    if latest is not None and latest[0] is table:
      return latest[1]
    keys = rule_keys(table)
    place = np.searchsorted(self.keys, keys)
    place = np.minimum(place, max(len(self.keys) - 1, 0))
    known = self.keys[place] == keys if len(self.keys) else np.zeros(0, bool)
    rows = np.where(known, place, -1) if len(known) else np.full(len(keys), -1)
    self._latest["rows"] = (table, rows)
    return rows

  def sentence_vectors(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """Returns the topic vectors of source sentences, float32 `[B, L]`."""
    lines = [" ".join(words) for words in sentences]
    near = topic_vectors.retrieve(self.index, lines, self.count)
    if len(self.mixtures):
      return topic_mixtures.sentence_shares(near, self.mixtures)
    return topic_vectors.encode_documents(
      self.index, near, self.encoder, self.bias
    )

  def values(
    self, table: RuleTable, rules: np.ndarray, sentence: tuple[str, ...]
  ) -> np.ndarray:
    """Returns the features of rules in a sentence, float64 `[N, 4]`."""
    return self.batch(table, rules, np.zeros(len(rules), np.int64), [sentence])

  def batch(
    self,
    table: RuleTable,
    rules: np.ndarray,
    rows: np.ndarray,
    sentences: Sequence[tuple[str, ...]],
  ) -> np.ndarray:
    """Returns the features of pairs of a rule and a sentence, `[N, 4]`.

    Args:
      table: of the rules.
      rules: int64 `[N]`.
      rows: which sentence, int64 `[N]`.
      sentences: their words.
    """
    vectors = self.sentence_vectors(sentences)
    length = np.sqrt((vectors**2).sum(1, keepdims=True))
    return _features(
      self._rows(table)[rules],
      np.asarray(rows, np.int64),
      vectors / np.maximum(length, np.float32(1e-30)),
      (self.source, self.target, self._entropies),
    )

  def check(self, table: RuleTable, path: str | None = None) -> None:
    """Refuses a grammar none of whose rules is known.

    Raises:
      InputError: saying so.
    """
    if len(table) and not (self._rows(table) >= 0).any():
      raise InputError(
        "the topics are of none of the grammar's rules", path=path
      )

  def to_values(self) -> dict[str, Any]:
    """Returns the model as named arrays and lists of strings."""
    index = self.index
    return {
      "topics_offsets": index.offsets,
      "topics_ids": index.ids,
      "topics_weights": index.weights,
      "topics_idf": index.idf,
      "topics_encoder": self.encoder,
      "topics_bias": self.bias,
      "topics_count": np.array([self.count], np.int32),
      "topics_mixtures": self.mixtures,
      "topics_keys": self.keys,
      "topics_source": self.source,
      "topics_target": self.target,
      "topics_words": vocabulary.to_lines(index.words),
    }


@njit(fastmath={"reassoc", "contract"})
def _features(known, rows, vectors, model):
  """The features of pairs; each has the same bits whatever the others are.

  Args:
    known: rules of the model, -1 for others, `[N]`.
    rows: sentences, `[N]`.
    vectors: of the sentences, of length 1 or 0, float32 `[B, L]`.
    model: both vectors of the rules, and ln H.
  """
  source, target, entropies = model
  out = np.zeros((len(known), 4))
  for item in range(len(known)):
    rule, row = known[item], rows[item]
    if rule < 0:
      continue
    one, two = np.float32(0.0), np.float32(0.0)
    for place in range(vectors.shape[1]):
      one += source[rule, place] * vectors[row, place]
      two += target[rule, place] * vectors[row, place]
    out[item, 0] = np.log(min(max(np.float64(one), FLOOR), 1.0))
    out[item, 1] = np.log(min(max(np.float64(two), FLOOR), 1.0))
    out[item, 2] = entropies[rule, 0]
    out[item, 3] = entropies[rule, 1]
  return out


def entropy(vectors: np.ndarray) -> np.ndarray:
  """Returns the entropies of vectors scaled to sum to 1, `[R]`; 0 for 0."""
  total = vectors.sum(1, keepdims=True)
  share = np.maximum(vectors, 0.0) / np.maximum(total, 1e-30)
  return -(share * np.log(np.maximum(share, 1e-30))).sum(1)


def rule_vectors(
  provenance: Provenance, vectors: np.ndarray, *, rules: int
) -> np.ndarray:
  """Returns the mean vector of the sentences of each rule, float32 `[R, L]`.

  The mean is weighted by how much the sentence counts for the rule, and scaled
  to length 1; it is 0 for rules without any sentence.

  Args:
    provenance: of S sentences.
    vectors: of the sentences, `[S, L]`.
    rules: R.
  """
  share = sparse.csr_matrix(
    (provenance.counts, provenance.rules.flat, provenance.rules.offsets),
    shape=(len(provenance), rules),
  )
  means = share.T @ vectors.astype(np.float64)
  length = np.sqrt((means**2).sum(1, keepdims=True))
  return (means / np.maximum(length, 1e-30)).astype(np.float32)


def make_model(
  index: DocumentIndex,
  encoders: topic_vectors.Encoders,
  targets: DocumentIndex,
  table: RuleTable,
  provenance: Provenance,
) -> TopicModel:
  """Returns the topics of a grammar's rules.

  Args:
    index: source documents.
    encoders: of the bitext that the rules were extracted from.
    targets: target documents.
    table: R rules.
    provenance: which sentence gave which rule.

  Raises:
    InputError: if the rules are of another bitext.
  """
  vectors = [
    topic_vectors.encode_documents(
      own,
      encoders.near[place],
      encoders.weights[place],
      encoders.biases[place],
    )
    for place, own in enumerate((index, targets))
  ]
  return _of_rules(
    (vectors[0], vectors[1]),
    table,
    provenance,
    index=index,
    encoder=np.asarray(encoders.weights[0], np.float32),
    bias=np.asarray(encoders.biases[0], np.float32),
    count=encoders.near[0].shape[1],
    mixtures=np.zeros((0, len(encoders.biases[0])), np.float32),
  )


def make_mixture_model(
  index: DocumentIndex,
  shares: np.ndarray,
  near: tuple[np.ndarray, np.ndarray],
  table: RuleTable,
  provenance: Provenance,
) -> TopicModel:
  """Returns the topics of a grammar's rules by latent Dirichlet allocation.

  Args:
    index: source documents.
    shares: topics of documents that are the same on both sides, `[M, L]`.
    near: documents of the source and of the target sentences, `[S, N]` each.
    table: R rules.
    provenance: which sentence gave which rule.

  Raises:
    InputError: if the rules are of another bitext.
  """
  source, target = (
    topic_mixtures.sentence_shares(side, shares) for side in near
  )
  size = shares.shape[1]
  return _of_rules(
    (source, target),
    table,
    provenance,
    index=index,
    encoder=np.zeros((len(index.words), size), np.float32),
    bias=np.zeros(size, np.float32),
    count=near[0].shape[1],
    mixtures=np.asarray(shares, np.float32),
  )


def _of_rules(
  vectors: tuple[np.ndarray, np.ndarray],
  table: RuleTable,
  provenance: Provenance,
  **parts: Any,
) -> TopicModel:
  """The model whose rules have the mean vectors of their sentences."""
  if len(provenance) != len(vectors[0]):
    raise InputError(
      f"the rules are of {len(provenance)} sentence pairs, not of"
      f" {len(vectors[0])}"
    )
  seen = np.bincount(provenance.rules.flat, minlength=len(table)) > 0
  used = np.flatnonzero(seen)
  keys, first = np.unique(rule_keys(table)[used], return_index=True)
  source, target = (
    rule_vectors(provenance, side, rules=len(table))[used[first]]
    for side in vectors
  )
  return TopicModel(keys=keys, source=source, target=target, **parts)


def rule_keys(table: RuleTable) -> np.ndarray:
  """Returns a hash of the symbols of each rule, uint64 `[R]`."""
  labels = _hashes([f"[{label}]" for label in table.labels])
  source = _side(table.source, _hashes(table.source_words.words), labels)
  sites = _hashes([f"[{place}]" for place in range(64)])
  target = _side(table.target, _hashes(table.target_words.words), sites)
  return (source * _SIDES + target) * _SIDES + labels[table.lhs]


def _hashes(words: Sequence[str]) -> np.ndarray:
  """A hash of each word that is the same everywhere, uint64."""
  digests = b"".join(
    hashlib.blake2b(word.encode(), digest_size=8).digest() for word in words
  )
  return np.frombuffer(digests, "<u8").astype(np.uint64)


def _side(rows: Ragged, words: np.ndarray, others: np.ndarray) -> np.ndarray:
  """Hashes of rows: sums of symbols times powers of their places."""
  symbol = rows.flat
  value = np.where(
    symbol >= 0,
    words[np.maximum(symbol, 0)],
    others[np.minimum(np.maximum(-1 - symbol, 0), len(others) - 1)],
  )
  place = np.arange(len(symbol)) - np.repeat(rows.offsets[:-1], rows.lengths)
  longest = int(rows.lengths.max(initial=0)) + 1
  powers = np.cumprod(np.full(longest, _FACTOR, np.uint64), dtype=np.uint64)
  sums = np.zeros(len(symbol) + 1, np.uint64)
  np.cumsum(value * powers[place], dtype=np.uint64, out=sums[1:])
  return sums[rows.offsets[1:]] - sums[rows.offsets[:-1]]


def to_lists() -> tuple[tuple[str, ...], tuple[str, ...]]:
  """Returns the names of the arrays and of the lists of strings."""
  return tuple(_ARRAYS), ("topics_words",)


def from_values(
  values: Mapping[str, Any], *, path: str | None = None
) -> TopicModel:
  """Returns the model that `to_values` took apart.

  Raises:
    InputError: if shapes do not fit, or numbers are out of range.
  """
  words = vocabulary.from_lines(list(values["topics_words"]), path=path)
  arrays = {name: np.asarray(values[name]) for name in _ARRAYS}
  for name, dtype in _ARRAYS.items():
    if arrays[name].dtype != dtype:
      raise InputError(f"{name} is not of type {np.dtype(dtype)}", path=path)
    if dtype == np.float32:
      usable = np.isfinite(arrays[name]) & (np.abs(arrays[name]) < 1e6)
      if not usable.all():
        raise InputError(f"{name} holds no usable numbers", path=path)
  size = arrays["topics_bias"].size
  entries, rules = arrays["topics_ids"].size, arrays["topics_keys"].size
  shapes = {
    "topics_ids": (entries,),
    "topics_weights": (entries,),
    "topics_idf": (len(words),),
    "topics_encoder": (len(words), size),
    "topics_bias": (size,),
    "topics_count": (1,),
    "topics_mixtures": (len(arrays["topics_mixtures"]), size),
    "topics_keys": (rules,),
    "topics_source": (rules, size),
    "topics_target": (rules, size),
  }
  for name, shape in shapes.items():
    if arrays[name].shape != shape:
      raise InputError(f"{name} has the wrong shape", path=path)
  _check_index(arrays, len(words), path)
  mixed = len(arrays["topics_mixtures"])
  if mixed not in (0, len(arrays["topics_offsets"]) - 1):
    raise InputError("topics_mixtures are not one for each document", path=path)
  keys = arrays["topics_keys"]
  if (keys[1:] <= keys[:-1]).any():
    raise InputError("topics_keys do not rise", path=path)
  return TopicModel(
    index=DocumentIndex(
      words=words,
      **{
        name: arrays[f"topics_{name}"]
        for name in ("offsets", "ids", "weights", "idf")
      },
    ),
    encoder=arrays["topics_encoder"],
    bias=arrays["topics_bias"],
    count=int(arrays["topics_count"][0]),
    mixtures=arrays["topics_mixtures"],
    keys=keys,
    source=arrays["topics_source"],
    target=arrays["topics_target"],
  )


def _check_index(arrays, words: int, path: str | None) -> None:
  """Refuses documents that kernels would read out of range."""
  offsets, ids = arrays["topics_offsets"], arrays["topics_ids"]
  if (
    offsets.ndim != 1
    or len(offsets) < 2
    or offsets[0] != 0
    or offsets[-1] != len(ids)
    or (np.diff(offsets) < 0).any()
  ):
    raise InputError("topics_offsets are no offsets", path=path)
  if len(ids) and (ids.min() < 0 or ids.max() >= words):
    raise InputError("topics_ids are out of range", path=path)
  if not 1 <= int(arrays["topics_count"][0]) <= 1 << 20:
    raise InputError("topics_count is out of range", path=path)
