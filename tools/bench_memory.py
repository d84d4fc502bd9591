"""Memory of decoding in one process: it must not grow with the sentences.

Decodes the same sentences again and again, in blocks of different sentences
and lengths, and prints the resident memory after each tenth of the way. "kB a
sentence" is the slope over the second half: compiling, caches and the
allocator's reserves have come to rest by then. BENCH_SENTENCES sets how many
sentences are decoded (5,000 if not set; 200,000 take two minutes).
"""

import gc
import os

import bench
import numpy as np
from bench_decode import load_peer

from jaxmt.decode import translate
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.errors import InputError
from jaxmt.runtime import compiling

_CORPUS = "cdec-multi30k-de-en"
_WORDS = 6  # most words a sentence is cut to: many sentences, little time
_STEPS = 10


def resident_mb() -> float:
  """Returns the resident memory of this process in MB."""
  with open("/proc/self/statm") as facts:
    pages = int(facts.read().split()[1])
  return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def run() -> list[dict[str, object]]:
  """Returns a row for every tenth of the sentences."""
  folder = bench.corpus(_CORPUS)
  if folder is None:
    raise InputError(f"needs {_CORPUS} below JAXMT_DATA")
  total = int(os.environ.get("BENCH_SENTENCES", "5000"))
  model = load_peer(folder)
  lines = (folder / "source.de").read_text().split("\n")[:-1]
  rng = np.random.default_rng(0)
  config = DecodeConfig(search=SearchConfig(beam=3, pop=10, corners=4))
  compiling.bound_heap()
  rows, done = [], 0
  for step in range(1, _STEPS + 1):
    while done < total * step // _STEPS:
      block = [
        " ".join(lines[row].split()[: rng.integers(1, _WORDS + 1)])
        for row in rng.integers(0, len(lines), 250)
      ]
      pieces = translate.cut_lines(block, longest=250)
      translate.translate(model, pieces, config=config)
      done += len(block)
    gc.collect()  # cycles wait for it, with arrays of the last blocks
    rows.append({"sentences": done, "resident MB": round(resident_mb(), 1)})
  half = rows[_STEPS // 2 - 1 :]
  slope = np.polyfit(
    [row["sentences"] for row in half],
    [row["resident MB"] * 1024 for row in half],
    1,
  )[0]
  rows[-1]["kB a sentence"] = round(float(slope), 3)
  return rows
