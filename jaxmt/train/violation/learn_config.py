"""Settings of violation-fixing learning, with the paper's defaults."""

import dataclasses

from jaxmt.features import rule_templates

UPDATES = ("max-violation", "early", "skip", "standard", "local")
LENGTH_SEARCHES = ("forest", "decode", "none")
LEAVE_ONE_OUT = ("none", "singletons")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnConfig:
  """How weights are learned on the bitext.

  Attributes:
    update: "max-violation" updates at the group with the largest violation;
      "early" at the first group, short spans first, whose beam has lost every
      good hypothesis; "skip" at the root if that fixes a violation; "standard"
      at the root whenever the best hypothesis is bad; "local" at the root,
      towards the hypothesis of the best BLEU+1.
    only_wrong: whether sentences whose best translation is a reference are left
      as they are; otherwise groups within them may update, too.
    margin: by how much a good derivation must be ahead of every bad one of its
      group, in units of the score; smaller leads count as violations. For local
      updates it has no meaning, and little for those at the goal, where search
      keeps a single hypothesis.
    templates: sparse features, see `rule_templates`; none for dense ones only.
    epochs: passes over the bitext at most.
    minibatch: sentences whose updates are averaged (Zhao & Huang 2013).
    rate: how far an average update moves sparse weights.
    dense_rate: how far it moves those of dense features.
    decay: rates of epoch e are divided by `1 + decay * e`, e from 0.
    leave_one_out: "singletons" does without the rules that only the sentence
      itself has, but those of a single source word; "none" uses all.
    length_ratio: output words per reference word to have on the development
      set.
    length_search: whether the word weight is searched by re-scoring the
      forests of one decoding ("forest"), by decoding again and again
      ("decode"), or left as learned ("none").
    shares: after each epoch the weights `start + share * (average - start)` are
      judged for each of these shares of the way that learning has gone, and
      the best of them stand for the epoch (a line search on held-out text,
      Flanigan, Dyer & Carbonell 2013).
    patience: stop after this many epochs without a better development score;
      0: never.
    max_words: longer sentences, source or reference, are left out.
    max_edges: sentences with larger forced forests are left out.
    batch_cells: cells searched together.
    checkpoint: minibatches between two saved states; 0: epochs only.
    seed: of the order of sentences.
  """

  update: str = "max-violation"
  only_wrong: bool = False
  margin: float = 0.0
  templates: tuple[str, ...] = ("edges:simple",)
  epochs: int = 5
  minibatch: int = 64
  rate: float = 1.0
  dense_rate: float = 0.01
  decay: float = 0.0
  leave_one_out: str = "none"
  length_ratio: float = 0.97
  length_search: str = "forest"
  shares: tuple[float, ...] = (1.0,)
  patience: int = 0
  max_words: int = 80
  max_edges: int = 200_000
  batch_cells: int = 4096
  checkpoint: int = 50
  seed: int = 0


def check(config: LearnConfig) -> None:
  """Raises `ValueError`, naming the field, for settings that make no sense.

  Raises:
    InputError: for an unknown template.
  """
  for name, options in (
    ("update", UPDATES),
    ("length_search", LENGTH_SEARCHES),
    ("leave_one_out", LEAVE_ONE_OUT),
  ):
    value = getattr(config, name)
    if value not in options:
      raise ValueError(f"{name} '{value}' is none of {', '.join(options)}")
  least = {"epochs": 1, "minibatch": 1, "max_words": 1, "max_edges": 1}
  least |= {"batch_cells": 1, "patience": 0, "checkpoint": 0, "seed": 0}
  for name, value in least.items():
    if getattr(config, name) < value:
      raise ValueError(f"{name} must be at least {value}")
  for name in ("rate", "dense_rate", "decay", "margin"):
    if not 0 <= getattr(config, name) < float("inf"):
      raise ValueError(f"{name} must be a number from 0 on")
  if not config.shares or not all(0 <= one <= 10 for one in config.shares):
    raise ValueError("shares must be numbers from 0 to 10, at least one")
  if not 0 < config.length_ratio < 10:
    raise ValueError("length_ratio must be between 0 and 10")
  rule_templates.parse(config.templates)
