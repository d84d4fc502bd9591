"""Batches of requests: what waits while the decoder works goes in together.

One thread decodes. Requests wait in a queue; whenever the thread is free it
takes all that wait, up to a number of lines, as one batch. So a lone request
does not wait, and many at once are decoded at the speed of a whole text.
"""

import asyncio
import collections
import concurrent.futures
import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

from jaxmt.runtime import progress


class Busy(Exception):
  """Too much waits already."""


class Stopped(Exception):
  """The server is going away."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
  """Lines that one request wants decoded.

  Attributes:
    kind: jobs of one kind are worked on together.
    lines: the lines.
    size: of lists, if the kind has any.
    answer: gets one result for each line.
  """

  kind: str
  lines: Sequence[str]
  size: int = 1
  answer: concurrent.futures.Future = dataclasses.field(
    default_factory=concurrent.futures.Future
  )


@dataclasses.dataclass
class BatcherCounts:
  """What the batcher has done so far."""

  batches: int = 0
  lines: int = 0
  failures: int = 0
  dropped: int = 0
  seconds: float = 0.0


class Batcher:
  """A queue of jobs, and the thread that works on them."""

  def __init__(
    self,
    work: Callable[[str, Sequence[str], int], Sequence[Any]],
    *,
    batch_lines: int = 256,
    waiting_lines: int = 4096,
  ):
    """Starts the thread.

    Args:
      work: `(kind, lines, size) -> results`, one for each line; `size` is the
        largest that any of the jobs wants.
      batch_lines: lines of a batch; a larger job is a batch of its own.
      waiting_lines: lines that may wait; jobs beyond are refused.
    """
    self._work = work
    self._batch_lines = batch_lines
    self._waiting_lines = waiting_lines
    self._jobs: collections.deque[Job] = collections.deque()
    self._ready = threading.Condition()
    self._stopped = False
    self.counts = BatcherCounts()
    # Ends with the program: a server that a signal stops before it has started
    # never calls `stop`.
    self._thread = threading.Thread(
      target=self._run, name="decoder", daemon=True
    )
    self._thread.start()

  @property
  def waiting(self) -> int:
    """Lines that wait."""
    with self._ready:
      return sum(len(job.lines) for job in self._jobs)

  def submit(self, job: Job) -> concurrent.futures.Future:
    """Queues a job; returns its answer to come.

    Raises:
      Busy: if too much waits already.
      Stopped: if the batcher was stopped.
    """
    with self._ready:
      if self._stopped:
        raise Stopped("the server is stopping")
      waiting_lines = sum(len(one.lines) for one in self._jobs)
      if self._jobs and waiting_lines + len(job.lines) > self._waiting_lines:
        raise Busy(f"{waiting_lines} lines are waiting")
      self._jobs.append(job)
      self._ready.notify()
    return job.answer

  async def results(self, job: Job, *, timeout: float) -> Sequence[Any]:
    """Returns the results of a job.

    A job that nobody waits for any more is dropped, unless it is being worked
    on.

    Raises:
      TimeoutError: if they are not there after `timeout` seconds.
    """
    answer = asyncio.wrap_future(self.submit(job))
    return await asyncio.wait_for(answer, timeout)

  def stop(self) -> None:
    """Finishes what waits, and ends the thread."""
    with self._ready:
      self._stopped = True
      self._ready.notify()
    self._thread.join()

  def _run(self) -> None:
    while True:
      with self._ready:
        while not self._jobs and not self._stopped:
          self._ready.wait()
        if not self._jobs:
          return
        batch = self._next_batch()
      if batch:
        self._answer(batch)

  def _next_batch(self) -> list[Job]:
    """Takes the first job and all of its kind that there is room for."""
    batch, rest, room = [], [], self._batch_lines
    while self._jobs:
      job = self._jobs.popleft()
      if job.answer.cancelled():
        self.counts.dropped += 1
      elif not batch or (job.kind == batch[0].kind and len(job.lines) <= room):
        if job.answer.set_running_or_notify_cancel():
          batch.append(job)
          room -= len(job.lines)
      else:
        rest.append(job)
    self._jobs.extend(rest)
    return batch

  def _answer(self, batch: list[Job]) -> None:
    lines = [line for job in batch for line in job.lines]
    start = progress.clock()
    try:
      size = max(job.size for job in batch)
      results = self._work(batch[0].kind, lines, size)
    except Exception as error:  # one bad batch must not end the server
      self.counts.failures += 1
      for job in batch:
        job.answer.set_exception(error)
      return
    self.counts.batches += 1
    self.counts.lines += len(lines)
    self.counts.seconds += progress.clock() - start
    first = 0
    for job in batch:
      job.answer.set_result(results[first : first + len(job.lines)])
      first += len(job.lines)
