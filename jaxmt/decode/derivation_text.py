"""Derivations as text: bracketed trees and rule lists."""

import functools

import numpy as np

from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source
from jaxmt.grammar import table as tables

FORMATS = ("tree", "rules")


def write(
  model: Model,
  source: Source,
  derivations: Derivations,
  *,
  format: str,
  shift: np.ndarray | None = None,
) -> list[list[str]]:
  """Writes each derivation in one of `FORMATS`, as lines."""
  if format == "tree":
    trees = tree_lines(model, source, derivations, shift=shift)
    return [[tree] for tree in trees]
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

  Args:
    model: the rules.
    source: the sentences, for words that are copied.
    derivations: B of them.
    shift: what to add to the positions of each, int `[B]`.
  """
  sides = _rule_sides(model, source)
  out = []
  for row in range(len(derivations)):
    done: dict[int, str] = {}
    base = 0 if shift is None else int(shift[row])
    first, last = derivations.offsets[row], derivations.offsets[row + 1]
    for node in range(last - 1, first - 1, -1):  # children come after parents
      left, one, two = sides(int(derivations.rule[node]))
      below = [done[c] for c in derivations.child[node].tolist() if c >= 0]
      span = _span(derivations, node, base)
      done[node] = (
        f"({' '.join([f'{left}[{span}]', f'{one} | {two}', *below])})"
      )
    out.append(done[first] if last > first else "()")
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
