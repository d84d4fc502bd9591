"""Where the time of a chart cell goes: parts of the search, one after another.

With real data: the peer's Hiero model (see `bench_decode`). A batch is searched
once. Then its tiles are walked again, reading what the search has left, with
only the first parts of a step: choosing corners, scoring them, choosing from
cubes, scoring those, merging and pruning. A part costs what a walk takes longer
with it than without it. "share" is of the whole walk, in CPU time.
"""

import functools
import time

import bench
import bench_decode
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmt.decode import model as models
from jaxmt.decode.chart import (
  beam_search,
  cube,
  decoder,
  feature_states,
  search,
)
from jaxmt.decode.chart.feature_states import get

_PARTS = ("corners", "score corners", "cubes", "score cubes", "merge", "prune")


def _walk(chart, parameters, weights, beams, *, config, features, parts):
  """Walks all tiles with the first `parts` parts; returns a checksum."""
  task = beam_search._task(
    chart,
    parameters,
    weights,
    None,
    (),
    config=config,
    features=features,
    augmentation=None,
  )
  carry = beam_search._start(task)
  tables = []
  for table, states in zip(carry.tables, beams.states, strict=True):
    rows = states.reshape(-1, states.shape[-1])
    tables.append(lax.dynamic_update_slice(table, rows, (0, 0)))
  carry = carry._replace(score=beams.score, tables=tuple(tables))

  def body(tile, total):
    now = carry._replace(tile=tile)
    start = chart.tile_start[tile]
    rows = (start + jnp.arange(config.tile))[:, None]
    # All parts are written down; the compiler drops those nobody reads.
    sum_TP, application_TP = cube.corners(task, now, start)
    ranks = jnp.zeros_like(get(chart.child, rows, application_TP))
    corners = beam_search._score(task, now, rows, application_TP, ranks, sum_TP)
    chosen = cube.entries(task, now, rows, corners, sum_TP)
    rest = beam_search._score(task, now, rows, *chosen)
    scored = jax.tree.map(
      lambda one, two: jnp.concatenate([one, two], axis=1), corners, rest
    )
    keys_TM = feature_states.keys(task.features, scored.states)
    merged = beam_search._merged(keys_TM, scored.augmented)
    kept = beam_search._prune(task, now, rows, scored, keys_TM)
    seen = [sum_TP, corners, chosen, scored, merged, kept][:parts]
    leaves = [leaf for leaf in jax.tree.leaves(seen) if leaf is not None]
    return total + sum(leaf.astype(jnp.float32).sum() for leaf in leaves)

  return lax.fori_loop(0, chart.num_tiles, body, jnp.float32(0))


def _cpu(call, repeat: int = 3) -> float:
  """The least CPU time of a call, in seconds; the first one compiles."""
  jax.block_until_ready(call())
  best = float("inf")
  for _ in range(repeat):
    start = time.process_time()
    jax.block_until_ready(call())
    best = min(best, time.process_time() - start)
  return best


def run() -> list[dict]:
  """Returns a row for matching and layout, and one for each part."""
  folder = bench.corpus(bench_decode._CORPUS)
  if folder is None:
    raise bench.InputError(f"JAXMT_DATA has no {bench_decode._CORPUS}")
  model = bench_decode.load_peer(folder)
  parameters = models.device_parameters(model)
  lines = (folder / "source.de").read_text().split("\n")[:-1]
  source = models.make_source(model, lines)
  config = search.make_config(beam=30, pop=140)
  batch = decoder.make_batches(
    decoder.sentence_cells(model, source), cells=4096
  )[0]
  prepare = lambda: decoder.prepare(model, source, batch, config=config)
  prepared = prepare()
  (chart,) = jax.tree.map(jnp.asarray, prepared.charts)
  cells = len(prepared.matches[0])
  weights = decoder.search_weights(model)
  whole = jax.jit(
    functools.partial(
      beam_search.search, config=config, features=model.features
    )
  )
  beams = whole(chart, parameters, weights)
  total = _cpu(lambda: whole(chart, parameters, weights))
  rows = [
    {"part": "match and layout", "us/cell": 1e6 * _cpu(prepare) / cells},
    {"part": "search", "us/cell": 1e6 * total / cells, "share": 1.0},
  ]
  before = 0.0
  for number, name in enumerate(_PARTS, start=1):
    walk = jax.jit(
      functools.partial(
        _walk, config=config, features=model.features, parts=number
      )
    )
    seconds = _cpu(lambda walk=walk: walk(chart, parameters, weights, beams))
    rows.append(
      {
        "part": name,
        "us/cell": 1e6 * (seconds - before) / cells,
        "share": (seconds - before) / total,
      }
    )
    before = seconds
  used = np.asarray(chart.num_tiles) * config.tile
  rows.append({"part": "lanes that hold a cell", "share": cells / float(used)})
  return rows
