"""Speed of decoding, with matching; model score beside it.

With real data: a Hiero grammar of 177k rules, a 4-gram model, 100 sentences of
12 words. Rows give the beam K and the candidates M per cell. Also the cost
against sentence length, and against the beam, and loss-augmented decoding.
"""

import gzip
import os
import time

import bench
import jax
import numpy as np

from jaxmt.chart import augmentations, decoder, derivation, search
from jaxmt.chart import model as models
from jaxmt.features import weights as weight_files
from jaxmt.grammar import formats
from jaxmt.grammar.match import MatchConfig
from jaxmt.lm import arpa_read, automaton
from jaxmt.lm import tables as lm_tables

_CORPUS = "cdec-multi30k-de-en"


def _peer(folder, pop: int) -> np.ndarray:
  """The peer's model scores at a pop limit."""
  with gzip.open(folder / f"cdec.pop{pop}.kbest1.gz", "rt") as lines:
    return np.array([float(line.rsplit("|||", 1)[1]) for line in lines])


def _load(folder):
  table = formats.read(str(folder / "grammar.scfg.gz"), "cdec")
  lm = lm_tables.build_tables(arpa_read.read_arpa(str(folder / "lm4.arpa.gz")))
  lines = (folder / "weights.txt").read_text().split("\n")
  return models.make_model(
    table,
    lm,
    weights=weight_files.parse_weights(lines),
    units=models.DIALECTS["cdec"],
    limits=MatchConfig(pass_through="all"),
  )


def _decode(model, source, lm, config) -> np.ndarray:
  """Decodes everything to words; returns the scores."""
  scores = np.zeros(len(source))
  for parts in decoder.decode(model, source, config=config, lm=lm):
    for part in parts:
      best = part.best()
      derivation.strings(
        model, part.source, derivation.read_off(model, best).words
      )
      scores[part.rows] = best.score
  return scores


def _measure(
  model, source, lm, *, threads, repeat=3, batch_cells=4096, **sizes
):
  """One row: speed, compile time, score."""
  config = decoder.DecodeConfig(
    search=search.make_config(**sizes),
    threads=threads,
    batch_cells=batch_cells,
  )
  run = lambda: _decode(model, source, lm, config)
  start = time.perf_counter()
  scores = run()
  first = time.perf_counter() - start
  busy = float("inf")
  seconds = float("inf")
  for _ in range(repeat):
    cpu, start = time.process_time(), time.perf_counter()
    run()
    seconds = min(seconds, time.perf_counter() - start)
    busy = min(busy, time.process_time() - cpu)
  return scores, {
    "sentences/s": len(source) / seconds,
    "cpu ms/sentence": 1000 * busy / len(source),
    "first run s": first - seconds,
    "peak MB": bench.peak_memory_mb(),
  }


def _match_seconds(model, source) -> float:
  batches = decoder.make_batches(
    source.ids.lengths, span=model.limits.span, cells=4096
  )
  config = search.make_config(beam=30, pop=200)
  return bench.timed(
    lambda: [
      decoder.prepare(model, source, batch, config=config) for batch in batches
    ]
  )


def _loss_augmented(model, source, lm, references) -> dict:
  """Loss-augmented decoding at beam 100, one thread."""
  config = search.make_config(beam=100, pop=200)
  batches = decoder.make_batches(
    source.ids.lengths, span=model.limits.span, cells=4096
  )
  weights = decoder.search_weights(model)
  hook = augmentations.loss_augmented()

  def run():
    for batch in batches:
      prepared = decoder.prepare(model, source, batch, config=config)
      inputs = augmentations.make_inputs(
        model, prepared, [[references[row] for row in batch[0]]]
      )
      decoder.run_search(
        prepared, lm, weights, inputs, config=config, augmentation=hook
      )

  start = time.perf_counter()
  run()
  first = time.perf_counter() - start
  cpu = time.process_time()
  seconds = bench.timed(run, repeat=1)
  busy = time.process_time() - cpu
  return {
    "case": "loss-augmented, 1 thread",
    "K": 100,
    "M": 200,
    "sentences/s": len(source) / seconds,
    "cpu ms/sentence": 1000 * busy / len(source),
    "first run s": first - seconds,
    "peak MB": bench.peak_memory_mb(),
  }


def run() -> list[dict]:
  """Returns one row per setting."""
  folder = bench.corpus(_CORPUS)
  if folder is None:
    raise bench.InputError(f"JAXMT_DATA has no {_CORPUS}")
  start = time.perf_counter()
  model = _load(folder)
  lm = automaton.to_device(model.lm)
  jax.block_until_ready(lm)
  load = time.perf_counter() - start
  lines = (folder / "source.de").read_text().split("\n")[:-1]
  source = models.make_source(model, lines)
  cores = os.cpu_count() or 1
  peers = {pop: _peer(folder, pop) for pop in (100, 200)}
  rows = [
    {"case": "load", "first run s": load},
    {
      "case": "match only",
      "sentences/s": len(source) / _match_seconds(model, source),
    },
  ]
  for beam, pop in ((30, 128), (30, 176), (30, 200)):
    for threads in sorted({1, cores}):
      scores, row = _measure(
        model, source, lm, beam=beam, pop=pop, threads=threads
      )
      rows.append(
        {
          "case": f"100 sentences, {threads} threads",
          "K": beam,
          "M": pop,
          **row,
          "score": scores.mean(),
          "over peer pop 100": scores.mean() - peers[100].mean(),
          "over peer pop 200": scores.mean() - peers[200].mean(),
          "share >= pop 200": float((scores >= peers[200] - 1e-3).mean()),
        }
      )
  for length in (6, 12, 25):
    words = " ".join(lines).split()
    cut = [
      " ".join(words[k : k + length])
      for k in range(0, min(len(words) - length, 24 * length), length)
    ]
    _, row = _measure(
      model, models.make_source(model, cut), lm, beam=30, pop=200, threads=cores
    )
    rows.append({"case": f"{length} words", "K": 30, "M": 200, **row})
  references = (folder / "reference.en").read_text().split("\n")[:-1]
  rows.append(_loss_augmented(model, source, lm, references))
  return rows
