"""How much beam search misses, as a function of its sizes."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmt.decode import decoding
from jaxmt.decode.chart import exact as exact_decoder
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.chart.exact import SearchErrors
from jaxmt.decode.chart.search import SearchConfig, make_config
from jaxmt.decode.model import Model, Source, select_source


def exact_scores(
  model: Model, source: Source, *, limit: int = 1 << 22
) -> tuple[np.ndarray, np.ndarray]:
  """Returns each sentence's best score, and whether it could be found.

  Sentences are searched one by one: the widest cell of all sets the memory.

  Args:
    model: the model.
    source: N sentences.
    limit: candidates a sentence may take.

  Returns:
    `(score float32 [N], complete bool [N])`.
  """
  scores = np.zeros(len(source), np.float32)
  complete = np.zeros(len(source), bool)
  for row in range(len(source)):
    one = select_source(source, np.array([row]))
    _, result, root = exact_decoder.search_exactly(model, one, limit=limit)
    scores[row] = np.asarray(result.beams.score)[root[0], 0]
    complete[row] = result.complete[0]
  return scores, complete


def search_error_report(
  model: Model,
  source: Source,
  *,
  sizes: Sequence[tuple[int, int]],
  limit: int = 1 << 22,
  config: DecodeConfig | None = None,
) -> list[tuple[int, int, SearchErrors]]:
  """Compares beam search with exact search.

  Both have the rules that the model's limits leave. Sentences that are too
  large for exact search are not compared.

  Args:
    model: the model.
    source: short sentences.
    sizes: pairs of beam K and candidates M.
    limit: candidates a sentence may take in exact search.
    config: how to decode; the sizes of its search do not matter.

  Returns:
    For each size `(K, M, errors)`.
  """
  best, complete = exact_scores(model, source, limit=limit)
  rows = np.flatnonzero(complete)
  chosen = select_source(source, rows)
  config = config or DecodeConfig()
  out = []
  for beam, pop in sizes:
    search = make_config(beam=beam, pop=pop)
    beam_scores = _beam_scores(model, chosen, config, search)
    errors = exact_decoder.search_errors(
      beam_scores, best[rows], complete[rows]
    )
    out.append((beam, pop, errors))
  return out


def wide_error_report(
  model: Model,
  source: Source,
  *,
  sizes: Sequence[tuple[int, int]],
  wide: tuple[int, int],
  config: DecodeConfig | None = None,
) -> list[tuple[int, int, SearchErrors]]:
  """Compares beam search with a wider one, for any sentences.

  The best score is the best that any of the searches finds, so there are at
  least as many errors as this tells.

  Args:
    model: the model.
    source: N sentences.
    sizes: pairs of beam K and candidates M.
    wide: the pair to compare with.
    config: how to decode; the sizes of its search do not matter.

  Returns:
    For each of `sizes` `(K, M, errors)`.
  """
  config = config or DecodeConfig()
  beam_scores = [
    _beam_scores(model, source, config, make_config(beam=beam, pop=pop))
    for beam, pop in (*sizes, wide)
  ]
  best = np.max(beam_scores, axis=0)
  every = np.ones(len(source), bool)
  return [
    (*size, exact_decoder.search_errors(scores, best, every))
    for size, scores in zip(sizes, beam_scores, strict=False)
  ]


def _beam_scores(
  model: Model, source: Source, config: DecodeConfig, search: SearchConfig
) -> np.ndarray:
  """The best scores that beam search finds, float32 `[N]`."""
  scores = np.zeros(len(source), np.float32)
  config = dataclasses.replace(config, search=search)
  for parts in decoding.decode(model, source, config=config):
    for part in parts:
      scores[part.rows] = part.best().score
  return scores


def as_rows(
  report: Sequence[tuple[int, int, SearchErrors]],
) -> list[dict[str, Any]]:
  """Returns the report as rows of a table.

  A shortfall is by how much the score found is below the best; means are over
  all sentences compared, and over those whose best was missed.
  """
  return [
    {
      "beam": beam,
      "pop": pop,
      "sentences": errors.sentences,
      "missed %": round(100 * errors.errors, 2),
      "mean shortfall": round(errors.mean, 4),
      "if missed": round(errors.mean / errors.errors, 4)
      if errors.errors
      else 0.0,
      "worst": round(errors.worst, 4),
    }
    for beam, pop, errors in report
  ]


def size_pairs(
  beams: Sequence[int], pops: Sequence[int]
) -> list[tuple[int, int]]:
  """Returns the sizes to compare: beams with at least as many candidates."""
  return [(beam, pop) for beam in beams for pop in pops if pop >= beam]
