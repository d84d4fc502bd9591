"""Dependency parsing of phrase lattices: seconds of a sentence and memory.

Lattices of 2,000 edges as a beam search of 25 source words leaves them: 24
hypotheses for each number of covered words, phrases of one to three words. A
sentence is what a sentence takes once its lattice is there: phrase pairs looked
up, longest paths, the 88 features of all arcs with random weights, scores, and
the best path with its tree. Source trees are drawn at random; phrase
dependencies are those of a random bitext of the same words. Vine limits as in
table 5.10 of Gimpel (2012), which took 1.14 s, 4.0 s and 6.2 s a sentence on
one thread of 2.6 GHz, longest paths included.
"""

import concurrent.futures
import dataclasses
import time

import bench
import numpy as np

from jaxmt.decode.dependency import configurations, lattice_chart, probabilities
from jaxmt.decode.dependency import lattice as lattices
from jaxmt.decode.dependency.configurations import SourceTree
from jaxmt.decode.dependency.probabilities import Dependencies
from jaxmt.grammar.extract import parsed_pairs, phrase_dependencies
from jaxmt.grammar.extract.phrase_dependencies import DependencyOptions
from jaxmt.parse import tree_forest
from jaxmt.runtime.runner import Runner
from jaxmt.text import kernels, treebank

_EDGES, _WORDS, _BEAM = 2000, 25, 24
# Source words and clusters of the language, sentences of the bitext.
_TYPES, _CLUSTERS, _PAIRS = 60, 20, 2000
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


def _target(word: int, rng: np.random.Generator) -> str:
  """A translation of a source word: one of a dozen, some are frequent."""
  return f"t{word}.{min(int(rng.geometric(0.3)), 12)}"


def random_dependencies(rng: np.random.Generator) -> Dependencies:
  """Returns the phrase dependencies of a random bitext, in source order."""
  source = rng.integers(0, _TYPES, (_PAIRS, 10))
  target = [" ".join(_target(word, rng) for word in row) for row in source]
  bank = treebank.from_lines(target)
  heads = tree_forest.random_trees(bank.lengths, seed=0)
  clusters = {
    word: f"c{int(word[1:].split('.')[0]) % _CLUSTERS}"
    for line in target
    for word in line.split()
  }
  pairs = parsed_pairs.from_lines(
    [" ".join(f"s{word}" for word in row) for row in source],
    target,
    [" ".join(f"{n}-{n}" for n in range(10))] * _PAIRS,
    dataclasses.replace(bank, heads=heads.flat),
    clusters,
  )
  table = phrase_dependencies.extract(
    phrase_dependencies.split(pairs),
    options=DependencyOptions(length=3),
    runner=Runner(workers=1),
  )
  return Dependencies(table=table, clusters=clusters)


def _sentence(rng, dependencies: Dependencies):
  """A function of the limits that parses a random lattice."""
  lattice = beam_lattice(rng)
  source = rng.integers(0, _TYPES, _WORDS)
  text = [
    " ".join(_target(source[word], rng) for word in range(begin, end))
    for begin, end in lattice.span.tolist()
  ]
  heads = tree_forest.random_trees(np.array([_WORDS]), seed=1).flat
  tree: SourceTree = configurations.source_tree(heads)
  names = [name for group in configurations.NAMES.values() for name in group]
  weights = dict(zip(names, rng.normal(size=len(names)) / 10, strict=True))
  words = [f"s{word}" for word in source]

  def parse(limits, spent):
    begin = time.thread_time()
    parts = configurations.arc_parts(
      lattice,
      tree=tree,
      options=probabilities.option_keys(lattice, text, words, dependencies),
      source_limit=limits[0],
      target_limit=limits[1],
    )
    arcs = configurations.scores(parts, weights)
    middle = time.thread_time()
    found = lattice_chart.best_tree(lattice, arcs)
    spent.append((middle - begin, time.thread_time() - middle))
    return found

  return parse


def run() -> list[dict]:
  """Returns a row for each pair of limits."""
  rng = np.random.default_rng(0)
  dependencies = random_dependencies(rng)
  work = [_sentence(rng, dependencies) for _ in range(4)]
  start = time.perf_counter()
  work[0]((3, 3), [])
  warm_up = time.perf_counter() - start
  threads = kernels.available_threads()
  rows = []
  for limits, thesis in _THESIS.items():
    spent: list[tuple[float, float]] = []
    for parse in work:
      parse(limits, spent)
    arcs, chart = np.array(spent).mean(axis=0).tolist()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
      wall = bench.timed(
        lambda: list(pool.map(lambda one: one(limits, []), work))  # noqa: B023
      )
    rows.append(
      {
        "limits": f"{limits[0]}, {limits[1]}",
        "CPU s/sentence": round(arcs + chart, 3),
        "of it features": round(arcs, 3),
        "sentences/s": round(len(work) / wall, 2),
        "threads": threads,
        "thesis s/sentence": thesis,
        "times as fast": round(thesis * len(work) / wall, 1),
        "warm-up s": round(warm_up, 2),
        "peak MB": round(bench.peak_memory_mb()),
      }
    )
  return rows
