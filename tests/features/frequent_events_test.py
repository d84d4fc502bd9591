"""Frequent events: how they are chosen, named and found."""

import collections
import itertools
import math

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.features import frequent_events
from jaxmt.features.frequent_events import EventSizes
from jaxmt.grammar import table as tables
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import SPECIALS, Vocabulary

LINES = ["a b c a b", "b a d", "", "c c d a b", "x_y a b", "d e", "e c d"]


def phrase_table():
  words = Vocabulary(words=(*SPECIALS, "f", "g"))
  others = Vocabulary(words=(*SPECIALS, "a", "b"))
  first = len(SPECIALS)
  return tables.make_table(
    source_words=words,
    target_words=others,
    source=ragged.from_rows(
      [[first], [first + 1], [first, first + 1], [first]]
    ),
    target=ragged.from_rows(
      [[first], [first], [first, first + 1], [first + 1]]
    ),
    links=Ragged(
      flat=np.array([[0, 0], [0, 0], [0, 1], [1, 0], [0, 0]], np.int16),
      offsets=np.array([0, 1, 2, 4, 5]),
    ),
    counts=np.array([3.0, 7.0, 20.0, 5.0]),
  )


def by_hand(words, names):
  """Events of a string, counted by their definition."""
  found = collections.Counter()
  for size in (1, 2, 3):
    for place in range(len(words) - size + 1):
      found["Ngram:" + "_".join(words[place : place + size])] += 1
  for one, other in itertools.combinations(words, 2):
    found[f"Trigger:{one}_{other}"] += 1
  return {name: found[name] for name in names if found[name]}


def test_the_most_frequent_are_chosen():
  sizes = EventSizes(
    pairs=2, unigrams=2, bigrams=2, trigrams=1, triggers=3, least=1
  )
  names = frequent_events.choose(phrase_table(), LINES, sizes)
  # Pairs of single words only, by count.
  assert names[:2] == ("Linked:g_a", "Linked:f_b")
  assert set(names[2:4]) == {"Ngram:a", "Ngram:b"}
  assert names[4] == "Ngram:a_b" and names[5] == "Ngram:c_d"
  assert not any("x" in name for name in names)  # "_" is between words
  triggers = [name for name in names if name.startswith("Trigger:")]
  assert len(triggers) == 3
  every = frequent_events.choose(
    phrase_table(), LINES, EventSizes(least=1, triggers=1000)
  )
  best = max(_information(one, other) for one in "abcde" for other in "abcde")
  one, other = triggers[0].removeprefix("Trigger:").split("_")
  assert _information(one, other) == pytest.approx(best)
  for name in every:
    if name.startswith("Trigger:"):
      assert _information(*name.removeprefix("Trigger:").split("_")) > 0


def _information(one, other):
  """Mutual information of two events, counted over the lines."""
  rows = [line.split() for line in LINES]
  both = sum((one, other) in itertools.combinations(row, 2) for row in rows)
  p = sum(one in row for row in rows) / len(rows)
  q = sum(other in row for row in rows) / len(rows)
  cells = {
    (1, 1): both / len(rows),
    (1, 0): p - both / len(rows),
    (0, 1): q - both / len(rows),
    (0, 0): 1 - p - q + both / len(rows),
  }
  total = 0.0
  for (i, j), cell in cells.items():
    expected = (p if i else 1 - p) * (q if j else 1 - q)
    if cell > 0 and expected > 0:
      total += cell * math.log(cell / expected)
  return total if cells[1, 1] > p * q + 1e-12 else 0.0


@pytest.mark.parametrize("seed", range(5))
def test_events_of_strings_are_those_of_the_definition(seed):
  rng = np.random.default_rng(seed)
  names = frequent_events.choose(
    phrase_table(), LINES, EventSizes(least=1, pairs=0, triggers=9)
  )
  table = frequent_events.make_table(names)
  words = [str(word) for word in rng.choice(list("abcdez"), 9)]
  numbers = table.number(words)
  found = np.zeros(frequent_events.room(len(words)), np.int32)
  counted = collections.Counter()
  for first, last in ((0, 4), (4, 5), (5, 9)):  # what ends in each part
    size = frequent_events.find_events(
      numbers, first, last, table.table, table.ends, found
    )
    counted.update(names[number] for number in found[:size].tolist())
  assert dict(counted) == by_hand(words, names)


def test_pairs_are_found_by_links():
  names = ("Linked:f_b", "Linked:g_a", "Linked:g_b")
  events = frequent_events.make_table(names)
  rows = frequent_events.linked_events(
    events, phrase_table(), np.array([2, 1, 0, 9])
  )
  assert [rows[row].tolist() for row in range(4)] == [[0, 1], [1], [], []]


@pytest.mark.parametrize(
  "name", ["Ngram:", "Ngram:a_b_c_d", "Linked:a", "Trigger:a_b_c", "Other:a_b"]
)
def test_other_names_are_refused(name):
  with pytest.raises(InputError, match="no name of a frequent event"):
    frequent_events.make_table((name,))


def test_names_stand_once_and_weights_tell_them():
  with pytest.raises(InputError, match="twice"):
    frequent_events.make_table(("Ngram:a", "Ngram:a"))
  weights = {"Ngram:a": 0.5, "Trigger:a_b": 0.0, "WordPenalty": 1.0}
  assert frequent_events.of_weights(weights) == ("Ngram:a",)
