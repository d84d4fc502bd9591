"""Moses' hypergraph text, as its kbmira reads it.

    # target ||| features ||| source-covered
    3 4                                     numbers of nodes and edges
    # node 0                                a comment
    1                                       edges of this node
    house  ||| LM0=-1.2 Phrase_0=-0.5  ||| 1
    2
    the [0]  ||| LM0=-0.3  ||| 2
    that [0]  ||| LM0=-0.9  ||| 2
    1
    <s> [1] </s>  ||| LM0=-0.7  ||| 2

Nodes stand tails first, the root is the last. `[n]` is the n-th node; the last
number counts the source words covered. Features that are not there are 0.
`<s>` and `</s>`, which scorers want to see, are not words of ours: they are
written at the root and left out when reading. A word that looks like a node or
like the bars is written with the characters Moses' tokeniser uses for that
(`&#91;` and so on); reading leaves words as they are.

A folder has one such file for each sentence and the weights as `name value`.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt.decode import portable_forest
from jaxmt.decode.portable_forest import SpelledForest
from jaxmt.decode.translation_forest import RuleUses, Spans
from jaxmt.errors import InputError
from jaxmt.hypergraph.forest import Forest
from jaxmt.text.ragged import Ragged

_HEAD = "# target ||| features ||| source-covered"
_ENDS = ("<s>", "</s>")


def format_lines(one: SpelledForest) -> list[str]:
  """Returns the lines of one sentence's file.

  Words and names must not hold spaces, as those of tokenised text do not.
  """
  forest = one.forest
  nodes, edges = forest.num_nodes, forest.num_edges
  lines = [_HEAD, f"{nodes} {edges}"]
  if not nodes:
    return lines
  sides = _spelled_sides(one)
  values = _spelled_values(one)
  covered = (forest.nodes.end - forest.nodes.begin)[forest.heads].tolist()
  cuts = forest.edge_offsets.tolist()
  rows = [
    f"{side}  ||| {value}  ||| {count}"
    for side, value, count in zip(sides, values, covered, strict=True)
  ]
  for node in range(nodes):
    low, high = cuts[node], cuts[node + 1]
    lines += [f"# node {node}", str(high - low), *rows[low:high]]
  return lines


def _spelled_sides(one: SpelledForest) -> list[str]:
  """Target sides: words and `[node]`."""
  flat, cuts = one.target.flat, one.target.offsets
  row = np.repeat(np.arange(len(one.target)), one.target.lengths)
  tails = one.forest.tails
  if tails.shape[1]:
    place = np.where(flat < 0, -1 - flat, 0)
    tail = tails[row, place].tolist()
  else:
    tail = [-1] * len(flat)
  words = [_plain(word) for word in one.words]
  symbols = [
    words[symbol] if symbol >= 0 else f"[{node}]"
    for symbol, node in zip(flat.tolist(), tail, strict=True)
  ]
  ends = cuts.tolist()
  sides = [
    " ".join(symbols[low:high]) for low, high in itertools.pairwise(ends)
  ]
  for edge in range(one.forest.edge_offsets[-2], len(sides)):
    sides[edge] = " ".join([_ENDS[0], sides[edge], _ENDS[1]])
  return sides


def _plain(word: str) -> str:
  """The word, spelled so that it is read as one."""
  if word[:1] == "[" and word[-1:] == "]":
    return f"&#91;{word[1:-1]}&#93;"
  return word.replace("|", "&#124;") if "|||" in word else word


def _spelled_values(one: SpelledForest) -> list[str]:
  """Features that are not 0 as `name=value`, by edge."""
  edge, column = np.nonzero(one.features)
  known, place = np.unique(one.features[edge, column], return_inverse=True)
  numbers = [f"{value:.9g}" for value in known.tolist()]
  cells = [
    f"{one.names[name]}={numbers[number]}"
    for name, number in zip(column.tolist(), place.tolist(), strict=True)
  ]
  cuts = np.searchsorted(edge, np.arange(len(one.features) + 1)).tolist()
  return [" ".join(cells[low:high]) for low, high in itertools.pairwise(cuts)]


@dataclasses.dataclass(kw_only=True)
class _OpenSentence:
  """What was read so far of one sentence."""

  flat: list[int]
  lengths: list[int]
  tails: list[list[int]]
  sizes: list[int]
  covered: list[int]
  row: list[int]
  column: list[int]
  value: list[float]
  words: dict[str, int]


def parse_lines(
  lines: Sequence[str],
  *,
  sentence: int,
  index: dict[str, int],
  path: str | None = None,
) -> SpelledForest:
  """Reads one sentence.

  Args:
    lines: of the file.
    sentence: its number.
    index: number of each feature; new ones are added.
    path: for error messages.

  Returns:
    A forest with as many features as there are by now, and no scores: see
    `scored`.

  Raises:
    InputError: naming file and line.
  """
  if not lines or lines[0].rstrip() != _HEAD:
    raise InputError(f"the first line is not '{_HEAD}'", path=path, line=1)
  told = [
    (number, text)
    for number, text in enumerate(lines[1:], start=2)
    if not text.startswith("#")
  ]
  while told and not told[-1][1].strip():
    told.pop()
  out = _OpenSentence(
    flat=[],
    lengths=[],
    tails=[],
    sizes=[],
    covered=[],
    row=[],
    column=[],
    value=[],
    words={},
  )
  number = 1
  try:
    rows = iter(told)
    number, text = next(rows)
    nodes, edges = map(_count, text.split())
    for node in range(nodes):
      number, text = next(rows)
      out.sizes.append(_count(text))
      for edge in range(out.sizes[-1]):
        number, text = next(rows)
        covered = _read_edge(text, node, index, out)
        if edge == 0:
          out.covered.append(covered)
      if not out.sizes[-1]:
        out.covered.append(0)
    number = told[-1][0]
    if len(out.tails) != edges:
      raise ValueError(f"{len(out.tails)} edges, not {edges}")
    if next(rows, None) is not None:
      raise ValueError("more lines than nodes and edges")
  except StopIteration as error:
    raise InputError("the file ends too early", path=path) from error
  except ValueError as error:
    cause = f"bad hypergraph: {error}"
    raise InputError(cause, path=path, line=number) from error
  return _to_forest(out, sentence, len(index))


def _read_edge(text: str, node: int, index: dict[str, int], out: _OpenSentence):
  """Reads an edge; returns the number of source words covered."""
  fields = text.split(" ||| ")
  if len(fields) != 3:
    raise ValueError(f"{len(fields)} fields, not 3")
  tails: list[int] = []
  before = len(out.flat)
  for symbol in fields[0].split():
    if symbol[0] == "[" and symbol[-1] == "]" and symbol[1:-1].isdecimal():
      tail = int(symbol[1:-1])
      if tail >= node:
        raise ValueError(f"tail {symbol} does not stand before node {node}")
      out.flat.append(-1 - len(tails))
      tails.append(tail)
    elif symbol not in _ENDS:
      out.flat.append(out.words.setdefault(symbol, len(out.words)))
  edge = len(out.tails)
  out.lengths.append(len(out.flat) - before)
  out.tails.append(tails)
  for cell in fields[1].split():
    name, equals, value = cell.rpartition("=")
    if not equals:
      raise ValueError(f"feature '{cell}' has no value")
    number = float(value)
    if not np.isfinite(number):
      raise ValueError(f"feature '{cell}' is not finite")
    out.row.append(edge)
    out.column.append(index.setdefault(name, len(index)))
    out.value.append(number)
  return _count(fields[2])


def _count(text: str) -> int:
  """A number of things, small enough for int32."""
  value = int(text)
  if not 0 <= value < 2**31:
    raise ValueError(f"{value} is out of range")
  return value


def _to_forest(out: _OpenSentence, sentence: int, width: int) -> SpelledForest:
  nodes, edges = len(out.sizes), len(out.tails)
  arity = max([len(row) for row in out.tails], default=0)
  features = np.zeros((edges, width))
  np.add.at(features, (out.row, out.column), out.value)
  zeros = lambda size, kind: np.zeros(size, kind)
  return SpelledForest(
    forest=Forest(
      node_offsets=np.array([0, nodes], np.int64),
      edge_offsets=np.cumsum([0, *out.sizes], dtype=np.int64),
      tails=np.array(
        [row + [-1] * (arity - len(row)) for row in out.tails], np.int32
      ).reshape(edges, arity),
      score=zeros(edges, np.float32),
      nodes=Spans(
        begin=zeros(nodes, np.int32),
        end=np.array(out.covered, np.int32),
        label=zeros(nodes, np.int32),
        rank=zeros(nodes, np.int32),
      ),
      edges=RuleUses(
        rule=zeros(edges, np.int32),
        lm=zeros(edges, np.float32),
        matched=zeros(edges, np.int32),
        mismatched=zeros(edges, np.int32),
      ),
    ),
    sentence=np.array([sentence], np.int64),
    target=Ragged(
      flat=np.array(out.flat, np.int32),
      offsets=np.cumsum([0, *out.lengths], dtype=np.int64),
    ),
    words=tuple(out.words),
    labels=("X",),
    features=features,
    names=(),
    weights={},
  )


def scored(
  parts: Sequence[SpelledForest],
  names: tuple[str, ...],
  weights: Mapping[str, float],
) -> SpelledForest:
  """Returns what `parse_lines` read as one, with scores.

  Args:
    parts: at least one sentence.
    names: all features.
    weights: by name; 0 if missing.
  """
  widened = [
    dataclasses.replace(
      part,
      names=names,
      weights=dict(weights),
      features=np.pad(
        part.features, ((0, 0), (0, len(names) - part.features.shape[1]))
      ),
    )
    for part in parts
  ]
  joined = portable_forest.concatenate(widened)
  vector = np.array([weights.get(name, 0.0) for name in names])
  score = (joined.features @ vector).astype(np.float32)
  return dataclasses.replace(
    joined, forest=dataclasses.replace(joined.forest, score=score)
  )
