"""Speed of phrase-based decoding on Moses' own models; model score beside it.

37,188 phrase pairs with reordering model, a 4-gram model, distortion limit
6, and Moses' 200 sentences, taken ten times. Rows give the beam K and the
candidates M per stack:

- those sentences at sizes whose mean model scores are Moses' (cube pruning with
  pops of 100 and 500), from source ids to target words;
- where the time of a thread goes: options, search, reading off;
- 12 and 25 words, one thread and one for each core;
- the array program, which other devices run, on this one.

"sentences/s per core" is by CPU time, which other work on the machine disturbs
less than "sentences/s".
"""

import gzip
import time

import bench
import numpy as np

from jaxmt.decode import derivation, loading, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode.chart import search
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.phrase import phrase_decoder
from jaxmt.text import kernels as cores

_CORPUS, _LM = "moses-multi30k-de-en", "cdec-multi30k-de-en"
_TIMES = 10
_POPS = (100, 500)


def load(folder, lm):
  """Moses' phrase-based model."""
  return loading.load_files(
    str(folder / "phrase" / "phrase-table.gz"),
    lm=str(lm / "lm4.arpa.gz"),
    weights=str(folder / "phrase" / "moses.ini"),
    dialect="moses",
    kind="phrase",
    reordering=str(folder / "phrase" / "reordering-table.gz"),
  ).model


def _peer(folder, pop: int) -> float:
  """Moses' mean model score."""
  with gzip.open(folder / "phrase" / f"kbest1.cube{pop}.gz", "rt") as lines:
    return float(np.mean([float(line.rsplit("|||", 1)[1]) for line in lines]))


def _read(model, part) -> np.ndarray:
  best = part.best()
  words = derivation.read_off(model, best).words
  translation_forest.spell(model, part.source, words)
  return best.score


def _measure(model, source, *, beam, pop, threads, repeat=3, kernel=None):
  """One row: speed by wall time and by CPU time, compile time, scores."""
  config = DecodeConfig(
    search=search.make_config(beam=beam, pop=pop), threads=threads
  )

  def run() -> np.ndarray:
    scores = np.zeros(len(source))
    for parts in phrase_decoder.decode(
      model, source, config=config, kernel=kernel
    ):
      for part in parts:
        scores[part.rows] = _read(model, part)
    return scores

  start = time.perf_counter()
  scores = run()
  first = time.perf_counter() - start
  busy = seconds = float("inf")
  for _ in range(repeat):
    cpu, start = time.process_time(), time.perf_counter()
    run()
    seconds = min(seconds, time.perf_counter() - start)
    busy = min(busy, time.process_time() - cpu)
  return scores, {
    "K": beam,
    "M": pop,
    "sentences/s": len(source) / seconds,
    "sentences/s per core": len(source) / busy,
    "first run s": first - seconds,
    "peak MB": bench.peak_memory_mb(),
  }


def _shares(model, source, *, beam: int, pop: int) -> dict:
  """Where the CPU time of one thread goes, ms a sentence."""
  config = DecodeConfig(search=search.make_config(beam=beam, pop=pop))
  sizes = phrase_decoder.stack_config(model, config)
  spent = np.full((3, 3), np.inf)
  for trial in range(3):
    spent[trial] = 0.0
    for rows in phrase_decoder.make_batches(source.ids.lengths):
      part = models.select_source(source, rows)
      clock = [time.process_time()]
      chart = phrase_decoder.build_chart(model, part)
      clock.append(time.process_time())
      beams = phrase_decoder.run_kernel(model, part, chart, config=sizes)
      clock.append(time.process_time())
      result = phrase_decoder.PhraseResult(
        rows=rows, source=part, chart=chart, beams=beams, arity=model.arity
      )
      _read(model, result)
      clock.append(time.process_time())
      spent[trial] += np.diff(clock)
  options, stacks, reading = 1000 * spent.min(0) / len(source)
  return {
    "case": "one thread: options / search / reading off, ms a sentence",
    "K": beam,
    "M": pop,
    "options ms": options,
    "search ms": stacks,
    "reading ms": reading,
  }


def length_rows(model, lines) -> list[dict]:
  """Rows of 12 and 25 words, one thread and one for each core."""
  words = " ".join(lines).split()
  rows = []
  for length in (12, 25):
    pieces = [
      " ".join(words[k : k + length])
      for k in range(0, len(words) - length, length)
    ]
    text = models.make_source(model, pieces * _TIMES)
    for number in sorted({1, cores.available_threads()}):
      _, row = _measure(model, text, beam=75, pop=150, threads=number)
      case = f"phrase-based, {length} words, {number} threads"
      rows.append({"case": case, **row})
  return rows


def run() -> list[dict]:
  """Returns one row per setting."""
  folder, lm = bench.corpus(_CORPUS), bench.corpus(_LM)
  if folder is None or lm is None:
    raise bench.InputError(f"JAXMT_DATA has no {_CORPUS} or no {_LM}")
  start = time.perf_counter()
  model = load(folder, lm)
  rows = [{"case": "load", "first run s": time.perf_counter() - start}]
  lines = (folder / "source.de").read_text().split("\n")[:-1]
  peers = {pop: _peer(folder, pop) for pop in _POPS}
  source = models.make_source(model, lines * _TIMES)
  threads = cores.available_threads()
  for beam, pop in ((50, 100), (60, 120), (75, 150), (100, 200), (200, 1000)):
    scores, row = _measure(model, source, beam=beam, pop=pop, threads=threads)
    case = {"case": f"{len(lines)} sentences, {threads} threads", **row}
    over = {f"over cube {p}": scores.mean() - peers[p] for p in _POPS}
    rows.append({**case, "score": scores.mean(), **over})
  rows.append(_shares(model, source, beam=75, pop=150))
  rows += length_rows(model, lines)
  few = models.make_source(model, lines)
  scores, row = _measure(
    model, few, beam=75, pop=150, threads=threads, repeat=1, kernel=False
  )
  rows.append({"case": "the array program", **row, "score": scores.mean()})
  return rows
