"""Training ITG aligners on a small bitext with known links."""

import dataclasses

import numpy as np
import pytest

from jaxmt.align import link_scores
from jaxmt.align.itg import evidence, itg_model
from jaxmt.errors import InputError
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.train import itg_training

# Words 1..9 become 11..19; 3 becomes two words; "8 _ 9" is one word, 18.


def sentence(rng):
  """A source sentence, its translation and their links."""
  source = rng.integers(1, 8, rng.integers(2, 6)).tolist()
  target, links = [], []
  for place, word in enumerate(source):
    for part in range(2 if word == 3 else 1):
      links.append((place, len(target)))
      target.append(10 + word + 20 * part)
  if len(source) > 2 and rng.random() < 0.4:  # two words change places
    a, b = 0, len(target) - 1
    target[a], target[b] = target[b], target[a]
    swap = {a: b, b: a}
    links = [(s, swap.get(t, t)) for s, t in links]
  if rng.random() < 0.5:  # a word around all others
    source = [8, *source, 9]
    links = [(s + 1, t + 1) for s, t in links]
    target = [18, *target]
    links += [(0, 0), (len(source) - 1, 0)]
  return source, target, sorted(links)


@pytest.fixture(scope="module")
def setting():
  rng = np.random.default_rng(3)
  rows = [sentence(rng) for _ in range(120)]
  source = ragged.from_rows([row[0] for row in rows])
  target = ragged.from_rows([row[1] for row in rows])
  links = Ragged(
    flat=np.array([link for row in rows for link in row[2]], np.int32),
    offsets=ragged.row_offsets([len(row[2]) for row in rows]),
  )
  learnt = evidence.learn(source, target, iterations=4)
  gold = itg_training.Gold(lines=np.arange(120), sure=links, possible=links)
  return source, target, learnt, gold


def trained(setting, **options):
  source, target, learnt, gold = setting
  lines = []
  found = itg_training.train(
    learnt,
    source,
    target,
    gold.take(np.arange(40)),
    itg_training.ItgConfig(**{"rounds": 1, "pruner_pairs": 10, **options}),
    report=lines.append,
  )
  return found, lines


def score(setting, aligner, *, first=40, last=120, **options):
  source, target, _, gold = setting
  rest = gold.take(np.arange(first, last))
  links = itg_model.align(aligner, source, target, lines=rest.lines, **options)
  assert len(links) == 120 and not links.lengths[:first].any()
  return link_scores.score_links(ragged.select(links, rest.lines), rest.sure)


def test_softmax_beats_the_hmm_and_rules_reach_more(setting):
  _, _, learnt, gold = setting
  rest = gold.take(np.arange(40, 120))
  baseline = link_scores.score_links(
    ragged.select(learnt.links, rest.lines), rest.sure
  )
  word, lines = trained(setting, kind="w", steps=30)
  full, _ = trained(setting, kind="hp", steps=30)
  one, both = score(setting, word), score(setting, full)
  assert any(line.startswith("w softmax round 1: aer") for line in lines)
  assert both.aer < baseline.aer
  assert both.recall > one.recall  # several links of a word need rules
  posterior = score(setting, full, decoder="posterior", threshold=0.5)
  assert posterior.aer < baseline.aer


def test_empty_tables_are_word_itg(setting):
  source, target, learnt, _ = setting
  none = Ragged(
    flat=np.zeros((0, 2), np.int32), offsets=np.zeros(121, np.int64)
  )
  bare = dataclasses.replace(learnt, links=none)  # has no rules
  word, _ = trained((source, target, learnt, setting[3]), kind="w", steps=10)
  tables = [
    itg_model.collect_rules(own, source, target, "hp") for own in (bare, learnt)
  ]
  assert len(tables[0]) == 0 < len(tables[1])
  found = [
    itg_model.align(dataclasses.replace(word, rules=own), source, target)
    for own in (word.rules, *tables)
  ]
  np.testing.assert_array_equal(found[0].flat, found[1].flat)
  np.testing.assert_array_equal(found[0].offsets, found[1].offsets)
  assert len(found[2].flat) != len(found[0].flat)


def test_threshold_is_the_best_of_those_tried(setting):
  source, target, _, gold = setting
  found, _ = trained(setting, kind="hp", steps=5)
  part = gold.take(np.arange(40))
  best = itg_training.choose_threshold(found, source, target, part, "aer")
  options = {"first": 0, "last": 40, "decoder": "posterior"}
  errors = [
    score(setting, found, threshold=least, **options).aer
    for least in (0.05, 0.3, 0.5, 0.7, 0.95)
  ]
  own = score(setting, found, threshold=best, **options).aer
  assert own <= min(errors) < max(errors)


@pytest.mark.parametrize("method", ["mert", "structured-hinge"])
def test_other_methods_lower_the_error(setting, method):
  start = itg_model.start_weights()
  found, _ = trained(
    setting, kind="hp", method=method, passes=2, restarts=2, steps=10, kbest=20
  )
  own = {"first": 0, "last": 40}  # the pairs that are learnt from
  before = score(setting, dataclasses.replace(found, weights=start), **own)
  assert score(setting, found, **own).aer < before.aer


def test_same_seed_same_weights(setting):
  options = {"kind": "p", "method": "mert", "passes": 1, "restarts": 2}
  one, _ = trained(setting, kbest=5, **options)
  two, _ = trained(setting, kbest=5, **options)
  np.testing.assert_array_equal(one.weights, two.weights)


def test_pruning_errors_fall_with_the_beam(setting):
  source, target, _, gold = setting
  found, _ = trained(setting, kind="w", steps=1)
  shares, bounds = [], []
  for beam in (1, 64):
    wide = dataclasses.replace(found.pruner, beam=beam)
    errors = itg_training.pruning_errors(
      dataclasses.replace(found, pruner=wide), source, target, gold
    )
    shares.append(errors["per"])
    bounds.append(errors["f_bound"])
  assert shares[0] > shares[1] == 0.0
  assert bounds[0] < bounds[1] < 1.0


def test_bad_settings_are_refused():
  with pytest.raises(InputError, match="kind"):
    itg_training.ItgConfig(kind="x")
  with pytest.raises(InputError, match="method"):
    itg_training.ItgConfig(method="bleu")
