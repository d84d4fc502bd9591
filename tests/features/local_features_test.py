"""Features that are Python functions: faults, and what has no features."""

import dataclasses

import numpy as np
import pytest

from jaxmt.features import feature_keys, local_features
from jaxmt.features.local_features import ApplicationFeature, SentenceFeature
from tests.features import rule_templates_test as rules

LENGTH = ApplicationFeature(
  name="length", prefix="Length", names=lambda a: [f"Length:{a.end - a.begin}"]
)
SPELLED = ApplicationFeature(
  name="spelled",
  prefix="Spelled",
  names=lambda a: [f"Spelled:{a.lhs}>{'_'.join(a.source)}/{a.sentence[0]}"],
)
ROW = SentenceFeature(
  name="Row", values=lambda table, rows, sentence: rows + len(sentence)
)


def sentences():
  words = tuple(dict.fromkeys(w for row in rules.SENTENCES for w in row))
  tokens = [[words.index(w) for w in row] for row in rules.SENTENCES]
  return local_features.Sentences(
    table=rules.TABLE,
    tokens=rules.from_rows(tokens),
    words=words,
    applications=np.array(rules.APPLICATIONS),
  )


def as_dicts(feature):
  ((found, names),) = local_features.rows([feature], sentences())
  return rules.as_dicts(found, names)


def test_glue_and_goal_have_none_and_copied_words_have_theirs():
  glue_or_goal = [5, 6, 7]  # places in APPLICATIONS
  found = as_dicts(LENGTH)
  for place, (_, begin, end, _) in enumerate(rules.APPLICATIONS):
    own = {} if place in glue_or_goal else {f"Length:{end - begin}": 1.0}
    assert found[place] == own
  copied = rules.APPLICATIONS[8]
  word = rules.SENTENCES[copied[3]][copied[1]]
  assert as_dicts(SPELLED)[8] == {f"Spelled:X>{word}/{word}": 1.0}


def test_symbols_are_words_labels_and_numbers():
  assert list(as_dicts(SPELLED)[2]) == ["Spelled:NP>[NP]_chat=_[X]/zzz"]


def test_values_by_sentence():
  found = as_dicts(ROW)
  for place, (rule, _, _, row) in enumerate(rules.APPLICATIONS):
    value = rule + len(rules.SENTENCES[row])
    assert found[place] == ({"Row": float(value)} if rule < 5 else {})


def test_used_rules_are_the_distinct_pairs():
  rng = np.random.default_rng(0)
  table = rules.TABLE
  applications = np.zeros((300, 4), np.int64)
  applications[:, 0] = rng.integers(0, len(table) + 3, 300)
  applications[:, 3] = rng.integers(0, len(rules.SENTENCES), 300)
  given = dataclasses.replace(sentences(), applications=applications)
  used = given.used
  pairs = list(zip(used.rows.tolist(), used.rules.tolist(), strict=True))
  # Rules 5 and 6 are glue; what is beyond the table has no features.
  want = {
    (row, rule)
    for rule, _, _, row in applications.tolist()
    if rule not in (5, 6)
  }
  want = {pair for pair in want if pair[1] < len(table)}
  assert len(pairs) == len(want) and set(pairs) == want
  assert used.rows.tolist() == sorted(used.rows.tolist())
  chosen = applications[used.places]
  assert len(chosen) == sum(
    (row, rule) in want for rule, _, _, row in applications.tolist()
  )
  np.testing.assert_array_equal(used.rules[used.pair], chosen[:, 0])
  np.testing.assert_array_equal(used.rows[used.pair], chosen[:, 3])


def test_many_sentences_together_give_the_same():
  calls = []

  def batch(table, rows, places, lines):
    calls.append(len(lines))
    return rows + np.array([len(line) for line in lines])[places]

  together = SentenceFeature(name="Row", values=ROW.values, batch=batch)
  assert as_dicts(together) == as_dicts(ROW)
  assert calls == [3]  # the empty sentence uses no rule
  wrong = SentenceFeature(
    name="Row", values=ROW.values, batch=lambda *_: np.zeros(3)
  )
  with pytest.raises(ValueError, match="finite numbers"):
    as_dicts(wrong)


def test_scores_are_products():
  weights = {"Row": 0.5, "Length:3": -2.0, "Length:9": 7.0}
  table = feature_keys.make_table(weights)
  found = local_features.scores([LENGTH, ROW], sentences(), table)
  both = zip(as_dicts(LENGTH), as_dicts(ROW), strict=True)
  expected = [
    sum(weights.get(name, 0.0) * value for name, value in (a | b).items())
    for a, b in both
  ]
  np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
  "feature",
  [
    ApplicationFeature(name="shape", prefix="New", names=lambda a: []),
    ApplicationFeature(name="new", prefix="Lex", names=lambda a: []),
    ApplicationFeature(name="n:w", prefix="New", names=lambda a: []),
    SentenceFeature(name="a:b", values=lambda *_: np.zeros(0)),
  ],
)
def test_names_that_cannot_be(feature):
  with pytest.raises(ValueError, match=r"exists already|no colon"):
    local_features.register(feature)


def test_values_that_cannot_be():
  wrong = ApplicationFeature(name="w", prefix="W", names=lambda a: ["V:1"])
  with pytest.raises(ValueError, match="'V:1' lacks 'W:'"):
    as_dicts(wrong)
  for values in (lambda *_: np.zeros(99), lambda t, r, s: np.log(0.0 * r)):
    with (
      np.errstate(divide="ignore"),
      pytest.raises(ValueError, match="finite numbers"),
    ):
      as_dicts(SentenceFeature(name="Wrong", values=values))
