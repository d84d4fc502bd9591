"""A bracketing grammar of a few words with a reordering model and a network."""

import functools

import numpy as np

from jaxmt.decode import model as models
from jaxmt.features import maxent_reordering, recursive_scores
from jaxmt.features.maxent_reordering import MaxEntOptions
from jaxmt.features.recursive_scores import RecursiveModel
from jaxmt.grammar import btg
from jaxmt.grammar.extract import block_pairs, extraction
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.shards import CountOptions
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.runtime.runner import Runner
from jaxmt.text import links as links_lib
from jaxmt.text import vocabulary
from tests.reference import tiny_training as tiny

WEIGHTS = tiny.WEIGHTS | {"inverted": -0.3, "MaxEntReordering": 0.5}


@functools.cache
def parts():
  """`(rule table, reordering model)`."""
  source, target, aligned = zip(*tiny.PAIRS, strict=True)
  words = [vocabulary.build([source]), vocabulary.build([target])]
  ids = [
    vocabulary.encode(own, list(side))
    for own, side in zip(words, (source, target), strict=True)
  ]
  pairs = links_lib.parse_links(list(aligned))
  extracted = extraction.extract_hiero(
    *ids,
    pairs,
    source_words=words[0],
    target_words=words[1],
    options=HieroOptions(
      max_phrase=2, max_target_phrase=2, max_words=2, max_nonterminals=0
    ),
    count=CountOptions(),
    runner=Runner(kind="serial", workers=1),
  )
  found = block_pairs.find(*ids, pairs)
  reordering, _ = maxent_reordering.train(
    found.words,
    found.inverted,
    found.sentence,
    source_words=words[0],
    target_words=words[1],
    options=MaxEntOptions(min_count=1, bits=6, held_out=0),
  )
  return btg.with_joining_rules(extracted.table), reordering


@functools.cache
def model():
  """The log-linear model."""
  table, reordering = parts()
  return models.make_model(
    table,
    tiny.language_model(),
    weights=WEIGHTS,
    limits=MatchConfig(span=10, targets=20, applications=64, glue="needed"),
    features=maxent_reordering.make_features(reordering),
  )


def network(*, output=0.5, size=3, seed=0) -> RecursiveModel:
  """A random network that knows every other phrase pair."""
  table = model().table
  rng = np.random.default_rng(seed)
  spell = lambda row, words: [words.words[symbol] for symbol in row]
  leaves = np.flatnonzero(table.source.lengths > 0)[::2]
  texts = dict.fromkeys(
    recursive_scores.pair_text(
      spell(table.source[rule].tolist(), table.source_words),
      spell(table.target[rule].tolist(), table.target_words),
    )
    for rule in leaves.tolist()
    if (table.source[rule] >= 0).all()
  )
  names = parts()[0].feature_names
  inputs = len(names) + recursive_scores.OWN
  draw = lambda scale, *shape: rng.normal(0, scale, shape).astype(np.float32)
  return RecursiveModel(
    pairs=tuple(texts),
    names=names,
    scale=rng.uniform(2, 9, inputs).astype(np.float32),
    leaves=draw(0.7, len(texts) + 1, size),
    encoder=draw(0.4, 2 * (inputs + size), size),
    output=draw(output, size) if output else np.zeros(size, np.float32),
  )
