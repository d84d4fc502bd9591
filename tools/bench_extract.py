"""Benchmark: rule extraction and θ, growing corpora, memory, opening.

Hiero rules, then tree-to-string rules of binarised trees, then the formats of
other toolkits.

Each row runs in a process of its own, so that its peak memory is its own:
"peak" counts mapped files, which the system can drop at any time, "private"
does not.
Warm-up (loading or compiling the kernels, on 50 sentences) stands apart.
"""

import contextlib
import dataclasses
import functools
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

import bench

from jaxmt.corpora import synthetic
from jaxmt.grammar import filter as filter_lib
from jaxmt.grammar import formats, native
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.extract import aligned_text, extraction, ghkm, shards
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.table import LABELS
from jaxmt.runtime.runner import Runner
from jaxmt.text import array_folder, files, vocabulary

_WORKERS = 2
_SIZES = (5_000, 10_000, 20_000, 29_000)
_TEXT_RULES = 500_000  # written and read as text
_FILES = "stlp"  # source, target, links, parses


def run() -> list[dict]:
  """Measures the table of sizes and the variants of the largest."""
  with tempfile.TemporaryDirectory() as folder:
    name, sides = _corpus()
    rows = []
    for size in [s for s in _SIZES if s < len(sides[0])] + [len(sides[0])]:
      _write(folder, sides, size)
      rows.append(_measured(folder, "extract", name, {}))
    for task, options in (
      ("extract, 1 worker", {"workers": 1}),
      ("extract, fractional", {"fractional": True}),
      ("extract, loose phrases", {"tight": False}),
      ("extract, min_count 2", {"min_count": 2}),
      ("extract, provenance", {"provenance": True}),
      ("extract, 128 MB budget", {"memory": 128}),
    ):
      rows.append(_measured(folder, task, name, options))
    _measured(folder, "extract", name, {"keep": True})
    for task in ("open", "open, unverified", "filter"):
      rows.append(_measured(folder, task, name, {}))
    for dialect in ("cdec", "moses", "joshua", "travatar"):
      for task in ("write", "read"):
        options = {"dialect": dialect}
        rows.append(_measured(folder, f"{task} {dialect}", name, options))
  return rows + _tree_rows()


def _tree_rows() -> list[dict]:
  """Measures tree-to-string and joint extraction."""
  with tempfile.TemporaryDirectory() as folder:
    name, sides = _tree_corpus()
    rows = []
    for size in [s for s in _SIZES if s < len(sides[0])] + [len(sides[0])]:
      _write(folder, sides, size)
      rows.append(_measured(folder, "extract trees", name, {"kind": "t2s"}))
    for task, options in (
      ("extract trees, all attachments", {"kind": "t2s", "attach": "all"}),
      ("extract trees, minimal rules", {"kind": "t2s", "tree_size": 1}),
      ("extract trees and Hiero", {"kind": "joint"}),
    ):
      rows.append(_measured(folder, task, name, options))
  return rows


def _corpus() -> tuple[str, list[list[str]]]:
  """Source, target and link lines."""
  real = bench.corpus("multi30k-de-en")
  if real is not None:
    ends = ("train.de.gz", "train.en.gz", "train.de-en.align.gz")
    return "multi30k de-en", [files.read_lines(str(real / e)) for e in ends]
  config = synthetic.SyntheticConfig(train=20_000, tune=0, test=0)
  train = synthetic.generate(config).train
  return "synthetic", [train.source, train.references[0], train.links[0]]


def _tree_corpus() -> tuple[str, list[list[str]]]:
  """Source, target, link and tree lines."""
  real = bench.corpus("enja-trees")
  if real is not None:
    ends = ("train.en", "train.ja", "train.en-ja.align", "train.en.tree")
    lines = [files.read_lines(str(real / f"{end}.gz")) for end in ends]
    return "enja en-ja", lines
  config = synthetic.SyntheticConfig(train=20_000, tune=0, test=0)
  train = synthetic.generate(config).train
  sides = [train.source, train.references[0], train.links[0], train.trees]
  return "synthetic", sides


def _write(folder: str, sides: list[list[str]], size: int) -> None:
  for end, lines in zip(_FILES, sides, strict=False):
    files.write_lines(str(pathlib.Path(folder) / end), lines[:size])


def _measured(folder: str, task: str, corpus: str, options: dict) -> dict:
  """Runs this file as a program for one row."""
  command = [sys.executable, __file__, folder, task, json.dumps(options)]
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  if done.returncode:
    raise RuntimeError(done.stderr)
  row = json.loads(done.stdout.splitlines()[-1])
  return {"task": task, "corpus": corpus, **row}


def _work(folder: str, task: str, options: dict) -> dict:
  """One row's numbers, in the process that is measured."""
  kept = str(pathlib.Path(folder) / "kept")
  warm = 0.0
  if task.startswith("open"):
    pairs = None
    verify = "unverified" not in task
    action = lambda: len(native.read(kept, verify=verify))
  elif task == "filter":
    pairs = None
    table = native.read(kept)
    lines = files.read_lines(str(pathlib.Path(folder) / "s"))[:1000]
    text = vocabulary.encode(table.source_words, lines)
    action = lambda: int(filter_lib.usable(table, text).sum())
  elif "dialect" in options:
    pairs = None
    action, warm = _format_action(folder, kept, task, options["dialect"])
  else:
    pairs = len(files.read_lines(str(pathlib.Path(folder) / "s")))
    with tempfile.TemporaryDirectory() as small:
      for end in _FILES if "kind" in options else _FILES[:3]:
        lines = files.read_lines(str(pathlib.Path(folder) / end))[:50]
        files.write_lines(str(pathlib.Path(small) / end), lines)
      start = time.perf_counter()
      _extract(small, str(pathlib.Path(small) / "G"), {**options, "memory": 1})
      warm = time.perf_counter() - start
    output = kept if options.get("keep") else str(pathlib.Path(folder) / "G")
    action = lambda: _extract(folder, output, options)
  cpu, start = time.process_time(), time.perf_counter()
  with _watched() as private:
    rules = action()
  return {
    "pairs": pairs,
    "rules": rules,
    "seconds": round(time.perf_counter() - start, 3),
    "cpu seconds": round(time.process_time() - cpu, 3),
    "warm-up seconds": round(warm, 2),
    "peak MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    "private MB": round(max(private)),
  }


def _format_action(folder: str, kept: str, task: str, dialect: str):
  """What reads or writes part of the table, and the warm-up's seconds."""
  path = str(pathlib.Path(folder) / dialect)
  table = table_lib.slice_table(native.read(kept), 0, _TEXT_RULES)
  small = table_lib.slice_table(table, 0, 50)
  start = time.perf_counter()
  formats.write(small, f"{path}.small", dialect)
  formats.read(f"{path}.small", dialect)
  warm = time.perf_counter() - start

  def write() -> int:
    formats.write(table, path, dialect)
    return len(table)

  def read() -> int:
    return len(formats.read(path, dialect))

  return (write if task.startswith("write") else read), warm


@contextlib.contextmanager
def _watched() -> Iterator[list[float]]:
  """Gives a list that fills with samples of private memory in MB."""
  samples = [0.0]
  over = threading.Event()

  def watch() -> None:
    status = pathlib.Path("/proc/self/status")
    while not over.wait(0.02) and status.exists():
      for line in status.read_text().splitlines():
        if line.startswith("RssAnon:"):
          samples.append(int(line.split()[1]) / 1024)

  thread = threading.Thread(target=watch)
  thread.start()
  try:
    yield samples
  finally:
    over.set()
    thread.join()


def _extractors(kind: str, hiero: HieroOptions, options: dict) -> list:
  """What finds the rules of a kind."""
  trees = ghkm.GhkmOptions(
    max_size=options.get("tree_size", 4), attach=options.get("attach", "tight")
  )
  found = {
    "hiero": functools.partial(extraction.hiero_rules, options=hiero),
    "t2s": functools.partial(ghkm.tree_rules, options=trees),
  }
  return list(found.values()) if kind == "joint" else [found[kind]]


def _extract(folder: str, output: str, options: dict) -> int:
  """Files to a scored table on disk, as `launch/extract.py` does it."""
  paths = aligned_text.Paths(
    **{
      name: str(pathlib.Path(folder) / name[0])
      for name in ("source", "target", "links")
    }
  )
  runner = Runner(workers=options.get("workers", _WORKERS))
  memory = options.get("memory", 1024) << 20
  kind = options.get("kind", "hiero")
  labels = LABELS
  if kind != "hiero":
    trees = str(pathlib.Path(folder) / _FILES[3])
    paths = dataclasses.replace(paths, trees=trees)
    labels = aligned_text.read_labels(
      trees, binarize=True, on_bad=aligned_text.refuse
    )
  source_words, size = aligned_text.read_vocabulary(paths.source)
  target_words, _ = aligned_text.read_vocabulary(paths.target)
  hiero = HieroOptions(
    tight=options.get("tight", True),
    fractional=options.get("fractional", False),
  )
  with contextlib.ExitStack() as stack:
    spill = stack.enter_context(array_folder.scratch(output))
    count = shards.CountOptions(
      min_count=options.get("min_count", 1),
      provenance=options.get("provenance", False),
      memory=memory,
      spill=spill,
    )
    parts, pairs = shards.count_rules(
      aligned_text.read_shards(
        paths,
        source_words=source_words,
        target_words=target_words,
        tokens=shards.tokens_per_shard(memory=memory, workers=runner.workers),
        labels=labels,
        binarize=kind != "hiero",
      ),
      _extractors(kind, hiero, options),
      options=count,
      runner=runner,
    )
    extraction.write(
      output,
      parts,
      pairs,
      extraction.TableOptions(
        labels=labels,
        source_words=source_words,
        target_words=target_words,
        sentences=size,
        alpha=0.0,
        count=count,
        runner=runner,
      ),
    )
  return len(native.read(output, verify=False))


if __name__ == "__main__":
  print(json.dumps(_work(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
