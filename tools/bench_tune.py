"""Tuning speed: every method on one k-best list, from all weights 0.1.

With JAXMT_DATA the list is kbest-multi30k-de-en (1,014 sentences, 95,610
candidates, 12 features); without it, noisy copies of the embedded corpus.
`first` is the first call, compilation included; `seconds` the least of two
later calls.
"""

import time

import bench
import numpy as np

from jaxmt.corpora import synthetic
from jaxmt.decode import candidate_lists
from jaxmt.features import sparse
from jaxmt.text import files, references
from jaxmt.tune import methods, pool
from jaxmt.tune.formats import kbest_files

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


def run() -> list[dict]:
  """Returns one row per method, after one for reading."""
  folder = bench.corpus("kbest-multi30k-de-en")
  made, row = _noisy() if folder is None else _real(folder)
  start = np.full(len(made.names), _START)
  before = pool.pool_score(made, start, "bleu")
  rows = [row, _row("(start)", before, None, None, None)]
  for name in methods.names(needs=methods.LISTS):
    method = methods.find(name)

    def tune(method=method):
      return method.optimise(made, start, method.config, 1)

    first = bench.timed(tune, repeat=1)
    times = []
    for _ in range(_REPEAT):
      clock, used = time.perf_counter(), time.process_time()
      tuned, _ = tune()
      times.append((time.perf_counter() - clock, time.process_time() - used))
    seconds, used = map(min, zip(*times, strict=True))
    score = pool.pool_score(made, tuned, "bleu")
    rows.append(_row(name, score, seconds, used, first))
  return rows
