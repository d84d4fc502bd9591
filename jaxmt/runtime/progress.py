"""Progress people can see: a bar on a terminal, a line every few seconds else.

Everything goes to standard error, so that results on standard output stay
clean.
"""

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

import rich.console
import rich.progress

Item = TypeVar("Item")

_SECONDS_BETWEEN_LINES = 5.0


def say(text: str) -> None:
  """Prints one line of news."""
  print(text, file=sys.stderr, flush=True)


def clock() -> float:
  """Returns seconds since some moment, for differences."""
  return time.perf_counter()


def track(
  items: Iterable[Item], *, label: str, total: int | None = None
) -> Iterator[Item]:
  """Yields the items, showing how far it is and how long it will take."""
  if total is None:
    items = list(items)
    total = len(items)
  with steps(label=label, total=total) as advance:
    for item in items:
      yield item
      advance(1)


@contextlib.contextmanager
def steps(*, label: str, total: int):
  """Gives a function `advance(count, note="")` that moves the display on."""
  if sys.stderr.isatty():
    with _bar() as bar:
      task = bar.add_task(label, total=total, note="")
      yield lambda count, note="": bar.update(task, advance=count, note=note)
  else:
    yield _line_printer(label, total)


def _bar() -> rich.progress.Progress:
  return rich.progress.Progress(
    rich.progress.TextColumn("{task.description}"),
    rich.progress.BarColumn(),
    rich.progress.MofNCompleteColumn(),
    rich.progress.TimeRemainingColumn(),
    rich.progress.TextColumn("{task.fields[note]}"),
    console=rich.console.Console(stderr=True),
    transient=True,
  )


def _line_printer(label: str, total: int):
  start = time.monotonic()
  state = {"done": 0, "said": start}

  def advance(count: int, note: str = "") -> None:
    state["done"] += count
    now = time.monotonic()
    if now - state["said"] >= _SECONDS_BETWEEN_LINES:
      state["said"] = now
      done = state["done"]
      rate = done / (now - start)
      left = (total - done) / rate if rate else 0.0
      say(
        f"{label}: {done}/{total} ({100 * done / max(total, 1):.0f} %), "
        f"{rate:.3g}/s, {left:.0f} s left {note}".rstrip()
      )

  return advance


class Skipped:
  """Counts bad input that is skipped, and shows the first few.

  Made to be called with each error, where otherwise the error is raised.

  Attributes:
    count: how many so far.
  """

  _SHOWN = 5

  def __init__(self):
    self.count = 0

  def __call__(self, error: Exception) -> None:
    """Takes note of one error."""
    self.count += 1
    if self.count <= self._SHOWN:
      say(f"skipped {error}")
