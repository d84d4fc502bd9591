"""Runners give the results in order, take few shards ahead, pass errors on."""

import threading

import pytest

from jaxmt.errors import InputError
from jaxmt.runtime import runner as runner_lib
from jaxmt.runtime.runner import Runner, map_shards

IN_PROCESS = [
  Runner(kind="serial"),
  Runner(kind="threads", workers=1),
  Runner(kind="threads", workers=3),
]


@pytest.mark.parametrize("runner", IN_PROCESS, ids=str)
def test_results_come_in_order(runner):
  found = list(map_shards(lambda n: n * n, range(20), runner=runner))
  assert found == [n * n for n in range(20)]
  assert not list(map_shards(lambda n: n, [], runner=runner))


@pytest.mark.parametrize("runner", IN_PROCESS, ids=str)
def test_few_shards_are_taken_ahead(runner):
  taken = []

  def shards():
    for number in range(50):
      taken.append(number)
      yield number

  results = map_shards(lambda n: n, shards(), runner=runner)
  for number in range(10):
    assert next(results) == number
    assert len(taken) <= number + 2 + runner.workers


def test_threads_work_at_once():
  meeting = threading.Barrier(2, timeout=120)

  def meet(number):
    meeting.wait()
    return number

  runner = Runner(kind="threads", workers=2)
  assert list(map_shards(meet, range(4), runner=runner)) == [0, 1, 2, 3]


@pytest.mark.parametrize("runner", IN_PROCESS, ids=str)
def test_the_first_error_comes_out_as_it_was(runner):
  def work(number):
    if number == 3:
      raise InputError("bad", path="f", line=3)
    return number

  results = map_shards(work, range(10), runner=runner)
  assert [next(results) for _ in range(3)] == [0, 1, 2]
  with pytest.raises(InputError, match="f:3: bad"):
    next(results)


@pytest.mark.parametrize(
  ("runner", "message"),
  [(Runner(kind="spark"), "'spark'"), (Runner(workers=0), "1 worker")],
)
def test_senseless_runners_are_refused(runner, message):
  with pytest.raises(ValueError, match=message):
    next(map_shards(lambda n: n, [1], runner=runner))
  with pytest.raises(ValueError, match=message):
    runner_lib.session(runner)


def test_ray_is_named_when_it_is_not_installed(monkeypatch):
  monkeypatch.setitem(__import__("sys").modules, "ray", None)
  with pytest.raises(InputError, match="needs the package ray"):
    next(map_shards(lambda n: n, [1], runner=Runner(kind="ray")))
