"""Forced decoding against every derivation of tiny grammars."""

import collections
import dataclasses

import jax
import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.decode import translation_forest
from jaxmt.decode.chart import exact
from jaxmt.decode.forced import forced as force
from jaxmt.decode.forced.forced import ForceConfig
from jaxmt.grammar.match import matching
from jaxmt.grammar.provenance import Provenance
from jaxmt.hypergraph import best_derivations, sum_values, viterbi
from jaxmt.text.ragged import from_rows
from tests.reference import chart_cases as cases
from tests.reference import chart_enumeration as enumeration

TOLERANCE = 5e-4


def unfold(made, node):
  """Every derivation under a node: (score, ln p, matched, mismatched)."""
  for edge in range(made.edge_offsets[node], made.edge_offsets[node + 1]):
    totals = [
      (
        float(made.score[edge]),
        float(made.edges.lm[edge]),
        int(made.edges.matched[edge]),
        int(made.edges.mismatched[edge]),
      )
    ]
    for tail in made.tails[edge]:
      if tail >= 0:
        assert tail < node
        below = list(unfold(made, tail))
        totals = [
          tuple(a + b for a, b in zip(one, two, strict=True))
          for one in totals
          for two in below
        ]
    yield from totals


def enumerate_all(case, row, copy):
  return enumeration.derivations(
    case.rules,
    case.sentences[row],
    span=case.span,
    constituents=case.constituents[row],
    copy=copy,
  )


def random_case(seed, *, arity, tree_rules, copy):
  """A case, its model and sentences, and references some of which fit."""
  case = cases.random_case(
    seed,
    order=1 + seed % 4,
    arity=arity,
    tree_rules=tree_rules,
    rules=30,
    longest=5,
  )
  model, source = cases.to_model(case, arity=arity, pass_through=copy)
  rng = np.random.default_rng(seed)
  references = []
  for row in range(len(case.sentences)):
    every = [tuple(one[0]) for one in enumerate_all(case, row, copy)]
    words = every[int(rng.integers(len(every)))]
    chance = rng.random()
    if chance < 0.4:
      words = collections.Counter(every).most_common(1)[0][0]
    elif chance < 0.6:
      size = int(rng.integers(0, 5))
      words = [(*cases.TARGET, "u")[int(k)] for k in rng.integers(0, 5, size)]
    references.append(" ".join(words))
  return case, model, source, references


def check_derivations(case, forced, references, copy):
  """Compares with the derivations that say the reference; returns how many."""
  made, total = forced.forest, 0
  for row, line in enumerate(references):
    want = [
      (
        cases.total(case, one, enumeration.lm_score),
        enumeration.lm_score(case.grams, case.order, one[0]),
        one[2],
        one[3],
      )
      for one in enumerate_all(case, row, copy)
      if one[0] == line.split()
    ]
    low, high = made.node_offsets[row : row + 2]
    assert forced.reached[row] == (len(want) > 0)
    assert bool(forced.reason[row]) == (not want)
    got = list(unfold(made, high - 1)) if high > low else []
    assert len(got) == len(want)
    for column, numbers in enumerate(zip(*want, strict=True)):
      found = sorted(item[column] for item in got)
      np.testing.assert_allclose(found, sorted(numbers), atol=TOLERANCE)
    total += len(want)
  return total


def check_nodes(case, forced, references):
  """Below a node is what the language model says of its interval, alone."""
  made, lines = forced.forest, [line.split() for line in references]
  sentence = np.repeat(np.arange(len(made)), np.diff(made.node_offsets))
  for node, row in enumerate(sentence.tolist()):
    kind = forced.category[node]
    first, last = max(forced.first[node], 0), max(forced.last[node], 0)
    said = enumeration.lm_score(
      case.grams,
      case.order,
      lines[row][first:last],
      begin=kind != matching.ORDINARY,
      end=kind == matching.GOAL,
    )
    _, below, _, _ = next(unfold(made, node))
    np.testing.assert_allclose(below, said, atol=TOLERANCE)


@pytest.mark.parametrize(
  ("arity", "tree_rules", "copy"),
  [(2, 0, "unknown"), (2, 0, "all"), (5, 10, "unknown"), (5, 8, "all")],
)
def test_forest_holds_exactly_the_enumerated_derivations(
  arity, tree_rules, copy
):
  reached, failed, derivations, repeated = 0, 0, 0, 0
  for seed in range(80):
    case, model, source, references = random_case(
      seed, arity=arity, tree_rules=tree_rules, copy=copy
    )
    forced = force.force(model, source, references)
    derivations += check_derivations(case, forced, references, copy)
    check_nodes(case, forced, references)
    values = translation_forest.edge_features(model, source, forced.forest)
    weights = np.array([model.weights.get(n, 0) for n in model.feature_names])
    np.testing.assert_allclose(
      values @ weights, forced.forest.score, atol=TOLERANCE
    )
    found = translation_forest.kbest(model, source, forced.forest, size=1000)
    texts = translation_forest.strings(model, source, found)
    for row, text in zip(found.sentence.tolist(), texts, strict=True):
      assert text == references[row]
    reached += int(forced.reached.sum())
    failed += int((~forced.reached).sum())
    repeated += sum(
      len(set(line.split())) < len(line.split())
      for line, there in zip(references, forced.reached, strict=True)
      if there
    )
  # The cases are worth something.
  assert reached > 200 and failed > 20 and repeated > 80
  assert derivations > 1.5 * reached


def tiny(rules, lines, *, span=10, spans=None, copy="unknown"):
  """A model of plain rules, and sentences."""
  case = cases.Case(
    rules=rules,
    grams=cases.random_lm(np.random.default_rng(0), 2),
    order=2,
    sentences=[line.split() for line in lines],
    constituents=[{} for _ in lines],
    span=span,
  )
  model, source = cases.to_model(case, arity=2, pass_through=copy)
  return model, dataclasses.replace(source, spans=spans)


def word(source, target):
  return ("hiero", "X", source.split(), target.split(), -1.0)


SITE = ("X",)


def test_repeated_words_make_a_node_for_each_place():
  # "f g f" for "a b a", straight or swapped: the outer words change places.
  rules = [
    word("f", "a"),
    ("hiero", "X", [SITE, "g", SITE], [0, "b", 1], -0.5),
    ("hiero", "X", [SITE, "g", SITE], [1, "b", 0], -0.7),
  ]
  model, source = tiny(rules, ["f g f"])
  forced = force.force(model, source, ["a b a"])
  made = forced.forest
  assert translation_forest.kbest(model, source, made, size=9).offsets[-1] == 2
  assert np.unique(made.nodes.begin + 10 * made.nodes.end).tolist() == [
    10,
    30,
    32,
  ]
  for begin in (0, 2):
    here = (made.nodes.begin == begin) & (made.nodes.end == begin + 1)
    intervals = list(zip(forced.first[here], forced.last[here], strict=True))
    assert sorted(intervals) == [(0, 1), (2, 3)]
    assert sorted(made.nodes.rank[here].tolist()) == [0, 1]


def test_repeated_substrings_do_not_loop():
  # By words alone, "a b" may follow "a b" (b a is a bigram of the reference)
  # and "a c" may follow "a b": "f f g" would count as a source of it too.
  rules = [word("f", "a b"), word("g", "a c"), word("h", "b a")]
  model, source = tiny(rules, ["f g", "f f g", "g", "f h f"])
  forced = force.force(
    model, source, ["a b a c", "a b a c", "a b a c", "a b b a a b"]
  )
  assert forced.reached.tolist() == [True, False, False, True]


def test_span_limit_decides_unless_the_call_does():
  rules = [
    word("f", "a"),
    word("g", "b"),
    word("h", "c"),
    ("hiero", "X", [SITE, "g", SITE], [1, "b", 0], -1.0),
  ]
  model, source = tiny(rules, ["f g h"], span=2)
  assert not force.force(model, source, ["c b a"]).reached[0]
  wider = force.force(model, source, ["c b a"], config=ForceConfig(span=3))
  assert wider.reached[0]


def test_limits_of_matching_do_not_hold():
  rules = [word("f", f"{one} {two}") for one in "abcd" for two in "abcd"]
  model, source = tiny(rules, ["f f"])
  limits = matching.MatchConfig(targets=1, applications=1)
  model = models.make_model(
    model.table, model.lm, weights=model.weights, limits=limits
  )
  forced = force.force(model, source, ["d d c d"])
  assert forced.reached[0]
  assert translation_forest.strings(
    model,
    source,
    translation_forest.kbest(model, source, forced.forest, size=5),
  ) == ["d d c d"]


def test_reasons_name_what_is_missing():
  rules = [
    word("f", "a"),
    word("g", "b a"),
    word("h", "c"),
    ("hiero", "X", ["f", SITE], ["a", 0, "d"], -1.0),
  ]
  lines = ["f h", "f g", "f h", "f f h", "", "f", "f f f", "f u"]
  references = ["a b", "a b", "c a", "a a", "a", "", "a a", "a u"]
  model, source = tiny(rules, lines)
  forced = force.force(model, source, references)
  assert forced.reason == (
    "word not producible: 'b'",
    "word only in rules that do not fit the reference: 'b'",
    "reachable parts only: longest reference interval 0 of 2 words, from source"
    " words 1",
    "no derivation covers source words: 2 'h'",
    "empty: source",
    "empty: reference",
    "reachable parts only: longest reference interval 0 of 2 words, from source"
    " words 2",
    "",
  )
  assert forced.reached.tolist() == [False] * 7 + [True]


def test_limits_are_reasons():
  rules = [word("f", "a"), word("f f", "a a")]
  model, source = tiny(rules, ["f " * 12, "f f"])
  references = ["a " * 12, "a a"]
  run = lambda **limits: (
    force.force(model, source, references, config=ForceConfig(**limits)).reason
  )
  assert run() == ("", "")
  assert run(words=11) == ("limit: over 11 words", "")
  for name in ("nodes", "edges", "steps"):
    assert run(**{name: 60}) == ("limit: too many hypotheses", ""), name


def test_an_empty_reference_has_derivations_of_nothing():
  rules = [("hiero", "X", ["f"], [], -1.0), word("g", "a")]
  model, source = tiny(rules, ["f f", "f g f", "g"])
  forced = force.force(model, source, ["", "a", ""])
  assert forced.reached.tolist() == [True, True, False]
  found = translation_forest.kbest(model, source, forced.forest, size=9)
  assert translation_forest.strings(model, source, found) == ["", "a"]


def test_leave_one_out():
  rules = [word("f", "a"), word("g", "b"), word("f g", "a b"), word("h", "c")]
  model, source = tiny(rules, ["f g", "f g", "h", "h"])
  origin = Provenance(
    rules=from_rows([[0, 1, 2], [0, 1], [3], []]), counts=np.ones(6)
  )
  excluded = force.own_rules(origin)
  assert [row.tolist() for row in map(excluded.__getitem__, range(4))] == [
    [2],
    [],
    [3],
    [],
  ]
  references = ["a b", "a b", "c", "c"]
  forced = force.force(model, source, references, excluded=excluded)
  assert forced.reached.tolist() == [True, True, False, True]
  found = translation_forest.kbest(model, source, forced.forest, size=9)
  assert np.diff(found.offsets).tolist() == [1, 2, 0, 1]
  # A word left without translation may be copied.
  copied = force.force(
    model, source, ["a b", "a b", "h", "h"], excluded=excluded
  )
  assert copied.reached.tolist() == [True, True, True, False]


def test_partial_derivations_score_as_hypotheses_do():
  """The exact search's best translation, forced, has its score; cells obey."""
  for seed in range(12):
    case = cases.random_case(seed, order=3, arity=2, rules=10, longest=5)
    model, source = cases.to_model(case, arity=2)
    found, result, root = exact.search_exactly(model, source, limit=1 << 22)
    assert result.complete.all()
    every = [enumerate_all(case, row, "unknown") for row in range(len(source))]
    total = lambda one, case=case: cases.total(case, one, enumeration.lm_score)
    references = [" ".join(max(ones, key=total)[0]) for ones in every]
    forced = force.force(model, source, references)
    made = forced.forest
    partials = viterbi(made)
    best = partials.score[made.roots]
    np.testing.assert_allclose(
      best, result.beams.score[root, 0], atol=TOLERANCE
    )
    cells = {
      key: result.beams.score[number + 1, 0]
      for number, key in enumerate(
        zip(
          found.sentence.tolist(),
          found.category.tolist(),
          found.begin.tolist(),
          found.end.tolist(),
          strict=True,
        )
      )
    }
    sentence = np.repeat(np.arange(len(made)), np.diff(made.node_offsets))
    for node in range(len(partials.score)):
      key = (
        int(sentence[node]),
        int(forced.category[node]),
        int(made.nodes.begin[node]),
        int(made.nodes.end[node]),
      )
      assert partials.score[node] <= cells[key] + TOLERANCE
    values = translation_forest.edge_features(model, source, made)
    paths, _ = best_derivations(made, partials, partials.back)
    weights = np.array([model.weights.get(n, 0) for n in model.feature_names])
    sums = sum_values(paths, values @ weights)
    np.testing.assert_allclose(sums, partials.score, atol=TOLERANCE)


def test_threads_and_batches_change_nothing():
  lines, references = [], []
  _, model, _, _ = random_case(3, arity=5, tree_rules=0, copy="all")
  rng = np.random.default_rng(1)
  for _ in range(90):
    words = [cases.SOURCE[int(k)] for k in rng.integers(0, 3, 4)]
    lines.append(" ".join(words))
    words[0] = "missing" if rng.random() < 0.3 else words[0]
    references.append(" ".join(words))
  source = models.make_source(model, lines)
  done: list[int] = []
  one = force.force(model, source, references, on_done=done.append)
  assert sum(done) == 90
  config = ForceConfig(threads=3)
  rules = force.make_rules(model)
  two = force.force(model, source, references, config=config, rules=rules)
  assert one.reason == two.reason
  assert 0 < one.reached.sum() < 90
  jax.tree.map(np.testing.assert_array_equal, one.forest, two.forest)
  row = int(np.flatnonzero(one.reached)[-1])
  alone = force.force(
    model, models.select_source(source, np.array([row])), [references[row]]
  )
  low, high = one.forest.edge_offsets[one.forest.node_offsets[row : row + 2]]
  np.testing.assert_array_equal(alone.forest.score, one.forest.score[low:high])
  np.testing.assert_array_equal(
    alone.forest.edges.rule, one.forest.edges.rule[low:high]
  )


def test_nothing_to_do_and_uneven_input():
  model, source = tiny([word("f", "a")], ["f"])
  none = models.select_source(source, np.zeros(0, np.int64))
  forced = force.force(model, none, [])
  assert len(forced.forest) == 0 and forced.reason == ()
  with pytest.raises(ValueError, match="2 references, 1 sentences"):
    force.force(model, source, ["a", "b"])
  with pytest.raises(ValueError, match="2 lists of rules"):
    force.force(model, source, ["a"], excluded=from_rows([[], []]))
