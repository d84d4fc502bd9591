"""Speed of decoding, with matching; model score beside it.

With real data: a Hiero grammar of 177k rules, a 4-gram model, 100 sentences of
12 words. Rows give the beam K and the candidates M per cell:

- the peer's sentences, with model scores against the peer's;
- trigrams and 4-grams, 12 and 25 words, one thread and one for each core (the
  trigram model is the 4-gram model without its last level);
- cost against length and against the beam;
- the phrase pairs of the same grammar as a bracketing grammar (BTG) with a
  maximum-entropy reordering model, whose parameters are 0: speed only;
- Moses' phrase-based model, if the data has it: 12 and 25 words;
- loss-augmented decoding, and 100-best lists;
- the time from starting `launch/translate.py` to the first translation, with
  nothing compiled, with kernels compiled, and with everything compiled.

"first run s" is what the first run took longer than the best of the others:
compilation. "peak MB" is the peak of the process so far.
"""

import dataclasses
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import bench
import bench_phrase
import numpy as np

from jaxmt.decode import derivation, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode.chart import augmentations, beam_forest, decoder, search
from jaxmt.features import maxent_reordering
from jaxmt.features import weights as weight_files
from jaxmt.grammar import btg, formats
from jaxmt.grammar import table as tables
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.grammar.table import Kind
from jaxmt.lm import arpa_read
from jaxmt.lm import tables as lm_tables
from jaxmt.text import kernels as cores

_CORPUS = "cdec-multi30k-de-en"


def _peer(folder, pop: int) -> np.ndarray:
  """The peer's model scores at a pop limit."""
  with gzip.open(folder / f"cdec.pop{pop}.kbest1.gz", "rt") as lines:
    return np.array([float(line.rsplit("|||", 1)[1]) for line in lines])


def load_peer(folder, order: int = 4):
  """The peer's model, with its n-gram model or one of lower order."""
  table = formats.read(str(folder / "grammar.scfg.gz"), "cdec")
  lm = arpa_read.read_arpa(str(folder / "lm4.arpa.gz"))
  top = lm.levels[order - 1]
  top = dataclasses.replace(top, backoff=np.zeros_like(top.backoff))
  lm = dataclasses.replace(lm, levels=(*lm.levels[: order - 1], top))
  lines = (folder / "weights.txt").read_text().split("\n")
  return models.make_model(
    table,
    lm_tables.build_tables(lm),
    weights=weight_files.parse_weights(lines),
    units=models.DIALECTS["cdec"],
    limits=MatchConfig(pass_through="all"),
  )


def _decode(model, source, parameters, config) -> np.ndarray:
  """Decodes everything to words; returns the scores."""
  scores = np.zeros(len(source))
  for parts in decoder.decode(
    model, source, config=config, parameters=parameters
  ):
    for part in parts:
      best = part.best()
      translation_forest.spell(
        model, part.source, derivation.read_off(model, best).words
      )
      scores[part.rows] = best.score
  return scores


def _measure(model, source, *, threads, repeat=3, batch_cells=4096, **sizes):
  """One row: speed, compile time, score."""
  config = decoder.DecodeConfig(
    search=search.make_config(**sizes),
    threads=threads,
    batch_cells=batch_cells,
  )
  parameters = decoder.search_parameters(model, config.search)
  run = lambda: _decode(model, source, parameters, config)
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
    decoder.sentence_cells(model, source), cells=4096
  )
  config = search.make_config(beam=30, pop=200)
  return bench.timed(
    lambda: [
      decoder.prepare(model, source, batch, config=config) for batch in batches
    ]
  )


def _loss_augmented(model, source, references) -> dict:
  """Loss-augmented decoding at beam 100, one thread."""
  config = search.make_config(beam=100, pop=200)
  batches = decoder.make_batches(
    decoder.sentence_cells(model, source), cells=4096
  )
  hook = augmentations.loss_augmented()
  parameters = decoder.search_parameters(model, config, augmented=True)

  def run():
    for batch in batches:
      prepared = decoder.prepare(model, source, batch, config=config)
      inputs = decoder.make_inputs(
        model, prepared, [[references[row] for row in batch[0]]]
      )
      decoder.run_search(
        prepared,
        model,
        inputs,
        config=config,
        parameters=parameters,
        augmentation=hook,
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


def _lists(model, source, *, size: int) -> dict:
  """Unique n-best lists with features, one thread."""
  config = decoder.DecodeConfig(
    search=search.make_config(beam=30, pop=200, forest=True)
  )
  spent = []

  def run():
    spent.append(0.0)
    for parts in decoder.decode(model, source, config=config):
      for part in parts:
        start = time.perf_counter()
        made = beam_forest.extract(model, part)
        found = translation_forest.kbest(
          model, part.source, made, size=size, unique=True
        )
        every = translation_forest.derivations(made, found)
        translation_forest.derivation_features(
          model, part.source, every, found.words
        )
        translation_forest.strings(model, part.source, found)
        spent[-1] += time.perf_counter() - start

  start = time.perf_counter()
  run()
  first = time.perf_counter() - start
  cpu = time.process_time()
  seconds = bench.timed(run, repeat=1)
  busy = time.process_time() - cpu
  return {
    "case": f"{size}-best, unique, 1 thread",
    "K": 30,
    "M": 200,
    "sentences/s": len(source) / seconds,
    "cpu ms/sentence": 1000 * busy / len(source),
    "lists ms/sentence": 1000 * min(spent) / len(source),
    "first run s": first - seconds,
    "peak MB": bench.peak_memory_mb(),
  }


def _start(folder, line: str, *, caches: pathlib.Path) -> float:
  """Seconds from starting the program to the first translation."""
  program = pathlib.Path(__file__).parents[1] / "launch" / "translate.py"
  command = [
    *(sys.executable, str(program), "--dialect=cdec", "--input=-"),
    f"--grammar={folder / 'grammar.scfg.gz'}",
    f"--lm={folder / 'lm4.arpa.gz'}",
    f"--weights={folder / 'weights.txt'}",
    f"--compile_cache={caches / 'jax'}",
  ]
  start = time.perf_counter()
  subprocess.run(
    command,
    input=f"{line}\n".encode(),
    check=True,
    capture_output=True,
    env={**os.environ, "NUMBA_CACHE_DIR": str(caches / "numba")},
  )
  return time.perf_counter() - start


def _starts(folder, line: str) -> list[dict]:
  """Cold and warm starts."""
  rows = []
  with tempfile.TemporaryDirectory() as temporary:
    caches = pathlib.Path(temporary)
    for case in ("nothing", "kernels", "everything"):
      if case == "kernels":  # what XLA compiled is forgotten
        (caches / "jax").rename(caches / "old")
      rows.append(
        {
          "case": f"start to first translation, {case} compiled before",
          "first run s": _start(folder, line, caches=caches),
        }
      )
  return rows


def _cut(lines: list[str], length: int, count: int) -> list[str]:
  """Running text in pieces of `length` words."""
  words = " ".join(lines).split()
  starts = range(0, len(words) - length, length)
  return [" ".join(words[k : k + length]) for k in starts][:count]


def _against_peer(model, lines, folder) -> list[dict]:
  """The peer's sentences at several sizes."""
  peers = {pop: _peer(folder, pop)[: len(lines)] for pop in (100, 200)}
  source = models.make_source(model, lines)
  all_cores = cores.available_threads()
  rows = []
  for beam, pop, threads in (
    (30, 128, all_cores),
    (30, 176, all_cores),
    (30, 200, all_cores),
    (30, 200, 1),
  ):
    scores, row = _measure(model, source, beam=beam, pop=pop, threads=threads)
    rows.append(
      {
        "case": f"{len(lines)} sentences, {threads} threads",
        "K": beam,
        "M": pop,
        **row,
        "score": scores.mean(),
        "over peer pop 100": scores.mean() - peers[100].mean(),
        "over peer pop 200": scores.mean() - peers[200].mean(),
        "share >= pop 200": float((scores >= peers[200] - 1e-3).mean()),
      }
    )
  return rows


def _against_length(loaded, lines, *, settings, count: int = 40) -> list[dict]:
  """Rows for `(order, words, beam, threads)`; `loaded[order]` is a model."""
  rows = []
  for order, length, beam, threads in settings:
    model = loaded[order]
    pop = max(200, 2 * beam)
    source = models.make_source(
      model, _cut(lines, length, min(count, 1000 // length))
    )
    _, row = _measure(
      model, source, beam=beam, pop=pop, threads=threads, repeat=2
    )
    name = f"{order}-grams, {length} words, {threads} threads"
    rows.append({"case": name, "K": beam, "M": pop, **row})
  return rows


def load_btg(folder):
  """The phrase pairs of the peer's grammar in a bracketing grammar."""
  peer = load_peer(folder)
  table = tables.select(
    peer.table,
    (tables.arity(peer.table) == 0)
    | (np.isin(peer.table.kind, [Kind.GLUE, Kind.PASS_THROUGH])),
  )
  known = table.source_words, table.target_words
  sizes = (len(known[0].words), len(known[1].words))
  bits = maxent_reordering.MaxEntOptions().bits
  theta = np.zeros(maxent_reordering.num_parameters(sizes, bits), np.float32)
  reordering = maxent_reordering.ReorderingModel(
    source_words=known[0], target_words=known[1], theta=theta, bits=bits
  )
  return models.make_model(
    btg.with_joining_rules(table),
    peer.lm,
    weights={**peer.weights, maxent_reordering.NAME: 0.5},
    units=peer.units,
    limits=MatchConfig(span=15, pass_through="all", glue="needed"),
    features=maxent_reordering.make_features(reordering),
  )


def btg_rows(folder, lines, *, count: int = 40) -> list[dict]:
  """Rows of a bracketing grammar, 12 and 25 words."""
  model = load_btg(folder)
  rows = []
  for length in (12, 25):
    source = models.make_source(
      model, _cut(lines, length, min(count, 1000 // length))
    )
    for threads in sorted({1, cores.available_threads()}):
      _, row = _measure(
        model, source, beam=30, pop=200, threads=threads, repeat=2
      )
      name = f"BTG, {length} words, {threads} threads"
      rows.append({"case": name, "K": 30, "M": 200, **row})
  return rows


def _settings() -> list[tuple[int, int, int, int]]:
  """Orders, lengths, beams and threads to measure, each once."""
  both = sorted({1, cores.available_threads()})
  grid = [(n, size, 30, t) for n in (3, 4) for size in (12, 25) for t in both]
  most = both[-1]
  longer = [(4, size, 30, most) for size in (6, 50)]
  wider = [(4, 12, beam, most) for beam in (10, 100, 200)]
  return [*grid, *longer, *wider]


def run() -> list[dict]:
  """Returns one row per setting."""
  folder = bench.corpus(_CORPUS)
  if folder is None:
    raise bench.InputError(f"JAXMT_DATA has no {_CORPUS}")
  lines = (folder / "source.de").read_text().split("\n")[:-1]
  rows = _starts(folder, lines[0])
  start = time.perf_counter()
  model = load_peer(folder)
  load = time.perf_counter() - start
  source = models.make_source(model, lines)
  rows += [
    {"case": "load", "first run s": load},
    {
      "case": "match only",
      "sentences/s": len(source) / _match_seconds(model, source),
    },
  ]
  rows += _against_peer(model, lines, folder)
  lower = load_peer(folder, order=3)
  rows += _against_length({3: lower, 4: model}, lines, settings=_settings())
  rows += btg_rows(folder, lines)
  phrases = bench.corpus("moses-multi30k-de-en")
  if phrases is not None:
    rows += bench_phrase.length_rows(bench_phrase.load(phrases, folder), lines)
  references = (folder / "reference.en").read_text().split("\n")[:-1]
  rows.append(_loss_augmented(model, source, references))
  rows.append(_lists(model, source, size=100))
  return rows
