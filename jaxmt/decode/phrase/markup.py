"""Markup in the input of phrase-based translation: walls and zones.

As in Moses, `<wall/>` between two words says that all words before it are
translated before any after it, and `<zone> ... </zone>` that the words in it
are translated together, without a break. Phrases do not cross a wall, nor part
of a zone's border. Tags stand between white space.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged, row_offsets


@dataclasses.dataclass(frozen=True, kw_only=True)
class Marks:
  """Walls and zones of B sentences.

  Attributes:
    walls: words before which a wall stands, B rows of int32.
    zones: begin and end of zones, int32 `[Z, 2]` in B rows.
  """

  walls: Ragged
  zones: Ragged

  def __len__(self) -> int:
    return len(self.walls)


def no_marks(size: int) -> Marks:
  """Returns sentences without marks."""
  return Marks(walls=_rows([[]] * size, ()), zones=_rows([[]] * size, (2,)))


def _rows(rows: Sequence[Sequence], shape: tuple[int, ...]) -> Ragged:
  flat = [item for row in rows for item in row]
  return Ragged(
    flat=np.array(flat, np.int32).reshape(-1, *shape),
    offsets=row_offsets([len(row) for row in rows]),
  )


def select_marks(marks: Marks, rows: np.ndarray) -> Marks:
  """Returns the marks of some sentences."""
  return Marks(
    walls=ragged.select(marks.walls, rows),
    zones=ragged.select(marks.zones, rows),
  )


def parse(
  lines: Sequence[str], *, path: str | None = None
) -> tuple[list[str], Marks]:
  """Returns the lines without tags, and their marks.

  Raises:
    InputError: for a zone that does not begin or end, or another tag.
  """
  plain, walls, zones = [], [], []
  for number, line in enumerate(lines, start=1):
    words: list[str] = []
    own: list[int] = []
    spans: list[tuple[int, int]] = []
    begun: list[int] = []
    for token in line.split():
      if token == "<wall/>":
        own.append(len(words))
      elif token == "<zone>":
        begun.append(len(words))
      elif token == "</zone>" and begun:
        spans.append((begun.pop(), len(words)))
      elif token.startswith("<") and token.endswith(">") and len(token) > 2:
        raise InputError(f"unexpected tag '{token}'", path=path, line=number)
      else:
        words.append(token)
    if begun:
      raise InputError("a zone does not end", path=path, line=number)
    plain.append(" ".join(words))
    walls.append([wall for wall in own if 0 < wall < len(words)])
    zones.append([span for span in spans if span[1] - span[0] > 1])
  return plain, Marks(walls=_rows(walls, ()), zones=_rows(zones, (2,)))
