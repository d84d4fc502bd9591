"""Speed of ITG and neural alignment; rows of `python tools/bench.py align`.

Pairs of 20 and 20 words, joined from sentences of the embedded corpus. ITG:
features, pruning with a beam of 10, parsing and the best derivation, weights
untrained; learning the simpler aligners and the rules is not timed. Neural: one
epoch of one direction's network and jumps, by either objective, and the links
of that direction.
"""

import dataclasses
import itertools
import time
from collections.abc import Callable

import bench
import numpy as np

from jaxmt.align.itg import evidence, itg_model, pruning
from jaxmt.align.neural import neural_hmm
from jaxmt.corpora import synthetic
from jaxmt.models.fitting import FitOptions
from jaxmt.text import ragged, vocabulary
from jaxmt.text.ragged import Ragged

_WORDS = 20
_PAIRS = 512
_REPEAT = 3


def run() -> list[dict]:
  """Returns the rows of the table."""
  source, target = _bitext()
  learnt = evidence.learn(source, target)
  rows = []
  for kind in ("w", "hp"):
    made = itg_model.ItgModel(
      evidence=learnt,
      pruner=pruning.pruner("dpdi"),
      rules=itg_model.collect_rules(learnt, source, target, kind, blocks=True),
      weights=itg_model.start_weights(),
    )
    align = lambda made=made: itg_model.align(made, source, target)
    rows.append(_timed(f"itg {kind}, beam 10", align))
  config = neural_hmm.NeuralConfig(
    fit=FitOptions(epochs=1, batch=512, rate=0.003),
    jump_fit=FitOptions(epochs=1, batch=32, rate=0.03),
  )
  links = _reversed(learnt.links)
  for objective in neural_hmm.OBJECTIVES:
    own = dataclasses.replace(config, objective=objective)
    train = lambda own=own: neural_hmm.train_direction(
      target, source, links, own
    )
    rows.append(_timed(f"neural, {objective}, one epoch", train))
  direction = train()
  link = lambda: neural_hmm.link(direction, target, source, config)
  rows.append(_timed("neural, links", link))
  return rows


def _reversed(links: Ragged) -> Ragged:
  return dataclasses.replace(
    links, flat=np.ascontiguousarray(links.flat[:, ::-1])
  )


def _bitext() -> tuple[Ragged, Ragged]:
  """Pairs of 20 and 20 words, as ids from 1."""
  train = synthetic.generate(synthetic.SyntheticConfig(tune=0, test=0)).train
  sides: tuple[list[list[int]], list[list[int]]] = ([], [])
  ids = [
    vocabulary.intern(lines)[0] for lines in (train.source, train.references[0])
  ]
  row = 0
  while len(sides[0]) < _PAIRS and row < len(train.source):
    pair: tuple[list[int], list[int]] = ([], [])
    while min(map(len, pair)) < _WORDS and row < len(train.source):
      for side, own in zip(ids, pair, strict=True):
        own.extend((side[row] + 1).tolist())
      row += 1
    if min(map(len, pair)) >= _WORDS:
      for own, out in zip(pair, sides, strict=True):
        out.append(list(itertools.islice(own, _WORDS)))
  return ragged.from_rows(sides[0]), ragged.from_rows(sides[1])


def _timed(name: str, call: Callable[[], object]) -> dict:
  start = time.perf_counter()
  call()
  first = time.perf_counter() - start
  warm, processor = float("inf"), float("inf")
  for _ in range(_REPEAT):
    start, used = time.perf_counter(), time.process_time()
    call()
    warm = min(warm, time.perf_counter() - start)
    processor = min(processor, time.process_time() - used)
  return {
    "corpus": f"embedded, {_WORDS} words",
    "model": name,
    "pairs": _PAIRS,
    "compile_s": first - warm,
    "warm_s": warm,
    "cpu_s": processor,
    "pairs_per_cpu_s": _PAIRS / processor,
    "hours_for_100k": 1e5 / _PAIRS * processor / 3600,
    "peak_mb": bench.peak_memory_mb(),
  }
