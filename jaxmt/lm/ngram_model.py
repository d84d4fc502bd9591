"""A back-off n-gram model on the host: one struct of arrays per order.

The n-grams of order k are numbered 0 .. n_k - 1 in a fixed order (that of the
file, or the one estimation makes). Instead of its k words an n-gram holds two
numbers into order k - 1: its *context* (the words without the last) and its
*suffix* (the words without the first), and its last word. That is a trie both
ways in 20 bytes per n-gram, whatever the order.

Scores are log10, as ARPA files have them; the automaton turns them to ln.
"""

import dataclasses

import numpy as np

from jaxmt.errors import InputError

MAX_ORDER = 6
UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
LOG_ZERO = -99.0  # what ARPA files write for log10(0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Level:
  """All n-grams of one order k.

  Attributes:
    context: the n-gram of order k - 1 made of its first words, int32 `[n]`;
      all zero at order 1.
    word: the last word's id, int32 `[n]`; at order 1 the n-gram's own number.
    suffix: the n-gram of order k - 1 made of its last words, or -1 where the
      model does not have it, int32 `[n]`; all zero at order 1.
    probability: log10 p(last word | context), float32 `[n]`.
    backoff: log10 of the back-off weight, float32 `[n]`; all zero at the
      highest order.
  """

  context: np.ndarray
  word: np.ndarray
  suffix: np.ndarray
  probability: np.ndarray
  backoff: np.ndarray

  def __len__(self) -> int:
    return len(self.word)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NgramModel:
  """A back-off model.

  Attributes:
    words: the word of each id; ids are the numbers of the unigrams.
    levels: order 1 to N.
  """

  words: tuple[str, ...]
  levels: tuple[Level, ...]

  @property
  def order(self) -> int:
    """The length of the longest n-grams, N."""
    return len(self.levels)

  @property
  def counts(self) -> tuple[int, ...]:
    """The number of n-grams of each order."""
    return tuple(len(level) for level in self.levels)


def spell(levels: tuple[Level, ...], order: int) -> np.ndarray:
  """Returns the word ids of all n-grams of one order, int32 `[n, order]`."""
  level = levels[order - 1]
  ids = np.empty((len(level), order), np.int32)
  number = np.arange(len(level))
  for position in range(order - 1, -1, -1):
    ids[:, position] = levels[position].word[number]
    number = levels[position].context[number]
  return ids


def check_order(order: int) -> None:
  """Raises `InputError` unless the order is one that we support."""
  if not 1 <= order <= MAX_ORDER:
    raise InputError(f"order {order} is not in 1 .. {MAX_ORDER}")


def append(level: Level, **columns: np.ndarray) -> Level:
  """Returns the level with more n-grams after its own."""
  return Level(
    **{
      field.name: np.concatenate(
        [getattr(level, field.name), columns[field.name]]
      )
      for field in dataclasses.fields(Level)
    }
  )
