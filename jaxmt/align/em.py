"""Expectation maximisation over a bitext, in both directions.

An E-step is one compiled program per grid width, which both directions share:
look up the translation probabilities of every cell, get posteriors from the
alignment model, add them to the expected counts. Batches are split over the
devices of a mesh; every device keeps its own counts, which one psum per
iteration adds up. The result does not depend on the number of devices beyond
the rounding of that sum.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxmt.align import (
  cooccurrence,
  device_corpus,
  named_aligners,
  translation_table,
)
from jaxmt.align.aligner import (
  AlignConfig,
  Aligner,
  Parameters,
  Statistics,
  empty_counts,
  seen_from,
)
from jaxmt.runtime import parallel
from jaxmt.text.ragged import Ragged

DIRECTIONS = ("forward", "backward")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Progress:
  """Likelihoods of one pass over the bitext.

  Attributes:
    model: name of the aligner.
    iteration: number of the pass, from 1, per model.
    iterations: number of passes of this model.
    log_likelihood: ln p(generated side | other side) per direction.
    perplexity: per generated word and direction.
    scalars: per direction, the aligner's own parameters that are one number
      (such as the tension of the diagonal model) during this pass.
  """

  model: str
  iteration: int
  iterations: int
  log_likelihood: dict[str, float]
  perplexity: dict[str, float]
  scalars: dict[str, dict[str, float]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Alignment:
  """The result of `align`.

  Attributes:
    links: per direction, int32 pairs (source, target) from 0 per line, sorted.
    parameters: per direction, those of the last pass, on the host.
    table: the word pairs of `parameters`.
    history: one entry per pass.
  """

  links: dict[str, Ragged]
  parameters: dict[str, Parameters]
  table: cooccurrence.PairTable
  history: tuple[Progress, ...]


def align(
  source: Ragged,
  target: Ragged,
  config: AlignConfig,
  *,
  mesh: Mesh | None = None,
  directions: Sequence[str] = DIRECTIONS,
  report: Callable[[Progress], None] = lambda progress: None,
) -> Alignment:
  """Learns an alignment model from a bitext and links its words.

  Args:
    source: word ids per line.
    target: word ids per line, the same number of lines.
    config: the model and its settings, see `named_aligners.default_config`.
    mesh: devices to use; None for all.
    directions: which of `DIRECTIONS` to learn.
    report: called after every pass.
  """
  index = cooccurrence.build(source, target, bucket_cost=config.bucket_cost)
  mesh = parallel.make_mesh() if mesh is None else mesh
  data = device_corpus.place(
    index, mesh, cells_per_batch=config.cells_per_batch
  )
  parameters = {side: _start(data, side) for side in directions}
  history, links = [], {}
  for aligner, steps, passes in named_aligners.stages(config):
    for side in directions:
      own = aligner.initialise(data.sizes[side], config)
      parameters[side] = dataclasses.replace(
        parameters[side], model=parallel.copied(mesh, own)
      )
    for step in range(passes):
      scores, new = {}, {}
      for side, old in parameters.items():
        if step < steps:
          new[side], scores[side] = _iterate(
            data, old, side, aligner, config, first=step == 0
          )
        else:
          new[side] = old
          links[side], scores[side] = _link(data, old, side, aligner, config)
      history.append(
        _progress(aligner.name, step, passes, data, scores, parameters)
      )
      parameters = new
      report(history[-1])
  return Alignment(
    links=links,
    parameters=parallel.to_host(parameters),
    table=index.table,
    history=tuple(history),
  )


def _start(data: device_corpus.DeviceCorpus, side: str) -> Parameters:
  pairs, null = translation_table.uniform(
    pairs=len(data.conditioning[side]),
    words=int(data.word_types[side]),
    size=len(data.group_types[side]),
  )
  start = Parameters(pairs=pairs, null=null, model={})
  return parallel.copied(data.mesh, start)


def _iterate(data, old, side, aligner: Aligner, config, *, first):
  """One E-step and M-step; returns parameters and log-likelihoods."""
  statistics, scores = _expect(data, old, side, aligner, config)
  # Devices that are threads of one process share a pool: one that waits for
  # the others in the sum must not hold a thread that they still need.
  jax.block_until_ready(statistics)
  (total,) = _total(data.mesh)(statistics)
  pairs, null = translation_table.maximize(
    total,
    data.conditioning[side],
    data.group_types[side],
    data.word_types[side],
    alpha=config.alpha,
  )
  own = old.model
  if not first or aligner.maximise_first:
    counts = parallel.to_host(total.model)
    own = aligner.maximise(own, counts, data.sizes[side], config)
  new = Parameters(pairs=pairs, null=null, model=own)
  return parallel.copied(data.mesh, new), scores


def _expect(data, parameters, side, aligner: Aligner, config):
  """Returns every device's own expected counts, and log-likelihoods."""
  step = _e_step(data.mesh, aligner, _program_settings(config, aligner))
  devices = parallel.size(data.mesh)
  empty = Statistics(
    pairs=parameters.pairs,
    null=parameters.null,
    model=empty_counts(aligner, data.sizes[side], config),
  )
  zeros = lambda leaf: np.zeros((devices, *leaf.shape), np.float32)
  statistics = parallel.split(data.mesh, jax.tree.map(zeros, empty))
  scores = []
  for batch in data.batches:
    grid = seen_from(batch, direction=side)
    statistics, score = step(parameters, statistics, grid)
    scores.append(score)
  return statistics, scores


def _program_settings(config: AlignConfig, aligner: Aligner) -> AlignConfig:
  """Returns what an aligner's programs depend on, the rest left at default.

  Settings that do not change a program must not compile it again.
  """
  values = {name: getattr(config, name) for name in aligner.settings}
  return AlignConfig(model=aligner.name, **values)


@functools.lru_cache(maxsize=16)
def _e_step(mesh: Mesh, aligner: Aligner, config: AlignConfig):
  """Returns the compiled `(parameters, statistics, grid) -> (...)`."""

  def local(parameters, statistics, grid):
    old, grid = jax.tree.map(lambda leaf: leaf[0], (statistics, grid))
    found = aligner.expectation(parameters, grid, config)
    mode = "promise_in_bounds"
    new = Statistics(
      pairs=old.pairs.at[grid.pairs].add(found.links, mode=mode),
      null=old.null.at[grid.words].add(found.null, mode=mode),
      model=aligner.accumulate(old.model, found.model, grid),
    )
    return _with_device_axis((new, found.log_likelihood))

  return parallel.data_parallel(
    local,
    mesh=mesh,
    inputs=("copied", "split", "split"),
    outputs=("split", "split"),
    donate=(1,),
  )


@functools.lru_cache(maxsize=16)
def _total(mesh: Mesh):
  """Returns the compiled sum of statistics over devices."""

  def local(statistics):
    add = lambda leaf: jax.lax.psum(leaf[0], parallel.DATA)
    return (jax.tree.map(add, statistics),)

  return parallel.data_parallel(
    local, mesh=mesh, inputs=("split",), outputs=("copied",)
  )


@functools.lru_cache(maxsize=16)
def _linker(mesh: Mesh, aligner: Aligner, config: AlignConfig, decoder: str):
  """Returns the compiled `((parameters, threshold), grid) -> links`.

  Links are the best i `[D, J, B]`, or for posteriors a mask `[D, J, I, B]`.
  """

  def local(given, grid):
    parameters, threshold = given
    grid = jax.tree.map(lambda leaf: leaf[0], grid)
    if decoder == "viterbi":
      links = aligner.links(parameters, grid, config)
    else:
      posteriors = aligner.expectation(parameters, grid, config)
      links = posteriors.links > threshold
    return (links[None],)

  return parallel.data_parallel(
    local, mesh=mesh, inputs=("copied", "split"), outputs=("split",)
  )


def _with_device_axis(tree: Any) -> Any:
  return jax.tree.map(lambda leaf: leaf[None], tree)


def _link(data, parameters, side, aligner: Aligner, config):
  """Returns a direction's links and log-likelihoods of the last pass."""
  # The counts go unused: the E-step is compiled already, and it is quick.
  _, scores = _expect(data, parameters, side, aligner, config)
  settings = _program_settings(config, aligner)
  program = _linker(data.mesh, aligner, settings, config.decoder)
  threshold = np.float32(config.threshold)
  results = [
    program((parameters, threshold), seen_from(batch, direction=side))
    for batch in data.batches
  ]
  points = [np.zeros((0, 3), np.int64)]
  for lines, (links,) in zip(data.lines, results, strict=True):
    points.append(_points(parallel.to_host(links), lines, side))
  return _rows(np.concatenate(points), data.line_count), scores


def _points(links: np.ndarray, lines: np.ndarray, side: str) -> np.ndarray:
  """Returns a batch's links as rows (line, source, target), int64 `[L, 3]`."""
  if links.ndim == 3:
    device, generated, row = np.nonzero(links)
    given = links[device, generated, row] - 1
  else:
    device, generated, given, row = np.nonzero(links)
  pair = (given, generated) if side == "forward" else (generated, given)
  return np.stack([lines[device, row], *pair], axis=1)


def _rows(points: np.ndarray, lines: int) -> Ragged:
  """Sorts links by line, source, target."""
  points = points[np.lexsort(points.T[::-1])]
  offsets = np.searchsorted(points[:, 0], np.arange(lines + 1))
  return Ragged(
    flat=np.ascontiguousarray(points[:, 1:], np.int32), offsets=offsets
  )


def _progress(model, step, passes, data, scores, parameters) -> Progress:
  """Adds up log-likelihoods in double precision."""
  scores = parallel.to_host(scores)
  totals = {
    side: float(sum(part.sum(dtype=np.float64) for part in scores[side]))
    for side in parameters
  }
  return Progress(
    model=model,
    iteration=step + 1,
    iterations=passes,
    log_likelihood=totals,
    perplexity={
      side: float(np.exp(-total / max(data.words[side], 1)))
      for side, total in totals.items()
    },
    scalars={
      side: {
        name: float(parallel.to_host(value))
        for name, value in given.model.items()
        if not value.shape
      }
      for side, given in parameters.items()
    },
  )
