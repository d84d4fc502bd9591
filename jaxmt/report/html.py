"""Derivations, k-best lists and forests as HTML for notebooks."""

import html
from collections.abc import Sequence
from typing import Any

_SMALL = 'style="font-family:monospace;font-size:.9em"'


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
