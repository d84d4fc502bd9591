"""Derivations as views, scored by several models with the same rules."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import derivation, node_features, translate
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source
from jaxmt.features import sparse
from jaxmt.grammar.table import Kind
from jaxmt.inspection import phrase_views
from jaxmt.report.views import DerivationView, NodeView, PartView, RuleView
from jaxmt.train.explain import Ranks

_KINDS = {
  Kind.GLUE: "glue",
  Kind.HIERO: "hiero",
  Kind.TREE_TO_STRING: "tree",
  Kind.PASS_THROUGH: "copy",
}
_ZERO = 5e-5  # smaller values round to 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComparedModels:
  """Models whose rules are the same; weights and feature values may differ.

  Attributes:
    names: of the systems.
    models: their models.
    source: the sentences, as the first model reads them.
  """

  names: Sequence[str]
  models: Sequence[Model]
  source: Source

  def __post_init__(self):
    first = self.models[0]
    for name, model in zip(self.names, self.models, strict=True):
      same = len(model.table) == len(first.table)
      if not same or model.feature_names != first.feature_names:
        raise ValueError(f"{name} has other rules than {self.names[0]}")

  def model(self, name: str) -> Model:
    """Returns the model of a system."""
    return self.models[list(self.names).index(name)]

  @property
  def weights(self) -> np.ndarray:
    """The weights of each, float64 `[M, F]`."""
    names = self.models[0].feature_names
    rows = [[model.weights.get(n, 0.0) for n in names] for model in self.models]
    return np.array(rows)


class RuleBook:
  """The rules that views refer to, each once, numbered as they come."""

  def __init__(self):
    self._numbers: dict[int, int] = {}

  def numbers(self, rules: np.ndarray) -> list[int]:
    """Returns the numbers of rules, numbered as in `Matches.rule`."""
    known = self._numbers
    return [known.setdefault(rule, len(known)) for rule in rules.tolist()]

  def views(
    self,
    compared: ComparedModels,
    uses: Mapping[str, np.ndarray] | None = None,
  ) -> list[RuleView]:
    """Returns all rules, in the order of their numbers.

    Args:
      compared: the models.
      uses: by system, see `training_evidence.rule_uses`; float64 `[R, 2]`.
    """
    rules = np.array(list(self._numbers), np.int64)
    values = [static_values(model, rules) for model in compared.models]
    systems = [_sparse(system) for system in values]
    out = []
    for place, rule in enumerate(rules.tolist()):
      view = _rule_view(compared, rule, [system[place] for system in systems])
      if uses and rule < len(compared.models[0].table):
        rows = [uses[name][rule] for name in compared.names]
        known = [None if np.isnan(row).any() else tuple(row) for row in rows]
        view = dataclasses.replace(view, uses=known)
      out.append(view)
    return out


def static_values(model: Model, rules: np.ndarray) -> np.ndarray:
  """Returns the rules' own features, columns as the model's, `[N, F]`."""
  names = model.feature_names
  base = np.where(rules < len(model.table), rules, model.copy_rule)
  out = np.zeros((len(rules), len(names)))
  for column, name in enumerate(model.table.feature_names):
    if name in names:
      out[:, names.index(name)] = model.table.features[base, column]
  return out


def _sparse(values: np.ndarray) -> list[list[tuple[int, float]]]:
  """The values that are not 0 of each row, with their columns."""
  rows: list[list[tuple[int, float]]] = [[] for _ in values]
  place, column = np.nonzero(np.abs(values) > _ZERO)
  entries = values[place, column].tolist()
  for row, name, value in zip(
    place.tolist(), column.tolist(), entries, strict=True
  ):
    rows[row].append((name, value))
  return rows


def _rule_view(compared: ComparedModels, rule: int, systems) -> RuleView:
  table, size = compared.models[0].table, len(compared.models[0].table)
  if rule > size:
    word = compared.source.words[rule - size - 1]
    return RuleView(
      left="X", source=[word], target=[word], kind="copy", systems=systems
    )
  sites, source = [], []
  for symbol in table.source[rule].tolist():
    if symbol >= 0:
      source.append(table.source_words.words[symbol])
    else:
      source.append(len(sites))
      sites.append(table.labels[-1 - symbol])
  return RuleView(
    left=table.labels[table.lhs[rule]],
    source=source,
    target=[
      table.target_words.words[symbol] if symbol >= 0 else -1 - symbol
      for symbol in table.target[rule].tolist()
    ],
    sites=sites,
    kind=_kind(compared.models[0], rule),
    count=float(table.counts[rule]),
    systems=systems,
  )


def _kind(model: Model, rule: int) -> str:
  kind = Kind(int(model.table.kind[rule]))
  if kind == Kind.HIERO and model.order is not None:
    return "phrase"
  return _KINDS[kind]


def derivation_views(
  compared: ComparedModels,
  derivations: Derivations,
  book: RuleBook,
  *,
  shift: np.ndarray | None = None,
) -> list[DerivationView | None]:
  """Returns the view of each derivation, None for an empty one.

  Of a chain of phrases every phrase is a root, in the order they are said.

  Args:
    compared: the models that score them.
    derivations: of the B sentences of `compared.source`.
    book: gets the rules.
    shift: where each sentence begins in its line, int `[B]`.
  """
  first = compared.models[0]
  values, goal = node_features.node_features(
    first, compared.source, derivations
  )
  added = _sparse(values - static_values(first, derivations.rule))
  ends = _sparse(goal)
  scores = np.stack(
    [score(model, compared.source, derivations) for model in compared.models]
  )
  yields = derivation.read_off(first, derivations)
  numbers = book.numbers(derivations.rule)
  parents = _parents(derivations)
  if first.order is not None:
    parents[:] = -1
  out: list[DerivationView | None] = []
  for row in range(len(derivations)):
    low = int(derivations.offsets[row])
    base = 0 if shift is None else int(shift[row])
    links = yields.links[row] + np.array([base, 0])
    nodes = [
      NodeView(
        rule=numbers[node],
        begin=int(derivations.begin[node]) + base,
        end=int(derivations.end[node]) + base,
        parent=int(parents[node]) - low if parents[node] >= 0 else -1,
        added=added[node],
      )
      for node in _nodes(first, derivations, row)
    ]
    view = DerivationView(
      nodes=nodes,
      goal=ends[row],
      scores=scores[:, row].tolist(),
      links=[(one, two) for one, two in links.tolist()],
    )
    out.append(view if nodes else None)
  return out


def joined(
  before: dict[str, Any] | None, view: DerivationView | None
) -> dict[str, Any] | None:
  """Returns a line's derivation so far with that of its next piece."""
  if view is None or before is None:
    return before if view is None else view.values()
  after = view.values()
  shift = len(before["n"])
  words = 1 + max([two for _, two in before["w"]], default=-1)
  for node in after["n"]:
    node[3] = node[3] + shift if node[3] >= 0 else -1
  return {
    "n": before["n"] + after["n"],
    "g": before["g"] + after["g"],
    "z": [one + two for one, two in zip(before["z"], after["z"], strict=True)],
    "w": before["w"] + [[one, two + words] for one, two in after["w"]],
  }


def score(model: Model, source: Source, derivations: Derivations) -> np.ndarray:
  """Returns the model score of each derivation, sparse features and all.

  Args:
    model: need not be the one that found them.
    source: the B sentences.
    derivations: one of each.

  Returns:
    float64 `[B]`.
  """
  words = derivation.read_off(model, derivations).words
  rows, names = translate.feature_rows(model, source, derivations, words)
  vector = np.array([model.weights.get(name, 0.0) for name in names])
  return sparse.dot(rows, vector)


def _parents(derivations: Derivations) -> np.ndarray:
  """The parent of each node, -1 for roots, int64 `[N]`."""
  out = np.full(len(derivations.rule), -1, np.int64)
  node, place = np.nonzero(derivations.child >= 0)
  out[derivations.child[node, place]] = node
  return out


def _nodes(model: Model, derivations: Derivations, row: int) -> range:
  """The nodes of a derivation, in the order of its view."""
  nodes = range(*derivations.offsets[row : row + 2].tolist())
  return nodes if model.order is None else nodes[::-1]


def part_views(
  model: Model, derivations: Derivations, ranks: Ranks, row: int
) -> list[PartView]:
  """Returns where the parts of a sentence's derivation stand in a search.

  Args:
    model: names the kinds of rules.
    derivations: of all sentences.
    ranks: of their parts.
    row: the sentence.
  """
  glue = node_features.is_glue(model, derivations.rule)
  begin, end = derivations.begin, derivations.end
  if model.order is not None:  # a prefix stands in the stack of its words
    end = phrase_views.covered_words(derivations)
    begin, glue = np.zeros_like(end), np.ones(len(end), bool)
  return [
    PartView(
      begin=int(begin[node]),
      end=int(end[node]),
      glue=bool(glue[node]),
      rank=int(ranks.rank[node]),
      competing=int(ranks.competing[node]),
      gap=None if np.isnan(ranks.gap[node]) else float(ranks.gap[node]),
      kept=bool(ranks.found[node]),
    )
    for node in _nodes(model, derivations, row)
  ]
