"""The most frequent word pairs, n-grams and triggers of a bitext as features.

    Linked:haus_house    linked words of a phrase pair that is used
    Ngram:the_red_house  target words that follow each other
    Trigger:if_then      "then" anywhere after "if": how many such pairs

Gimpel (2012), section 3.5.3: 1,000 word pairs of the phrase table; 200
unigrams, 1,000 bigrams and 1,000 trigrams of the target; the 4,000 pairs of
target words of most mutual information (Rosenfeld 1996). N-grams and triggers
cross the borders of phrases, so that search over phrases alone cannot score
them: `decode.phrase.lattice_search` does.

Events are known by name, in configs and weights. `bind` numbers them for a
model. Words with "_" are in no event, since it stands between the words of a
name.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar.table import RuleTable
from jaxmt.text import key_table, vocabulary
from jaxmt.text.kernels import mixed, njit
from jaxmt.text.key_table import KeyTable, look_up
from jaxmt.text.ragged import Ragged

LINKED, NGRAM, TRIGGER = "Linked:", "Ngram:", "Trigger:"
NAME = "frequent"  # of the template in configs and flags
_BETWEEN = "_"
# Kinds in keys: n-grams have their length.
_LONGEST, _TRIGGER, _LINKED = 3, 4, 5
_BITS = 20  # of a word's number in a key


@dataclasses.dataclass(frozen=True, kw_only=True)
class EventSizes:
  """How many events of each kind there are; those of the thesis.

  Attributes:
    pairs: linked word pairs.
    unigrams: target words.
    bigrams: of target words.
    trigrams: of target words.
    triggers: pairs of target words.
    least: sentences that both words of a trigger are in, one before the other.
  """

  pairs: int = 1000
  unigrams: int = 200
  bigrams: int = 1000
  trigrams: int = 1000
  triggers: int = 4000
  least: int = 3


def check_sizes(sizes: EventSizes) -> None:
  """Raises `ValueError` for negative sizes."""
  for field in dataclasses.fields(sizes):
    if getattr(sizes, field.name) < 0:
      raise ValueError(f"{field.name} must not be negative")


def is_event_weight(name: str) -> bool:
  """Whether a weight's name is one of an event."""
  return name.startswith((LINKED, NGRAM, TRIGGER))


def of_weights(weights: Mapping[str, float]) -> tuple[str, ...]:
  """Returns the names of the events that weights other than 0 are of."""
  return tuple(
    name for name, value in weights.items() if value and is_event_weight(name)
  )


def choose(
  table: RuleTable, target: Sequence[str], sizes: EventSizes
) -> tuple[str, ...]:
  """Returns the names of the events of a bitext, the most frequent ones first.

  Args:
    table: phrase pairs with counts; words linked in pairs of two words count.
    target: the target lines.
    sizes: see `EventSizes`.
  """
  ids, words = vocabulary.intern(target)
  names = _frequent_pairs(table, sizes.pairs)
  counts = (sizes.unigrams, sizes.bigrams, sizes.trigrams)
  for order, number in enumerate(counts, start=1):
    names += _frequent_ngrams(ids, words, order, number)
  return (*names, *_triggers(ids, words, sizes))


def _frequent_pairs(table: RuleTable, number: int) -> list[str]:
  single = (table.source.lengths == 1) & (table.target.lengths == 1)
  rows = np.flatnonzero(single & (table.links.lengths > 0))
  source = table.source.flat[table.source.offsets[rows]]
  target = table.target.flat[table.target.offsets[rows]]
  rows = rows[(source >= 0) & (target >= 0)]
  names = []
  for row in rows[np.argsort(-table.counts[rows], kind="stable")].tolist():
    pair = (
      table.source_words.words[int(table.source[row][0])],
      table.target_words.words[int(table.target[row][0])],
    )
    names += _spelled(LINKED, pair)
    if len(names) >= number:
      break
  return names[:number]


def _spelled(prefix: str, words: Sequence[str]) -> list[str]:
  """The name of an event, or none if it could not be read again."""
  if any(_BETWEEN in word for word in words):
    return []
  return [prefix + _BETWEEN.join(words)]


def _frequent_ngrams(
  ids: Ragged, words: Sequence[str], order: int, number: int
) -> list[str]:
  flat = ids.flat.astype(np.int64)
  size = max(len(flat) - order + 1, 0)
  row = np.repeat(np.arange(len(ids)), ids.lengths)
  # An n-gram must not cross the end of a line.
  inside = row[:size] == row[order - 1 :][:size]
  keys = np.zeros(size, np.int64)
  for place in range(order):
    keys = keys * len(words) + flat[place : place + size]
  distinct, counts = np.unique(keys[inside], return_counts=True)
  names = []
  for key in distinct[np.argsort(-counts, kind="stable")].tolist():
    if len(names) >= number:
      break
    gram = []
    for _ in range(order):
      key, word = divmod(key, len(words))
      gram.append(words[word])
    names += _spelled(NGRAM, gram[::-1])
  return names


def _triggers(
  ids: Ragged, words: Sequence[str], sizes: EventSizes
) -> list[str]:
  """Pairs of words of most mutual information.

  The two events are that a sentence has the first word, and that it has the
  second; of sentences with both, those count that have the first before the
  second. Pairs that shun each other are left out.
  """
  occurs = _distinct_words(ids.flat, ids.offsets, len(words))
  keys, joint = np.unique(
    _ordered_pairs(ids.flat, ids.offsets, len(words)), return_counts=True
  )
  often = joint >= max(sizes.least, 1)
  keys, joint = keys[often], joint[often]
  one, other = np.divmod(keys, len(words))
  value = mutual_information(
    joint, occurs[one], occurs[other], sentences=max(len(ids), 1)
  )
  names = []
  for place in np.argsort(-value, kind="stable").tolist():
    if len(names) >= sizes.triggers or value[place] <= 0:
      break
    names += _spelled(TRIGGER, (words[one[place]], words[other[place]]))
  return names


def mutual_information(
  joint: np.ndarray, first: np.ndarray, second: np.ndarray, *, sentences: int
) -> np.ndarray:
  """Returns the mutual information of two binary events in nats, `[N]`.

  Args:
    joint: in how many sentences both happen, `[N]`.
    first: in how many the first does.
    second: in how many the second does.
    sentences: how many there are.

  Returns:
    0 where they happen together less often than by chance.
  """
  p, q = first / sentences, second / sentences
  both = joint / sentences
  total = np.zeros(len(joint))
  for cell, expected in (
    (both, p * q),
    (p - both, p * (1 - q)),
    (q - both, (1 - p) * q),
    (1 - p - q + both, (1 - p) * (1 - q)),
  ):
    is_positive = (cell > 0) & (expected > 0)
    ratio = np.divide(cell, expected, out=np.ones(len(cell)), where=is_positive)
    total += np.where(is_positive, cell * np.log(ratio), 0.0)
  return np.where(both > p * q, total, 0.0)


@njit
def _distinct_words(flat, offsets, size):
  """In how many lines each word occurs."""
  counts, last = np.zeros(size, np.int64), np.full(size, -1, np.int64)
  for row in range(len(offsets) - 1):
    for place in range(offsets[row], offsets[row + 1]):
      word = flat[place]
      if last[word] != row:
        last[word] = row
        counts[word] += 1
  return counts


@njit
def _ordered_pairs(flat, offsets, size):
  """Keys of words that stand in this order, each once a line."""
  room = np.int64(0)
  for row in range(len(offsets) - 1):
    words = offsets[row + 1] - offsets[row]
    room += words * (words - 1) // 2
  keys = np.empty(room, np.int64)
  end = 0
  for row in range(len(offsets) - 1):
    start = end
    for place in range(offsets[row], offsets[row + 1]):
      for before in range(offsets[row], place):
        keys[end] = np.int64(flat[before]) * size + flat[place]
        end += 1
    # Each pair once.
    members = np.sort(keys[start:end])
    end = start
    for item in range(len(members)):
      if item == 0 or members[item] != members[item - 1]:
        keys[end] = members[item]
        end += 1
  return keys[:end]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EventTable:
  """F events, ready to be found in strings of word numbers.

  Attributes:
    names: of the events.
    numbers: of the words in them, from 1 on; 0 stands for all others.
    table: number of each event, plus 1, by key.
    ends: whether each word ends a trigger, bool.
  """

  names: tuple[str, ...]
  numbers: Mapping[str, int]
  table: KeyTable
  ends: np.ndarray

  def number(self, words: Sequence[str]) -> np.ndarray:
    """Returns the numbers of words, int32."""
    return np.array([self.numbers.get(word, 0) for word in words], np.int32)


@functools.lru_cache(maxsize=8)
def make_table(names: tuple[str, ...]) -> EventTable:
  """Reads the names of events.

  Raises:
    InputError: for a name that is not of an event, or that stands twice.
  """
  numbers: dict[str, int] = {}
  keys = np.zeros(len(names), np.uint64)
  ends = []
  for place, name in enumerate(names):
    kind, words = _parsed(name)
    ids = [numbers.setdefault(word, len(numbers) + 1) for word in words]
    keys[place] = event_key(kind, *ids, *([0] * (_LONGEST - len(ids))))
    if kind == _TRIGGER:
      ends.append(ids[1])
  if len(numbers) >= 1 << _BITS:
    raise InputError(f"{len(numbers):,} words in events are too many")
  if len(np.unique(keys)) < len(keys):
    raise InputError("an event stands twice among the names")
  flags = np.zeros(len(numbers) + 1, np.bool_)
  flags[ends] = True
  return EventTable(
    names=names,
    numbers=numbers,
    table=key_table.key_table(keys, 1.0 + np.arange(len(names))),
    ends=flags,
  )


def _parsed(name: str) -> tuple[int, list[str]]:
  """Kind and words of an event's name."""
  head, _, rest = name.partition(":")
  words = rest.split(_BETWEEN)
  sizes = {LINKED: (2, 2), TRIGGER: (2, 2), NGRAM: (1, _LONGEST)}
  low, high = sizes.get(head + ":", (1, 0))
  if not low <= len(words) <= high or not all(words):
    raise InputError(f"'{name}' is no name of a frequent event")
  kinds = {LINKED: _LINKED, TRIGGER: _TRIGGER}
  return kinds.get(head + ":", len(words)), words


@njit
def event_key(kind, one, two, three):
  """The key of an event: its kind and the numbers of up to three words."""
  key = np.uint64(kind) << np.uint64(3 * _BITS)
  key |= np.uint64(one) << np.uint64(2 * _BITS)
  key |= np.uint64(two) << np.uint64(_BITS)
  return mixed(key | np.uint64(three))


@njit
def find_events(words, first, last, table, ends, found):
  """Finds the n-grams and triggers that end in `words[first:last]`.

  Args:
    words: numbers of words.
    first: from which word on.
    last: one past the last word; those after it do not count.
    table: `EventTable.table`.
    ends: `EventTable.ends`.
    found: room for `room(last)` numbers of events.

  Returns:
    How many there are.
  """
  count = 0
  for place in range(first, last):
    word = words[place]
    if word == 0:
      continue
    for size in range(1, min(3, place + 1) + 1):
      if size == 1:
        key = event_key(1, word, 0, 0)
      elif size == 2:
        key = event_key(2, words[place - 1], word, 0)
      else:
        key = event_key(3, words[place - 2], words[place - 1], word)
      number = np.int32(look_up(key, table))
      if number:
        found[count] = number - 1
        count += 1
    if not ends[word]:
      continue
    for before in range(place):
      if words[before]:
        key = event_key(4, words[before], word, 0)
        number = np.int32(look_up(key, table))
        if number:
          found[count] = number - 1
          count += 1
  return count


@njit
def room(words):
  """Returns the most events that `find_events` can find in N words."""
  return 3 * words + words * words // 2


def linked_events(
  events: EventTable, table: RuleTable, rules: np.ndarray
) -> Ragged:
  """Returns the word pairs that rules link: numbers of events, N rows.

  Args:
    events: the events.
    table: R rules.
    rules: N rules; those from R on, which copy words, link no known words.
  """
  flat, offsets = _linked_events(
    np.asarray(rules, np.int64),
    len(table),
    (table.source.flat, table.source.offsets),
    (table.target.flat, table.target.offsets),
    (np.ascontiguousarray(table.links.flat), table.links.offsets),
    events.number(table.source_words.words),
    events.number(table.target_words.words),
    events.table,
  )
  return Ragged(flat=flat, offsets=offsets)


@njit
def _linked_events(rules, size, source, target, links, known, others, table):
  total = 0
  for rule in rules:
    if rule < size:
      total += links[1][rule + 1] - links[1][rule]
  flat, offsets = np.empty(total, np.int32), np.zeros(len(rules) + 1, np.int64)
  count = 0
  for row in range(len(rules)):
    rule = rules[row]
    if rule < size:
      for link in range(links[1][rule], links[1][rule + 1]):
        one = source[0][source[1][rule] + links[0][link, 0]]
        other = target[0][target[1][rule] + links[0][link, 1]]
        if one >= 0 and other >= 0 and known[one] and others[other]:
          key = event_key(5, known[one], others[other], 0)
          number = np.int32(look_up(key, table))
          if number:
            flat[count] = number - 1
            count += 1
    offsets[row + 1] = count
  return flat[:count], offsets
