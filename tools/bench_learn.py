"""Speed of an epoch of violation-fixing learning, and what it is spent on.

Sentences of 12 source words of the embedded corpus, with JAXMT_DATA also of
Multi30k German-English: Hiero rules without those seen once, a trigram model,
beam 30, simple Word-Edges, minibatches of 64. The table of weights holds a
million features: those of the forced forests, and random keys. First a whole
epoch on two threads; then the same step by step on one thread, in milliseconds
per sentence: new scores of all rules (once a minibatch), matching with features
of the chart, search, re-scoring of forced forests, comparison with the features
of the chosen derivations, and adding them to the weights. Forced decoding, done
once, stands apart. "per CPU s" does not depend on what else the machine does.
The last row is the memory that 5 million features take.
"""

import dataclasses
import time

import bench
import numpy as np

from jaxmt.corpora import synthetic
from jaxmt.decode import model as models
from jaxmt.decode import translation_forest
from jaxmt.decode.chart import chart_layout, decoder, search
from jaxmt.experiment.stages import grammar, lm, system
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.features import rule_templates
from jaxmt.runtime.runner import Runner
from jaxmt.text import files
from jaxmt.train.shard_store import MemoryStore
from jaxmt.train.training import Resources
from jaxmt.train.violation import (
  averaged_weights,
  forced_forests,
  learner,
  minibatch,
  partial_derivations,
)
from jaxmt.train.violation.learn_config import LearnConfig
from jaxmt.tune import kbest_decoder

_WORDS = 12
_SENTENCES = 256
_FEATURES = 1_000_000
_MANY = 5_000_000
_STEPS = ("weights", "matching", "search", "forced", "features", "update")


def run() -> list[dict]:
  """Measures the embedded corpus, a real one if it is there, and memory."""
  rows = [_measure(name, corpus, links) for name, corpus, links in _corpora()]
  return [*rows, _memory()]


def _corpora():
  """Names, training texts and links."""
  made = synthetic.generate(
    synthetic.SyntheticConfig(train=3000, tune=10, test=10)
  )
  sides = (made.train.source, made.train.references[0], made.train.links[0])
  yield "embedded, 3,000", *_text(*sides)
  folder = bench.corpus("multi30k-de-en")
  if folder is not None:
    names = ("train.de.gz", "train.en.gz", "train.de-en.align.gz")
    read = [files.read_lines(str(folder / name))[:10_000] for name in names]
    yield "multi30k-de-en, 10,000", *_text(*read)


def _text(source, target, links):
  corpus = Corpus(
    train_source=source,
    train_target=target,
    tune_references=[["a"]],
    test_references=[["a"]],
  )
  return corpus, links


def _setting(corpus, links, config):
  """The model and the reached sentences of 12 words, or nearly."""
  rules = grammar.extract(
    grammar.GrammarStageConfig(kind="hiero", min_count=2, provenance=False),
    corpus=corpus,
    links=Links(links=links),
  )
  words = lm.language_model(lm.LmStageConfig(order=3), corpus=corpus)
  model, _ = system.part_model(
    system.SearchStageConfig(),
    "train",
    corpus=corpus,
    grammar=rules,
    lm=words,
    weights={},
  )
  start = kbest_decoder.start_weights(model.feature_names)
  model = learner.prepare_model(models.with_weights(model, start), config)
  lengths = np.array([len(line.split()) for line in corpus.train_source])
  near = np.argsort(np.abs(lengths - _WORDS), kind="stable")[: 3 * _SENTENCES]
  lines = [corpus.train_source[row] for row in near.tolist()]
  references = [[corpus.train_target[row]] for row in near.tolist()]
  source = models.make_source(model, lines)
  cpu = time.process_time()
  forced = forced_forests.force_text(
    model, source, references, config, store=MemoryStore()
  )
  seconds = time.process_time() - cpu
  few = np.flatnonzero(forced.reached)[:_SENTENCES]
  reached = np.zeros(len(lines), bool)
  reached[few] = True
  setting = learner.LearningSetting(
    model=model,
    source=source,
    references=references,
    forced=dataclasses.replace(forced, reached=reached),
    start=start,
    search=search.make_config(beam=30, pop=200),
  )
  return setting, len(lines) / seconds


def _fill(setting, state, size) -> None:
  """Gives weights to the features of forced forests, then to random keys."""
  model, rng = setting.model, np.random.default_rng(0)
  rows = np.flatnonzero(setting.forced.reached)
  good = partial_derivations.take(setting.forced.partials, rows)
  source = models.select_source(setting.source, rows)
  keys = rule_templates.application_keys(
    model.templates,
    chart_layout.make_text(model.templates, source),
    translation_forest.applications(
      good.forest, np.arange(good.forest.num_edges)
    ),
  ).flat
  keys = np.unique(keys)[:size]
  more = rng.integers(1, 1 << 61, size - len(keys)).astype(np.uint64)
  keys = np.concatenate([keys, more])
  averaged_weights.put(state, keys, rng.normal(0, 1e-3, len(keys)))


def _measure(name, corpus, links) -> dict:
  config = LearnConfig(
    epochs=1, dense_rate=0.01, length_search="none", checkpoint=0
  )
  setting, forced_speed = _setting(corpus, links, config)
  rows = np.flatnonzero(setting.forced.reached)
  state = averaged_weights.begin(setting.start, setting.model.feature_names)
  _fill(setting, state, _FEATURES)
  # The whole epoch from these weights, twice: the first one compiles.
  resources = Resources(runner=Runner(workers=2))
  parameters = decoder.search_parameters(setting.model, setting.search)
  first = 0.0
  for turn in range(2):
    progress = learner.LearningProgress(
      weights=averaged_weights.from_values(averaged_weights.to_values(state))
    )
    start, cpu = time.perf_counter(), time.process_time()
    learner.run_epoch(
      setting, config, rows, progress, MemoryStore(), resources, parameters
    )
    wall, busy = time.perf_counter() - start, time.process_time() - cpu
    first = first if turn else wall
  lengths = setting.source.ids.lengths[rows]
  return {
    "corpus": name,
    "rules": len(setting.model.table),
    "words": round(float(lengths.mean()), 1),
    "features": progress.weights.count,
    "sentences/s": round(len(rows) / wall, 1),
    "per CPU s": round(len(rows) / busy, 1),
    "first run s": round(first, 1),
    **_breakdown(setting, config, rows, state, parameters),
    "forced/CPU s": round(forced_speed, 1),
    "peak MB": round(bench.peak_memory_mb()),
  }


def _breakdown(setting, config, rows, state, parameters) -> dict:
  """CPU milliseconds per sentence of each step, one thread."""
  spent = dict.fromkeys(_STEPS, 0.0)
  marks = [time.process_time()]

  def lap(name):
    marks.append(time.process_time())
    spent[name] += marks[-1] - marks[-2]

  for first in range(0, len(rows), config.minibatch):
    some = rows[first : first + config.minibatch]
    marks.append(time.process_time())
    model = models.with_weights(setting.model, state.current)
    work = minibatch.UpdateWork(
      model=model,
      source=models.rescore_source(model, setting.source),
      config=config,
      search=setting.search,
    )
    lap("weights")
    found = []
    for part in minibatch.pack_rows(
      setting.source.ids.lengths,
      some,
      span=model.limits.span,
      cells=config.batch_cells - setting.search.tile - 1,
    ):
      pack = learner.make_pack(setting, config, part)
      prepared = decoder.prepare(
        model, work.source, [part], config=setting.search
      )
      lap("matching")
      beams = decoder.run_search(
        prepared, model, config=setting.search, parameters=parameters
      )
      (result,) = decoder.results([part], prepared, beams)
      lap("search")
      partial_derivations.score_good(model, result.source, pack.good)
      lap("forced")
      found.append(minibatch.compare(work, pack, result))
      lap("features")
    marks.append(time.process_time())
    dense, whole = minibatch.total(found, len(some))
    averaged_weights.step(
      state,
      dense=0 * dense,
      keys=whole.keys,
      values=0 * whole.values,
      witness=whole.witness,
    )
    lap("update")
  spent["features"] -= spent["forced"]  # comparing re-scores, too
  scale = 1000 / len(rows)
  return {f"{name} ms": round(scale * s, 2) for name, s in spent.items()}


def _memory() -> dict:
  """Peak memory before and after 5 million features get weights."""
  before = bench.peak_memory_mb()
  state = averaged_weights.begin({}, ("a",))
  rng = np.random.default_rng(0)
  for _ in range(50):
    keys = rng.integers(1, 1 << 61, _MANY // 50).astype(np.uint64)
    averaged_weights.step(
      state,
      dense=np.zeros(1),
      keys=keys,
      values=np.ones(len(keys)),
      witness=np.zeros((len(keys), averaged_weights.WITNESS), np.int32),
    )
  columns = (*state.table, state.lagged, state.place, state.witness)
  return {
    "corpus": "5,000,000 features",
    "features": state.count,
    "table MB": round(sum(one.nbytes for one in columns) / 1e6),
    "peak MB": round(max(bench.peak_memory_mb(), before)),
  }
