"""Every N-th training pair apart from the others.

Rules, word probabilities and language model know the pairs they are estimated
from: references of those pairs are easy to reach and look likely. Weights that
are learned on other pairs see rules as new text will.
"""

import dataclasses

from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus


@dataclasses.dataclass(frozen=True, kw_only=True)
class HoldOutConfig:
  """Which pairs.

  Attributes:
    every: N of the N-th pairs that are held out, at least 2.
    held: whether to return these, or else all others.
  """

  every: int
  held: bool


def _chosen(config: HoldOutConfig, lines: list[str]) -> list[str]:
  last = config.every - 1
  return [
    line
    for row, line in enumerate(lines)
    if (row % config.every == last) == config.held
  ]


def pairs(config: HoldOutConfig, *, corpus: Corpus) -> Corpus:
  """Returns the corpus with some of its training pairs.

  The target sides of held-out pairs are no text for the language model of the
  others.
  """
  given = lambda lines: None if lines is None else _chosen(config, lines)
  return dataclasses.replace(
    corpus,
    train_source=_chosen(config, corpus.train_source),
    train_target=_chosen(config, corpus.train_target),
    train_trees=given(corpus.train_trees),
    train_links=given(corpus.train_links),
  )


def links(config: HoldOutConfig, *, links: Links) -> Links:
  """Returns the word links of these pairs."""
  return Links(links=_chosen(config, links.links))
