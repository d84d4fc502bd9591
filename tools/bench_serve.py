"""The server against the same decoder without it; its memory over time.

BENCH_RUN names the workdir of a finished run. 200 connections ask at once, one
sentence a request, its test sentences in turn; beside that, the same sentences
decoded in one call with the same settings. "of offline" is the ratio of the
two rates, the best of three rounds each, taken in turn. Then BENCH_REQUESTS
requests (2,000 if not set) of a few words: resident memory of the server after
each tenth.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import jaxmt
from jaxmt.errors import InputError
from jaxmt.experiment import finished_run
from jaxmt.experiment.stages.corpus import Corpus

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_CONNECTIONS = 200
_STEPS = 10
_ROUNDS = 3
_SHORT = 3  # words of the sentences that memory is measured with


@contextlib.contextmanager
def _server(workdir: str):
  """Starts the server; gives its process and port."""
  process = subprocess.Popen(
    [
      sys.executable,
      str(_ROOT / "launch/serve.py"),
      f"--workdir={workdir}",
      "--port=0",
      "--seconds=600",
    ],
    stderr=subprocess.PIPE,
    text=True,
  )
  try:
    assert process.stderr is not None
    for line in process.stderr:
      if "listening" in line:
        yield process, int(line.rstrip("/\n").rsplit(":", 1)[1])
        return
    raise InputError("the server did not start")
  finally:
    process.terminate()
    process.wait()


def _ask_all(port: int, lines: Sequence[str], connections: int) -> float:
  """Asks for all lines over some connections; returns the seconds it took."""
  local = threading.local()

  def ask(line: str) -> None:
    link = getattr(local, "link", None)
    if link is None:
      link = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
      local.link = link
    link.request("POST", "/translate", json.dumps({"text": line}))
    answer = link.getresponse()
    body = answer.read()
    if answer.status != 200:
      raise InputError(f"{answer.status}: {body[:200]!r}")

  with concurrent.futures.ThreadPoolExecutor(connections) as pool:
    start = time.perf_counter()
    list(pool.map(ask, lines))
    return time.perf_counter() - start


def _resident_mb(process: subprocess.Popen) -> float:
  with open(f"/proc/{process.pid}/statm") as facts:
    pages = int(facts.read().split()[1])
  return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def run() -> list[dict[str, object]]:
  """Returns rows of rates, then of memory."""
  workdir = os.environ.get("BENCH_RUN")
  if not workdir:
    raise InputError("set BENCH_RUN to the workdir of a finished run")
  finished = finished_run.read(workdir)
  texts = finished.record(finished.corpus, Corpus).test_source
  lines = [line for line in texts if line.strip()]
  lines = (lines * (2 * _CONNECTIONS // len(lines) + 1))[: 2 * _CONNECTIONS]
  model = jaxmt.load(workdir)
  offline, served = [], []
  total = int(os.environ.get("BENCH_REQUESTS", "2000"))
  rows: list[dict[str, object]] = []
  with _server(workdir) as (process, port):
    jaxmt.decode(model, lines, forests=False)  # compiles
    _ask_all(port, lines, _CONNECTIONS)
    for _ in range(_ROUNDS):
      start = time.perf_counter()
      jaxmt.decode(model, lines, forests=False)
      offline.append(time.perf_counter() - start)
      served.append(_ask_all(port, lines, _CONNECTIONS))
    rates = [len(lines) / min(seconds) for seconds in (offline, served)]
    rows.append(
      {
        "what": f"{len(lines)} requests, {_CONNECTIONS} at once",
        "offline/s": round(rates[0], 1),
        "served/s": round(rates[1], 1),
        "of offline": round(rates[1] / rates[0], 3),
      }
    )
    short = [" ".join(line.split()[:_SHORT]) for line in lines]
    done = 0
    for step in range(1, _STEPS + 1):
      number = total * step // _STEPS - done
      some = (short * (number // len(short) + 1))[:number]
      _ask_all(port, some, _CONNECTIONS)
      done += number
      rows.append(
        {
          "what": f"after {done:,} short requests",
          "resident MB": _resident_mb(process),
        }
      )
  return rows
