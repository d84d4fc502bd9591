"""Reachability: how many references a grammar can derive, and why not all."""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

LENGTHS = (5, 10, 15, 20, 30, 40)  # longest sentences of the classes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reachability:
  """What forced decoding of a text came to.

  Attributes:
    overall: the row of all sentences; see `rows`.
    rows: one for each class of source lengths that occurs.
    kinds: how many sentences failed for each kind of reason, most first.
    words: how many for each kind and the words it names, the most frequent.
  """

  overall: dict[str, Any]
  rows: list[dict[str, Any]]
  kinds: dict[str, int]
  words: dict[str, int]


def kind(reason: str) -> str:
  """Returns the kind of a reason of `ForcedForests.reason`."""
  return reason.split(":", 1)[0]


def _named(reason: str) -> str:
  """Returns the kind and what it quotes, without positions; or ""."""
  _, quote, rest = reason.partition("'")
  return f"{kind(reason)}: '{rest}" if quote else ""


def summarize(
  lengths: Sequence[int] | np.ndarray,
  reached: Sequence[bool] | np.ndarray,
  reasons: Sequence[str],
  *,
  most: int = 10,
) -> Reachability:
  """Sums up reachability by length.

  Args:
    lengths: source words of each sentence, `[B]`.
    reached: whether it has a derivation, bool `[B]`.
    reasons: `ForcedForests.reason`.
    most: how many of `Reachability.words` to keep.
  """
  lengths, reached = np.asarray(lengths, np.int64), np.asarray(reached, bool)
  group = np.searchsorted(LENGTHS, lengths)
  begins = (0, *(length + 1 for length in LENGTHS))
  rows = []
  for number, begin in enumerate(begins):
    here = group == number
    if here.any():
      name = f"{begin}-{LENGTHS[number]}" if number < len(LENGTHS) else ""
      rows.append(_row(name or f"{begin}+", lengths[here], reached[here]))
  failed = [reason for reason in reasons if reason]
  kinds = collections.Counter(map(kind, failed))
  words = collections.Counter(filter(None, map(_named, failed)))
  return Reachability(
    overall=_row("all", lengths, reached),
    rows=rows,
    kinds=dict(kinds.most_common()),
    words=dict(words.most_common(most)),
  )


def _row(name: str, lengths: np.ndarray, reached: np.ndarray) -> dict[str, Any]:
  share = lambda part, whole: round(100 * part / whole, 2) if whole else 0.0
  words = int(lengths.sum())
  return {
    "source words": name,
    "sentences": len(lengths),
    "reached": int(reached.sum()),
    "reached %": share(int(reached.sum()), len(lengths)),
    "words": words,
    "words reached %": share(int(lengths[reached].sum()), words),
  }
