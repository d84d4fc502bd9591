"""Views: what the page's components draw, as plain data.

A view knows nothing of models or searches. Whatever makes one of these records
can be drawn: in the report, in the live page and in a notebook. `values()` is
what the component of the same name in `static/` takes, short names and lists
instead of records, since a report holds thousands of them.

| view | component |
|---|---|
| `DerivationView`, `RuleView` | `derivation`: tree, spans, links, scores |
| `ChartView` | `chart`: triangle of cells, beams |
| `KBestView` | `kbest`: list with sliders for the weights |
| `AlignmentView` | `alignment`: matrix of word links |
| `LatticeView` | `lattice`: words or phrases between states |
| `DependencyView` | `dependency`: arcs over words |
| `ParseView` | `parse`: a constituency tree |
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

Pairs = Sequence[tuple[int, float]]  # number of a feature, value


def number(value: float, digits: int = 4) -> float | int:
  """Returns a rounded value, whole ones as integers: they are shorter."""
  value = round(float(value), digits)
  return int(value) if value == int(value) else value


def pairs(values: Pairs) -> list[list[float]]:
  """Returns pairs of feature and value as JSON has them."""
  return [[int(name), number(value)] for name, value in values]


class _Drawn:
  """A view that draws itself in a notebook, alone."""

  component: ClassVar[str]

  def values(self) -> Any:
    """Returns what the component takes."""
    raise NotImplementedError

  def _repr_html_(self) -> str:
    from jaxmt.report import html  # which imports this module

    return html.component(self.component, self.values(), html.text(self))


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleView:
  """A rule.

  Attributes:
    left: left-hand side.
    source: words, and the number of the child at each site.
    target: likewise.
    sites: labels of the sites.
    kind: "hiero", "tree", "glue" or "copy".
    count: how often it was seen in training.
    systems: its own features under each of the systems that are compared.
    uses: for each system (how often what its probabilities are estimated of
      uses the rule, how often any rule of this source side), or None.
  """

  left: str
  source: Sequence[str | int]
  target: Sequence[str | int]
  sites: Sequence[str] = ()
  kind: str = "hiero"
  count: float = 0.0
  systems: Sequence[Pairs] = ()
  uses: Sequence[tuple[float, float] | None] = ()

  def values(self) -> dict[str, Any]:
    """Returns what the component takes."""
    out: dict[str, Any] = {
      "l": self.left,
      "s": list(self.source),
      "t": list(self.target),
      "k": self.kind,
      "v": [pairs(system) for system in self.systems],
    }
    if self.sites:
      out["a"] = list(self.sites)
    if self.count:
      out["c"] = number(self.count, 2)
    if any(self.uses):
      out["u"] = [uses and [number(n, 2) for n in uses] for uses in self.uses]
    return out


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeView:
  """A rule application of a derivation.

  Attributes:
    rule: which of the rules shown with the derivation.
    begin: first source position.
    end: one past the last.
    parent: the node that it is a child of, -1 for the root.
    added: what it adds to features besides the rule's own.
  """

  rule: int
  begin: int
  end: int
  parent: int
  added: Pairs = ()

  def values(self) -> list[Any]:
    """Returns what the component takes."""
    place = [self.rule, self.begin, self.end, self.parent]
    return [*place, pairs(self.added)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DerivationView:
  """A derivation; its nodes in preorder, children in source order.

  Attributes:
    nodes: the nodes; several roots if the line was cut into pieces.
    goal: what the end of the sentence adds to features.
    scores: its model score under each system.
    links: word links, (source position, target position).
  """

  nodes: Sequence[NodeView]
  goal: Pairs = ()
  scores: Sequence[float] = ()
  links: Sequence[tuple[int, int]] = ()

  def values(self) -> dict[str, Any]:
    """Returns what the component takes."""
    return {
      "n": [node.values() for node in self.nodes],
      "g": pairs(self.goal),
      "z": [number(score) for score in self.scores],
      "w": [[int(one), int(two)] for one, two in self.links],
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellView:
  """A cell of a chart.

  Attributes:
    begin: first source position.
    end: one past the last.
    glue: whether it holds what glue rules join.
    fill: hypotheses in its beam.
    scored: candidates that were scored for it.
    beam: (text, score) of its best hypotheses, best first.
    pruned: (text, score) of the best candidates that fell out.
  """

  begin: int
  end: int
  glue: bool
  fill: int
  scored: int
  beam: Sequence[tuple[str, float]] = ()
  pruned: Sequence[tuple[str, float]] = ()

  def values(self) -> list[Any]:
    """Returns what the component takes."""
    shown = lambda rows: [[text, number(score, 3)] for text, score in rows]
    head = [self.begin, self.end, int(self.glue), self.fill, self.scored]
    return [*head, shown(self.beam), shown(self.pruned)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartView:
  """Where a part of a derivation stands in a search.

  Attributes:
    begin: first source position.
    end: one past the last.
    glue: whether glue made it.
    rank: 1 + the hypotheses of its cell that score better.
    competing: how many hypotheses its cell has, 0 without a cell.
    gap: score of the cell's best less its own; None without a cell.
    kept: whether the beam can have kept it.
  """

  begin: int
  end: int
  glue: bool
  rank: int
  competing: int
  gap: float | None
  kept: bool

  def values(self) -> list[Any]:
    """Returns what the component takes."""
    gap = None if self.gap is None else number(self.gap, 3)
    place = [self.begin, self.end, int(self.glue)]
    return [*place, self.rank, self.competing, gap, int(self.kept)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChartView:
  """The chart of a sentence, or the stacks of a search from left to right.

  Attributes:
    beam: hypotheses that a cell can keep.
    cells: its cells; of stacks, (0, words covered, glue).
    stacks: whether the cells are stacks.
  """

  beam: int
  cells: Sequence[CellView]
  stacks: bool = False

  def values(self) -> dict[str, Any]:
    """Returns what the component takes."""
    out = {"k": self.beam, "c": [cell.values() for cell in self.cells]}
    return out | {"stacks": 1} if self.stacks else out


@dataclasses.dataclass(frozen=True, kw_only=True)
class KBestView:
  """A k-best list, best first.

  Attributes:
    candidates: (text, score, features) of each.
    costs: sentence-level error of each, or None.
  """

  candidates: Sequence[tuple[str, float, Pairs]]
  costs: Sequence[float] | None = None

  def values(self) -> list[Any]:
    """Returns what the component takes."""
    costs = self.costs or [None] * len(self.candidates)
    return [
      [
        text,
        number(score),
        pairs(features),
        *([] if c is None else [number(c)]),
      ]
      for (text, score, features), c in zip(self.candidates, costs, strict=True)
    ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignmentView(_Drawn):
  """Word links, one or several sets of them.

  Attributes:
    source: source words.
    target: target words.
    layers: (name, links) of each set; links are (source, target) positions.
  """

  component = "alignment"
  source: Sequence[str]
  target: Sequence[str]
  layers: Sequence[tuple[str, Sequence[tuple[int, int]]]]

  def values(self) -> dict[str, Any]:
    """Returns what the component takes."""
    return {
      "source": list(self.source),
      "target": list(self.target),
      "layers": [
        [name, [[int(one), int(two)] for one, two in links]]
        for name, links in self.layers
      ],
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class LatticeView(_Drawn):
  """A lattice: phrase options of a sentence, stacks of a search, word graphs.

  Attributes:
    states: name of each state, in an order in which edges lead forward.
    edges: (from, to, text, score) of each edge.
    best: numbers of the edges of the best path.
    words: source words between the states; empty for none.
    hidden: how many edges are left out.
  """

  component = "lattice"
  states: Sequence[str]
  edges: Sequence[tuple[int, int, str, float]]
  best: Sequence[int] = ()
  words: Sequence[str] = ()
  hidden: int = 0

  def __post_init__(self):
    for one, two, *_ in self.edges:
      if not 0 <= one < two < len(self.states):
        raise ValueError(f"edge from {one} to {two} does not lead forward")

  def values(self) -> dict[str, Any]:
    """Returns what the component takes."""
    return {
      "states": list(self.states),
      "edges": [[a, b, text, number(z)] for a, b, text, z in self.edges],
      "best": list(self.best),
      "words": list(self.words),
      "hidden": self.hidden,
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class DependencyView(_Drawn):
  """A dependency tree, or several over the same words.

  Attributes:
    words: the words.
    tags: their tags; empty for none.
    trees: (name, heads, labels) of each tree; a head is a position, -1 for the
      root; labels may be empty.
  """

  component = "dependency"
  words: Sequence[str]
  trees: Sequence[tuple[str, Sequence[int], Sequence[str]]]
  tags: Sequence[str] = ()

  def __post_init__(self):
    for name, heads, _ in self.trees:
      if len(heads) != len(self.words):
        raise ValueError(f"{name}: {len(heads)} heads, {len(self.words)} words")
      if any(not -1 <= head < len(self.words) for head in heads):
        raise ValueError(f"{name}: a head is no position")

  def values(self) -> dict[str, Any]:
    """Returns what the component takes."""
    return {
      "words": list(self.words),
      "tags": list(self.tags),
      "trees": [
        [name, [int(head) for head in heads], list(labels)]
        for name, heads, labels in self.trees
      ],
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParseView(_Drawn):
  """A constituency tree over words.

  Attributes:
    words: the words.
    nodes: (label, begin, end, parent) in preorder, parent -1 for the root.
  """

  component = "parse"
  words: Sequence[str]
  nodes: Sequence[tuple[str, int, int, int]]

  def values(self) -> dict[str, Any]:
    """Returns what the component takes."""
    return {"words": list(self.words), "nodes": [list(n) for n in self.nodes]}
