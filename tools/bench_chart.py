"""Speed of chart search on other toolkits' own models, at their model scores.

Three models with the sentences they were measured on: cdec's and Moses' Hiero
grammars (German-English, 4-gram model) and Travatar's tree-to-string table
(English-Japanese, 5-gram model, binarised trees). Rows give the beam K and the
candidates M per cell, the mean model score, and by how much it is over those of
the toolkits at their pop limits:

- the host kernel on one thread for each core, from source ids to target words;
- where the time of one thread goes: matching and layout, search, reading off;
- the array program.

"sentences/s per core" is by CPU time, which other work on the machine disturbs
less than "sentences/s".
"""

import gzip
import pathlib
import time

import bench
import bench_decode
import numpy as np

from jaxmt.decode import derivation, loading, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode.chart import decoder, search
from jaxmt.text import kernels as cores

_TIMES = 3  # how often each sentence is taken
_SIZES = {
  "cdec": ((30, 120), (30, 180)),
  "moses": ((30, 80), (30, 180)),
  "travatar": ((100, 250), (500, 2000)),
}


def _folder(name: str) -> pathlib.Path:
  """The folder of a corpus.

  Raises:
    InputError: if there is none.
  """
  folder = bench.corpus(name)
  if folder is None:
    raise bench.InputError(f"JAXMT_DATA has no {name}")
  return folder


def _lines(path) -> list[str]:
  return path.read_text().split("\n")[:-1]


def _last_column(path, column: int = -1) -> float:
  """The mean of a column of a peer's list of best translations."""
  with gzip.open(path, "rt") as lines:
    return float(np.mean([float(line.split("|||")[column]) for line in lines]))


def _load_cdec():
  folder = _folder("cdec-multi30k-de-en")
  model = bench_decode.load_peer(folder)
  lines = _lines(folder / "source.de")
  peers = {
    f"pop {pop}": float(bench_decode._peer(folder, pop)[: len(lines)].mean())
    for pop in (100, 200)
  }
  return model, models.make_source(model, lines), peers


def _load_moses():
  folder = _folder("moses-multi30k-de-en")
  model = loading.load_files(
    str(folder / "hiero" / "rule-table.gz"),
    lm=str(_folder("cdec-multi30k-de-en") / "lm4.arpa.gz"),
    weights=str(folder / "hiero" / "moses.ini"),
    dialect="moses",
  ).model
  peers = {
    f"pop {pop}": _last_column(folder / "hiero" / f"kbest1.pop{pop}.gz")
    for pop in (100, 200)
  }
  return model, models.make_source(model, _lines(folder / "source.de")), peers


def _load_travatar():
  folder = _folder("travatar-enja")
  loaded = loading.load_files(
    str(folder / "rule-table.gz"),
    lm=str(folder / "lm5.ja.arpa.gz"),
    weights=str(folder / "travatar.ini"),
    dialect="travatar",
  )
  lines = _lines(folder / "source.en")
  spans = loading.read_spans(
    str(folder / "source.en.tree"),
    loaded.model,
    lines,
    binarize=loaded.binarize,
  )
  peers = {
    f"pop {pop}": _last_column(folder / f"kbest1.pop{pop}.gz", 2)
    for pop in (100, 500)
  }
  return (
    loaded.model,
    models.make_source(loaded.model, lines, spans=spans),
    peers,
  )


_PEERS = {
  "cdec": _load_cdec,
  "moses": _load_moses,
  "travatar": _load_travatar,
}


def _repeated(source):
  """The sentences several times, so that batches are full."""
  rows = np.tile(np.arange(len(source)), _TIMES)
  return models.select_source(source, rows)


def _read(model, part) -> np.ndarray:
  best = part.best()
  words = derivation.read_off(model, best).words
  translation_forest.spell(model, part.source, words)
  return best.score


def _measure(model, source, *, beam, pop, threads, backend, repeat=3):
  """One row: speed by wall time and by CPU time, compile time, scores."""
  config = decoder.DecodeConfig(
    search=search.make_config(beam=beam, pop=pop, backend=backend),
    threads=threads,
  )
  parameters = decoder.search_parameters(model, config.search)

  def run() -> np.ndarray:
    scores = np.zeros(len(source))
    for parts in decoder.decode(
      model, source, config=config, parameters=parameters
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
  config = search.make_config(beam=beam, pop=pop, backend="host")
  spent = np.full((3, 3), np.inf)
  batches = decoder.make_batches(
    decoder.sentence_cells(model, source), cells=4096
  )
  cells = 0
  for trial in range(3):
    spent[trial], cells = 0.0, 0
    for batch in batches:
      clock = [time.process_time()]
      prepared = decoder.prepare(model, source, batch, config=config)
      clock.append(time.process_time())
      beams = decoder.run_search(prepared, model, config=config)
      clock.append(time.process_time())
      (result,) = decoder.results(batch, prepared, beams)
      _read(model, result)
      clock.append(time.process_time())
      spent[trial] += np.diff(clock)
      cells += len(prepared.matches[0])
  matching, searching, reading = 1000 * spent.min(0) / len(source)
  return {
    "K": beam,
    "M": pop,
    "cells": cells / len(source),
    "matching ms": matching,
    "search ms": searching,
    "reading ms": reading,
  }


def run() -> list[dict]:
  """Returns one row per setting."""
  rows = []
  threads = cores.available_threads()
  for name, load in _PEERS.items():
    model, few, peers = load()
    source = _repeated(few)
    sizes = _SIZES[name]
    jobs = [(source, *size, threads, "host", 3) for size in sizes]
    jobs.append((few, *sizes[1], 1, "device", 1))
    for text, beam, pop, number, backend, repeat in jobs:
      scores, row = _measure(
        model,
        text,
        beam=beam,
        pop=pop,
        threads=number,
        backend=backend,
        repeat=repeat,
      )
      over = {f"over {pop}": scores.mean() - own for pop, own in peers.items()}
      case = f"{name}'s model, {backend}, {number} threads"
      rows.append({"case": case, **row, "score": scores.mean(), **over})
    case = f"{name}'s model, one thread: ms a sentence"
    rows.append({"case": case, **_shares(model, few, beam=30, pop=100)})
  return rows
