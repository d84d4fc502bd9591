"""Updates of minibatches against enumeration of all derivations."""

import collections
import dataclasses

import numpy as np
import pytest

from jaxmt.decode.chart import decoder
from jaxmt.features.feature_keys import keys_of
from jaxmt.grammar.match.matching import GLUE, GOAL
from jaxmt.metrics import bleu, encoded_text
from jaxmt.runtime import parallel
from jaxmt.runtime.runner import Runner
from jaxmt.train.training import Resources
from jaxmt.train.violation import (
  averaged_weights,
  learn_config,
  learner,
  minibatch,
  partial_derivations,
  updates,
)
from tests.reference import tiny_training
from tests.reference import violation as slow
from tests.train.violation import worlds

SHORT = [row for row, line in enumerate(worlds.LINES) if len(line.split()) < 5]


@pytest.fixture(scope="module")
def world():
  settings = worlds.config()
  made = worlds.setting(settings)
  return made, settings, worlds.both_sides(made, settings)


def slow_good(made):
  return {
    row: slow.good_trees(
      made.model, worlds.LINES[row].split(), worlds.TARGETS[row].split()
    )
    for row in SHORT
  }


def group_of(partials, node):
  nodes = partials.forest.nodes
  return (
    int(partials.category[node]),
    int(nodes.begin[node]),
    int(nodes.end[node]),
    int(nodes.label[node]),
  )


def test_best_good_derivation_of_every_group_is_that_of_enumeration(world):
  made, _, (pack, best, _, _, _) = world
  sentence = pack.good.node_sentence
  found = collections.defaultdict(dict)
  for node in range(pack.good.forest.num_nodes):
    group = group_of(pack.good, node)
    row = int(pack.rows[sentence[node]])
    now = found[row].get(group, -np.inf)
    found[row][group] = max(now, best.score[node])
  for row, groups in slow_good(made).items():
    if row not in pack.rows:
      assert not groups
      continue
    words = worlds.LINES[row].split()
    expected = {
      group: max(
        slow.score(made.model.weights, slow.features(made.model, words, tree))
        for tree in trees
      )
      for group, trees in groups.items()
    }
    assert found[row] == pytest.approx(expected, abs=2e-4)


def test_hypotheses_are_good_if_enumeration_has_their_string(world):
  made, _, (pack, _, searched, top, _) = world
  is_good = partial_derivations.are_good(pack.good, searched)
  known = slow_good(made)
  sentence = searched.node_sentence
  counts = collections.Counter()
  for node in range(searched.forest.num_nodes):
    row = int(pack.rows[sentence[node]])
    if row not in known:
      continue
    trees = known[row].get(group_of(searched, node), ())
    strings = {tuple(slow.spell(made.model, tree)) for tree in trees}
    tree = slow.tree_of(searched, top.back, node)
    assert is_good[node] == (tuple(slow.spell(made.model, tree)) in strings)
    counts[bool(is_good[node])] += 1
  assert min(counts[True], counts[False]) > 20


def test_both_sides_score_a_derivation_alike(world):
  made, _, (pack, best, searched, top, _) = world
  for side, scores, back in (
    (pack.good, best.score, best.back),
    (searched, top.score, top.back),
  ):
    sentence = side.node_sentence
    for node in range(side.forest.num_nodes):
      words = worlds.LINES[pack.rows[sentence[node]]].split()
      tree = slow.tree_of(side, back, node)
      values = slow.features(made.model, words, tree)
      expected = slow.score(made.model.weights, values)
      assert scores[node] == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("update", learn_config.UPDATES)
def test_difference_is_that_of_the_chosen_derivations(world, update):
  made, settings, (pack, best, searched, top, result) = world
  settings = dataclasses.replace(settings, update=update)
  pack = learner.make_pack(made, settings, pack.rows)
  got = minibatch.compare(worlds.work(made, settings), pack, result)
  if update == "local":
    assert (got.stats[:, minibatch.REACHED] == 1).all()
    plus, plus_back = searched, top.back
    names = local_choice(made, pack, searched, top)
  else:
    is_good = partial_derivations.are_good(pack.good, searched)
    pairs = updates.pair_groups(
      pack.good, best.score, searched, top.score, is_good
    )
    made_choices = updates.choose(update, pairs, searched, is_good)
    plus, plus_back = pack.good, best.back
    names = list(
      zip(
        made_choices.sentence,
        made_choices.plus,
        made_choices.minus,
        strict=True,
      )
    )
  expected = {}
  for row, one, two in names:
    words = worlds.LINES[pack.rows[row]].split()
    change = collections.Counter()
    for sign, side, back, node in (
      (1, plus, plus_back, one),
      (-1, searched, top.back, two),
    ):
      tree = slow.tree_of(side, back, node)
      for name, value in slow.features(made.model, words, tree).items():
        change[name] += sign * value
    violation = -slow.score(made.model.weights, change)
    if update not in ("standard", "local") and violation < 0:
      continue
    expected[int(row)] = change, violation
  assert expected
  dense = made.model.feature_names
  for row in range(len(pack.rows)):
    change, violation = expected.get(row, ({}, 0.0))
    values = [change.get(name, 0.0) for name in dense]
    np.testing.assert_allclose(got.dense[row], values, atol=1e-4)
    mine = got.owner == row
    sparse = {k: v for k, v in change.items() if k not in dense and v}
    keys = dict(
      zip(keys_of(tuple(sparse)).tolist(), sparse.values(), strict=True)
    )
    assert keys == dict(
      zip(got.keys[mine].tolist(), got.values[mine].tolist(), strict=True)
    )
    assert got.stats[row, minibatch.VIOLATION] == pytest.approx(
      violation, abs=1e-3
    )
    assert got.stats[row, minibatch.SIZE] == pytest.approx(
      float(np.linalg.norm([*change.values()])), abs=1e-3
    )
    units = made.model.units
    assert got.stats[row, minibatch.WORDS] == pytest.approx(
      change.get(units.words, 0.0) / units.per_word, abs=1e-5
    )
  towards = {
    int(row): update != "local"
    or slow.spell(made.model, slow.tree_of(searched, top.back, one))
    == worlds.TARGETS[pack.rows[row]].split()
    for row, one, _ in names
    if int(row) in expected
  }
  assert towards == {
    row: bool(got.stats[row, minibatch.TOWARDS]) for row in towards
  }


def local_choice(made, pack, searched, top):
  """Sentence, plus and minus of local updates, one hypothesis at a time."""
  out = []
  for row, number in enumerate(pack.rows.tolist()):
    size = len(worlds.LINES[number].split())
    nodes = [
      node
      for node in np.flatnonzero(searched.category == GLUE).tolist()
      if searched.node_sentence[node] == row
      and searched.forest.nodes.end[node] == size
    ]
    goal = searched.forest.roots[row]
    root = nodes.index(searched.forest.tails[goal, 0])
    lines = [
      " ".join(slow.spell(made.model, slow.tree_of(searched, top.back, node)))
      for node in nodes
    ]
    known = encoded_text.encode_references([[worlds.TARGETS[number]]])
    statistics = bleu.statistics(
      known.references, known.encode(lines), np.zeros(len(lines), np.int64)
    )
    quality = bleu.score(statistics, smoothing=bleu.PLUS_ONE)
    best = max(
      range(len(nodes)), key=lambda n: (quality[n], top.score[nodes[n]])
    )
    if quality[best] > quality[root]:
      out.append((row, nodes[best], nodes[root]))
  return out


def test_updates_of_the_largest_violation_are_valid_and_largest(world):
  _, _, (pack, best, searched, top, _) = world
  is_good = partial_derivations.are_good(pack.good, searched)
  pairs = updates.pair_groups(
    pack.good, best.score, searched, top.score, is_good
  )
  chosen = updates.choose("max-violation", pairs, searched, is_good)
  assert len(chosen)
  violation = top.score[chosen.minus] - best.score[chosen.plus]
  assert (violation >= 0).all()
  sentence = partial_derivations.group_sentence(pairs.group)
  for row, value in zip(chosen.sentence, violation, strict=True):
    assert value == pairs.violation[sentence == row].max()


@pytest.mark.parametrize("update", ["max-violation", "skip", "standard"])
@pytest.mark.parametrize("margin", [0.0, 0.5, 3.0])
def test_updates_fix_leads_below_the_margin(world, update, margin):
  _, _, (pack, best, searched, top, _) = world
  is_good = partial_derivations.are_good(pack.good, searched)
  pairs = updates.pair_groups(
    pack.good, best.score, searched, top.score, is_good
  )
  chosen = updates.choose(update, pairs, searched, is_good, margin=margin)
  found = dict(zip(chosen.sentence.tolist(), chosen.group, strict=True))
  sentence = partial_derivations.group_sentence(pairs.group)
  category = partial_derivations.group_category(pairs.group)
  for row in range(len(pack.rows)):
    mine = sentence == row
    leads = -pairs.violation[mine]
    if update == "max-violation":
      # The smallest lead of all groups, if it is not above the margin.
      wanted = pairs.group[mine][leads.argmin()]
      expected = wanted if leads.min() <= margin else None
    else:
      # One hypothesis is left at the goal: no bad one where it is right.
      at_goal = np.flatnonzero(category[mine] == GOAL).tolist()
      assert len(at_goal) == (not chosen.right[row])
      far = update == "skip" and (leads[at_goal] > margin).any()
      expected = pairs.group[mine][at_goal[0]] if at_goal and not far else None
    assert found.get(row) == expected


def test_a_margin_updates_sentences_that_are_right_by_little(world):
  made, settings, (pack, _, _, _, result) = world
  before = minibatch.compare(worlds.work(made, settings), pack, result)
  settings = dataclasses.replace(settings, margin=2.0)
  after = minibatch.compare(worlds.work(made, settings), pack, result)
  old, new = (one.stats[:, minibatch.UPDATED] > 0 for one in (before, after))
  assert new[old].all() and (new & ~old).any()
  assert (after.stats[new, minibatch.VALID] == 1).all()
  violation = after.stats[new, minibatch.VIOLATION]
  assert (violation >= -2.0).all() and (violation < 0).any()


@pytest.mark.parametrize("seed", range(4))
def test_standard_updates_are_valid_with_exact_search(seed):
  rng = np.random.default_rng(seed)
  settings = worlds.config(update="standard")
  wide = dataclasses.replace(tiny_training.WIDE, forest=False)
  changes = {
    name: float(value + rng.normal(0, 0.5))
    for name, value in tiny_training.WEIGHTS.items()
  }
  made = worlds.setting(settings, search=wide, **changes)
  rows = np.array([row for row in SHORT if made.forced.reached[row]])
  pack = learner.make_pack(made, settings, rows)
  (got,) = minibatch.contribute([pack], work=worlds.work(made, settings))
  updated = got.stats[:, minibatch.UPDATED] > 0
  assert updated.any()
  assert (got.stats[updated, minibatch.VIOLATION] >= -1e-3).all()


def test_early_updates_come_where_the_beam_lost_every_good_hypothesis(world):
  _, _, (pack, best, searched, top, _) = world
  is_good = partial_derivations.are_good(pack.good, searched)
  pairs = updates.pair_groups(
    pack.good, best.score, searched, top.score, is_good
  )
  chosen = updates.choose("early", pairs, searched, is_good)
  group = searched.group
  for one in chosen.group.tolist():
    kept = is_good[group == one].any()
    at_goal = partial_derivations.group_category(np.array(one)) == GOAL
    assert not kept or at_goal
    sentence = partial_derivations.group_sentence(np.array([one]))[0]
    same = partial_derivations.group_sentence(pairs.group) == sentence
    earlier = same & (pairs.group < one) & (pairs.violation >= 0)
    assert not (pairs.lost & earlier).any()


def test_only_wrong_sentences_are_updated_on_request(world):
  made, settings, (pack, _, _, _, result) = world
  always = minibatch.compare(worlds.work(made, settings), pack, result)
  settings = dataclasses.replace(settings, only_wrong=True)
  asked = minibatch.compare(worlds.work(made, settings), pack, result)
  right = always.stats[:, minibatch.RIGHT] > 0
  updated = always.stats[:, minibatch.UPDATED] > 0
  # Groups within sentences that are right as a whole would be updated, too.
  assert (right & updated).any() and (~right & updated).any()
  np.testing.assert_array_equal(
    asked.stats[:, minibatch.UPDATED] > 0, updated & ~right
  )
  assert not asked.dense[right].any()
  np.testing.assert_array_equal(asked.dense[~right], always.dense[~right])


def test_several_references_are_good_together():
  settings = worlds.config()
  references = [[line] for line in worlds.TARGETS]
  row = worlds.LINES.index("das haus")
  references[row] = ["the house", "that house"]
  made = worlds.setting(settings, references=references)
  pack, _, searched, _, _ = worlds.both_sides(made, settings)
  single = worlds.setting(settings)
  other, _, again, _, _ = worlds.both_sides(single, settings)
  at = lambda side, pack: (
    side.node_sentence == int(np.flatnonzero(pack.rows == row)[0])
  )
  two = partial_derivations.are_good(pack.good, searched)[at(searched, pack)]
  one = partial_derivations.are_good(other.good, again)[at(again, other)]
  assert two.sum() > one.sum() > 0


def test_rules_of_the_sentence_alone_are_left_out_on_both_sides():
  settings = worlds.config(leave_one_out="singletons")
  made = worlds.setting(settings)
  assert made.forced.reached.any()
  rows = np.flatnonzero(made.forced.reached)
  pack = learner.make_pack(made, settings, rows)
  work = worlds.work(made, settings)
  prepared = decoder.prepare(
    made.model, work.source, [rows], config=made.search
  )
  chart = minibatch.forbid(
    prepared.charts[0], prepared.matches[0], pack.excluded
  )
  prepared = dataclasses.replace(prepared, charts=(chart,))
  beams = decoder.run_search(prepared, made.model, config=made.search)
  (result,) = decoder.results([rows], prepared, beams)
  searched = partial_derivations.of_beams(made.model, result)
  for side in (pack.good, searched):
    forest = side.forest
    owner = side.node_sentence[forest.heads]
    for row in range(len(rows)):
      used = set(forest.edges.rule[owner == row].tolist())
      assert not used & set(pack.excluded[row].tolist())
  assert len(pack.excluded.flat)


@pytest.fixture(scope="module")
def contributions(world):
  made, settings, _ = world
  rows = np.flatnonzero(made.forced.reached)
  work = worlds.work(made, settings)
  run = lambda resources: minibatch.total(
    learner.contributions(made, settings, rows, work, resources, None),
    len(rows),
  )
  return run, run(Resources(runner=Runner(kind="serial")))


def same(one, two):
  np.testing.assert_array_equal(one[0], two[0])
  for field in dataclasses.fields(one[1]):
    left, right = (getattr(made[1], field.name) for made in (one, two))
    if field.name == "names":
      assert left == right
    else:
      np.testing.assert_array_equal(left, right)


def test_one_minibatch_is_the_same_on_threads_and_devices(contributions):
  run, alone = contributions
  assert alone[1].keys.size
  same(alone, run(Resources(runner=Runner(kind="threads", workers=3))))
  mesh = parallel.make_mesh(2)
  same(alone, run(Resources(runner=Runner(kind="serial"), mesh=mesh)))


def test_contributions_survive_the_way_to_other_processes(world):
  made, settings, (pack, *_) = world
  work = worlds.work(made, settings)
  found = minibatch.contribute([pack], work=work)
  back = learner._from_bytes(learner._to_bytes(found))
  same((0, found[0]), (0, back[0]))


def test_average_is_that_of_the_weights_after_each_step():
  rng = np.random.default_rng(3)
  state = averaged_weights.begin({"a": 1.5}, ("a", "b"))
  now, history = collections.Counter(), []
  dense = np.array([1.5, 0.0])
  denses = []
  for _ in range(40):
    keys = rng.integers(1, 3000, 200).astype(np.uint64)
    values = rng.normal(size=200)
    change = rng.normal(size=2)
    averaged_weights.step(
      state,
      dense=change,
      keys=keys,
      values=values,
      witness=np.repeat(keys[:, None], 5, axis=1).astype(np.int32),
    )
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
      now[key] += value
    dense = dense + change
    history.append(dict(now))
    denses.append(dense)
  average = state.average()
  table = dict(
    zip(average.table.keys.tolist(), average.table.values.tolist(), strict=True)
  )
  for key in now:
    mean = np.mean([old.get(key, 0.0) for old in history])
    assert table[key] == pytest.approx(mean, abs=1e-9)
  np.testing.assert_allclose(
    [average.named["a"], average.named["b"]], np.mean(denses, axis=0)
  )
  assert state.count == len(now)
  used = np.flatnonzero(state.table.keys)
  witness = state.witness[state.place[used], 0]
  np.testing.assert_array_equal(witness, state.table.keys[used])
  # Taken apart and rebuilt, it goes on with the same bits.
  again = averaged_weights.from_values(averaged_weights.to_values(state))
  assert averaged_weights.to_values(again).keys()
  for one, two in zip(
    averaged_weights.to_values(state).values(),
    averaged_weights.to_values(again).values(),
    strict=True,
  ):
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0, 2.0])
def test_weights_on_the_way_from_the_start_to_those_learned(share):
  start = {"a": 1.5, "Edge:x": -2.0, "Edge:unused": 0.0}
  state = averaged_weights.begin(start, ("a", "b"))
  keys = keys_of(("Edge:x", "Edge:y"))
  averaged_weights.put(state, keys[:1], np.array([-2.0]))
  averaged_weights.step(
    state,
    dense=np.array([1.0, -4.0]),
    keys=keys,
    values=np.array([3.0, 0.5]),
    witness=np.zeros((2, 5), np.int32),
  )
  learned = state.average()
  found = averaged_weights.between(start, learned, share)
  assert found.named == {"a": 1.5 + share, "b": -4.0 * share}
  slots = [int(np.flatnonzero(found.table.keys == key)[0]) for key in keys]
  assert found.table.values[slots].tolist() == [-2 + 3 * share, 0.5 * share]
  assert np.count_nonzero(found.table.keys) == 2
