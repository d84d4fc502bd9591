"""Derivations as trees, and as text: bracketed trees and rule lists."""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source
from jaxmt.grammar import table as tables

FORMATS = ("tree", "rules", "nodes")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Node:
  """A rule application of a derivation, with those below it.

  Attributes:
    label: the rule's left-hand side.
    begin: first source position.
    end: one past the last.
    source: the rule's source side; `X0`, `X1` are places of children.
    target: its target side.
    children: the applications that fill the places, in source order.
    sides: both sides as words and numbers of children; empty if not known.
  """

  label: str
  begin: int
  end: int
  source: str
  target: str
  children: tuple["Node", ...] = ()
  sides: tuple[tuple[str | int, ...], ...] = ()

  def __str__(self) -> str:
    # Not recursive: glue makes derivations as deep as sentences are long.
    out: list[str] = []
    stack: list[Node | str] = [self]
    while stack:
      top = stack.pop()
      if isinstance(top, str):
        out.append(top)
        continue
      head = f"{top.label}[{top.begin}:{top.end}]"
      out.append(f"({head} {top.source} | {top.target}")
      stack.append(")")
      for child in reversed(top.children):
        stack += [child, " "]
    return "".join(out)


def write(
  model: Model,
  source: Source,
  derivations: Derivations,
  *,
  format: str,
  shift: np.ndarray | None = None,
) -> Sequence[Sequence[Any]]:
  """Writes each derivation in one of `FORMATS`: as lines, or as a `Node`."""
  if format == "nodes":
    roots = trees(model, source, derivations, shift=shift)
    return [[] if root is None else [root] for root in roots]
  if format == "tree":
    lines = tree_lines(model, source, derivations, shift=shift)
    return [[line] for line in lines]
  if format == "rules":
    return rule_lines(model, source, derivations, shift=shift)
  raise ValueError(f"derivations are written as one of {FORMATS}: '{format}'")


def tree_lines(
  model: Model,
  source: Source,
  derivations: Derivations,
  *,
  shift: np.ndarray | None = None,
) -> list[str]:
  """Writes derivations as brackets: `(X[0:2] das X0 | the X0 (X[1:2] ...))`.

  See `trees` for the arguments. An empty derivation is `()`.
  """
  roots = trees(model, source, derivations, shift=shift)
  return ["()" if root is None else str(root) for root in roots]


def trees(
  model: Model,
  source: Source,
  derivations: Derivations,
  *,
  shift: np.ndarray | None = None,
) -> list[Node | None]:
  """Returns the tree of each derivation, None for an empty one.

  Args:
    model: the rules.
    source: the sentences, for words that are copied.
    derivations: B of them.
    shift: what to add to the positions of each, int `[B]`.
  """
  sides, symbols = _rule_sides(model, source), _rule_symbols(model, source)
  out: list[Node | None] = []
  for row in range(len(derivations)):
    done: dict[int, Node] = {}
    base = 0 if shift is None else int(shift[row])
    first, last = derivations.offsets[row], derivations.offsets[row + 1]
    for node in range(last - 1, first - 1, -1):  # children come after parents
      rule = int(derivations.rule[node])
      label, one, two = sides(rule)
      done[node] = Node(
        label=label,
        begin=int(derivations.begin[node]) + base,
        end=int(derivations.end[node]) + base,
        source=one,
        target=two,
        children=tuple(
          done[child]
          for child in derivations.child[node].tolist()
          if child >= 0
        ),
        sides=symbols(rule),
      )
    out.append(done.get(first))
  return out


def rule_lines(
  model: Model,
  source: Source,
  derivations: Derivations,
  *,
  shift: np.ndarray | None = None,
) -> list[list[str]]:
  """Lists the rules of derivations in preorder, one a line.

      depth ||| X[0:2] ||| das X0 ||| the X0 ||| name=value ...

  The depth of the root is 0; features are the rule's own, without 0s.
  """
  sides = _rule_sides(model, source)
  out = []
  for row in range(len(derivations)):
    base = 0 if shift is None else int(shift[row])
    depth: dict[int, int] = {}
    lines = []
    for node in range(derivations.offsets[row], derivations.offsets[row + 1]):
      for child in derivations.child[node].tolist():
        depth[child] = depth.get(node, 0) + 1
      rule = int(derivations.rule[node])
      left, one, two = sides(rule)
      span = _span(derivations, node, base)
      fields = (
        str(depth.get(node, 0)),
        f"{left}[{span}]",
        one,
        two,
        _features(model, rule if rule < len(model.table) else model.copy_rule),
      )
      lines.append(" ||| ".join(fields))
    out.append(lines)
  return out


def _span(derivations: Derivations, node: int, base: int) -> str:
  return f"{derivations.begin[node] + base}:{derivations.end[node] + base}"


def _features(model: Model, rule: int) -> str:
  return " ".join(
    f"{name}={value:.6g}"
    for name, value in zip(
      model.table.feature_names,
      model.table.features[rule].tolist(),
      strict=True,
    )
    if value
  )


def _rule_sides(model: Model, source: Source):
  """A function from rules to (left-hand side, source side, target side)."""
  size = len(model.table)

  @functools.cache
  def sides(rule: int) -> tuple[str, str, str]:
    if rule > size:
      word = source.words[rule - size - 1]
      return "X", word, word
    left, both = tables.rule_text(model.table, rule).split(" -> ", 1)
    length = len(model.table.source[rule])
    words = both.split(" ")
    return left, " ".join(words[:length]), " ".join(words[length + 1 :])

  return sides


def _rule_symbols(model: Model, source: Source):
  """A function from rules to both sides as words and numbers of children."""
  table, size = model.table, len(model.table)

  @functools.cache
  def symbols(rule: int) -> tuple[tuple[str | int, ...], ...]:
    if rule > size:
      word = source.words[rule - size - 1]
      return (word,), (word,)
    sites = itertools.count()
    known = table.source_words.words, table.target_words.words
    one = tuple(
      known[0][symbol] if symbol >= 0 else next(sites)
      for symbol in table.source[rule].tolist()
    )
    two = tuple(
      known[1][symbol] if symbol >= 0 else -1 - symbol
      for symbol in table.target[rule].tolist()
    )
    return one, two

  return symbols
