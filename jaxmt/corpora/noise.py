"""Noise of known kinds in a bitext, to see what cleaning does about it.

The kinds are the commonest ones of crawled text (Khayrallah and Koehn 2018, "On
the impact of various types of noise on neural machine translation"):

    misaligned     the target side is that of another pair with this noise
    misordered     the words of the target side are shuffled
    untranslated   the target side is the source side
    truncated      the second half of the target side is missing
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import numpy as np

KINDS = ("misaligned", "misordered", "untranslated", "truncated")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoisyPairs:
  """A bitext with noise.

  Attributes:
    target: N target lines; the source lines are as they were.
    kind: of each pair's noise, a number of `KINDS`; -1: none, int8 `[N]`.
  """

  target: list[str]
  kind: np.ndarray


def parse(settings: Sequence[str]) -> dict[str, float]:
  """Returns the share of pairs of each kind, from "kind:share" each.

  Raises:
    ValueError: for an unknown kind, one that stands twice, or shares that are
      not from 0 to 1 together.
  """
  shares: dict[str, float] = {}
  for setting in settings:
    kind, _, share = setting.partition(":")
    if kind not in KINDS:
      raise ValueError(f"noise '{kind}' is none of {', '.join(KINDS)}")
    if kind in shares:
      raise ValueError(f"noise '{kind}' stands twice")
    try:
      shares[kind] = float(share)
    except ValueError:
      raise ValueError(f"noise '{setting}': expected kind:share") from None
    if not 0 <= shares[kind] <= 1:
      raise ValueError(f"noise '{setting}': the share is not from 0 to 1")
  if sum(shares.values()) > 1:
    raise ValueError("the shares of noise are more than 1 together")
  return shares


def add(
  source: Sequence[str],
  target: Sequence[str],
  shares: Mapping[str, float],
  *,
  seed: int,
) -> NoisyPairs:
  """Returns a bitext of which some pairs have noise.

  Args:
    source: N lines.
    target: N lines.
    shares: of pairs by kind, see `parse`.
    seed: of which pairs, and of shuffling.
  """
  size = len(source)
  rng = np.random.default_rng([seed, 31])
  order = rng.permutation(size)
  lines = list(target)
  kinds = np.full(size, -1, np.int8)
  ends = np.round(size * np.cumsum([shares.get(kind, 0.0) for kind in KINDS]))
  for number, (low, high) in enumerate(itertools.pairwise([0, *ends])):
    rows = order[int(low) : int(high)].tolist()
    kinds[rows] = number
    if KINDS[number] == "misaligned":
      for row, other in zip(rows, rows[1:] + rows[:1], strict=True):
        lines[row] = target[other]
      continue
    for row in rows:
      words = target[row].split()
      if KINDS[number] == "misordered":
        words = [words[place] for place in rng.permutation(len(words)).tolist()]
      elif KINDS[number] == "untranslated":
        words = source[row].split()
      else:
        words = words[: (len(words) + 1) // 2]
      lines[row] = " ".join(words)
  return NoisyPairs(target=lines, kind=kinds)
