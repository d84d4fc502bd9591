"""Every N-th training pair or tuning sentence apart from the others.

Rules, word probabilities and language model know the pairs they are estimated
from: references of those pairs are easy to reach and look likely. Weights that
are learned on other pairs see rules as new text will.

Tuned weights know the sentences they were tuned on. What is judged against them
is judged on other sentences.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from jaxmt.errors import InputError
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus


@dataclasses.dataclass(frozen=True, kw_only=True)
class HoldOutConfig:
  """Which pairs or sentences.

  Attributes:
    every: N of the N-th ones that are held out, at least 2.
    held: whether to return these, or else all others.
  """

  every: int
  held: bool


def _chosen(config: HoldOutConfig, lines: Sequence[Any]) -> list[Any]:
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
    train_documents=given(corpus.train_documents),
  )


def tuning_sentences(config: HoldOutConfig, *, corpus: Corpus) -> Corpus:
  """Returns the corpus with some of its tuning sentences.

  Raises:
    InputError: if none is held out.
  """
  size = len(corpus.tune_source)
  if size < config.every:
    raise InputError(
      f"config key 'judged': {config.every} is more than the {size} tuning"
      " sentences"
    )
  trees = corpus.tune_trees
  return dataclasses.replace(
    corpus,
    tune_source=_chosen(config, corpus.tune_source),
    tune_references=_chosen(config, corpus.tune_references),
    tune_trees=None if trees is None else _chosen(config, trees),
  )


def links(config: HoldOutConfig, *, links: Links) -> Links:
  """Returns the word links of these pairs."""
  return Links(links=_chosen(config, links.links))
