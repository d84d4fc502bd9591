"""Dependency parsing of phrase lattices: seconds of a sentence and memory.

Lattices of 2,000 edges as a beam search of 25 source words leaves them: 24
hypotheses for each number of covered words, phrases of one to three words. Arc
scores are random; vine limits as in table 5.10 of Gimpel (2012), which took
1.14 s, 4.0 s and 6.2 s a sentence on one thread of 2.6 GHz. Time includes the
matrix of longest paths, as there.
"""

import concurrent.futures
import time

import bench
import numpy as np

from jaxmt.decode.dependency import lattice as lattices
from jaxmt.decode.dependency import lattice_chart
from jaxmt.text import kernels

_EDGES, _WORDS, _BEAM = 2000, 25, 24
_THESIS = {(3, 3): 1.14, (10, 15): 4.0, (15, 20): 6.2}


def beam_lattice(rng: np.random.Generator) -> lattices.Lattice:
  """Returns a random lattice in the shape of a beam search."""
  covered = rng.integers(0, _WORDS, _EDGES)
  width = np.minimum(rng.integers(1, 4, _EDGES), _WORDS - covered)
  rank = rng.integers(0, _BEAM, (2, _EDGES))
  node = lambda words, rank: np.where(
    words == 0, 0, 1 + (words - 1) * _BEAM + rank
  )
  start, end = node(covered, rank[0]), node(covered + width, rank[1])
  begin = np.clip(covered + rng.integers(-5, 6, _EDGES), 0, _WORDS - width)
  order = np.argsort(start, kind="stable")
  final = np.full(1 + _WORDS * _BEAM, -np.inf, np.float32)
  final[-_BEAM:] = 0.0
  return lattices.Lattice(
    start=start[order].astype(np.int32),
    end=end[order].astype(np.int32),
    score=rng.normal(size=_EDGES).astype(np.float32),
    final=final,
    words=rng.integers(1, 4, _EDGES).astype(np.int32),
    span=np.stack([begin, begin + width], 1)[order].astype(np.int32),
  )


def _parse(lattice, scores, limits):
  longest = lattices.longest_paths(lattice)
  allowed = lattices.allowed_arcs(
    lattice, longest, source_limit=limits[0], target_limit=limits[1]
  )
  arcs = lattice_chart.ArcScores(
    right=np.where(allowed, scores, np.float32(-np.inf)),
    left=np.where(allowed, scores.T, np.float32(-np.inf)),
    root=np.zeros(len(lattice), np.float32),
  )
  return lattice_chart.best_tree(lattice, arcs)


def run() -> list[dict]:
  """Returns a row for each pair of limits."""
  rng = np.random.default_rng(0)
  work = [beam_lattice(rng) for _ in range(4)]
  scores = rng.normal(size=(_EDGES, _EDGES)).astype(np.float32)
  start = time.perf_counter()
  _parse(work[0], scores, (3, 3))
  warm_up = time.perf_counter() - start
  threads = kernels.available_threads()
  rows = []
  for limits, thesis in _THESIS.items():
    spent = []
    for lattice in work:
      begin = time.thread_time()
      _parse(lattice, scores, limits)
      spent.append(time.thread_time() - begin)
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
      wall = bench.timed(
        lambda: list(
          pool.map(lambda one: _parse(one, scores, limits), work)  # noqa: B023
        )
      )
    rows.append(
      {
        "limits": f"{limits[0]}, {limits[1]}",
        "CPU s/sentence": round(min(spent), 3),
        "sentences/s": round(len(work) / wall, 2),
        "threads": threads,
        "thesis s/sentence": thesis,
        "warm-up s": round(warm_up, 2),
        "peak MB": round(bench.peak_memory_mb()),
      }
    )
  return rows
