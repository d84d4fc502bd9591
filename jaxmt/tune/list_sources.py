"""Candidates of a tuning loop beside the k best of the decoder.

    sampled   derivations drawn from the forest, each with its probability under
              the model: Monte-Carlo lists
    oracle    the derivation of the forest with the best linear BLEU
    forced    the best derivations that yield a reference, where there are any:
              the search may have lost them
    hope      the best derivation of a search for model score and BLEU+1
    fear      that of a search for model score and low BLEU+1 (Chiang 2012)

(survey, sections 4 and 6). Lists still begin with the best translation the
decoder has found, since a loop is judged by it.
"""

import dataclasses
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode import decoding, portable_forest, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode.chart import augmentations
from jaxmt.decode.chart.accumulators import Augmentation
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.forced import forced
from jaxmt.decode.model import Model, Source
from jaxmt.errors import InputError
from jaxmt.hypergraph import DerivationLists, EdgeStrings, Forest
from jaxmt.text.ragged import row_offsets
from jaxmt.tune.forests import forest_ngrams
from jaxmt.tune.forests.forest_pool import ForestPool

KBEST = "kbest"
SAMPLED = "sampled"
ORACLE = "oracle"
FORCED = "forced"
HOPE = "hope"
FEAR = "fear"
SOURCES = (KBEST, SAMPLED, ORACLE, FORCED, HOPE, FEAR)
_AUGMENTED = {HOPE: augmentations.hope, FEAR: augmentations.fear}

# Of linear BLEU: unigram precision, and the ratio of each order's precision to
# that of the order before (Tromble et al. 2008).
_PRECISION, _RATIO = 0.85, 0.72
# Weight of its cost beside the model's score, which decides between equals.
_COST = 1e4
_DENSITY = 50.0  # edges for each source word that an oracle is looked for in
_FORCED = 5  # derivations of a reference


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sources:
  """Where candidates come from.

  Attributes:
    names: some of `SOURCES`.
    references: for each sentence its references; for all but "kbest" and
      "sampled".
    seed: of what is drawn.
  """

  names: tuple[str, ...] = (KBEST,)
  references: Sequence[Sequence[str | None]] = ()
  seed: int = 0


def check(names: Sequence[str]) -> None:
  """Raises InputError for an unknown source, or none."""
  for name in names:
    if name not in SOURCES:
      known = ", ".join(SOURCES)
      raise InputError(f"candidates '{name}' are none of: {known}")
  if not names:
    raise InputError(f"no candidates: name some of {', '.join(SOURCES)}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Listed:
  """Derivations of a part's sentences.

  Attributes:
    source: the sentences of the forest.
    forest: what the derivations are of.
    derived: the derivations.
    owner: the sentence of the part that each of the forest's sentences is,
      int64.
  """

  source: Source
  forest: Forest
  derived: DerivationLists
  owner: np.ndarray


def further(
  sources: Sources,
  model: Model,
  source: Source,
  forest: Forest,
  numbers: np.ndarray,
  *,
  size: int,
  config: DecodeConfig,
) -> list[Listed]:
  """Returns the derivations of all sources but the k best.

  Args:
    sources: which.
    model: rules and weights.
    source: B sentences.
    forest: their forests.
    numbers: which of `sources.references` they are, int `[B]`.
    size: samples of a sentence.
    config: how hope and fear are searched.
  """
  everything = np.arange(len(source))
  out = []
  if SAMPLED in sources.names:
    seed = _seed(sources.seed, model.weights, numbers)
    derived = sampled(model, source, forest, size=size, seed=seed)
    out.append(
      Listed(source=source, forest=forest, derived=derived, owner=everything)
    )
  if {*sources.names} <= {KBEST, SAMPLED}:
    return out
  lines = [
    [line for line in sources.references[n] if line is not None]
    for n in numbers.tolist()
  ]
  if ORACLE in sources.names:
    small, derived = oracles(model, source, forest, lines)
    out.append(
      Listed(source=source, forest=small, derived=derived, owner=everything)
    )
  if FORCED in sources.names:
    out.append(_forced(model, source, lines))
  for name in sources.names:
    if name in _AUGMENTED:
      hook = _AUGMENTED[name]()
      out += _augmented(model, source, lines, hook, config)
  return out


def _seed(seed: int, weights: Mapping[str, float], numbers) -> int:
  """A seed for these weights and sentences: rounds draw differently."""
  known = repr(sorted(weights.items())).encode() + numbers.tobytes()
  state = np.random.SeedSequence([seed, zlib.crc32(known)])
  return int(state.generate_state(1, np.uint64)[0])


def sampled(
  model: Model, source: Source, forest: Forest, *, size: int, seed: int
) -> DerivationLists:
  """Draws derivations with their probability under the model."""
  return hypergraph.sample(
    forest,
    size=size,
    seed=seed,
    strings=translation_forest.edge_strings(model, source, forest),
  )


def oracles(
  model: Model,
  source: Source,
  forest: Forest,
  references: Sequence[Sequence[str]],
) -> tuple[Forest, DerivationLists]:
  """Finds the derivation of each forest with the best linear BLEU.

  Its cost is the number of words less the sum of all matching n-grams, those
  of order n times 1 / (4 p r^(n - 1)). Matches are not clipped.

  Args:
    model: rules.
    source: B sentences.
    forest: their forests.
    references: of each sentence.

  Returns:
    A part of the forests, and the derivations in it.
  """
  edges = np.ceil(_DENSITY * source.ids.lengths).astype(np.int64)
  small, _ = hypergraph.prune(forest, edges=edges)
  spelled = dataclasses.replace(
    portable_forest.spell(model, source, small),
    sentence=np.arange(len(source)),
  )
  split = forest_ngrams.split(
    ForestPool(spelled=spelled, references=references)
  )
  order = forest_ngrams.ORDER
  gains = 1 / (order * _PRECISION * _RATIO ** np.arange(order))
  costs = split.statistics[:, order] - split.statistics[:, :order] @ gains
  scores = small.score.astype(np.float64)
  best = hypergraph.viterbi(split.forest, scores[split.edge] - _COST * costs)
  filled = split.forest.roots >= 0
  strings = translation_forest.edge_strings(model, source, small)
  chosen, words = hypergraph.best_derivations(
    split.forest,
    best,
    best.back[split.forest.roots[filled]],
    strings=EdgeStrings(
      row=strings.row[split.edge], symbols=strings.symbols, extra=strings.extra
    ),
  )
  chosen = dataclasses.replace(
    chosen, flat=split.edge[chosen.flat].astype(np.int32)
  )
  return small, DerivationLists(
    offsets=row_offsets(filled),
    score=hypergraph.sum_values(chosen, scores),
    edges=chosen,
    words=words,
  )


def _forced(
  model: Model, source: Source, references: Sequence[Sequence[str]]
) -> Listed:
  """The best derivations of each reference; none where it is not reached."""
  owner, several, lines = _by_reference(source, references)
  reached = forced.force(model, several, lines)
  derived = translation_forest.kbest(
    model, several, reached.forest, size=_FORCED
  )
  return Listed(
    source=several, forest=reached.forest, derived=derived, owner=owner
  )


def _by_reference(
  source: Source, references: Sequence[Sequence[str]]
) -> tuple[np.ndarray, Source, list[str]]:
  """Each sentence as often as it has references, and these."""
  owner = np.repeat(np.arange(len(references)), [len(r) for r in references])
  lines = [line for row in references for line in row]
  return owner, models.select_source(source, owner), lines


def _augmented(
  model: Model,
  source: Source,
  references: Sequence[Sequence[str]],
  hook: Augmentation,
  config: DecodeConfig,
) -> list[Listed]:
  """The best derivation by augmented score for each reference."""
  owner, several, lines = _by_reference(source, references)
  search = dataclasses.replace(config.search, forest=True, backend="auto")
  config = dataclasses.replace(config, search=search, threads=1)
  out = []
  for parts in decoding.decode(
    model, several, config=config, augmentation=hook, references=lines
  ):
    for part in parts:
      forest = decoding.forest(model, part)
      best = translation_forest.best_augmented(model, part.source, forest)
      out.append(
        Listed(
          source=part.source,
          forest=forest,
          derived=best,
          owner=owner[part.rows],
        )
      )
  return out
