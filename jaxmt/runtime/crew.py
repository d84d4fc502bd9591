"""Several processes on one workdir: the first leads, the others help.

The first process runs the pipeline as if it were alone, and it alone writes
results. When it comes to a stage that can be shared, it announces it in a file
of the workdir, and all others call the same function with the same artefacts;
the function divides the work (`jaxmt.train.learn_theta.Place`). So all
processes must see one disk.

    with crew.assemble(workdir) as team:
      if team.helps:
        ...  # for task in team.tasks()
      else:
        ...  # team.announce(task)

Helpers wait by looking at the file, not in a collective operation: the leader
may tune for hours between two shared stages, and collectives give up (on CPUs
after 30 minutes). The file goes when the leader ends, with an error or without;
if the leader is killed, the runtime of JAX misses its heartbeat and ends the
helpers. Whatever happens, all processes started again go on.
"""

import contextlib
import json
import pathlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from jaxmt.errors import InputError
from jaxmt.runtime import parallel
from jaxmt.text import files

_SECONDS_BETWEEN_LOOKS = 0.1


class Crew:
  """One process's view of all of them. Make it with `assemble`."""

  def __init__(self, board: pathlib.Path, *, process: int, processes: int):
    """Knows the file of announcements, and which process this is."""
    self._board = board
    self._process = process
    self._processes = processes
    self._announced: list[Mapping[str, Any]] = []

  @property
  def helps(self) -> bool:
    """Whether another process leads."""
    return self._process > 0

  def announce(self, task: Mapping[str, Any]) -> None:
    """Tells the helpers, if there are any, what to do next; JSON values."""
    self._announced.append(task)
    self._write()

  def tasks(self) -> Iterator[dict[str, Any]]:
    """Yields what the leader announces, in order, until it ends."""
    done = 0
    while (announced := self._read()) is not None:
      if done < len(announced):
        yield announced[done]
        done += 1
      else:
        time.sleep(_SECONDS_BETWEEN_LOOKS)

  def _write(self) -> None:
    if self._processes > 1:
      files.write_text(str(self._board), json.dumps(self._announced))

  def _read(self) -> list[dict[str, Any]] | None:
    """What was announced so far; None if the leader has ended."""
    try:
      return json.loads(self._board.read_bytes())
    except FileNotFoundError:
      return None

  def _meet(self) -> None:
    """Opens the file and makes sure that every process sees it."""
    if not self.helps:
      self._write()
    _sum(0)
    if _sum(int(self._read() is not None)) < self._processes:
      raise InputError(
        "not every process sees this folder; they must share a disk",
        path=str(self._board.parent),
      )


@contextlib.contextmanager
def assemble(workdir: str) -> Iterator[Crew]:
  """Brings the processes of `jax.distributed` together, or one alone.

  Args:
    workdir: a folder they share; made if it is not there.

  Raises:
    InputError: if they do not share it.
  """
  process, processes = jax.process_index(), jax.process_count()
  # A name nothing had before: what a killed leader left behind does no harm.
  session = _sum(0 if process else time.time_ns()) if processes > 1 else 0
  folder = pathlib.Path(workdir)
  board = folder / f".crew-{session}.json"
  crew = Crew(board, process=process, processes=processes)
  if processes == 1:
    yield crew
    return
  folder.mkdir(parents=True, exist_ok=True)
  try:
    crew._meet()
    yield crew
  finally:
    if not crew.helps:
      board.unlink(missing_ok=True)


def _sum(value: int) -> int:
  return int(parallel.sum_over_processes(np.array([value], np.int64))[0])
