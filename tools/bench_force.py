"""Forced decoding: speed, and how much of a corpus its own grammar derives.

A Hiero grammar is extracted from a corpus and forced on sentences of it: with
all rules, without rules seen once (pairs of single words stay), and leaving out
what only the sentence itself gave. Embedded corpus; with JAXMT_DATA also 5,000
pairs of Multi30k German-English.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

import bench
import numpy as np

from jaxmt.corpora import synthetic
from jaxmt.decode import model as models
from jaxmt.decode.forced import forced as force
from jaxmt.decode.forced import reachability
from jaxmt.grammar import estimate, native
from jaxmt.grammar import table as tables
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.lm import kneser_ney as lm_estimate
from jaxmt.lm import tables as lm_tables
from jaxmt.lm import word_ids as lm_text
from jaxmt.text import files, kernels, ragged

_PAIRS = 5000
_FORCED = 2000  # sentences forced of these


def _corpora() -> dict[str, list[list[str]]]:
  """Source, target and link lines by name."""
  config = synthetic.SyntheticConfig(train=_PAIRS, tune=0, test=0)
  train = synthetic.generate(config).train
  out = {"synthetic": [train.source, train.references[0], train.links[0]]}
  real = bench.corpus("multi30k-de-en")
  if real is not None:
    ends = ("train.de.gz", "train.en.gz", "train.de-en.align.gz")
    out["multi30k de-en"] = [
      files.read_lines(str(real / end))[:_PAIRS] for end in ends
    ]
  return out


def _extract(folder: str, sides: list[list[str]]) -> str:
  """Extracts a grammar with provenance; returns its path."""
  base = pathlib.Path(folder)
  for name, lines in zip("stl", sides, strict=True):
    files.write_lines(str(base / name), lines)
  program = pathlib.Path(__file__).parent.parent / "launch" / "extract.py"
  subprocess.run(
    [
      sys.executable,
      str(program),
      f"--source={base / 's'}",
      f"--target={base / 't'}",
      f"--links={base / 'l'}",
      f"--output={base / 'g'}",
      "--provenance",
    ],
    check=True,
    capture_output=True,
  )
  return str(base / "g")


def _not_once(table: RuleTable) -> np.ndarray:
  """Rules seen more than once, pairs of words, glue and copying."""
  single = (table.source.lengths == 1) & (table.target.lengths == 1)
  added = np.isin(table.kind, (Kind.GLUE, Kind.PASS_THROUGH))
  return (table.counts > 1) | single | added


def _rows(name: str, sides: list[list[str]]) -> list[dict]:
  with tempfile.TemporaryDirectory() as folder:
    path = _extract(folder, sides)
    table = native.read(path, verify=False)
    config = lm_estimate.EstimateConfig(order=3, fallback=lm_estimate.FALLBACK)
    lm = lm_tables.build_tables(
      lm_estimate.estimate(*lm_text.encode_corpus(sides[1]), config)
    )
    weights = dict.fromkeys((*estimate.THETA, "LanguageModel"), 1.0)
    build = lambda rules: models.make_model(rules, lm, weights=weights)
    own = force.own_rules(native.read_provenance(path, verify=False))
    own = ragged.select(own, np.arange(_FORCED))
    rows = []
    cores = kernels.available_threads()
    whole, frequent = (
      build(table),
      build(tables.select(table, _not_once(table))),
    )
    for case, model, excluded, workers in (
      ("all rules", whole, None, 1),
      ("all rules", whole, None, cores),
      ("leave one out", whole, own, cores),
      ("no rules seen once", frequent, None, cores),
    ):
      measured = _measure(model, sides, excluded, workers)
      rules = len(model.table)
      row = {"corpus": name, "case": case, "threads": workers, "rules": rules}
      rows.append({**row, **measured})
  return rows


def _measure(model, sides, excluded, workers: int) -> dict:
  lines, references = sides[0][:_FORCED], sides[1][:_FORCED]
  rules = force.make_rules(model)
  config = force.ForceConfig(threads=workers)
  start = time.perf_counter()
  first = models.make_source(model, lines[:1])
  force.force(model, first, references[:1], rules=rules)
  warm = time.perf_counter() - start
  best, busy, forced = float("inf"), float("inf"), None
  for _ in range(3):
    forced = None  # one forest at a time
    start, cpu = time.perf_counter(), time.process_time()
    source = models.make_source(model, lines)
    forced = force.force(
      model, source, references, config=config, rules=rules, excluded=excluded
    )
    best = min(best, time.perf_counter() - start)
    busy = min(busy, time.process_time() - cpu)
  assert forced is not None
  lengths = np.array([len(line.split()) for line in lines])
  summary = reachability.summarize(lengths, forced.reached, forced.reason)
  sizes = forced.forest.edge_offsets[forced.forest.node_offsets]
  return {
    "sentences/s": len(lines) / best,
    "cpu ms/sentence": 1000 * busy / len(lines),
    "warm-up s": warm,
    "reached %": summary.overall["reached %"],
    "words reached %": summary.overall["words reached %"],
    "edges/reached": int(sizes[-1] / max(forced.reached.sum(), 1)),
    "most edges": int(np.diff(sizes).max(initial=0)),
    "peak MB": bench.peak_memory_mb(),
  }


def run() -> list[dict]:
  """Returns a row for each corpus and case."""
  return [
    row for name, sides in _corpora().items() for row in _rows(name, sides)
  ]
