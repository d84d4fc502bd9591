"""Neural models: how fast they learn, and what their features cost decoding.

The embedded corpus (1,000 pairs, 200 sentences to translate), Hiero rules, beam
30. Blocks of 20 lines stand for documents, since only sizes matter here. Times
are processor time; learning is timed after the first epoch, which compiles.
Decoding with and without a feature alternates, least of three each.
"""

import dataclasses
import time
from collections.abc import Iterable

import bench
import numpy as np

from jaxmt.corpora.synthetic import SyntheticConfig
from jaxmt.decode import decoding
from jaxmt.decode import model as models
from jaxmt.experiment.stages import align, corpus, grammar, lm, system
from jaxmt.features import phrase_similarity, sentence_models, topic_features
from jaxmt.models import topic_vectors, word_vectors
from jaxmt.models.fitting import FitOptions
from jaxmt.models.phrase_pair_training import PhrasePairOptions
from jaxmt.text import vocabulary
from jaxmt.train import (
  recursive_lists,
  recursive_start,
  recursive_training,
  scorer_training,
  similarity_training,
)
from jaxmt.train.recursive_start import RecursiveOptions
from jaxmt.train.scorer_training import ScorerOptions, TrainingText
from jaxmt.tune import kbest_decoder

_LINES = 20  # of a document
_REPEATS = 3


def run() -> list[dict]:
  """Returns the rows."""
  text = corpus.embedded(SyntheticConfig(train=1000, tune=50, test=200))
  links = align.align(align.AlignStageConfig(), corpus=text)
  rules = grammar.extract(
    grammar.GrammarStageConfig(kind="hiero"), corpus=text, links=links
  )
  language_model = lm.language_model(lm.LmStageConfig(), corpus=text)
  search = system.SearchStageConfig(threads=1)
  model, _ = system.part_model(
    search, "test", corpus=text, grammar=rules, lm=language_model, weights={}
  )
  weights = kbest_decoder.start_weights(model.feature_names)
  weights |= dict.fromkeys(("target_given_source", "source_given_target"), 0.5)
  rows = [_word_vectors(text)]
  row, topics = _topics(text, rules)
  rows.append(row)
  more, similar = _similarity(models.with_weights(model, weights), text)
  rows += more
  scorer = scorer_training.start_model(
    model, TrainingText(lines=text.test_source, references=[]), ScorerOptions()
  )
  for name, own, more in (
    ("topics", topics, dict.fromkeys(topic_features.NAMES, 0.1)),
    ("similarity", similar, dict.fromkeys(phrase_similarity.NAMES, 0.1)),
    ("scorer", scorer, {"RuleScore": 1.0}),
  ):
    with_it = dataclasses.replace(model, local=sentence_models.features([own]))
    with_it = models.with_templates(with_it, None)
    rows += _decoding(
      name,
      models.with_weights(model, weights),
      models.with_weights(with_it, weights | more),
      text.test_source,
      search,
    )
  return rows + _recursive(text, search)


def _recursive(text, search) -> list[dict]:
  """A network of derivations: learning, and decoding without and with it."""
  rows = []
  links = align.align(align.AlignStageConfig(), corpus=text)
  rules = grammar.extract(
    grammar.GrammarStageConfig(kind="btg"), corpus=text, links=links
  )
  language_model = lm.language_model(lm.LmStageConfig(), corpus=text)
  model, _ = system.part_model(
    search, "test", corpus=text, grammar=rules, lm=language_model, weights={}
  )
  weights = kbest_decoder.start_weights(model.feature_names)
  weights |= dict.fromkeys(("target_given_source", "source_given_target"), 0.5)
  model = models.with_weights(model, weights)
  some = TrainingText(lines=text.tune_source, references=text.tune_references)
  start = time.process_time()
  forced = recursive_start.force_text(model, some)
  network = recursive_start.start_model(model, forced, RecursiveOptions())
  rows.append(
    _row(
      "learn: first network",
      time.process_time() - start,
      len(some.lines),
      f"sentences, {forced.reached} reached; compiling included",
    )
  )
  scored = recursive_training.with_network(model, network)
  config = system.decode_config(search, scored, forest=True)
  parts = recursive_training.search(scored, some.lines, config=config)
  trees = recursive_lists.collect(scored, parts, forced.known, "local")
  recursive_training.improve(network, trees, "local", RecursiveOptions(), 0)
  start = time.process_time()
  recursive_training.improve(network, trees, "local", RecursiveOptions(), 0)
  seconds = (time.process_time() - start) / RecursiveOptions().passes
  note = "lists of local training, one pass"
  rows.append(_row("learn: network", seconds, len(trees.candidates), note))
  return rows + _decoding("network", model, scored, text.test_source, search)


def _row(step: str, seconds: float, count: int, note: str = "") -> dict:
  return {
    "step": step,
    "count": count,
    "cpu s": round(seconds, 3),
    "ms each": round(1000 * seconds / max(count, 1), 4),
    "peak MB": round(bench.peak_memory_mb()),
    "note": note,
  }


def _epochs(epochs: Iterable) -> float:
  """Processor time of an epoch, without the first one."""
  times = [time.process_time() for _ in epochs]
  return float(np.mean(np.diff(times)))


def _word_vectors(text) -> dict:
  words = vocabulary.build([text.train_target])
  ids = vocabulary.encode(words, text.train_target)
  options = word_vectors.WordVectorOptions(fit=FitOptions(epochs=4))
  seconds = _epochs(word_vectors.train_vectors(ids, words.words, options))
  return _row("learn: skip-gram", seconds, len(ids.flat), "words, one epoch")


def _topics(text, rules) -> tuple[dict, topic_features.TopicModel]:
  sides = (text.train_source, text.train_target)
  options = topic_vectors.TopicOptions(
    fit=FitOptions(epochs=4, batch=128, rate=0.001)
  )
  names = [str(row // _LINES) for row in range(len(sides[0]))]
  indices = tuple(
    topic_vectors.index_documents(topic_vectors.join(names, side), options)
    for side in sides
  )
  steps = [
    (time.process_time(), step)
    for step in topic_vectors.train_encoders(
      (indices[0], indices[1]), sides, options
    )
  ]
  encoders = steps[-1][1][3]
  assert encoders is not None  # the last value
  times = [clock for clock, step in steps if step[0] == "source"]
  topics = topic_features.make_model(
    indices[0], encoders, indices[1], rules.table, rules.provenance
  )
  seconds = float(np.mean(np.diff(times)))
  note = f"sentences, one epoch of one language; {len(indices[0])} documents"
  return _row("learn: topics", seconds, len(sides[0]), note), topics


def _similarity(
  model, text
) -> tuple[list[dict], phrase_similarity.SimilarityModel]:
  """Learning from forced derivations, and the values of a whole table."""
  start = time.process_time()
  use = similarity_training.used_rules(
    model, text.train_source, text.train_target
  )
  rows = [
    _row(
      "learn: force the bitext",
      time.process_time() - start,
      len(text.train_source),
      f"sentence pairs, {use.reached} reached",
    )
  ]
  pairs = similarity_training.phrase_pairs(model, use.counts)
  options = PhrasePairOptions(
    rebuild=FitOptions(epochs=1, batch=128, rate=0.003),
    tune=FitOptions(epochs=4, batch=128, rate=0.003),
  )
  steps = [
    (time.process_time(), *step)
    for step in similarity_training.train(pairs, options)
  ]
  times = [clock for clock, step, _ in steps if step.part == "pairs"]
  similar = steps[-1][2]
  rows.append(
    _row(
      "learn: similarity",
      float(np.mean(np.diff(times))),
      len(pairs[0]),
      "phrase pairs, one round",
    )
  )
  table = model.table
  phrase_similarity.similarities(similar, table)  # compiles
  start = time.process_time()
  phrase_similarity.similarities(similar, table)
  rows.append(
    _row(
      "load: similarities of a table",
      time.process_time() - start,
      len(table),
      "rules, once",
    )
  )
  return rows, similar


def _decoding(name, plain, with_it, lines, search) -> list[dict]:
  """CPU time of decoding without and with a feature."""
  calls = []
  for model in (plain, with_it):
    source = models.make_source(model, lines)
    config = system.decode_config(search, model)
    calls.append(
      lambda m=model, s=source, c=config: [
        part.best()
        for batch in decoding.decode(m, s, config=c)
        for part in batch
      ]
    )
  best = [float("inf")] * 2
  for repeat in range(_REPEATS + 1):
    for place, call in enumerate(calls):
      start = time.process_time()
      call()
      if repeat:  # the first call compiles
        best[place] = min(best[place], time.process_time() - start)
  more = 100 * (best[1] / best[0] - 1)
  return [
    _row(f"decode: without {name}", best[0], len(lines), "sentences"),
    _row(f"decode: with {name}", best[1], len(lines), f"{more:+.1f} %"),
  ]
