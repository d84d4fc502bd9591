"""Phrase lattices as OpenFst text and as HTK SLF, a file for each sentence.

Both have one word an arc: a phrase of several words becomes a path through
states of its own, whose first arc has the score of the phrase.

*OpenFst* (`N.fst.gz`): lines `source target input output cost` and the final
state; costs are minus the scores, so that the shortest path of the tropical
semiring is the best translation. `symbols.txt` numbers the words. To compile:

    fstcompile --isymbols=symbols.txt --osymbols=symbols.txt

*SLF* (`N.slf.gz`): HTK's standard lattice format. `l` is ln p of the language
model, which `lmscale` multiplies; `a` is the rest of the model score. `!NULL`
stands for no word.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np

from jaxmt.decode import portable_forest
from jaxmt.decode.portable_forest import SpelledForest
from jaxmt.errors import InputError
from jaxmt.features.weights import DIALECTS
from jaxmt.text import files
from jaxmt.text.ragged import row_offsets

FORMATS = ("openfst", "slf")

_EPSILON, _NULL = "<eps>", "!NULL"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LatticeArcs:
  """A arcs of a lattice; state 0 is the first, `final` the last.

  Attributes:
    source: state each leaves, int64 `[A]`.
    target: state each enters, int64 `[A]`.
    word: number of its word, -1 for none, int64 `[A]`.
    score: what it adds to the model score, float64 `[A]`.
    lm: what it adds to ln p, float64 `[A]`.
    final: the final state.
    states: number of states.
  """

  source: np.ndarray
  target: np.ndarray
  word: np.ndarray
  score: np.ndarray
  lm: np.ndarray
  final: int
  states: int


def word_arcs(one: SpelledForest) -> LatticeArcs:
  """Returns the lattice of one sentence, one word an arc, in order of states.

  Raises:
    InputError: if an edge has two tails, or says something before its tail.
  """
  forest = one.forest
  if (forest.tails[:, 1:] >= 0).any():
    raise InputError("only phrase lattices are written as lattices")
  symbols, offsets = one.target.flat, one.target.offsets
  marked = np.zeros(forest.num_edges, np.int64)
  filled = np.flatnonzero(np.diff(offsets) > 0)
  marked[filled] = symbols[offsets[filled]] < 0
  if int((symbols < 0).sum()) != int(marked.sum()):
    raise InputError("only phrase lattices are written as lattices")
  words = np.diff(offsets) - marked
  counts = np.maximum(words, 1)
  first = row_offsets(counts)
  edge = np.repeat(np.arange(forest.num_edges), counts)
  place = np.arange(first[-1]) - first[edge]
  begins, ends = place == 0, place == counts[edge] - 1
  # States: the start, the nodes, then those within phrases.
  inner = row_offsets(counts - 1)
  within = 1 + forest.num_nodes + inner[edge] + place
  tail = forest.tails[:, 0].astype(np.int64) + 1
  source = np.where(begins, tail[edge], within - 1)
  target = np.where(ends, forest.heads[edge] + 1, within)
  at = np.minimum(offsets[edge] + marked[edge] + place, len(symbols) - 1)
  order = np.argsort(source, kind="stable")
  spread = lambda values: np.where(begins, values[edge], 0.0)[order]
  return LatticeArcs(
    source=source[order],
    target=target[order],
    word=np.where(words[edge] > 0, symbols[at], -1)[order],
    score=spread(forest.score.astype(np.float64)),
    lm=spread(forest.edges.lm.astype(np.float64)),
    final=forest.num_nodes,
    states=1 + forest.num_nodes + int(inner[-1]),
  )


def openfst_lines(arcs: LatticeArcs, words: tuple[str, ...]) -> list[str]:
  """Returns the lines of OpenFst's text format."""
  names = [_EPSILON if word < 0 else words[word] for word in arcs.word.tolist()]
  lines = [
    f"{one}\t{two}\t{name}\t{name}\t{-score:.8g}"
    for one, two, name, score in zip(
      arcs.source.tolist(),
      arcs.target.tolist(),
      names,
      arcs.score.tolist(),
      strict=True,
    )
  ]
  return [*lines, f"{arcs.final}\t0"]


def slf_lines(
  arcs: LatticeArcs, words: tuple[str, ...], *, name: str, lm_weight: float
) -> list[str]:
  """Returns the lines of HTK's standard lattice format."""
  rest = arcs.score - lm_weight * arcs.lm
  columns = (arcs.source, arcs.target, arcs.word, rest, arcs.lm)
  links = zip(*(column.tolist() for column in columns), strict=True)
  return [
    "VERSION=1.0",
    f"UTTERANCE={name}",
    f"lmscale={lm_weight:.8g} wdpenalty=0",
    f"N={arcs.states} L={len(arcs.source)}",
    *(f"I={state}" for state in range(arcs.states)),
    *(
      f"J={number} S={one} E={two} W={_NULL if word < 0 else words[word]}"
      f" a={acoustic:.8g} l={lm:.8g}"
      for number, (one, two, word, acoustic, lm) in enumerate(links)
    ),
  ]


def write(path: str, forests: Iterable[SpelledForest], *, format: str) -> None:
  """Writes lattices into a folder.

  Args:
    path: the folder.
    forests: phrase lattices.
    format: one of `FORMATS`.

  Raises:
    InputError: if they are no phrase lattices, or cannot be written.
  """
  folder = path.rstrip("/")
  files.make_folder(folder)
  numbers: dict[str, int] = {_EPSILON: 0}
  ending = "fst" if format == "openfst" else format
  for part in forests:
    for word in part.words:
      numbers.setdefault(word, len(numbers))
    for row in range(len(part)):
      one = portable_forest.select(part, np.array([row]))
      number = int(one.sentence[0])
      if not one.forest.num_edges:
        continue
      arcs = word_arcs(one)
      if format == "openfst":
        lines = openfst_lines(arcs, one.words)
      else:
        lines = slf_lines(
          arcs, one.words, name=str(number), lm_weight=_lm_weight(one)
        )
      files.write_lines(f"{folder}/{number}.{ending}.gz", lines)
  if format == "openfst":
    lines = [f"{word}\t{number}" for word, number in numbers.items()]
    files.write_lines(f"{folder}/symbols.txt", lines)


def _lm_weight(one: SpelledForest) -> float:
  """Weight of ln p, whatever the language model feature is called."""
  for units in DIALECTS.values():
    if units.lm in one.weights:
      return one.weights[units.lm] * units.lm_scale
  return 0.0
