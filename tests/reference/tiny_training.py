"""A bitext of a few words, its grammar with provenance, and a model of it."""

import functools

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.grammar.extract import extraction
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.shards import CountOptions
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.lm import kneser_ney as lm_estimate
from jaxmt.lm import tables as lm_tables
from jaxmt.lm import word_ids
from jaxmt.runtime.runner import Runner
from jaxmt.text import links as links_lib
from jaxmt.text import vocabulary
from jaxmt.train import shard_counting, theta_methods

PAIRS = (
  ("ein haus", "a house", "0-0 1-1"),
  ("das haus", "the house", "0-0 1-1"),
  ("ein kleines haus", "a small house", "0-0 1-1 2-2"),
  ("haus klein", "small house", "0-1 1-0"),
  ("das kleine haus ist alt", "the small house is old", "0-0 1-1 2-2 3-3 4-4"),
  ("alt ist das haus", "the house is old", "0-3 1-2 2-0 3-1"),
  ("das haus", "that house", "0-0 1-1"),
  ("ein altes kleines haus", "an old little house", "0-0 1-1 2-2 3-3"),
  ("das ist ein haus", "that is a house", "0-0 1-1 2-2 3-3"),
  ("ist das alt", "is it old", "0-0 1-1 2-2"),
)
WEIGHTS = {
  "source_given_target": 0.3,
  "target_given_source": 0.5,
  "rule_given_lhs": 0.1,
  "rule_given_source": 0.1,
  "rule_given_target": 0.1,
  "lex_source_given_target": 0.2,
  "lex_target_given_source": 0.2,
  "glue": -0.2,
  "pass_through": -4.0,
  "LanguageModel": 0.8,
  "WordPenalty": -0.3,
}
SEARCH = SearchConfig(
  beam=12,
  pop=40,
  corners=16,
  taper=((16, 160),),
  widths=(32,),
  tile=8,
  forest=True,
)
WIDE = SearchConfig(
  beam=96,
  pop=512,
  corners=32,
  taper=((32, 10_000),),
  widths=(32,),
  tile=8,
  forest=True,
)


@functools.cache
def extracted(features=()):
  """The Hiero grammar of the pairs, maybe with more static features."""
  source, target, links = zip(*PAIRS, strict=True)
  words = [vocabulary.build([source]), vocabulary.build([target])]
  return extraction.extract_hiero(
    vocabulary.encode(words[0], source),
    vocabulary.encode(words[1], target),
    links_lib.parse_links(list(links)),
    source_words=words[0],
    target_words=words[1],
    options=HieroOptions(max_phrase=4, max_target_phrase=4, max_words=2),
    count=CountOptions(provenance=True),
    runner=Runner(kind="serial", workers=1),
    features=features,
  )


@functools.cache
def language_model():
  sentences, words = word_ids.encode_corpus([pair[1] for pair in PAIRS])
  made = lm_estimate.estimate(
    sentences,
    words,
    lm_estimate.EstimateConfig(order=2, fallback=lm_estimate.FALLBACK),
  )
  return lm_tables.build_tables(made)


def make(repeat=1, **weights):
  """`(model, bitext)`; the pairs `repeat` times, weights as changed."""
  model = models.make_model(
    extracted().table,
    language_model(),
    weights=WEIGHTS | weights,
    limits=MatchConfig(span=10, targets=20, applications=32),
  )
  pairs = PAIRS * repeat
  source = models.make_source(model, [pair[0] for pair in pairs])
  bitext = shard_counting.make_bitext(
    model,
    source,
    [pair[1] for pair in pairs],
    provenance=extracted().provenance if repeat == 1 else None,
  )
  return model, bitext


def work(model, bitext, config, search=SEARCH):
  return shard_counting.CountingWork(
    model=model,
    bitext=bitext,
    config=config,
    method=theta_methods.find(config.method),
    search=search,
  )


def forests(model, bitext, config, search=SEARCH):
  """`(result, forest)` of one search over the whole bitext."""
  from jaxmt.decode.chart import beam_forest

  made = work(model, bitext, config, search)
  parts = [np.arange(len(bitext))]
  prepared = shard_counting.prepare(made, parts, None)
  (result,) = shard_counting.run(
    made,
    parts,
    prepared,
    inputs=shard_counting.inputs(made, parts, prepared),
  )
  return result, beam_forest.extract(model, result)
