"""Tuning speed: every method on one k-best list, from all weights 0.1.

With JAXMT_DATA the list is kbest-multi30k-de-en (1,014 sentences, 95,610
candidates, 12 features); without it, noisy copies of the embedded corpus.
`first` is the first call, compilation included; `seconds` the least of two
later calls. Below the methods by name: options of methods, methods on shards,
and non-linear re-rankers, which start from the weights of k-best MIRA and learn
from these lists, too. `BENCH_METHODS=mert,pro` measures only rows that begin
so.
"""

import os
import time
from collections.abc import Callable, Iterator

import bench
import numpy as np

from jaxmt.corpora import synthetic
from jaxmt.decode import candidate_lists
from jaxmt.features import sparse
from jaxmt.text import files, references
from jaxmt.tune import methods, mixing, pool
from jaxmt.tune.formats import kbest_files
from jaxmt.tune.lists import boosting, rerankers

_START = 0.1
_REPEAT = 2


def _real(folder) -> tuple[candidate_lists.CandidateLists, dict]:
  path = str(folder / "dev.kbest.cdec.gz")
  lines = references.read_references([str(folder / "dev.ref.en")])
  kbest_files.parse_kbest(b"0 ||| a ||| x=1 ||| 0\n")  # compile

  def read() -> candidate_lists.CandidateLists:
    found = kbest_files.parse_kbest(files.read_bytes(path), path=path)
    return pool.make_pool(found, sentences=len(lines))

  first = bench.timed(read, repeat=1)
  seconds = bench.timed(read)
  made = read()
  clock = time.perf_counter()
  made = pool.with_statistics(made, lines)
  statistics = time.perf_counter() - clock
  name = f"(read; statistics {statistics:.2f} s)"
  return made, _row(name, None, seconds, None, first)


def _row(method, score, seconds, cpu, first) -> dict:
  return {
    "method": method,
    "pool BLEU": None if score is None else f"{score:.5f}",
    "seconds": seconds,
    "cpu s": cpu,
    "first": first,
  }


def _noisy() -> tuple[candidate_lists.CandidateLists, dict]:
  """Candidates: references with words dropped, changed and added."""
  clock = time.perf_counter()
  split = synthetic.generate(
    synthetic.SyntheticConfig(train=1, tune=300, test=1)
  ).tune
  rng = np.random.default_rng(0)
  texts = split.references[0]
  vocabulary = sorted({word for line in texts for word in line.split()})
  lines, sentence, values = [], [], []
  for number, line in enumerate(texts):
    words = line.split()
    for _ in range(50):
      rate = rng.uniform(0.1, 0.5)
      draws = rng.uniform(size=len(words))
      others = rng.choice(vocabulary, len(words))
      kept = []
      for word, other, draw in zip(words, others, draws, strict=True):
        if draw < rate / 2:
          kept.append(str(other))
        elif draw > rate / 3 + rate / 2:
          kept.append(word)
        if draw > 1 - rate / 4:
          kept.append(str(other))
      lines.append(" ".join(kept))
      sentence.append(number)
      noise = rng.normal(size=6)
      values.append([len(kept), -10 * rate + noise[0], *noise[1:]])
  table = np.array(values)
  count, width = table.shape
  rows = sparse.canonical(
    np.tile(np.arange(width), count),
    table.ravel(),
    np.arange(count + 1) * width,
  )
  candidates = candidate_lists.from_rows(
    sentence=np.array(sentence),
    lines=lines,
    features=rows,
    names=tuple(f"f{n}" for n in range(width)),
  )
  made = pool.make_pool(candidates, sentences=len(texts))
  made = pool.with_statistics(made, [[line] for line in texts])
  seconds = time.perf_counter() - clock
  return made, _row("(made up: no JAXMT_DATA)", None, seconds, None, seconds)


# Options of methods that have a row of their own.
_OPTIONS = (
  ("mert", {"starts": "walk", "spread": "0.3"}),
  ("mert", {"starts": "normal", "spread": "0.3"}),
  ("mert", {"margin": "0.01"}),
  ("mert", {"regularizer": "l2", "strength": "0.02"}),
  ("mert", {"regularizer": "l0", "strength": "0.02"}),
  ("perceptron", {"decay": "0.99"}),
  ("arow", {"decay": "0.99"}),
  ("perceptron", {"costs": "corpus-oracle", "surrogate": "oracle"}),
)
# Settings of mixing: four shards, five rounds.
_MIXED = (
  {},
  {"weighting": "updates"},
  {"mean": True},
  {"delay": 3, "batch": 10},
)
# What is measured: lists, start -> scores of all candidates.
Tune = Callable[[candidate_lists.CandidateLists, np.ndarray], np.ndarray]


def _by_weights(method: methods.Method) -> Tune:
  def tune(lists, start):
    tuned, _ = methods.run(method, lists, start, 1)
    return pool.scores(lists, tuned)

  return tune


def _reranker(config: rerankers.RerankConfig) -> Tune:
  def tune(lists, start):
    begun, _ = methods.run(methods.find("kbmira"), lists, start, 1)
    fitted = rerankers.fit(lists, begun, config, 1)
    return rerankers.rerank_scores(lists, fitted)

  return tune


def _boosted(lists, start) -> np.ndarray:
  begun, _ = methods.run(methods.find("kbmira"), lists, start, 1)
  rankers, _ = boosting.boost(lists, begun, boosting.BoostConfig(), 1)
  return boosting.combined_scores(lists, rankers)


def _rows() -> Iterator[tuple[str, Tune]]:
  """All rows by name."""
  for name in methods.names(needs=methods.LISTS):
    yield name, _by_weights(methods.find(name))
  for name, changes in _OPTIONS:
    told = ", ".join(f"{key}={value}" for key, value in changes.items())
    method = methods.configure(methods.find(name), changes)
    yield f"{name}, {told}", _by_weights(method)
  inner = methods.configure(methods.find("perceptron"), {"passes": "2"})
  for settings in _MIXED:
    told = ", ".join(f"{key}={value}" for key, value in settings.items())
    method = mixing.wrap(inner, metric="bleu", shards=4, rounds=5, **settings)
    yield f"mixed perceptron, {told or 'uniform'}", _by_weights(method)
  for model in rerankers.MODELS:
    yield f"re-ranker {model}", _reranker(rerankers.RerankConfig(model=model))
  yield "re-ranker boosted", _boosted


def run() -> list[dict]:
  """Returns one row per method, after one for reading."""
  folder = bench.corpus("kbest-multi30k-de-en")
  made, row = _noisy() if folder is None else _real(folder)
  start = np.full(len(made.names), _START)
  before = pool.pool_score(made, start, "bleu")
  rows = [row, _row("(start)", before, None, None, None)]
  wanted = tuple(filter(None, os.environ.get("BENCH_METHODS", "").split(",")))
  for name, tune in _rows():
    if wanted and not name.startswith(wanted):
      continue
    first = bench.timed(lambda tune=tune: tune(made, start), repeat=1)
    times = []
    for _ in range(_REPEAT):
      clock, used = time.perf_counter(), time.process_time()
      values = tune(made, start)
      times.append((time.perf_counter() - clock, time.process_time() - used))
    seconds, used = map(min, zip(*times, strict=True))
    score = rerankers.chosen_score(made, values, "bleu")
    rows.append(_row(name, score, seconds, used, first))
  return rows
