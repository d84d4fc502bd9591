"""Word links of the training part."""

import dataclasses
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxmt.align import em, link_scores, registry, symmetrize
from jaxmt.errors import InputError
from jaxmt.experiment.record import Record
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.runtime import parallel, progress
from jaxmt.text import links as links_lib
from jaxmt.text import vocabulary


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignStageConfig:
  """How to align.

  Attributes:
    model: a name of `jaxmt.align.registry`, or "given" for the corpus's own
      links.
    symmetrize: how the two directions are combined.
    iterations: passes over the bitext.
  """

  model: str = "diagonal"
  symmetrize: str = "grow-diag-final-and"
  iterations: int = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Links(Record):
  """Word links of the training part.

  Attributes:
    links: Pharaoh lines.
    metrics: precision, recall and error rate against the corpus's own links,
      if it has any, and the perplexity of every pass.
  """

  links: list[str]
  metrics: dict[str, Any] | None = None


def check(config: AlignStageConfig) -> None:
  """Raises `ValueError` for an unknown model or method, or a bad number."""
  if config.model != "given":
    registry.default_config(config.model, iterations=config.iterations)
  if config.symmetrize not in symmetrize.METHODS:
    raise ValueError(
      f"symmetrize '{config.symmetrize}' is none of"
      f" {', '.join(symmetrize.METHODS)}"
    )


def align(config: AlignStageConfig, *, corpus: Corpus) -> Links:
  """Links the training pairs, and compares with the corpus's own links."""
  given = corpus.train_links
  if config.model == "given":
    if given is None:
      raise InputError(
        "config key 'align.model' is 'given', but the corpus has no links"
      )
    return Links(links=given)
  source, _ = vocabulary.intern(corpus.train_source)
  target, _ = vocabulary.intern(corpus.train_target)
  # One device of this process: sums over more would round in other ways.
  mesh = Mesh(np.array(jax.local_devices()[:1]), (parallel.DATA,))
  settings = registry.default_config(config.model, iterations=config.iterations)
  passes = registry.total_passes(settings)
  with progress.steps(label=f"align ({config.model})", total=passes) as advance:
    found = em.align(
      source, target, settings, mesh=mesh, report=lambda news: advance(1)
    )
  joined = symmetrize.symmetrize(
    found.links["forward"], found.links["backward"], method=config.symmetrize
  )
  metrics: dict[str, Any] = {
    "perplexity": [
      round(news.perplexity["forward"], 4) for news in found.history
    ]
  }
  if given is not None:
    scores = link_scores.score_links(joined, links_lib.parse_links(given))
    metrics |= {
      "precision": round(scores.precision, 4),
      "recall": round(scores.recall, 4),
      "aer": round(scores.aer, 4),
    }
  return Links(links=links_lib.format_links(joined), metrics=metrics)
