"""Judging weights on a development set, and the search of the word weight.

Learning finds output of about the references' length on the training text, but
shorter one on other text, where words are unknown (the paper, footnote 3). So
after each epoch the weight of the word feature is searched, by halving an
interval, until the output has `length_ratio` words per reference word; the
number of words rises with that weight. References of a sentence count by their
mean length (footnote 4).
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode import decoding, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode import translate as translate_lib
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.model import Model, Source
from jaxmt.features.feature_keys import KeyedWeights
from jaxmt.hypergraph.forest import Forest
from jaxmt.metrics import bleu
from jaxmt.metrics import encoded_text as metric_text
from jaxmt.text.ragged import Ragged

_HALVINGS = 14
_REACH = 8.0  # how far the word weight may move, in units of its words


@dataclasses.dataclass(frozen=True, kw_only=True)
class Development:
  """A development set.

  Attributes:
    model: rules that its sentences can use, with the learner's templates.
    lines: source sentences.
    references: of each.
    config: how to decode; with forests.
    spans: constituents, or None.
  """

  model: Model
  lines: Sequence[str]
  references: Sequence[Sequence[str]]
  config: DecodeConfig
  spans: Ragged | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judgement:
  """What weights are worth.

  Attributes:
    bleu: of the decoded development set, in percent, closest lengths.
    length_ratio: output words per reference word.
    word_weight: weight of the word feature that was judged.
    decodings: how often the set was decoded.
  """

  bleu: float
  length_ratio: float
  word_weight: float
  decodings: int


def halve(
  ratio: Callable[[float], float], *, low: float, high: float, goal: float
) -> float:
  """Returns where a rising function comes nearest to a goal.

  Args:
    ratio: rising.
    low: where to begin.
    high: where to end.
    goal: its value there.
  """
  for _ in range(_HALVINGS):
    middle = (low + high) / 2
    if ratio(middle) < goal:
      low = middle
    else:
      high = middle
  return (low + high) / 2


def judge(
  development: Development,
  weights: KeyedWeights,
  *,
  length_search: str,
  length_ratio: float,
) -> tuple[Judgement, KeyedWeights]:
  """Sets the word weight, decodes and scores.

  Args:
    development: the set.
    weights: to judge.
    length_search: "forest", "decode" or "none", see `LearnConfig`.
    length_ratio: to be reached.

  Returns:
    The judgement and the weights with the word weight that was judged.
  """
  units = development.model.units
  sign = 1.0 if units.per_word > 0 else -1.0
  start = weights.named.get(units.words, 0.0)
  expected = _mean_words(development.references)
  at = lambda value: dataclasses.replace(
    weights, named={**weights.named, units.words: value}
  )
  decodings = 1
  found = start
  if length_search == "forest":
    # A second time, since forests hold little that other weights would find.
    for _ in range(2):
      forests = decode_forests(development, at(found))
      decodings += 1
      moved = halve(
        lambda change, now=forests: _forest_words(now, change) / expected,
        low=-_REACH,
        high=_REACH,
        goal=length_ratio,
      )
      found += moved / units.per_word
  elif length_search == "decode":
    size = _REACH / abs(units.per_word)
    count = lambda change: (
      sum(
        len(line.split())
        for line in translate(development, at(start + sign * change))
      )
      / expected
    )
    decodings += _HALVINGS
    found = start + sign * halve(count, low=-size, high=size, goal=length_ratio)
  chosen = at(found)
  lines = translate(development, chosen)
  words = sum(len(line.split()) for line in lines)
  return (
    Judgement(
      bleu=round(100 * corpus_bleu(lines, development.references), 4),
      length_ratio=round(words / expected, 4),
      word_weight=float(found),
      decodings=decodings,
    ),
    chosen,
  )


def _mean_words(references: Sequence[Sequence[str]]) -> float:
  """Words of the references, the mean where a sentence has several."""
  sizes = [[len(line.split()) for line in row] for row in references]
  return max(sum(sum(row) / len(row) for row in sizes), 1.0)


def corpus_bleu(
  lines: Sequence[str], references: Sequence[Sequence[str]]
) -> float:
  """Returns the BLEU of lines as they are, in 0..1."""
  known = metric_text.encode_references(references)
  statistics = bleu.statistics(
    known.references, known.encode(lines), np.arange(len(lines))
  )
  return float(bleu.score(statistics.sum(0)))


def translate(
  development: Development, weights: Mapping[str, float]
) -> list[str]:
  """Decodes the set."""
  model = models.with_weights(development.model, weights)
  pieces = translate_lib.cut_lines(list(development.lines), longest=250)
  done = translate_lib.translate(
    model, pieces, config=development.config, spans=development.spans
  )
  whole = translate_lib.assemble(done, pieces, size=len(development.lines))
  return [one.text for one in whole]


def decode_forests(
  development: Development, weights: Mapping[str, float]
) -> list[tuple[Forest, np.ndarray]]:
  """Returns the forests of the set, each with the words its edges add."""
  model = models.with_weights(development.model, weights)
  source = models.make_source(model, development.lines, spans=development.spans)
  out = []
  for batch in decoding.decode(model, source, config=development.config):
    for part in batch:
      forest = decoding.forest(model, part)
      out.append((forest, _edge_words(model, part.source, forest)))
  return out


def _edge_words(model: Model, source: Source, forest: Forest) -> np.ndarray:
  """Target words of each edge, float64 `[E]`."""
  values = translation_forest.edge_features(model, source, forest)
  column = model.feature_names.index(model.units.words)
  return values[:, column] / model.units.per_word


def _forest_words(
  forests: Sequence[tuple[Forest, np.ndarray]], change: float
) -> float:
  """Words of the best derivations if every word scores `change` more."""
  total = 0.0
  for forest, words in forests:
    scores = forest.score.astype(np.float64) + change * words
    best = hypergraph.viterbi(forest, scores)
    edges = best.back[forest.roots[forest.roots >= 0]]
    paths, _ = hypergraph.best_derivations(forest, best, edges)
    total += float(words[paths.flat].sum())
  return total
