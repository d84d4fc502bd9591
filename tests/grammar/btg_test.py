"""Bracketing grammars against all bracketings, with and without MaxEnt."""

import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.decode.chart import (
  beam_forest,
  beam_search,
  decoder,
  exact,
  search,
)
from jaxmt.decode.forced import forced
from jaxmt.features import maxent_reordering
from jaxmt.grammar import btg
from jaxmt.grammar import filter as filter_lib
from jaxmt.grammar import table as tables
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.text import ragged, vocabulary
from jaxmt.text.vocabulary import SPECIALS, Vocabulary
from tests import util
from tests.reference import btg_bracketings, chart_cases
from tests.reference.chart_enumeration import lm_score

SOURCE, TARGET = chart_cases.SOURCE, chart_cases.TARGET
WEIGHTS = {
  "Glue": -50.0,
  "score": 1.0,
  "straight": 0.2,
  "inverted": -0.3,
  "LanguageModel": 0.7,
  "LanguageModel_OOV": -0.4,
  "WordPenalty": -0.2,
  "MaxEntReordering": 0.8,
}


def random_phrases(rng):
  """Phrase pairs for every word and for some pairs of words."""
  sides = [(word,) for word in SOURCE] + [("f", "g"), ("g", "h"), ("h", "h")]
  found = {}
  for side in sides:
    for _ in range(2):
      target = tuple(rng.choice(TARGET, rng.integers(1, 3)).tolist())
      found.setdefault(side, {})[target] = float(np.float32(rng.normal()))
  return {side: list(own.items()) for side, own in found.items()}


def random_reordering(rng):
  words = (
    Vocabulary(words=(*SPECIALS, *SOURCE[:2])),  # h is not known
    Vocabulary(words=(*SPECIALS, *TARGET[:3])),
  )
  sizes = tuple(len(one.words) for one in words)
  size = maxent_reordering.num_parameters(sizes, 4)
  return maxent_reordering.ReorderingModel(
    source_words=words[0],
    target_words=words[1],
    theta=rng.normal(size=size).astype(np.float32),
    bits=4,
  )


def make(rng, sentences, reordering):
  phrases = random_phrases(rng)
  source_words = Vocabulary(words=(*SPECIALS, *SOURCE))
  target_words = Vocabulary(words=(*SPECIALS, *TARGET))
  rows = [
    (
      [source_words.index[w] for w in side],
      [target_words.index[w] for w in t],
      s,
    )
    for side, own in phrases.items()
    for t, s in own
  ]
  table = tables.make_table(
    source_words=source_words,
    target_words=target_words,
    source=ragged.from_rows([row[0] for row in rows]),
    target=ragged.from_rows([row[1] for row in rows]),
    features=np.array([[row[2]] for row in rows], np.float32),
    feature_names=("score",),
  )
  order = 2
  grams = chart_cases.random_lm(rng, order)
  model = models.make_model(
    btg.with_joining_rules(table),
    chart_cases.to_tables(grams, order),
    weights=WEIGHTS,
    limits=MatchConfig(span=20, targets=100, applications=200, glue="needed"),
    features=maxent_reordering.make_features(reordering),
  )
  source = models.make_source(model, [" ".join(s) for s in sentences])
  return phrases, grams, order, model, source


def odds_of(model):
  """Log odds of straight from sums over names, without arrays."""
  edges = (model.source_words, model.source_words) + (model.target_words,) * 2

  def odds(left, right):
    ids = [
      vocab.index.get(word, vocabulary.UNK)
      for vocab, word in zip((*edges, *edges), (*left, *right), strict=True)
    ]
    return float(
      maxent_reordering.log_odds(model, np.array([ids], np.int32))[0]
    )

  return odds


def totals(words, phrases, grams, order, odds):
  """Scores of all bracketings, best first."""
  every = btg_bracketings.blocks(words, phrases)
  return score_all(every, grams, order, odds)


def score_all(derivations, grams, order, odds):
  """Scores of derivations, best first."""
  scores = []
  for target, score, joins in derivations:
    inverted = sum(join[2] for join in joins)
    unknown = sum((word,) not in grams for word in target)
    scores.append(
      score
      + 0.2 * (len(joins) - inverted)
      - 0.3 * inverted
      + 0.7 * lm_score(grams, order, target)
      - 0.4 * unknown
      + 0.2 * len(target)
      + 0.8 * btg_bracketings.order_score(odds, joins)
    )
  return np.sort(scores)[::-1]


@pytest.mark.parametrize("seed", range(3))
def test_search_equals_the_enumeration_of_bracketings(seed):
  rng = np.random.default_rng(seed)
  reordering = random_reordering(rng)
  sentences = [rng.choice(SOURCE, n).tolist() for n in (1, 2, 3, 4)]
  phrases, grams, order, model, source = make(rng, sentences, reordering)
  wants = [
    totals(words, phrases, grams, order, odds_of(reordering))
    for words in sentences
  ]
  best = np.array([want[0] for want in wants])
  _, result, root = exact.search_exactly(model, source, limit=1 << 20)
  np.testing.assert_allclose(result.beams.score[root, 0], best, atol=1e-4)
  config = decoder.DecodeConfig(
    search=search.SearchConfig(
      beam=100,
      pop=2000,
      corners=200,
      taper=((200, 2000),),
      widths=(200,),
      tile=4,
      forest=True,
    )
  )
  for parts in decoder.decode(model, source, config=config):
    for part in parts:
      np.testing.assert_allclose(part.best().score, best[part.rows], atol=1e-4)
      # Every bracketing is a derivation of the forest: as many, same scores.
      forest = beam_forest.extract(model, part)
      for row, number in enumerate(part.rows.tolist()):
        found = chart_scores(forest, row)
        np.testing.assert_allclose(found, wants[number], atol=2e-4)


def test_the_search_lowers():
  rng = np.random.default_rng(1)
  reordering = random_reordering(rng)
  *_, model, source = make(rng, [["f", "g", "h"]], reordering)
  config = search.make_config(beam=4, pop=12, forest=True)
  batch = decoder.prepare(model, source, [np.arange(1)], config=config)
  programs = util.lowered(
    beam_search.search,
    batch.charts[0],
    models.device_parameters(model),
    decoder.search_weights(model),
    config=config,
    features=model.features,
  )
  assert all("stablehlo.while" in program for program in programs)


def chart_scores(forest, row):
  """Scores of all derivations of one sentence of a forest, best first."""
  first, last = forest.node_offsets[row], forest.node_offsets[row + 1]
  found = {}
  for node in range(first, last):
    found[node] = []
    for edge in range(forest.edge_offsets[node], forest.edge_offsets[node + 1]):
      sums = np.array([float(forest.score[edge])])
      for tail in forest.tails[edge]:
        if tail >= 0:
          sums = (sums[:, None] + found[int(tail)][None]).reshape(-1)
      found[node].append(sums)
    found[node] = np.concatenate(found[node])
  return np.sort(found[last - 1])[::-1]


def test_forced_decoding_finds_and_scores_every_bracketing():
  rng = np.random.default_rng(5)
  reordering = random_reordering(rng)
  words = ["f", "g", "h", "f"]
  phrases, grams, order, model, source = make(rng, [words], reordering)
  every = btg_bracketings.blocks(words, phrases)
  target = every[len(every) // 2][0]
  same = [one for one in every if one[0] == target]
  want = score_all(same, grams, order, odds_of(reordering))
  found = forced.force(model, source, [" ".join(target)])
  assert found.reached.all()
  got = chart_scores(found.forest, 0)
  # Glue joins blocks beside the straight rule here: those are more.
  assert len(got) >= len(want)
  assert got[0] == pytest.approx(want[0], abs=1e-3)
  for score in want:
    assert np.abs(got - score).min() < 1e-3


def test_rules_are_added_once_and_survive_filtering():
  rng = np.random.default_rng(0)
  _, _, _, model, _ = make(rng, [["f"]], random_reordering(rng))
  again = btg.with_joining_rules(model.table)
  assert again is model.table
  ids = vocabulary.encode(model.table.source_words, ["g g"])
  kept = filter_lib.filter_table(model.table, ids)
  names = kept.feature_names
  counted = kept.features[:, [names.index("straight"), names.index("inverted")]]
  assert counted.sum(0).tolist() == [1, 1]
