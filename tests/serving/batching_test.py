"""The queue: batches, refusals, time-outs, stopping."""

import asyncio
import subprocess
import sys
import threading

import pytest

from jaxmt.serving.batching import Batcher, Busy, Job, Stopped

PATIENCE = 30


class Decoder:
  """Repeats lines; works only when it is let."""

  def __init__(self):
    self.batches = []
    self.gate = threading.Event()
    self.busy = threading.Event()

  def __call__(self, kind, lines, size):
    self.batches.append((kind, list(lines), size))
    self.busy.set()
    assert self.gate.wait(PATIENCE)
    if "fail" in lines:
      raise ValueError("cannot decode that")
    return [f"{kind}:{line}" for line in lines]


@pytest.fixture
def decoder():
  return Decoder()


@pytest.fixture
def batcher(decoder):
  made = Batcher(decoder, batch_lines=4, waiting_lines=6)
  yield made
  decoder.gate.set()
  made.stop()


def occupy(batcher, decoder):
  """Gives the decoder something to do, so that others wait."""
  job = Job(kind="a", lines=["first"])
  batcher.submit(job)
  assert decoder.busy.wait(PATIENCE)
  return job


def test_what_waits_goes_in_together_by_kind(batcher, decoder):
  first = occupy(batcher, decoder)
  jobs = [
    Job(kind="a", lines=["1", "2"]),
    Job(kind="b", lines=["3"]),
    Job(kind="a", lines=["4"], size=7),
    Job(kind="a", lines=["5", "6"]),  # does not fit into the batch
  ]
  answers = [batcher.submit(job) for job in jobs]
  decoder.gate.set()
  got = [answer.result(PATIENCE) for answer in answers]
  assert got == [["a:1", "a:2"], ["b:3"], ["a:4"], ["a:5", "a:6"]]
  assert first.answer.result() == ["a:first"]
  assert decoder.batches[1] == ("a", ["1", "2", "4"], 7)
  assert sorted(decoder.batches[2:]) == [
    ("a", ["5", "6"], 1),
    ("b", ["3"], 1),
  ]
  assert batcher.counts.lines == 7 and batcher.counts.batches == 4


def test_a_job_larger_than_a_batch_is_one_of_its_own(batcher, decoder):
  decoder.gate.set()
  lines = [str(n) for n in range(9)]
  got = batcher.submit(Job(kind="a", lines=lines)).result(PATIENCE)
  assert len(got) == 9


def test_too_much_is_refused(batcher, decoder):
  occupy(batcher, decoder)
  batcher.submit(Job(kind="a", lines=["1"] * 5))
  with pytest.raises(Busy, match="5 lines"):
    batcher.submit(Job(kind="a", lines=["1"] * 2))
  assert batcher.waiting == 5


def test_a_failure_reaches_those_who_asked_and_nobody_else(batcher, decoder):
  decoder.gate.set()
  with pytest.raises(ValueError, match="cannot decode"):
    batcher.submit(Job(kind="a", lines=["fail"])).result(PATIENCE)
  good = batcher.submit(Job(kind="a", lines=["good"])).result(PATIENCE)
  assert good == ["a:good"] and batcher.counts.failures == 1


def test_nobody_waits_for_ever_and_what_is_given_up_is_not_decoded(
  batcher, decoder
):
  occupy(batcher, decoder)
  late = Job(kind="a", lines=["late"])
  with pytest.raises(TimeoutError):
    asyncio.run(batcher.results(late, timeout=0.05))
  decoder.gate.set()
  batcher.submit(Job(kind="a", lines=["next"])).result(PATIENCE)
  assert all("late" not in lines for _, lines, _ in decoder.batches)
  assert batcher.counts.dropped == 1


def test_stopping_answers_what_waits_and_takes_nothing_more(decoder):
  batcher = Batcher(decoder)
  occupy(batcher, decoder)
  waiting = batcher.submit(Job(kind="a", lines=["last"]))
  stopping = threading.Thread(target=batcher.stop)
  stopping.start()
  decoder.gate.set()
  stopping.join(PATIENCE)
  assert waiting.result(0) == ["a:last"]
  with pytest.raises(Stopped):
    batcher.submit(Job(kind="a", lines=["more"]))


def test_a_program_that_never_stops_its_batcher_ends():
  program = "from jaxmt.serving.batching import Batcher; Batcher(print)"
  subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
