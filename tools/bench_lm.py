"""Benchmark: estimation, ARPA files, automaton queries.

Warm-up is loading or compiling kernels and, on the device, XLA's compilation.
Where `lmplz` (KenLM) is on the PATH or the `kenlm` module is installed, their
rows stand beside ours; lmplz's time holds its process start.
"""

import importlib
import pathlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable

import bench
import jax
import numpy as np

from jaxmt.corpora import synthetic
from jaxmt.lm import (
  arpa_read,
  arpa_write,
  automaton,
  kneser_ney,
  ngram_model,
  tables,
  word_ids,
)
from jaxmt.text import files, vocabulary
from jaxmt.text.ragged import Ragged

_BATCH = 100_000
_STEPS = 12  # words read one after the other by each row of a batch
_REPEAT = 7
_QUERY_REPEAT = 30  # they take milliseconds


def run() -> list[dict]:
  """Measures everything there is."""
  name, train, held_out = _corpus()
  rows = []
  with tempfile.TemporaryDirectory() as folder:
    path = str(pathlib.Path(folder) / "train.txt")
    files.write_lines(path, train)
    for order in (3, 4, 5):
      rows += _files(name, path, folder, order)
    for order in (3, 5):
      made = _estimate(path, order)
      rows += _queries(name, made, held_out)
      rows += _kenlm(name, folder, made, held_out)
  return rows


def _corpus() -> tuple[str, list[str], list[str]]:
  """The corpus' name, lines to estimate from and lines to ask about."""
  real = bench.corpus("multi30k-de-en")
  if real is not None:
    ends = ("train.en.gz", "dev.en.gz", "test2016.en.gz")
    train, dev, test = (files.read_lines(str(real / end)) for end in ends)
    return "multi30k en", train, dev + test
  config = synthetic.SyntheticConfig(train=20_000, tune=0, test=1000)
  made = synthetic.generate(config)
  return "synthetic", made.train.references[0], made.test.references[0]


def _row(task: str, corpus: str, order: int, **values: object) -> dict:
  empty = dict.fromkeys(
    ("seconds", "warm_up_s", "amount", "per_second", "bytes_per_ngram")
  )
  return {"task": task, "corpus": corpus, "order": order, **empty, **values}


def _warm(
  function: Callable[[], object], *, repeat: int = _REPEAT
) -> tuple[float, float]:
  """Returns what the first call took longer, and the least of the others."""
  start = time.perf_counter()
  function()
  first = time.perf_counter() - start
  best = bench.timed(function, repeat=repeat)
  return max(first - best, 0.0), best


def _estimate(path: str, order: int) -> ngram_model.NgramModel:
  sentences, words = word_ids.encode_corpus(files.read_lines(path))
  config = kneser_ney.EstimateConfig(order=order, fallback=kneser_ney.FALLBACK)
  return kneser_ney.estimate(sentences, words, config)


def _files(corpus: str, path: str, folder: str, order: int) -> list[dict]:
  """Text to ARPA file, ARPA file to arrays, arrays to tables."""
  arpa = str(pathlib.Path(folder) / f"{order}.arpa")
  rows = []
  tokens = sum(len(line.split()) for line in files.read_lines(path))

  def add(task, function, amount, **values):
    first, best = _warm(function)
    rows.append(
      _row(
        task,
        corpus,
        order,
        seconds=best,
        warm_up_s=first,
        amount=amount,
        per_second=None if amount is None else _amount(amount) / best,
        **values,
      )
    )

  add(
    "text to ARPA",
    lambda: arpa_write.write_arpa(arpa, _estimate(path, order)),
    f"{tokens} words",
  )
  program = shutil.which("lmplz")
  if program:
    command = [program, "-o", str(order), "--text", path, "--arpa", arpa + "2"]
    command += ["-S", "2G", "--discount_fallback"]
    add(
      "text to ARPA, lmplz",
      lambda: subprocess.run(command, check=True, capture_output=True),
      f"{tokens} words",
    )
  made = arpa_read.read_arpa(arpa)
  ngrams = f"{sum(made.counts)} n-grams"
  add("ARPA to model", lambda: arpa_read.read_arpa(arpa), ngrams)
  table = tables.build_tables(made)
  add(
    "model to automaton",
    lambda: tables.build_tables(made),
    ngrams,
    bytes_per_ngram=table.bytes_per_ngram,
  )
  return rows


def _amount(text: str) -> int:
  return int(text.split()[0])


def _queries(
  corpus: str, made: ngram_model.NgramModel, lines: list[str]
) -> list[dict]:
  """Queries of the automaton, on the device and on the host."""
  table = tables.build_tables(made)
  ids, tokens = vocabulary.intern(lines)
  known = tables.word_map(table, tokens)
  sentences = Ragged(flat=known[ids.flat], offsets=ids.offsets)
  rows = []
  device = automaton.to_device(table)
  step = jax.jit(automaton.step)
  begin, _ = automaton.init(device, (_BATCH,))
  for kind, words in _words(sentences, len(table.words)).items():
    columns = [jax.device_put(column) for column in words]

    def ask(columns=columns):
      states = [begin]
      for column in columns:
        states.append(step(device, states[-1], column)[1])
      jax.block_until_ready(states)

    first, best = _warm(ask, repeat=_QUERY_REPEAT)
    rows.append(
      _row(
        f"device queries, {kind}",
        corpus,
        made.order,
        seconds=best,
        warm_up_s=first,
        amount=f"{words.size} queries",
        per_second=words.size / best,
        bytes_per_ngram=table.bytes_per_ngram,
      )
    )
  first, best = _warm(
    lambda: tables.score_text(table, sentences), repeat=_QUERY_REPEAT
  )
  total = len(sentences.flat) + len(sentences)
  rows.append(
    _row(
      "host queries, text, 1 thread",
      corpus,
      made.order,
      seconds=best,
      warm_up_s=first,
      amount=f"{total} queries",
      per_second=total / best,
    )
  )
  return rows


def _words(sentences: Ragged, types: int) -> dict[str, np.ndarray]:
  """Words to ask for, int32 `[steps, batch]`, of three kinds.

  `text` reads on in sentences that the model has not seen, from random words;
  `shuffled` draws single words of that text; `uniform` any words.
  """
  rng = np.random.default_rng(0)
  size = (_STEPS, _BATCH)
  starts = rng.integers(0, len(sentences.flat) - _STEPS, _BATCH)
  return {
    "text": sentences.flat[starts + np.arange(_STEPS)[:, None]],
    "shuffled": rng.choice(sentences.flat, size),
    "uniform": rng.integers(1, types + 1, size, dtype=np.int32),
  }


def _kenlm(
  corpus: str, folder: str, made: ngram_model.NgramModel, lines: list[str]
) -> list[dict]:
  """The same text through the kenlm module, if there is one."""
  try:
    kenlm = importlib.import_module("kenlm")
  except ImportError:
    return []
  arpa = str(pathlib.Path(folder) / f"{made.order}.arpa")
  config = kenlm.Config()
  config.show_progress = False
  start = time.perf_counter()
  theirs = kenlm.Model(arpa, config)
  loading = time.perf_counter() - start
  total = sum(len(line.split()) + 1 for line in lines)
  best = bench.timed(
    lambda: [theirs.score(line) for line in lines], repeat=_QUERY_REPEAT
  )
  return [
    _row(
      "kenlm module, text, 1 thread",
      corpus,
      made.order,
      seconds=best,
      warm_up_s=loading,
      amount=f"{total} queries",
      per_second=total / best,
    )
  ]
