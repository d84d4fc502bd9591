"""Derivations, k-best lists and forests as HTML for notebooks.

What notebooks show is drawn by the components of the report (`static/`). Where
scripts do not run, as in a notebook that is not trusted, the plain HTML that
they would replace remains.
"""

import dataclasses
import functools
import html
from collections.abc import Sequence
from typing import Any

from jaxmt.report import blocks, page
from jaxmt.report.views import DerivationView, NodeView, RuleView

_SMALL = 'style="font-family:monospace;font-size:.9em"'


@functools.cache
def _code() -> tuple[str, str]:
  """The style and the scripts of all components, each in its own scope."""
  script = "\n".join(page.static(name) for name in page.COMPONENTS)
  return page.static("page.css"), f"(() => {{\n{script}\njaxmt.start();\n}})();"


def component(name: str, data: Any, plain: str) -> str:
  """Returns a component for a notebook.

  Args:
    name: of the component, one of `views`.
    data: what it takes.
    plain: HTML to show where scripts do not run.
  """
  style, script = _code()
  drawing = element(name, data, plain)
  return f"{drawing}<style>{style}</style><script>{script}</script>"


def drawn(view: Any) -> str:
  """Returns a view for a page that has the components' scripts itself.

  Args:
    view: an alignment, a lattice or a tree, see `views`.
  """
  return element(view.component, view.values(), text(view))


def element(name: str, data: Any, plain: str = "") -> str:
  """Returns a component for a page that has the scripts itself.

  Args:
    name: of the component.
    data: what it takes.
    plain: HTML to show where scripts do not run.
  """
  return (
    f'<div class="jaxmt" data-component="{name}">{plain}'
    f'<script type="application/json">{blocks.to_json(data)}</script></div>'
  )


def text(value: Any) -> str:
  """Returns plain text of a value, where scripts do not run."""
  return f"<pre>{html.escape(str(value))}</pre>"


def derivation_tree(roots: Sequence[Any]) -> str:
  """Returns derivations as nested lists that can be folded.

  Args:
    roots: nodes with `label`, `begin`, `end`, `source`, `target`, `children`,
      as `jaxmt.decode.derivation_text.Node`.
  """
  out: list[str] = []
  # Not recursive: glue makes derivations as deep as sentences are long.
  stack: list[Any] = list(reversed(roots))
  while stack:
    top = stack.pop()
    if isinstance(top, str):
      out.append(top)
      continue
    text = html.escape(f"{top.source} → {top.target}")
    head = html.escape(f"{top.label}[{top.begin}:{top.end}]")
    shown = f"<b>{head}</b> {text}"
    if not top.children:
      out.append(f'<div style="margin-left:1.2em">{shown}</div>')
      continue
    out.append(
      f'<details open style="margin-left:1.2em"><summary>{shown}</summary>'
    )
    stack.append("</details>")
    stack += reversed(top.children)
  return f"<div {_SMALL}>{''.join(out)}</div>"


def derivation(roots: Sequence[Any]) -> str:
  """Returns derivations as the component that the report shows them with.

  Args:
    roots: as for `derivation_tree`; with `sides`, words and numbers of
      children, or else only the plain tree is shown.
  """
  roots = [node for root in roots for node in _said(root)]
  plain = derivation_tree(roots)
  rules: list[RuleView] = []
  nodes: list[NodeView] = []
  source: dict[int, str] = {}
  stack = [(root, -1) for root in reversed(roots)]
  while stack:
    top, parent = stack.pop()
    if not top.sides:
      return plain
    number = len(nodes)
    nodes.append(
      NodeView(rule=number, begin=top.begin, end=top.end, parent=parent)
    )
    sites = [child.label for child in top.children]
    rules.append(
      RuleView(
        left=top.label,
        source=top.sides[0],
        target=top.sides[1],
        sites=sites,
        systems=[[]],
      )
    )
    # Words stand between the children, which say where they begin and end.
    place = top.begin
    for symbol in top.sides[0]:
      if isinstance(symbol, int):
        place = top.children[symbol].end
      else:
        source[place] = symbol
        place += 1
    stack += [(child, number) for child in reversed(top.children)]
  size = max(source, default=-1) + 1
  view = DerivationView(nodes=nodes, scores=[0.0])
  data = {
    "context": {
      "source": [source.get(place, "") for place in range(size)],
      "systems": [""],
      "features": [],
      "weights": [[]],
      "rules": [rule.values() for rule in rules],
    },
    "derivation": view.values(),
  }
  return component("derivation", data, plain)


def _said(root: Any) -> list[Any]:
  """The phrases of a chain in the order they are said; else the root alone.

  A chain of phrases has its last phrase as root, and rules without sites.
  """
  chain, node = [], root
  while node.children and node.sides and not _sites(node.sides[1]):
    chain.append(dataclasses.replace(node, children=()))
    (node,) = node.children
  return [node, *reversed(chain)]


def _sites(side: Sequence[str | int]) -> bool:
  return any(isinstance(symbol, int) for symbol in side)


def kbest_table(
  lists: Sequence[Sequence[tuple[Any, ...]]],
  columns: Sequence[str],
  *,
  sentences: int = 5,
  rows: int = 10,
) -> str:
  """Returns the first translations of the first sentences as a table.

  Args:
    lists: for each sentence its rows, a value for each column.
    columns: headings.
    sentences: shown at most.
    rows: shown at most of each sentence.
  """
  head = "".join(
    f"<th>{html.escape(name)}</th>" for name in ("sentence", *columns)
  )
  body = []
  for number, items in enumerate(lists[:sentences]):
    for item in items[:rows]:
      cells = "".join(f"<td>{_cell(value)}</td>" for value in (number, *item))
      body.append(f"<tr>{cells}</tr>")
  hidden = sum(map(len, lists)) - len(body)
  more = f"<caption>{hidden:,} more</caption>" if hidden else ""
  return f"<table>{more}<tr>{head}</tr>{''.join(body)}</table>"


def _cell(value: Any) -> str:
  if isinstance(value, float):
    return f"{value:.4f}"
  return html.escape(str(value))
