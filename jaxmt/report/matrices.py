"""Alignment matrices as SVG: predicted links with gold links beside them."""

import html
from collections.abc import Iterable, Sequence

_CELL = 16
_LETTER = 8.5  # width of a letter, about; wide scripts take two
_COLOURS = {"sure": "#4477aa", "possible": "#aaccee", "wrong": "#cc6677"}

Links = Iterable[tuple[int, int]]


def alignment_matrix(
  source: Sequence[str],
  target: Sequence[str],
  links: Links,
  *,
  sure: Links | None = None,
  possible: Links = (),
  title: str = "",
) -> str:
  """Returns one sentence pair as an SVG element.

  Source words are rows, target words columns. A dot is a predicted link, red
  if it is not in the gold; a filled cell is a gold link, pale if it is only
  possible.

  Args:
    source: source words.
    target: target words.
    links: predicted pairs (source, target) of positions.
    sure: gold pairs; None without gold.
    possible: further gold pairs.
    title: text above the matrix.
  """
  predicted, gold = set(links), set(sure or ())
  allowed = gold | set(possible)
  left = _CELL + _LETTER * max(map(_width, source), default=0)
  top = _CELL + _LETTER * max(map(_width, target), default=0)
  top += _CELL if title else 0
  width = left + _CELL * len(target) + _CELL
  height = top + _CELL * len(source) + _CELL
  parts = [
    f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}"'
    f' height="{height:.0f}" font-family="sans-serif" font-size="12">'
  ]
  if title:
    parts.append(f'<text x="4" y="14">{html.escape(title)}</text>')
  at = lambda row, column: (left + _CELL * column, top + _CELL * row)
  for row, word in enumerate(source):
    x, y = at(row, 0)
    parts.append(
      f'<text x="{x - 4:.1f}" y="{y + 12:.1f}" text-anchor="end">'
      f"{html.escape(word)}</text>"
    )
  for column, word in enumerate(target):
    x, y = at(0, column)
    parts.append(
      f'<text transform="translate({x + 12:.1f},{y - 4:.1f}) rotate(-90)">'
      f"{html.escape(word)}</text>"
    )
  parts.append(_grid(len(source), len(target), at))
  for link in sorted(allowed | predicted):
    parts += _cell(link, at, predicted, gold, allowed, sure)
  return "".join([*parts, "</svg>"])


def _grid(rows: int, columns: int, at) -> str:
  """The lines between all cells, as one path."""
  (x, y), size = at(0, 0), _CELL
  steps = [
    f"M{x:.1f} {y + size * row:.1f}h{size * columns}" for row in range(rows + 1)
  ]
  steps += [
    f"M{x + size * column:.1f} {y:.1f}v{size * rows}"
    for column in range(columns + 1)
  ]
  return f'<path d="{"".join(steps)}" stroke="#dddddd"/>'


def _cell(link, at, predicted, gold, allowed, sure) -> list[str]:
  """The square of a gold link, and the dot of a predicted one."""
  x, y = at(*link)
  parts = []
  if link in allowed:
    fill = _COLOURS["sure" if link in gold else "possible"]
    parts.append(
      f'<rect x="{x:.1f}" y="{y:.1f}" width="{_CELL}" height="{_CELL}"'
      f' fill="{fill}" stroke="#dddddd"/>'
    )
  if link in predicted:
    right = sure is None or link in allowed
    colour = "#222222" if right else _COLOURS["wrong"]
    parts.append(
      f'<circle cx="{x + _CELL / 2:.1f}" cy="{y + _CELL / 2:.1f}" r="5"'
      f' fill="{colour}"/>'
    )
  return parts


def _width(word: str) -> int:
  return sum(2 if ord(letter) > 0x2E80 else 1 for letter in word)
