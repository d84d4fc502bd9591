"""What training saw of the rules of derivations: counts and sentence pairs."""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.grammar import estimate
from jaxmt.grammar import filter as filter_lib
from jaxmt.grammar.table import RuleTable
from jaxmt.report.views import RuleView
from jaxmt.text import vocabulary

Side = Sequence[str | int]  # words, and numbers for the sites of rules


def rule_uses(
  table: RuleTable, counts: Mapping[str, np.ndarray], *, lines: Sequence[str]
) -> dict[str, np.ndarray]:
  """Returns how often rules, and all rules of their source sides, were used.

  Args:
    table: all rules.
    counts: by system, a number for each rule: what its probabilities are
      estimated from.
    lines: source sentences; the result is of the R rules that they can use.

  Returns:
    By system, float64 `[R, 2]`; nan for rules without estimates, as glue.
  """
  groups = estimate.group_rules(table)
  usable = filter_lib.usable(
    table, vocabulary.encode(table.source_words, lines)
  )
  out = {}
  for name, member_counts in counts.items():
    member_counts = np.where(groups.member, member_counts, 0.0)
    mass = np.bincount(groups.source, member_counts, minlength=groups.sizes[1])
    both = np.stack([member_counts, mass[groups.source]], axis=1)
    out[name] = np.where(groups.member[:, None], both, np.nan)[usable]
  return out


def pairs(
  rules: Sequence[RuleView],
  derivations: Iterable[Sequence[Sequence[Any] | None]],
  source: Sequence[str],
  target: Sequence[str],
  *,
  number: int,
  limit: int,
) -> list[Any]:
  """Returns training pairs to quote for rules that make derivations differ.

  Args:
    rules: all rules.
    derivations: for each sentence the nodes of its derivations, which begin
      with numbers of rules; None for no derivation.
    source: lines of the training text.
    target: their translations.
    number: pairs for a rule at most.
    limit: pairs to look at, the first ones.

  Returns:
    `[rule, rows]` for rules that only some of a sentence's derivations use and
    that have such pairs.
  """
  chosen: set[int] = set()
  for several in derivations:
    used = [{node[0] for node in nodes} for nodes in several if nodes]
    if used:
      chosen |= set.union(*used) - set.intersection(*used)
  index = PairIndex(source[:limit], target[:limit])
  rule_rows = (
    (rule, index.find(rules[rule], number)) for rule in sorted(chosen)
  )
  return [[rule, rows] for rule, rows in rule_rows if rows]


class PairIndex:
  """Finds the training pairs that hold both sides of a rule."""

  def __init__(self, source: Sequence[str], target: Sequence[str]):
    """Reads N pairs of lines."""
    self._pairs = [
      (one.split(), two.split())
      for one, two in zip(source, target, strict=True)
    ]
    # Rows by length, so that the first pairs found are the shortest.
    size = [len(one) + len(two) for one, two in self._pairs]
    self._rows = np.argsort(size, kind="stable").tolist()
    self._places: tuple[dict[str, set[int]], ...] = (
      collections.defaultdict(set),
      collections.defaultdict(set),
    )
    for place, row in enumerate(self._rows):
      for words, places in zip(self._pairs[row], self._places, strict=True):
        for word in words:
          places[word].add(place)

  def find(self, rule: RuleView, number: int) -> list[int]:
    """Returns the rows of the shortest pairs, at most a number of them.

    Rules without words on a side hold for any pair: none is returned.
    """
    sides = (rule.source, rule.target)
    sets = [
      places.get(word, set())
      for side, places in zip(sides, self._places, strict=True)
      for word in side
      if isinstance(word, str)
    ]
    if any(all(isinstance(one, int) for one in side) for side in sides):
      return []
    out: list[int] = []
    for place in sorted(set.intersection(*sets)):
      row = self._rows[place]
      if all(map(holds, self._pairs[row], sides)):
        out.append(row)
        if len(out) == number:
          break
    return out


def holds(words: Sequence[str], side: Side) -> bool:
  """Whether a side occurs among words, with a word or more at every site."""
  parts: list[list[str]] = [[]]  # words between the sites
  for symbol in side:
    if isinstance(symbol, int):
      parts.append([])
    else:
      parts[-1].append(symbol)
  # The first place of every part is the best: it leaves most to the others.
  least = 0
  for number, part in enumerate(parts):
    least += number > 0
    while list(words[least : least + len(part)]) != part:
      least += 1
      if least + len(part) > len(words):
        return False
    least += len(part)
  return least <= len(words)
