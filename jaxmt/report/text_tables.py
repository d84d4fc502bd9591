"""Tables: aligned text for terminals, Markdown and HTML from the same rows."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import rich.cells

Rows = Sequence[Mapping[str, Any]]


def columns(rows: Rows) -> list[str]:
  """Returns all keys in order of first appearance."""
  return list(dict.fromkeys(key for row in rows for key in row))


def cell(value: Any) -> str:
  """Returns a value as people read it: four digits, thousands apart."""
  if value is None:
    return ""
  if isinstance(value, float):
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
  if isinstance(value, int) and not isinstance(value, bool):
    return f"{value:,}"
  return str(value)


def _is_number(value: Any) -> bool:
  return isinstance(value, int | float) or value is None


def text(rows: Rows) -> str:
  """Returns an aligned table; numbers to the right, wide characters as two."""
  names = columns(rows)
  cells = [[cell(row.get(name)) for name in names] for row in rows]
  right = [all(_is_number(row.get(name)) for row in rows) for name in names]
  widths = [
    max(rich.cells.cell_len(line[c]) for line in [names, *cells])
    for c in range(len(names))
  ]
  lines = [names, ["-" * width for width in widths], *cells]
  return "\n".join(
    "  ".join(
      _padded(value, width, to_right)
      for value, width, to_right in zip(line, widths, right, strict=True)
    ).rstrip()
    for line in lines
  )


def _padded(value: str, width: int, to_right: bool) -> str:
  space = " " * (width - rich.cells.cell_len(value))
  return space + value if to_right else value + space


def markdown(rows: Rows) -> str:
  """Returns the rows as a Markdown table."""
  names = columns(rows)
  lines = [names, ["---"] * len(names)]
  lines += [[cell(row.get(name)) for name in names] for row in rows]
  return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_html(rows: Rows) -> str:
  """Returns the rows as an HTML table."""
  names = columns(rows)
  head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
  body = ""
  for row in rows:
    body += "<tr>"
    for name in names:
      kind = ' class="number"' if _is_number(row.get(name)) else ""
      body += f"<td{kind}>{html.escape(cell(row.get(name)))}</td>"
    body += "</tr>\n"
  return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
