"""A tiny bitext with sparse features, forced and ready to be learned from."""

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode import model as models
from jaxmt.decode.chart import decoder
from jaxmt.features.feature_keys import keys_of
from jaxmt.train.shard_store import MemoryStore
from jaxmt.train.violation import (
  averaged_weights,
  forced_forests,
  learner,
  minibatch,
  partial_derivations,
)
from jaxmt.train.violation.learn_config import LearnConfig
from tests.reference import tiny_training

LINES = [pair[0] for pair in tiny_training.PAIRS]
TARGETS = [pair[1] for pair in tiny_training.PAIRS]
SMALL = tiny_training.SearchConfig(
  beam=3, pop=8, corners=4, taper=((8, 8),), widths=(32,), tile=8
)
# Bends scores so that many best hypotheses are wrong.
SPARSE = {
  "Edge:fF:haus_house": -1.5,
  "Edge:fF:das_the": -0.4,
  "Edge:hF:k_small": 0.7,
  "Edge:bF:<s>_that": 1.1,
  "Shape:T0/T0": -0.6,
}


def config(**changes):
  return LearnConfig(
    **{
      "templates": ("edges:simple", "shape"),
      "epochs": 2,
      "minibatch": 4,
      "batch_cells": 120,
      "length_search": "none",
      **changes,
    }
  )


def keyed(model, sparse=SPARSE, **named):
  """Weights by name and by key, as the learner has them."""
  state = averaged_weights.begin(
    tiny_training.WEIGHTS | named, model.feature_names
  )
  values = np.array([*sparse.values()], np.float64)
  averaged_weights.put(state, keys_of(tuple(sparse)), values)
  return state.current


def setting(settings, *, search=SMALL, references=None, **named):
  model, _ = tiny_training.make()
  model = learner.prepare_model(model, settings)
  model = models.with_weights(model, keyed(model, **named))
  source = models.make_source(model, LINES)
  references = references or [[line] for line in TARGETS]
  origin = tiny_training.extracted().provenance
  excluded = None
  if settings.leave_one_out != "none":
    excluded = forced_forests.excluded_rules(model, origin)
  forced = forced_forests.force_text(
    model, source, references, settings, store=MemoryStore(), excluded=excluded
  )
  return learner.LearningSetting(
    model=model,
    source=source,
    references=references,
    forced=forced,
    start=tiny_training.WEIGHTS | SPARSE,
    search=search,
    excluded=excluded,
  )


def work(made, settings):
  return minibatch.UpdateWork(
    model=made.model,
    source=models.rescore_source(made.model, made.source),
    config=settings,
    search=made.search,
  )


def both_sides(made, settings):
  """Everything of one pack: pack, good and searched side with scores."""
  rows = np.flatnonzero(made.forced.reached)
  pack = learner.make_pack(made, settings, rows)
  shared = work(made, settings)
  prepared = decoder.prepare(
    made.model, shared.source, [rows], config=made.search
  )
  beams = decoder.run_search(prepared, made.model, config=made.search)
  (result,) = decoder.results([rows], prepared, beams)
  searched = partial_derivations.of_beams(made.model, result)
  best = partial_derivations.score_good(made.model, result.source, pack.good)
  return pack, best, searched, hypergraph.viterbi(searched.forest), result
