"""Speed and quality of word alignment.

Both directions and grow-diag-final-and, from two files to lines of links. The
first run compiles; `compile_s` is what it takes longer than the best later one.
If fast_align and atools are on the PATH, they are timed on the same bitext, one
direction after the other. The embedded corpus has gold links: its rows give the
alignment error rate. Rows of ITG and neural alignment: see `bench_itg`.
"""

import pathlib
import resource
import shutil
import subprocess
import tempfile
import time

import bench
import bench_itg

from jaxmt.align import aligner, em, link_scores, named_aligners, symmetrize
from jaxmt.corpora import synthetic
from jaxmt.runtime import parallel
from jaxmt.text import files, links, vocabulary
from jaxmt.text.ragged import Ragged

_METHOD = "grow-diag-final-and"
_REPEAT = 3


def run() -> list[dict]:
  """Returns the rows of the table."""
  rows = []
  with tempfile.TemporaryDirectory() as folder:
    base = pathlib.Path(folder)
    real = bench.corpus("multi30k-de-en")
    if real is not None:
      source = files.read_lines(str(real / "train.de.gz"))
      target = files.read_lines(str(real / "train.en.gz"))
      lines = files.read_lines(str(real / "train.de-en.align.gz"))
      expected = links.parse_links(lines)
      _write(base, source, target)
      rows += _peer("multi30k-de-en", base, expected)
      rows += [
        _row("multi30k-de-en", model, base, peer=expected, gold=None)
        for model in named_aligners.names()
      ]
    train = synthetic.generate(synthetic.SyntheticConfig(tune=0, test=0)).train
    _write(base, train.source, train.references[0])
    gold = links.parse_links(train.links[0])
    rows += [
      _row("embedded", model, base, peer=None, gold=gold)
      for model in named_aligners.names()
    ]
  return rows + bench_itg.run()


def _write(base: pathlib.Path, source: list[str], target: list[str]) -> None:
  files.write_lines(str(base / "source"), source)
  files.write_lines(str(base / "target"), target)


def _row(
  corpus: str,
  model: str,
  base: pathlib.Path,
  *,
  peer: Ragged | None,
  gold: Ragged | None,
) -> dict:
  settings = named_aligners.default_config(model)
  start = time.perf_counter()
  found = _align(base, settings)
  first = time.perf_counter() - start
  warm, processor = float("inf"), float("inf")
  for _ in range(_REPEAT):
    start, used = time.perf_counter(), time.process_time()
    _align(base, settings)
    warm = min(warm, time.perf_counter() - start)
    processor = min(processor, time.process_time() - used)
  return {
    "corpus": corpus,
    "model": model,
    "pairs": len(found),
    "iterations": named_aligners.total_passes(settings),
    "compile_s": first - warm,
    "warm_s": warm,
    "cpu_s": processor,
    "f1_with_fast_align": peer and link_scores.score_links(found, peer).f1,
    "aer": gold and link_scores.score_links(found, gold).aer,
    "peak_mb": bench.peak_memory_mb(),
  }


def _align(base: pathlib.Path, settings: aligner.AlignConfig) -> Ragged:
  """From files to lines of links."""
  source, _ = vocabulary.intern(files.read_lines(str(base / "source")))
  target, _ = vocabulary.intern(files.read_lines(str(base / "target")))
  result = em.align(source, target, settings, mesh=parallel.make_mesh(1))
  found = symmetrize.symmetrize(
    result.links["forward"], result.links["backward"], method=_METHOD
  )
  files.write_lines(str(base / "links"), links.format_links(found))
  return found


def _children_seconds() -> float:
  """Returns the processor time of finished child processes."""
  usage = resource.getrusage(resource.RUSAGE_CHILDREN)
  return usage.ru_utime + usage.ru_stime


def _peer(corpus: str, base: pathlib.Path, expected: Ragged) -> list[dict]:
  """Times fast_align, if there is one."""
  programs = [shutil.which(name) for name in ("fast_align", "atools")]
  if None in programs:
    return []
  aligner, tools = programs
  pairs = zip(
    files.read_lines(str(base / "source")),
    files.read_lines(str(base / "target")),
    strict=True,
  )
  files.write_lines(str(base / "both"), [f"{s} ||| {t}" for s, t in pairs])
  command = [str(aligner), "-i", str(base / "both"), "-d", "-o", "-v"]

  def call() -> bytes:
    for name, extra in (("forward", []), ("backward", ["-r"])):
      with open(base / name, "wb") as out:
        subprocess.run(
          command + extra, stdout=out, stderr=subprocess.DEVNULL, check=True
        )
    sides = ["-i", str(base / "forward"), "-j", str(base / "backward")]
    return subprocess.run(
      [str(tools), *sides, "-c", _METHOD], capture_output=True, check=True
    ).stdout

  used = _children_seconds()
  warm = bench.timed(call, repeat=_REPEAT)
  used = (_children_seconds() - used) / _REPEAT
  found = links.parse_links(files.split_lines(call().decode()))
  return [
    {
      "corpus": corpus,
      "model": "fast_align (C++)",
      "pairs": len(found),
      "iterations": 5,
      "compile_s": None,
      "warm_s": warm,
      "cpu_s": used,
      "f1_with_fast_align": link_scores.score_links(found, expected).f1,
      "aer": None,
      "peak_mb": None,
    }
  ]
