"""Learns the similarity of phrases from what forced decoding uses.

The phrase pairs are the rules in the best derivations that yield the
references, each once, whatever its count (Zhang et al. 2014, section 4.2). For
the features see `features.phrase_similarity`.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxmt.decode import model as models
from jaxmt.decode import translation_forest
from jaxmt.decode.forced import forced as force
from jaxmt.decode.model import Model
from jaxmt.errors import InputError
from jaxmt.features import phrase_similarity
from jaxmt.features.phrase_similarity import SimilarityModel
from jaxmt.grammar.table import Kind
from jaxmt.models import phrase_pair_training
from jaxmt.models.fitting import EpochStore
from jaxmt.models.phrase_pair_training import PhrasePairOptions, Step
from jaxmt.models.word_vectors import WordVectors
from jaxmt.text import ragged, vocabulary
from jaxmt.text.vocabulary import Vocabulary

_BLOCK = 500  # sentences whose forests are in memory at a time


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForcedUse:
  """What forced decoding of a bitext used.

  Attributes:
    counts: how often each rule stands in a best derivation, int64 `[R]`.
    reached: sentence pairs that have a derivation.
  """

  counts: np.ndarray
  reached: int


def used_rules(
  model: Model,
  lines: Sequence[str],
  references: Sequence[str],
  *,
  threads: int = 1,
  on_done: Callable[[int], object] | None = None,
) -> ForcedUse:
  """Counts the rules in the best derivation of each sentence pair.

  Args:
    model: R rules and weights.
    lines: source sentences.
    references: one translation of each.
    threads: sentences in work at a time.
    on_done: called with numbers of sentences as they are done.
  """
  size = len(model.table)
  counts, reached = np.zeros(size, np.int64), 0
  rules = force.make_rules(model)
  config = force.ForceConfig(threads=threads)
  for start in range(0, len(lines), _BLOCK):
    part = slice(start, start + _BLOCK)
    source = models.make_source(model, lines[part])
    forced = force.force(
      model,
      source,
      references[part],
      config=config,
      rules=rules,
      on_done=on_done,
    )
    best = translation_forest.kbest(model, source, forced.forest, size=1)
    used = forced.forest.edges.rule[best.edges.flat]
    counts += np.bincount(used[used < size], minlength=size)
    reached += int(forced.reached.sum())
  return ForcedUse(counts=counts, reached=reached)


def phrase_pairs(
  model: Model, counts: np.ndarray, *, longest: int = 7
) -> tuple[list[str], list[str]]:
  """Returns both sides of the phrase pairs that were used, each pair once.

  Args:
    model: R rules.
    counts: of the rules, `[R]`.
    longest: most symbols of a side.
  """
  table = model.table
  usable = (counts > 0) & ~np.isin(table.kind, [Kind.GLUE, Kind.PASS_THROUGH])
  for side in (table.source, table.target):
    usable &= (side.lengths > 0) & (side.lengths <= longest)
  lines = phrase_similarity.phrase_lines(table, np.flatnonzero(usable))
  pairs = dict.fromkeys(zip(*lines, strict=True))
  return [source for source, _ in pairs], [target for _, target in pairs]


def train(
  pairs: tuple[Sequence[str], Sequence[str]],
  options: PhrasePairOptions,
  *,
  min_count: int = 1,
  vectors: tuple[WordVectors | None, WordVectors | None] = (None, None),
  mesh: Mesh | None = None,
  store: EpochStore | None = None,
) -> Iterator[tuple[Step, SimilarityModel]]:
  """Yields each step of training with the model after it.

  Args:
    pairs: both sides of the phrase pairs.
    options: see `PhrasePairOptions`; given vectors of words set `size`.
    min_count: words of fewer pairs share a vector.
    vectors: of words, to begin with.
    mesh: devices, see `fitting.fit`.
    store: of epochs, see `fitting.fit`.

  Raises:
    InputError: for bad settings, or if there is no pair.
  """
  phrase_pair_training.check_options(options)
  words = [vocabulary.build([side], min_count=min_count) for side in pairs]
  sizes = {one.vectors.shape[1] for one in vectors if one is not None}
  if len(sizes) > 1:
    raise InputError(f"word vectors of {min(sizes)} and {max(sizes)} numbers")
  size = sizes.pop() if sizes else options.size
  options = dataclasses.replace(options, size=size)
  width = max((len(line.split()) for side in pairs for line in side), default=1)
  ids = [
    ragged.pad(vocabulary.encode(side_words, list(side)), width=width)[0]
    for side_words, side in zip(words, pairs, strict=True)
  ]
  start = [
    None if given is None else _start_vectors(given, side_words, options)
    for given, side_words in zip(vectors, words, strict=True)
  ]
  for step in phrase_pair_training.train(
    (ids[0].astype(np.int32), ids[1].astype(np.int32)),
    (len(words[0]), len(words[1])),
    options,
    vectors=(start[0], start[1]),
    mesh=mesh,
    store=store,
  ):
    yield (
      step,
      SimilarityModel(
        words=(words[0], words[1]),
        parameters=_on_host(step.parameters),
        unit=options.unit,
      ),
    )


def _on_host(parameters: Any) -> dict[str, Any]:
  return {
    side: {"params": {k: np.asarray(v) for k, v in tree["params"].items()}}
    for side, tree in parameters.items()
  }


def _start_vectors(
  given: WordVectors, words: Vocabulary, options: PhrasePairOptions
) -> np.ndarray:
  """Vectors of words, random ones of the same spread where none is given."""
  rng = np.random.default_rng([options.tune.seed, 19])
  spread = max(float(given.vectors.std()), 1e-3)
  out = rng.normal(0, spread, (len(words), given.vectors.shape[1]))
  place = {word: row for row, word in enumerate(given.words)}
  for row, word in enumerate(words.words):
    if word in place:
      out[row] = given.vectors[place[word]]
  return out.astype(np.float32)
