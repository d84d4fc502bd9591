"""What the productions of the synthetic grammar are made of.

A production builds two things side by side: a piece of the Chinese tree, and a
function that words the same piece in English. The tree is built once; the
English function is called once per reference, and every call may choose
another wording. An English token carries the tree's leaves it translates, so
word links come from the construction and need no aligner.
"""

import bisect
import dataclasses
import functools
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Leaf:
  """One source word with its tag; compared by identity.

  Attributes:
    tag: part of speech.
    word: the word.
    index: its place in the sentence, set when the sentence is complete.
  """

  __slots__ = ("index", "tag", "word")

  def __init__(self, tag: str, word: str):
    self.tag = tag
    self.word = word
    self.index = -1


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Tree:
  """An inner node of the source tree."""

  label: str
  children: tuple["Tree | Leaf", ...]


Token = tuple[str, tuple[Leaf, ...]]  # an English word, what it translates


class Draw:
  """Random choices from `random.Random.random` alone.

  Python promises that method's sequence for all its versions, which it does
  for no other; only exactly rounded arithmetic is applied to it.
  """

  __slots__ = ("_uniform",)

  def __init__(self, seed: int):
    self._uniform = random.Random(seed).random

  def chance(self, probability: float) -> bool:
    """True with the given probability."""
    return self._uniform() < probability

  def below(self, bound: int) -> int:
    """A uniform integer in `[0, bound)`."""
    return int(self._uniform() * bound)

  def pick(self, options: Sequence[T]) -> T:
    """One of the options, uniformly."""
    return options[int(self._uniform() * len(options))]

  def zipf(self, options: Sequence[T]) -> T:
    """One of the options; the first are frequent, the last of many are rare.

    The r-th (from 0) has weight 1 / ((r + 1.5) (1 + r / 20)): Zipf's law, bent
    down for long lists so that some of their words stay unseen in training.
    """
    return options[_search(_zipf_sums(len(options)), self._uniform())]

  def wording(self, options: Sequence[T]) -> T:
    """One of several wordings: the first is as likely as the rest together."""
    if len(options) == 1 or self._uniform() < 0.55:
      return options[0]
    return options[1 + int(self._uniform() * (len(options) - 1))]

  def weighted(self, options: Sequence[T], sums: Sequence[float]) -> T:
    """One of the options; `sums` are the running totals of their weights."""
    return options[_search(sums, self._uniform())]

  def choose(self, **weights: float) -> str:
    """One of the names, in proportion to its weight; the last has one."""
    total = 0.0  # not by `sum`, which rounds in another way since Python 3.12
    for weight in weights.values():
      total += weight
    left = self._uniform() * total
    for name, weight in weights.items():
      left -= weight
      if left < 0:
        return name
    return list(weights)[-1]


def running_totals(weights: Sequence[float]) -> tuple[float, ...]:
  """The running totals of weights."""
  total, sums = 0.0, []
  for weight in weights:
    total += weight
    sums.append(total)
  return tuple(sums)


def _search(sums: Sequence[float], uniform: float) -> int:
  place = bisect.bisect_right(sums, uniform * sums[-1])
  return min(place, len(sums) - 1)


@functools.cache
def _zipf_sums(count: int) -> tuple[float, ...]:
  return running_totals(
    [1 / ((rank + 1.5) * (1 + rank / 20)) for rank in range(count)]
  )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nominal:
  """A noun phrase.

  Attributes:
    tree: its Chinese; None when Chinese leaves it out.
    english: `(draw, case) -> tokens`; case is subject, object or possessive.
    agreement: of an English verb with it: `1s`, `3s` or `pl`.
    pronoun: the English pronoun that refers back to it.
    human: whether it is people (`who`) or not (`which`).
    pronominal: a pronoun itself (no article, no post-verbal particle).
    heavy: carries a relative clause.
    several: what 都 after it means: `all`, `both`, or nothing.
  """

  tree: Tree | None
  english: Callable[[Draw, str], list[Token]]
  agreement: str
  pronoun: str
  human: bool = True
  pronominal: bool = False
  heavy: bool = False
  several: str = ""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Verbal:
  """An English verb phrase before tense.

  Attributes:
    lemma: the verb that takes tense and agreement.
    leaves: what it translates.
    rest: objects and particles after it.
    tail: a clause at its end: adverbials come before it.
  """

  lemma: str
  leaves: tuple[Leaf, ...]
  rest: list[Token]
  tail: list[Token] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Core:
  """A verb with its complements, before adverbials, modals and negation.

  Attributes:
    tree: the Chinese VP.
    verbal: `draw -> Verbal`, called once per reference.
  """

  tree: Tree
  verbal: Callable[[Draw], Verbal]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adverbial:
  """A time, a place, a company, a manner.

  Attributes:
    trees: its Chinese; empty when that stands elsewhere in the clause.
    english: `draw -> tokens`.
    places: where English may put it, best first: front, middle, end.
    rank: order among those at the end (small first).
  """

  trees: tuple[Tree, ...]
  english: Callable[[Draw], list[Token]]
  places: tuple[str, ...] = ("end",)
  rank: int = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relative:
  """A relative clause.

  Attributes:
    tree: the Chinese CP, ending in DEC.
    english: `(draw, agreement, human) -> tokens`, given the noun's features.
  """

  tree: Tree
  english: Callable[[Draw, str, bool], list[Token]]


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Scope:
  """What every production of one sentence shares.

  Attributes:
    draw: choices of structure and Chinese words.
    relative: the production of relative clauses (nouns and clauses contain
      each other; this is how the module of nouns reaches that of clauses).
    positive: nothing is negated (yes-no questions).
    asking: it is a question: no adverbs of comment.
    single: it is one clause: an early time may have its own comma.
    tags: the phenomena built so far, in order, with repetitions.
  """

  draw: Draw
  relative: Callable[..., Relative | None]
  positive: bool = False
  asking: bool = False
  single: bool = False
  tags: list[str] = dataclasses.field(default_factory=list)


Wording = Callable[[Draw], list[Token]]


def node(label: str, *children: "Tree | Leaf | None") -> Tree:
  """A tree node; children that are None are left out."""
  return Tree(label, tuple([c for c in children if c is not None]))


def words(text: str, *leaves: Leaf) -> list[Token]:
  """English words that all translate the given leaves."""
  return [(word, leaves) for word in text.split()]
