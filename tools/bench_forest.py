"""Speed of losses on forests: value and gradient in the weights.

Forests are made up, shaped like a chart's: every span of a sentence has some
nodes, whose edges join two shorter spans. `first` is the first call,
compilation included; `edges/s` is of the fastest of five later calls.
"""

import time

import numpy as np

from jaxmt.hypergraph import Forest
from jaxmt.losses import registry as losses
from jaxmt.tune.forests import forest_data, forest_loss, forest_ngrams

_SENTENCES, _WORDS, _NODES, _EDGES, _FEATURES = 50, 12, 3, 8, 15
_LOSSES = ("softmax", "risk", "xbleu", "softramp2", "ramp2", "structured-hinge")
_REPEAT = 5


def make_forest(seed: int = 0) -> Forest:
  """Returns made-up forests."""
  rng = np.random.default_rng(seed)
  node_offsets, edge_offsets, tails = [0], [0], []
  for _ in range(_SENTENCES):
    base = node_offsets[-1]
    place, count = {}, 0
    for size in range(1, _WORDS + 1):
      for begin in range(_WORDS - size + 1):
        place[begin, size] = base + count
        for _ in range(1 if size == _WORDS else _NODES):
          for _ in range(_EDGES if size > 1 else 2):
            row = [-1, -1]
            if size > 1:
              cut = int(rng.integers(1, size))
              halves = ((begin, cut), (begin + cut, size - cut))
              row = [place[half] + rng.integers(_NODES) for half in halves]
            tails.append(row)
          edge_offsets.append(len(tails))
          count += 1
    node_offsets.append(base + count)
  return Forest(
    node_offsets=np.array(node_offsets, np.int64),
    edge_offsets=np.array(edge_offsets, np.int64),
    tails=np.array(tails, np.int32),
    score=np.zeros(len(tails), np.float32),
  )


def run() -> list[dict]:
  """Returns one row per loss."""
  rng = np.random.default_rng(1)
  forest = make_forest()
  edges = forest.num_edges
  totals = rng.integers(0, 2, (edges, 4))
  matches = totals * rng.integers(0, 2, (edges, 4))
  data = forest_data.ForestData(
    split=forest_ngrams.NgramForests(
      forest=forest,
      edge=np.arange(edges),
      statistics=np.concatenate([matches, totals], 1).astype(np.int16),
      pruned=0,
    ),
    features=rng.normal(size=(edges, _FEATURES)),
    references=np.full(len(forest), float(_WORDS)),
    slopes=np.repeat([-0.05, 0.02], 4),
  )
  batches = forest_loss.make_batches(data, [np.arange(len(forest))])
  weights = rng.normal(size=_FEATURES) * 0.1
  rows = []
  for name in _LOSSES:
    evaluate = forest_loss.Evaluation(
      batches,
      data.slopes,
      loss=name,
      settings=dict(losses.find(name).settings),
    )
    times = []
    for _ in range(1 + _REPEAT):
      clock = time.perf_counter()
      evaluate(weights)
      times.append(time.perf_counter() - clock)
    rows.append(
      {
        "loss": name,
        "edges": edges,
        "first": times[0],
        "seconds": min(times[1:]),
        "edges/s": f"{edges / min(times[1:]):,.0f}",
      }
    )
  return rows
