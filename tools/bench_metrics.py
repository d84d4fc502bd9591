"""Metric statistics of k-best lists, beside sacreBLEU's sentence scores.

Both run in this process, in turn, on the same candidates (sacreBLEU on every
n-th of them, since it is slow). "kernel" is statistics from token ids to sums;
"text" adds all that comes before, from lines of text on, and the sentence
scores after, so that it does what sacreBLEU's `sentence_score` does. "times" is
the ratio of rates in wall time (ours uses all cores, sacreBLEU one), "times
(CPU)" in processor time.
"""

import time
from collections.abc import Callable
from typing import Any

import bench
import numpy as np

from jaxmt.metrics import base, encoded_text, named_metrics
from jaxmt.text import files

_REPEAT = 5
_SUBSAMPLE = {"bleu+1": 2000, "ter": 250, "chrf": 700, "chrf++": 700}


def _corpus() -> tuple[str, list[str], np.ndarray, list[str]]:
  """Returns `(name, candidates, sentence of each, references)`."""
  folder = bench.corpus("kbest-multi30k-de-en")
  if folder is None:
    return _synthetic(sentences=1000, candidates=100, seed=0)
  lines = files.read_lines(str(folder / "dev.kbest.cdec.gz"))
  fields = [line.split(" ||| ", 2) for line in lines]
  sentence = np.array([int(field[0]) for field in fields])
  references = files.read_lines(str(folder / "dev.ref.en"))
  return folder.name, [field[1] for field in fields], sentence, references


def _synthetic(
  *, sentences: int, candidates: int, seed: int
) -> tuple[str, list[str], np.ndarray, list[str]]:
  """Random sentences of 5 to 21 words and candidates with about 5 edits."""
  rng = np.random.default_rng(seed)
  ranks = np.arange(1, 2001)
  odds = 1 / ranks / np.sum(1 / ranks)
  words = [f"w{rank:x}" for rank in ranks]
  lines, references = [], []
  for _ in range(sentences):
    reference = rng.choice(len(ranks), rng.integers(5, 22), p=odds)
    references.append(" ".join(words[word] for word in reference))
    for _ in range(candidates):
      line = reference.copy()
      changed = rng.random(len(line)) < 0.2
      line[changed] = rng.choice(len(ranks), changed.sum(), p=odds)
      cut, start = rng.integers(0, len(line), 2)
      line = np.insert(
        np.delete(line, cut), min(start, len(line) - 1), line[cut]
      )
      lines.append(" ".join(words[word] for word in line[rng.random() < 0.3 :]))
  sentence = np.repeat(np.arange(sentences), candidates)
  return "synthetic", lines, sentence, references


def _peer(name: str) -> Any:
  from sacrebleu.metrics import BLEU, CHRF, TER

  if name == "bleu+1":
    # With add-k the effective order changes nothing but a warning per call.
    return BLEU(
      tokenize="none", smooth_method="add-k", smooth_value=1,
      effective_order=True,
    )  # fmt: skip
  if name == "ter":
    return TER()
  return CHRF(word_order=2 if name == "chrf++" else 0)


def _measure(function: Callable[[], Any]) -> tuple[float, float]:
  """Returns wall and processor seconds of one call."""
  wall, processor = time.perf_counter(), time.process_time()
  function()
  return time.perf_counter() - wall, time.process_time() - processor


def _tokenizer(name: str) -> Callable:
  return (
    encoded_text.tercom_tokenized if name == "ter" else encoded_text.tokenized
  )


def _rows(metric: base.Metric, corpus: tuple) -> list[dict]:
  """Measures one metric, and sacreBLEU's if it has it."""
  name, lines, sentence, references = corpus
  tokenizer = _tokenizer(metric.name)
  known = encoded_text.encode_references(
    [[line] for line in references], unit=metric.unit, tokenizer=tokenizer
  )
  prepared = metric.prepare(known.references)
  ids = known.encode(tokenizer(lines))

  def kernel():
    return metric.statistics(prepared, ids, sentence)

  def whole():
    encoded = known.encode(tokenizer(lines))
    return metric.sentence_score(metric.statistics(prepared, encoded, sentence))

  step = max(1, len(lines) // _SUBSAMPLE.get(metric.name, 1))
  chosen = range(0, len(lines), step)
  peer: Any = _peer(metric.name) if metric.name in _SUBSAMPLE else None

  def theirs():
    return [
      peer.sentence_score(lines[n], [references[sentence[n]]]).score
      for n in chosen
    ]

  warm_up, _ = _measure(whole)
  times: dict[str, list] = {"kernel": [], "text": [], "peer": []}
  for _ in range(_REPEAT):
    times["kernel"].append(_measure(kernel))
    times["text"].append(_measure(whole))
    if peer:
      times["peer"].append(_measure(theirs))
  rows = []
  for stage in ("kernel", "text"):
    wall, processor = np.min(times[stage], axis=0)
    row: dict[str, Any] = {"metric": metric.name, "stage": stage}
    row |= {"corpus": name, "candidates": len(lines)}
    row["candidates/s"] = float(len(lines) / wall)
    row["sacrebleu/s"] = row["times"] = row["times (CPU)"] = None
    row["max difference"] = None
    if peer:
      peer_wall, peer_processor = np.min(times["peer"], axis=0) / len(chosen)
      row["sacrebleu/s"] = float(1 / peer_wall)
      row["times"] = float(peer_wall * len(lines) / wall)
      row["times (CPU)"] = float(peer_processor * len(lines) / processor)
      gaps = np.array(theirs()) - 100 * whole()[list(chosen)]
      row["max difference"] = float(np.abs(gaps).max())
    row["warm-up s"] = float(warm_up)
    rows.append(row)
  return rows


def run() -> list[dict]:
  """Measures every metric once."""
  corpus = _corpus()
  names = ("bleu+1", "ter", "nist", "wer", "per", "gtm", "chrf", "chrf++")
  return [
    row for name in names for row in _rows(named_metrics.METRICS[name], corpus)
  ]
