"""Which sentence gave which rule how much: counts that can be re-weighted."""

import dataclasses

import numpy as np

from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.text.array_folder import Allocate, in_memory
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets


@dataclasses.dataclass(frozen=True, kw_only=True)
class Provenance:
  """The rules of N sentences.

  Attributes:
    rules: rule ids in N rows, rising, each once; int32 `[M]`.
    counts: how much the sentence counts for each of its rules, float64 `[M]`.
  """

  rules: Ragged
  counts: np.ndarray

  def __len__(self) -> int:
    return len(self.rules)


def from_rules(
  sentences: Ragged,
  shares: np.ndarray,
  *,
  number: int,
  allocate: Allocate = in_memory,
) -> Provenance:
  """Turns the sentences of each rule into the rules of each sentence.

  Args:
    sentences: sentence numbers, R rows; a number may stand twice in a row.
    shares: the counts they gave in units of 1 / `COUNT_UNIT`, int64.
    number: how many sentences there are, N.
    allocate: makes the arrays.
  """
  offsets = _count(sentences.flat, sentences.offsets, number)
  size = int(offsets[-1])
  rules = allocate("provenance_rules", size, np.int32)
  counts = allocate("provenance_counts", size, np.float64)
  _transpose(sentences.flat, sentences.offsets, shares, offsets, rules, counts)
  return Provenance(rules=Ragged(flat=rules, offsets=offsets), counts=counts)


@njit
def _count(sentences, rule_offsets, number):
  """Offsets of each sentence's different rules, int64 `[N + 1]`."""
  last = np.full(number, -1, np.int32)
  offsets = np.zeros(number + 1, np.int64)
  for rule in range(len(rule_offsets) - 1):
    for item in range(rule_offsets[rule], rule_offsets[rule + 1]):
      sentence = sentences[item]
      if last[sentence] != rule:
        last[sentence] = rule
        offsets[sentence + 1] += 1
  for sentence in range(number):
    offsets[sentence + 1] += offsets[sentence]
  return offsets


@njit
def _transpose(sentences, rule_offsets, shares, offsets, rules, counts):
  ends = offsets[:-1].copy()
  for rule in range(len(rule_offsets) - 1):
    for item in range(rule_offsets[rule], rule_offsets[rule + 1]):
      sentence = sentences[item]
      end = ends[sentence]
      if end == offsets[sentence] or rules[end - 1] != rule:
        rules[end] = rule
        ends[sentence] += 1
        end += 1
      counts[end - 1] += shares[item] / COUNT_UNIT


def sentence_rules(
  provenance: Provenance, sentence: int
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the rules of one sentence and their counts there."""
  start, stop = provenance.rules.offsets[sentence : sentence + 2]
  return provenance.rules.flat[start:stop], provenance.counts[start:stop]


def select(provenance: Provenance, rules: np.ndarray) -> Provenance:
  """Follows `table.select` with a boolean mask of the rules, `[R]`."""
  number = np.cumsum(rules, dtype=np.int32) - 1
  stays = rules[provenance.rules.flat]
  seen = row_offsets(stays)
  return Provenance(
    rules=Ragged(
      flat=number[provenance.rules.flat[stays]].astype(np.int32),
      offsets=seen[provenance.rules.offsets],
    ),
    counts=provenance.counts[stays],
  )


def recount(
  provenance: Provenance, weights: np.ndarray, *, size: int
) -> np.ndarray:
  """Returns the rules' counts when each sentence has a weight, `[R]`.

  Args:
    provenance: of N sentences.
    weights: `[N]`; all one gives the counts of extraction.
    size: number of rules, R.
  """
  if len(weights) != len(provenance):
    raise ValueError(f"{len(weights)} weights for {len(provenance)} sentences")
  spread = np.repeat(weights, provenance.rules.lengths)
  return np.bincount(
    provenance.rules.flat, provenance.counts * spread, minlength=size
  )
