import dataclasses

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.grammar import dependency_events as events
from jaxmt.grammar import dependency_table
from jaxmt.grammar.extract import phrase_dependencies
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.phrase_dependencies import (
  DependencyOptions,
  KnownPhrases,
  ParsedPairs,
)
from jaxmt.runtime.runner import Runner
from jaxmt.text.key_table import look_up
from jaxmt.text.ragged import from_rows
from tests.reference import dependency_trees
from tests.reference import phrase_dependencies as reference

SERIAL = Runner(kind="serial", workers=1)
LIMITS = HieroOptions(
  max_phrase=3,
  max_target_phrase=3,
  max_words=3,
  max_nonterminals=0,
  tight=False,
)


def random_corpus(seed=0, size=12):
  rng = np.random.default_rng(seed)
  out = []
  for _ in range(size):
    n, m = rng.integers(1, 6, 2)
    trees = dependency_trees.projective_trees(m)
    links = {
      (int(rng.integers(n)), int(rng.integers(m))) for _ in range(max(n, m))
    }
    target = [f"t{w}" for w in rng.integers(0, 4, m)]
    out.append(
      (
        [f"s{w}" for w in rng.integers(0, 4, n)],
        target,
        ["c" + str(int(w[1]) // 2) for w in target],
        list(trees[rng.integers(len(trees))]),
        sorted(links),
      )
    )
  return out


def key(text):
  return int(events.word_keys([text])[0])


def as_pairs(corpus):
  rows = lambda place: from_rows(
    [[key(word) for word in one[place]] for one in corpus], np.uint64
  )
  links = from_rows([one[4] for one in corpus])
  return ParsedPairs(
    source=rows(0),
    target=rows(1),
    clusters=rows(2),
    heads=from_rows([one[3] for one in corpus]),
    links=dataclasses.replace(links, flat=links.flat.reshape(-1, 2)),
  )


def phrase(words):
  if words == ("$",):
    return events.ROOT_KEY
  keys = np.array([key(word) for word in words], np.uint64)
  return events.phrase_key(keys, 0, len(keys))


def event_of(name, context, outcome):
  """The key of an event of the reference."""
  kind = events.FEATURES.index(name)
  side = {"left": 0, "right": 1, "root": 2}
  order = {"same": 0, "swap": 1, "root": 2}
  flag = lambda value: 2 if value == "root" else int(value)
  parts = np.ones(6, np.uint64)
  numbers = [0, 0, 0, 0]
  if kind in (events.WORD, events.WORD_CLUSTER):
    names = {"dep_word": "dep_phrase", "dep_word_cluster": "dep_phrase_cluster"}
    inner = event_of(names[name], context, outcome)
    return events.lexical_context(kind, inner) | 1
  if kind >= 12:
    parts[4], parts[5] = phrase(context[0]), phrase(context[1])
    parts[0], parts[1] = phrase(outcome[0]), phrase(outcome[1])
    numbers[0] = side[outcome[2]]
    if kind > 12:
      numbers[1] = order[context[2]]
    if kind == 14:
      numbers[2:] = [flag(context[3]), flag(outcome[3])]
  else:
    parts[0] = parts[2] = phrase(outcome)
    parts[1] = parts[3] = phrase(context[0])
    numbers[0] = side[context[1]]
    rest = list(context[2:])
    if kind in (4, 5, 8, 9):
      parts[4] = phrase(rest.pop(0))
    if kind >= 6:
      numbers[1] = order[rest.pop(0)]
    if kind >= 10:
      numbers[2:] = [flag(value) for value in rest.pop(0)]
  found = events.event(kind, parts, *numbers)
  return np.uint64(events.event_key(*map(np.uint64, found)))


def test_values_are_those_of_the_reference():
  corpus = random_corpus()
  table = phrase_dependencies.extract(
    phrase_dependencies.split(as_pairs(corpus), size=5),
    options=DependencyOptions(length=3),
    runner=SERIAL,
  )
  expected = reference.table(corpus, LIMITS)
  assert len(table) == len(expected)
  names = [name for name, _, _ in expected]
  assert table.sizes.tolist() == [names.count(n) for n in events.FEATURES]
  assert min(table.sizes) > 5
  for item, value in expected.items():
    found = look_up(np.uint64(event_of(*item)), table.slots)
    assert found == pytest.approx(value, rel=1e-5), item


def test_shards_workers_and_memory_change_nothing(tmp_path):
  pairs = as_pairs(random_corpus(1, 30))
  tables = []
  for size, runner, memory, spill in (
    (30, SERIAL, 1 << 30, ""),
    (4, Runner(kind="threads", workers=2), 1 << 30, ""),
    (3, SERIAL, 2000, str(tmp_path)),
  ):
    options = DependencyOptions(length=3, memory=memory, spill=spill)
    shards = phrase_dependencies.split(pairs, size=size)
    table = phrase_dependencies.extract(shards, options=options, runner=runner)
    tables.append((table.keys.tobytes(), table.values.tobytes()))
  assert tables[0] == tables[1] == tables[2]
  assert list(tmp_path.iterdir())


def test_known_phrases_have_the_same_probabilities():
  corpus = random_corpus(2, 30)
  pairs = as_pairs(corpus)
  shards = lambda: phrase_dependencies.split(pairs)
  whole = phrase_dependencies.extract(
    shards(), options=DependencyOptions(length=3), runner=SERIAL
  )
  some = lambda *texts: np.sort(
    np.array([phrase(t.split()) for t in texts], np.uint64)
  )
  known = KnownPhrases(
    source=some("s0", "s1", "s2", "s0 s1"),
    target=some("t0", "t1", "t2", "t1 t0"),
    clusters=some("c0", "c1", "c0 c0"),
  )
  part = phrase_dependencies.extract(
    shards(),
    options=DependencyOptions(length=3, known=known),
    runner=SERIAL,
  )
  assert 0 < len(part) < len(whole)
  assert np.isin(part.keys, whole.keys).all()
  # Only the shift may differ, which is one number for each feature.
  expected = reference.table(corpus, LIMITS)
  for name in events.FEATURES:
    shifts = []
    for item, value in expected.items():
      found = look_up(np.uint64(event_of(*item)), part.slots)
      if item[0] == name and found:
        shifts.append(found - value)
    assert shifts, name
    np.testing.assert_allclose(shifts, shifts[0], atol=1e-5)


def test_tables_come_back_from_disk_and_others_are_refused(tmp_path):
  table = phrase_dependencies.extract(
    phrase_dependencies.split(as_pairs(random_corpus(3))),
    options=DependencyOptions(length=2),
    runner=SERIAL,
  )
  dependency_table.save(str(tmp_path / "T"), table)
  again = dependency_table.load(str(tmp_path / "T"))
  np.testing.assert_array_equal(again.keys, table.keys)
  np.testing.assert_array_equal(again.values, table.values)
  wrong = dataclasses.replace(table, values=-table.values)
  dependency_table.save(str(tmp_path / "T"), wrong)
  with pytest.raises(InputError, match="values that cannot be"):
    dependency_table.load(str(tmp_path / "T"))
