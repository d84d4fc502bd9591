"""Features of the order of phrases: distortion and lexicalised reordering.

A phrase-based derivation says its phrases from left to right on the target
side. Each phrase counts minus the number of source words between its begin and
the end of the phrase before it (distortion), ln p of its own orientation
towards that phrase (backward), and ln p of that phrase's orientation towards it
(forward); see `jaxmt.grammar.reordering`. As in Moses, the first phrase has a
backward orientation (monotone if it begins the sentence, else discontinuous),
and the last one none forward.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar.reordering import DISCONTINUOUS, MONOTONE, SWAP

WINDOW = 31  # coverage is kept of this many words after the first gap
DEFAULT_LIMIT = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseOrder:
  """How phrases may be ordered, and what it counts; R rules.

  Attributes:
    limit: most source words between phrases that follow each other, at most
      `WINDOW`.
    names: names of the distortion and of the six reordering features; of the
      former alone if there is no reordering model.
    values: reordering logs of each rule, then zeros for copied words, float32
      `[R + 1, 6]`; None without a model.
    classes: rules with equal forward logs share a number, int32 `[R + 1]`.
    hierarchical: orientations are towards the block of translated words around
      the last phrase, not towards the phrase.
  """

  limit: int = DEFAULT_LIMIT
  names: tuple[str, ...]
  values: np.ndarray | None = None
  classes: np.ndarray
  hierarchical: bool = False


def make_order(
  size: int,
  reordering: np.ndarray | None,
  *,
  limit: int,
  distortion: str,
  names: tuple[str, ...],
  hierarchical: bool = False,
) -> PhraseOrder:
  """Returns the order of phrases.

  Args:
    size: R.
    reordering: logs of the rules, `[R, 6]`, or None.
    limit: the distortion limit; -1 for none, which is `WINDOW`.
    distortion: name of the distortion.
    names: names of the reordering features.
    hierarchical: see `PhraseOrder`.

  Raises:
    InputError: if the limit is more than `WINDOW`, or less than -1.
  """
  limit = _checked(limit)
  if reordering is None:
    return PhraseOrder(
      limit=limit, names=(distortion,), classes=np.zeros(size + 1, np.int32)
    )
  values = np.zeros((size + 1, 6), np.float32)
  values[:size] = reordering
  _, classes = np.unique(values[:, 3:], axis=0, return_inverse=True)
  return PhraseOrder(
    limit=limit,
    names=(distortion, *names),
    values=values,
    classes=classes.reshape(-1).astype(np.int32),
    hierarchical=hierarchical,
  )


def with_limit(order: PhraseOrder, limit: int) -> PhraseOrder:
  """Returns the order with another distortion limit; see `make_order`."""
  return dataclasses.replace(order, limit=_checked(limit))


def _checked(limit: int) -> int:
  if limit < -1 or limit > WINDOW:
    raise InputError(f"distortion limit {limit} is not in -1 to {WINDOW}")
  return WINDOW if limit < 0 else limit


def order_scores(
  order: PhraseOrder, weights: Mapping[str, float]
) -> np.ndarray:
  """Returns the reordering logs times their weights, float32 `[R + 1, 6]`."""
  if order.values is None:
    return np.zeros((len(order.classes), 6), np.float32)
  vector = [weights.get(name, 0.0) for name in order.names[1:]]
  return order.values * np.array(vector, np.float32)


def orientation(before: np.ndarray, span: np.ndarray) -> np.ndarray:
  """Returns the orientation of spans towards those before them, int64 `[N]`.

  Args:
    before: begin and end of the span (or block) before, int `[N, 2]`; (-1, 0)
      at the start of a sentence.
    span: begin and end, int `[N, 2]`.
  """
  return np.where(
    span[:, 0] == before[:, 1],
    MONOTONE,
    np.where(span[:, 1] == before[:, 0], SWAP, DISCONTINUOUS),
  )


def order_values(
  order: PhraseOrder,
  *,
  rule: np.ndarray,
  span: np.ndarray,
  before_rule: np.ndarray,
  before: np.ndarray,
  block: np.ndarray | None = None,
) -> np.ndarray:
  """Returns what N phrases add to the features, float64 `[N, len(names)]`.

  Args:
    order: names and logs.
    rule: rule of each phrase, R for copied words, int `[N]`.
    span: its source span, int `[N, 2]`.
    before_rule: rule of the phrase before it, R if there is none, int `[N]`.
    before: that phrase's span, (-1, 0) if there is none, int `[N, 2]`.
    block: the block of translated words around it, for hierarchical models.
  """
  out = np.zeros((len(rule), len(order.names)))
  out[:, 0] = -np.abs(before[:, 1] - span[:, 0])
  if order.values is None:
    return out
  kind = orientation(before if block is None else block, span)
  rows = np.arange(len(rule))
  out[rows, 1 + kind] = order.values[rule, kind]
  first = before[:, 0] < 0
  out[rows, 4 + kind] = np.where(
    first, 0.0, order.values[before_rule, 3 + kind]
  )
  return out
