"""Violation-fixing learning of phrase-based and bracketing models."""

import dataclasses

import numpy as np
import pytest

from jaxmt import hypergraph
from jaxmt.decode import model as models
from jaxmt.decode.chart import search
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.phrase import phrase_decoder
from jaxmt.grammar.match.matching import GOAL
from jaxmt.text import ragged
from jaxmt.train.shard_store import MemoryStore
from jaxmt.train.violation import (
  forced_forests,
  learner,
  minibatch,
  partial_derivations,
  updates,
)
from jaxmt.train.violation.learn_config import LearnConfig
from tests.reference import chart_enumeration
from tests.reference import phrase_enumeration as enumeration

LIMIT = 3


def settings(**changes):
  return LearnConfig(
    **{
      "templates": ("edges:simple", "shape"),
      "epochs": 3,
      "minibatch": 4,
      "length_search": "none",
      **changes,
    }
  )


def strings_of(case, words):
  """All strings of a sentence, the best first."""
  every = enumeration.scored(case, words, limit=LIMIT)
  return list(dict.fromkeys(" ".join(said) for _, said, _ in every))


def references_of(case):
  """Of each sentence a string that is not the best one, if there is one."""
  every = [strings_of(case, words) for words in case.sentences]
  return [own[len(own) // 2] for own in every]


def make_setting(case, config, *, beam=40, references=None, **options):
  model, _ = enumeration.to_model(case, distortion=LIMIT, **options)
  model = learner.prepare_model(model, config)
  lines = [" ".join(words) for words in case.sentences]
  source = models.make_source(model, lines)
  references = references or [[line] for line in references_of(case)]
  return learner.LearningSetting(
    model=model,
    source=source,
    references=references,
    forced=forced_forests.force_text(
      model, source, references, config, store=MemoryStore()
    ),
    start=dict(model.weights),
    search=search.make_config(beam=beam, pop=2 * beam),
  )


def sides(made, config):
  """The pack of all sentences and both of its sides, with best scores."""
  rows = np.arange(len(made.source))
  pack = learner.make_pack(made, config, rows)
  result = phrase_decoder.search_rows(
    made.model,
    made.source,
    rows,
    config=DecodeConfig(search=made.search),
  )
  searched = partial_derivations.of_beams(made.model, result)
  best = partial_derivations.score_good(made.model, result.source, pack.good)
  top = hypergraph.viterbi(searched.forest)
  return pack, best.score, searched, top.score


def prefixes(case, words):
  """(covered words, state, string, score) of all parts of derivations."""
  for _, said, chain in enumeration.scored(case, words, limit=LIMIT):
    for size in range(1, len(chain) + 1):
      part = chain[:size]
      values, own = enumeration.features(case, part)
      values["LanguageModel"] = chart_enumeration.lm_score(
        case.grams, case.order, own, end=False
      )
      score = sum(enumeration.WEIGHTS[name] * values[name] for name in values)
      covered = frozenset(
        place for one in part for place in range(one[0], one[1])
      )
      yield len(covered), covered, tuple(own), score, " ".join(said)


@pytest.mark.parametrize("seed", range(3))
def test_best_good_score_of_every_stack_is_that_of_enumeration(seed):
  case, config = enumeration.random_case(seed), settings()
  made = make_setting(case, config)
  pack, score, _, _ = sides(made, config)
  good = pack.good
  for row, words in enumerate(case.sentences):
    expected: dict[int, float] = {}
    for count, _, _, value, said in prefixes(case, words):
      if said == made.references[row][0]:
        expected[count] = max(expected.get(count, -np.inf), value)
    own = (good.node_sentence == row) & (good.category != GOAL)
    found = {
      count: score[own & (good.stack == count)].max()
      for count in set(good.stack[own].tolist())
    }
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_hypotheses_are_good_if_they_can_become_the_reference(seed):
  case, config = enumeration.random_case(seed), settings()
  made = make_setting(case, config, beam=300)
  pack, good_score, searched, score = sides(made, config)
  is_good = partial_derivations.are_good(pack.good, searched)
  assert is_good.any() and not is_good.all()
  forest, rule = searched.forest, searched.forest.edges.rule
  target, words = made.model.table.target, made.model.table.target_words.words
  spans = np.stack([forest.nodes.begin, forest.nodes.end], axis=1)
  parts: list[tuple[frozenset, tuple]] = []
  good = [
    {
      (covered, said)
      for _, covered, said, _, whole in prefixes(case, sentence)
      if whole == made.references[row][0]
    }
    for row, sentence in enumerate(case.sentences)
  ]
  for node in range(forest.num_nodes):
    tail = forest.tails[node, 0]
    covered, said = parts[tail] if tail >= 0 else (frozenset(), ())
    if rule[node] < len(target):
      said += tuple(words[word] for word in target[rule[node]])
    elif rule[node] > len(target):
      said += (made.source.words[rule[node] - len(target) - 1],)
    if searched.category[node] != GOAL:
      covered |= set(range(*spans[node]))
      row = searched.node_sentence[node]
      assert is_good[node] == ((covered, said) in good[row])
    parts.append((covered, said))
  best = dict(zip(pack.good.group.tolist(), good_score, strict=False))
  for group, value in zip(pack.good.group.tolist(), good_score, strict=True):
    best[group] = max(best[group], value)
  for node in np.flatnonzero(is_good).tolist():
    assert score[node] <= best[int(searched.group[node])] + 1e-3


@pytest.mark.parametrize("update", ["max-violation", "early", "standard"])
@pytest.mark.parametrize("kind", ["word", "hierarchical", "none"])
def test_features_of_an_update_have_its_violation(update, kind):
  config = settings(update=update)
  done = 0
  for seed in range(3):
    made = make_setting(
      enumeration.random_case(seed),
      config,
      beam=4,
      orientation=kind,
      lexical=kind != "none",
    )
    pack, good_score, searched, score = sides(made, config)
    is_good = partial_derivations.are_good(pack.good, searched)
    pairs = updates.pair_groups(pack.good, good_score, searched, score, is_good)
    choices = updates.choose(update, pairs, searched, is_good)
    work = minibatch.UpdateWork(
      model=made.model, source=made.source, config=config, search=made.search
    )
    (one,) = minibatch.contribute([pack], work=work)
    expected = score[choices.minus] - good_score[choices.plus]
    found = one.stats[choices.sentence, minibatch.VIOLATION]
    clear = np.abs(expected) > 1e-3
    np.testing.assert_allclose(found[clear], expected[clear], atol=1e-3)
    done += clear.sum()
    if update == "max-violation":
      sentence = partial_derivations.group_sentence(pairs.group)
      for row, value in zip(choices.sentence, expected, strict=True):
        assert value == pytest.approx(pairs.violation[sentence == row].max())
  assert done


def test_excluded_rules_are_used_by_neither_side():
  case, config = enumeration.random_case(5), settings()
  made = make_setting(case, config)
  rules = [[4, 6, 8]] * len(made.source)
  rows = np.arange(len(made.source))
  result = phrase_decoder.search_rows(
    made.model,
    made.source,
    rows,
    config=DecodeConfig(search=made.search),
    excluded=ragged.from_rows(rules),
  )
  searched = partial_derivations.of_beams(made.model, result)
  assert not np.isin(searched.forest.edges.rule, rules[0]).any()
  assert (searched.forest.roots >= 0).all()


def test_learning_leaves_fewer_wrong_sentences():
  case = enumeration.random_case(11, count=20, longest=6)
  case = dataclasses.replace(case, sentences=case.sentences * 2)
  config = settings(epochs=8, rate=1.0)
  made = make_setting(case, config, beam=20)
  learned = learner.learn(made, config, store=MemoryStore())
  wrong = [1 - one["right_share"] for one in learned.history]
  assert wrong[-1] < wrong[0]
