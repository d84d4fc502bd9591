"""How much beam search misses, as a function of its sizes."""

from collections.abc import Sequence

import numpy as np

from jaxmt.chart import decoder, exact, exact_decoder
from jaxmt.chart.decoder import DecodeConfig
from jaxmt.chart.exact import SearchErrors
from jaxmt.chart.model import Model, Source
from jaxmt.chart.search import make_config


def exact_scores(
  model: Model, source: Source, *, limit: int = 1 << 22
) -> tuple[np.ndarray, np.ndarray]:
  """Returns each sentence's best score, and whether it could be found.

  Args:
    model: the model.
    source: the sentences.
    limit: candidates a sentence may take.

  Returns:
    `(score float32 [N], complete bool [N])`.
  """
  _, result, root = exact_decoder.search_exactly(model, source, limit=limit)
  scores = np.asarray(result.beams.score)[:, 0]
  return scores[root], result.complete


def search_error_report(
  model: Model,
  source: Source,
  *,
  sizes: Sequence[tuple[int, int]],
  limit: int = 1 << 22,
) -> list[tuple[int, int, SearchErrors]]:
  """Compares beam search with exact search.

  Args:
    model: the model.
    source: short sentences.
    sizes: pairs of beam K and candidates M.
    limit: candidates a sentence may take in exact search.

  Returns:
    For each size `(K, M, errors)`.
  """
  best, complete = exact_scores(model, source, limit=limit)
  labels = any(model.label_weights)
  out = []
  for beam, pop in sizes:
    config = DecodeConfig(search=make_config(beam=beam, pop=pop, labels=labels))
    found = np.zeros(len(source), np.float32)
    for parts in decoder.decode(model, source, config=config):
      for part in parts:
        found[part.rows] = part.best().score
    out.append((beam, pop, exact.search_errors(found, best, complete)))
  return out
