"""What simpler aligners learn of a bitext, for ITG alignment.

Model 1, the HMM and the diagonal model are learnt in both directions on the
whole bitext, an HMM on the stems of its words and Model 1 on their characters
(`word_pieces`). Counted on links are Moore's (2005) link probability and
fertilities: n(links | word) stands in for IBM Model 4. It is counted on the
HMM's symmetrised links and mixed with n(links) of all words; there are no
relative distortions and no search over Model 4's alignments. `link_features`
turns all of this into features.

P: word pairs. V: words of a side.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jax.sharding import Mesh

from jaxmt.align import aligner as contract
from jaxmt.align import cooccurrence, em, named_aligners, symmetrize
from jaxmt.align.itg import word_pieces
from jaxmt.align.itg.terminals import FERTILITIES
from jaxmt.align.itg.word_pieces import StemEvidence, pair_keys
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

MODELS = ("model1", "hmm", "diagonal")
_DISCOUNT = 0.4  # of Moore's link counts
_SMOOTHING = 2.0  # pseudo-counts of the mean fertility
_STOP_WORDS = 100  # most frequent words of a side


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
  """What has been learnt of a bitext.

  Attributes:
    table: its P word pairs.
    keys: `source << 32 | target` of each pair, rising, int64 `[P]`.
    configs: settings of each model.
    parameters: of each model and direction.
    link_probability: Moore's, then 0, float32 `[P + 1]`.
    association: log-likelihood ratio, then 0, float32 `[P + 1]`.
    pair_scores: `word_pieces.PAIR_SCORES`, then a row of 0, float32
      `[P + 1, 4]`.
    stems: what is learnt of the stems of words.
    fertility: ln n(links | word) of source and target words, float32 `[V, 4]`.
    stop: whether a word is among the most frequent, per side, bool `[V]`.
    spelling: a number per word, equal for equal spelling on both sides, int32
      `[V]` per side.
    links: symmetrised links of the HMM.
    ratio: target words per source word.
  """

  table: cooccurrence.PairTable
  keys: np.ndarray
  configs: dict[str, contract.AlignConfig]
  parameters: dict[str, dict[str, contract.Parameters]]
  link_probability: np.ndarray
  association: np.ndarray
  pair_scores: np.ndarray
  stems: StemEvidence
  fertility: tuple[np.ndarray, np.ndarray]
  stop: tuple[np.ndarray, np.ndarray]
  spelling: tuple[np.ndarray, np.ndarray]
  links: Ragged
  ratio: float


def learn(
  source: Ragged,
  target: Ragged,
  *,
  source_words: Sequence[str] = (),
  target_words: Sequence[str] = (),
  dictionary: Sequence[tuple[str, str]] = (),
  iterations: int = 5,
  symmetrization: str = "grow-diag-final-and",
  mesh: Mesh | None = None,
  report: Callable[[em.Progress], None] = lambda progress: None,
) -> Evidence:
  """Learns the simpler aligners from a bitext.

  Args:
    source: word ids per line.
    target: word ids per line.
    source_words: the word of each source id, for stems, characters and equal
      spelling; may be empty.
    target_words: likewise.
    dictionary: source words with translations, see
      `word_pieces.read_dictionary`.
    iterations: passes of each model; the HMM has as many of Model 1 before.
    symmetrization: of the HMM's links, which link probabilities, fertilities
      and rules are counted on.
    mesh: devices; None for all.
    report: called after every pass.
  """
  configs, parameters, found = {}, {}, None
  for model in MODELS:
    configs[model] = named_aligners.default_config(
      model, iterations=iterations, warm_up=iterations
    )
    result = em.align(source, target, configs[model], mesh=mesh, report=report)
    parameters[model] = result.parameters
    found = result if model == "hmm" else found
  assert found is not None
  linked = symmetrize.symmetrize(
    found.links["forward"], found.links["backward"], method=symmetrization
  )
  counts = _joint_counts(source, target)
  sizes = (found.table.source_size, found.table.target_size)
  words = (source_words, target_words)
  options = {"iterations": iterations, "mesh": mesh, "report": report}
  numbers = (
    word_pieces.number_stems(source_words, sizes[0]),
    word_pieces.number_stems(target_words, sizes[1]),
  )
  stop = _frequent(source, sizes[0]), _frequent(target, sizes[1])
  pair_scores = np.concatenate(
    [
      word_pieces.piece_scores(source, target, words, found.table, **options),
      word_pieces.dictionary_scores(
        dictionary, words, numbers[1], stop[1], found.table
      ),
    ],
    axis=1,
  )
  return with_links(
    Evidence(
      table=found.table,
      keys=pair_keys(found.table.source, found.table.target),
      configs=configs,
      parameters=parameters,
      link_probability=counts.astype(np.float32),
      association=_association(found.table, counts, source, target),
      fertility=(np.zeros((1, 1)), np.zeros((1, 1))),
      pair_scores=np.pad(pair_scores, ((0, 1), (0, 0))),
      stems=word_pieces.learn_stems(source, target, numbers, **options),
      stop=stop,
      spelling=_spelling(source_words, target_words, sizes),
      links=linked,
      ratio=len(target.flat) / max(len(source.flat), 1),
    ),
    source,
    target,
    linked,
    counts=counts,
  )


def with_links(
  evidence: Evidence,
  source: Ragged,
  target: Ragged,
  links: Ragged,
  *,
  counts: np.ndarray | None = None,
) -> Evidence:
  """Returns the evidence with what is counted on other links.

  Link probabilities and fertilities are estimated anew; the models stay.

  Args:
    evidence: of the same bitext.
    source: word ids per line.
    target: word ids per line.
    links: pairs (source, target) per line.
    counts: sentence pairs that have each word pair, `[P]`; counted if None.
  """
  counts = _joint_counts(source, target) if counts is None else counts
  row = np.repeat(np.arange(len(links)), links.lengths)
  flat = links.flat.reshape(-1, 2)
  first = source.flat[source.offsets[row] + flat[:, 0]]
  second = target.flat[target.offsets[row] + flat[:, 1]]
  place = np.searchsorted(evidence.keys, pair_keys(first, second))
  linked = np.bincount(place, minlength=len(evidence.keys))
  share = np.maximum(linked - _DISCOUNT, 0.0) / np.maximum(counts, 1)
  return dataclasses.replace(
    evidence,
    links=links,
    link_probability=np.append(np.minimum(share, 1.0), 0).astype(np.float32),
    fertility=(
      _fertility(source, links, 0, evidence.table.source_size),
      _fertility(target, links, 1, evidence.table.target_size),
    ),
  )


def _fertility(text: Ragged, links: Ragged, side: int, size: int) -> np.ndarray:
  """Returns ln n(links | word), smoothed by all words, float32 `[V, 4]`."""
  row = np.repeat(np.arange(len(links)), links.lengths)
  places = text.offsets[row] + links.flat.reshape(-1, 2)[:, side]
  number = np.bincount(places, minlength=len(text.flat))
  number = np.minimum(number, FERTILITIES - 1)
  counts = np.zeros((size, FERTILITIES))
  np.add.at(counts, (text.flat, number), 1.0)
  mean = (counts.sum(0) + 1.0) / (counts.sum() + FERTILITIES)
  total = counts.sum(1, keepdims=True) + _SMOOTHING
  return np.log((counts + _SMOOTHING * mean) / total).astype(np.float32)


def _frequent(text: Ragged, size: int) -> np.ndarray:
  """Which words are among the most frequent, bool `[size]`."""
  counts = np.bincount(text.flat, minlength=size)
  out = np.zeros(size, np.bool_)
  out[np.argsort(-counts, kind="stable")[:_STOP_WORDS]] = True
  return out & (counts > 0)


def _spelling(source_words, target_words, sizes):
  """One number per spelling; words without a spelling have their own."""
  index: dict[str, int] = {}

  def numbered(words, size, other):
    numbers = np.full(size, other, np.int32)
    for place, word in enumerate(words[:size]):
      numbers[place] = index.setdefault(word, len(index))
    return numbers

  return (
    numbered(source_words, sizes[0], -1),
    numbered(target_words, sizes[1], -2),
  )


def _joint_counts(source: Ragged, target: Ragged) -> np.ndarray:
  """How many sentence pairs have each word pair, int64 `[P]`."""
  index = cooccurrence.build(source, target)
  counts = np.zeros(len(index.table) + 1, np.int64)
  stamp = np.full(len(index.table) + 1, -1, np.int64)
  for bucket in index.buckets:
    _count_rows(bucket.pairs, bucket.sentences, stamp, counts)
  return counts[:-1]


@njit
def _count_rows(pairs, sentences, stamp, counts):
  """Counts each word pair once per sentence pair."""
  for row in range(len(pairs)):
    for i in range(pairs.shape[1]):
      for j in range(pairs.shape[2]):
        pair = pairs[row, i, j]
        if stamp[pair] != sentences[row]:
          stamp[pair] = sentences[row]
          counts[pair] += 1


def _association(table, counts, source, target) -> np.ndarray:
  """Log-likelihood ratios (Dunning, 1993), then 0, float32 `[P + 1]`.

  Negative where words occur together less often than by chance.
  """
  total = max(len(source), 1)
  first = _sentences_with(source, table.source_size)[table.source]
  second = _sentences_with(target, table.target_size)[table.target]
  cells = np.stack(
    [counts, first - counts, second - counts, total - first - second + counts]
  ).astype(np.float64)
  chance = np.stack(
    [
      first * second,
      first * (total - second),
      (total - first) * second,
      (total - first) * (total - second),
    ]
  ) / float(total)
  terms = np.where(
    cells > 0,
    cells * np.log(np.maximum(cells, 1) / np.maximum(chance, 1e-9)),
    0,
  )
  ratio = 2.0 * terms.sum(0) * np.where(cells[0] >= chance[0], 1.0, -1.0)
  return np.append(ratio, 0).astype(np.float32)


def _sentences_with(text: Ragged, size: int) -> np.ndarray:
  """How many lines have each word, int64 `[size]`."""
  row = np.repeat(np.arange(len(text)), text.lengths)
  keys = np.unique(pair_keys(text.flat, row))
  return np.bincount(keys >> 32, minlength=size).astype(np.int64)
