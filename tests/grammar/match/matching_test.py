"""Matching against plain recursion over spans."""

import hypothesis
import numpy as np
from hypothesis import strategies

from jaxmt.decode.model import ranked_rules
from jaxmt.grammar.match import matching, source_trie
from jaxmt.grammar.match.applications import rank_rules
from jaxmt.grammar.match.matching import GLUE, GOAL, ORDINARY, MatchConfig
from tests.reference import chart_cases as cases
from tests.reference.chart_enumeration import _fill


def expected(case, row):
  """Every (begin, end, rule, site spans) of Hiero and tree rules."""
  words, trees = case.sentences[row], case.constituents[row]
  found = set()
  for number, (kind, lhs, source, _, _) in enumerate(case.rules):
    if len(source) == 1 and not isinstance(source[0], str):
      continue
    for begin in range(len(words)):
      limit = len(words) if kind == "tree" else begin + case.span
      inside = trees if kind == "tree" else None
      for end, spans in _fill(
        source, words, begin, min(limit, len(words)), inside
      ):
        if kind == "tree" and lhs not in trees.get((begin, end), ()):
          continue
        if begin < end <= limit:
          found.add((begin, end, number, spans))
  # Sites that nothing translates make an application impossible.
  while True:
    there = {(b, e) for b, e, _, _ in found}
    there |= {(k, k + 1) for k in range(len(words))}
    kept = {one for one in found if all(s in there for s in one[3])}
    if kept == found:
      return found
    found = kept


def run(case, **limits):
  model, source = cases.to_model(case, arity=5)
  config = MatchConfig(
    **{"span": case.span, "targets": 100, "applications": 500, **limits}
  )
  return model, matching.match(
    source.ids,
    table=model.table,
    trie=model.trie,
    ranked=ranked_rules(model.trie, model.columns, limit=config.targets),
    scores=np.concatenate([model.columns.score, source.columns.score]),
    copies=source.copies,
    config=config,
    spans=source.spans,
  )


def applications(found, row):
  """Ordinary applications of a sentence: (begin, end, rule, site spans)."""
  out = []
  for cell in np.flatnonzero(found.sentence == row):
    if found.category[cell] != ORDINARY:
      continue
    for item in range(found.offsets[cell], found.offsets[cell + 1]):
      spans = tuple(
        (int(found.begin[c]), int(found.end[c]))
        for c in found.child[item]
        if c >= 0
      )
      place = int(found.begin[cell]), int(found.end[cell])
      out.append((*place, int(found.rule[item]), spans))
  return out


@hypothesis.settings(max_examples=100)
@hypothesis.given(seed=strategies.integers(0, 10**6))
def test_matching_finds_what_recursion_finds(seed):
  case = cases.random_case(
    seed, order=1, arity=5, tree_rules=5, rules=10, sentences=5, longest=6
  )
  model, found = run(case)
  for row, words in enumerate(case.sentences):
    got = applications(found, row)
    assert len(got) == len(set(got))
    rules = {one for one in got if one[2] < len(model.table)}
    assert rules == expected(case, row)
    copied = {one[0] for one in got if one[2] > len(model.table)}
    known = {
      source[0]
      for kind, _, source, _, _ in case.rules
      if kind == "hiero" and len(source) == 1 and isinstance(source[0], str)
    }
    assert copied == {k for k, w in enumerate(words) if w not in known}
  assert (found.dropped == 0).all()


def test_children_precede_parents_and_glue_spans_the_sentence():
  case = cases.random_case(7, order=1, arity=2, sentences=8, longest=6)
  _, found = run(case)
  cell = np.repeat(np.arange(len(found)), np.diff(found.offsets))
  assert (found.child < cell[:, None]).all()
  for row, words in enumerate(case.sentences):
    own = found.sentence == row
    glue = own & (found.category == GLUE)
    assert found.end[glue].tolist() == list(range(1, len(words) + 1))
    assert (own & (found.category == GOAL)).sum() == 1
    assert found.category[found.goal[row]] == GOAL


def test_limits_keep_the_best():
  case = cases.random_case(
    12, order=2, arity=2, rules=60, sentences=6, longest=5
  )
  _, all_of = run(case)
  model, few = run(case, applications=3)
  scores = model.columns.score
  for row in range(len(case.sentences)):
    wide, kept = applications(all_of, row), applications(few, row)
    assert set(kept) <= set(wide)
    for place in {one[:2] for one in wide}:
      words = [o for o in wide if o[:2] == place and not o[3]]
      top = [o for o in kept if o[:2] == place]
      assert len(top) == min(3, len([o for o in wide if o[:2] == place]))
      if len(words) == len([o for o in wide if o[:2] == place]):
        best = sorted(scores[o[2]] for o in words if o[2] < len(scores))
        assert {scores[o[2]] for o in top if o[2] < len(scores)} <= set(
          best[-3:]
        )
  assert few.dropped.sum() == len(all_of.rule) - len(few.rule)
  _, single = run(case, targets=1)
  assert len(single.rule) < len(all_of.rule)


def test_empty_sentences_have_no_cells():
  case = cases.random_case(1, order=1, arity=2)
  model, source = cases.to_model(case, arity=2)
  from jaxmt.decode.model import make_source

  source = make_source(model, ["", "f", ""])
  found = matching.match(
    source.ids,
    table=model.table,
    trie=model.trie,
    ranked=model.ranked,
    scores=np.concatenate([model.columns.score, source.columns.score]),
    copies=source.copies,
    config=MatchConfig(),
  )
  assert found.goal[0] == found.goal[2] == -1
  assert found.goal[1] == len(found) - 1


def test_rules_of_nodes_are_the_best_of_each_pattern():
  rng = np.random.default_rng(5)
  size, nodes, limit = 400, 30, 3
  group = rng.integers(0, 60, size).astype(np.int32)
  end = np.where(rng.uniform(size=size) < 0.1, -1, group % nodes)
  lhs = rng.integers(0, 2, size).astype(np.int32)
  trie = source_trie.Trie(
    keys=np.zeros(0, np.int64),
    children=np.zeros(0, np.int32),
    end=end.astype(np.int32),
    group=np.unique(group * 2 + lhs, return_inverse=True)[1],
    num_nodes=nodes,
  )
  scores = rng.integers(0, 5, size).astype(np.float32)  # many ties
  rules, offsets = rank_rules(trie, scores, limit=limit)
  assert len(offsets) == nodes + 1
  order = sorted(range(size), key=lambda rule: (-scores[rule], rule))
  for node in range(nodes):
    expected, counts = [], {}
    for rule in order:
      pattern = group[rule], lhs[rule]
      if end[rule] == node and counts.get(pattern, 0) < limit:
        counts[pattern] = counts.get(pattern, 0) + 1
        expected.append(rule)
    assert rules[offsets[node] : offsets[node + 1]].tolist() == expected
