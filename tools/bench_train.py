"""Speed of one iteration of loss-augmented training, and what it is spent on.

Every row decodes training sentences with the beam of training (100) and counts
rules, first on two threads as training does, then the same work step by step
on one thread for the breakdown, which is in milliseconds per sentence:
matching (with what the losses need of the references), search, taking the
forest from the search, selection and counting. Estimating θ from the counts
takes seconds once an iteration, however many sentences there are, and is not
part of the speed. Weights are where tuning starts.
"""

import dataclasses
import time
from typing import Any

import bench
import numpy as np

from jaxmt.corpora import synthetic
from jaxmt.decode import model as models
from jaxmt.decode.chart import beam_forest
from jaxmt.experiment.stages import grammar, lm, system
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.experiment.stages.theta import training_model
from jaxmt.grammar import estimate
from jaxmt.runtime.runner import Runner
from jaxmt.text import files, ragged
from jaxmt.train import (
  edge_selection,
  shard_counting,
  theta_features,
  theta_methods,
)
from jaxmt.train.theta_config import ThetaConfig
from jaxmt.train.training import Resources, RunOptions
from jaxmt.tune import kbest_decoder as tune_decoding

_SENTENCES = 1024  # enough batches for all threads
# Of the embedded corpus with a joint grammar all, of others the first.
_SETTINGS: tuple[dict[str, Any], ...] = (
  {},
  {"counts": "viterbi"},
  {"counts": "nbest"},
  {"alpha1": 0.0, "alpha2": 0.0},
  {"train_beam": 30},
)


def run() -> list[dict]:
  """Measures the embedded corpus, and real ones if they are there."""
  rows = []
  for name, corpus, links, kind, settings in _corpora():
    model, bitext = _world(corpus, links, kind)
    groups = estimate.group_rules(model.table)
    for changes in settings:
      config = ThetaConfig(iterations=1, fallback="skip", shard=64, **changes)
      rows.append(_measure(name, kind, model, bitext, config, groups))
  return rows


def _corpora():
  """Names, texts, links, kinds of grammar, and what to measure."""
  made = synthetic.generate(
    synthetic.SyntheticConfig(train=3000, tune=10, test=10)
  )
  corpus = Corpus(
    train_source=made.train.source,
    train_target=made.train.references[0],
    train_trees=made.train.trees,
    tune_references=[["a"]],
    test_references=[["a"]],
  )
  links = made.train.links[0]
  yield "embedded, 3,000", corpus, links, "joint", _SETTINGS
  yield "embedded, 3,000", corpus, links, "hiero", _SETTINGS[:1]
  for name, pairs, trees in (
    ("multi30k-de-en", 10_000, None),
    ("tatoeba-zh-en", 12_000, "train.first12k.zh.tree.gz"),
  ):
    folder = bench.corpus(name)
    if folder is not None:
      corpus, links = _read(folder, pairs, trees)
      kind = "joint" if trees else "hiero"
      yield f"{name}, {pairs:,}", corpus, links, kind, _SETTINGS[:1]


def _read(folder, pairs, trees):
  """The first pairs of a corpus, and their links."""
  read = lambda name: files.read_lines(str(folder / name))[:pairs]
  source, target = folder.name.split("-")[-2:]
  corpus = Corpus(
    train_source=read(f"train.{source}.gz"),
    train_target=read(f"train.{target}.gz"),
    train_trees=read(trees) if trees else None,
    tune_references=[["a"]],
    test_references=[["a"]],
  )
  return corpus, read(f"train.{source}-{target}.align.gz")


def _world(corpus, links, kind):
  """The model of all rules, and sentences spread over the corpus."""
  if kind == "hiero":
    corpus = dataclasses.replace(corpus, train_trees=None)
  rules = grammar.extract(
    grammar.GrammarStageConfig(kind=kind),
    corpus=corpus,
    links=Links(links=links),
  )
  model_of_words = lm.language_model(lm.LmStageConfig(order=4), corpus=corpus)
  config = system.SearchStageConfig()
  model, bitext = training_model(
    config, corpus=corpus, grammar=rules, lm=model_of_words, weights={}
  )
  weights = tune_decoding.start_weights(model.feature_names)
  model = models.with_weights(model, weights)
  rows = np.linspace(0, len(bitext) - 1, _SENTENCES).astype(np.int64)
  source = models.select_source(bitext.source, rows)
  some = shard_counting.TrainingBitext(
    source=models.rescore_source(model, source),
    lines=[bitext.lines[row] for row in rows.tolist()],
    references=ragged.select(bitext.references, rows),
  )
  return model, some


def _measure(name, kind, model, bitext, config, groups) -> dict:
  resources = Resources(runner=Runner(workers=2), clock=time.perf_counter)
  options = RunOptions(resources=resources, groups=groups)
  learn = lambda: theta_methods.train(model, bitext, config, options=options)
  start = time.perf_counter()
  learn()
  first = time.perf_counter() - start
  cpu = time.process_time()
  learned = learn()
  busy = time.process_time() - cpu
  start = time.perf_counter()
  theta_features.with_theta(
    model, theta_features.theta_of(learned.counts, groups, config)
  )
  estimation = time.perf_counter() - start
  record = learned.history[0]
  words = float(bitext.source.ids.lengths.mean())
  plain = not config.alpha1 and not config.alpha2
  return {
    "corpus": name,
    "grammar": f"{kind}, {len(model.table):,}",
    "words": round(words, 1),
    "counts": config.counts,
    "losses": "none" if plain else "both",
    "beam": config.train_beam,
    "sentences/s": round(record["sentences_per_second"], 1),
    "per CPU s": round(len(bitext) / busy, 1),
    "first run s": round(first, 1),
    "admissible %": round(100 * record["admissible_share"], 1),
    **_breakdown(model, bitext, config),
    "estimation s": round(estimation, 2),
  }


def _breakdown(model, bitext, config) -> dict:
  """Milliseconds per sentence of each step, one thread."""
  model = theta_features.scaled(model, config.scale)
  work = shard_counting.CountingWork(
    model=model,
    bitext=bitext,
    config=config,
    method=theta_methods.find(config.method),
    search=shard_counting.search_config(config),
  )
  shards = shard_counting.make_shards(
    bitext.source.ids.lengths,
    span=model.limits.span,
    cells=config.batch_cells - work.search.tile - 1,
    size=config.shard,
  )
  parameters = shard_counting.search_parameters(work)
  spent = dict.fromkeys(("matching", "search", "forest", "selection"), 0.0)
  for shard in shards:
    for batch in shard.batches:
      marks = [time.perf_counter()]
      prepared = shard_counting.prepare(work, [batch], None)
      inputs = shard_counting.inputs(work, [batch], prepared)
      marks.append(time.perf_counter())
      (result,) = shard_counting.run(
        work, [batch], prepared, parameters=parameters, inputs=inputs
      )
      marks.append(time.perf_counter())
      forest = beam_forest.extract(model, result)
      marks.append(time.perf_counter())
      references = ragged.select(bitext.references, batch)
      chosen = edge_selection.select(
        model, result.source, forest, references, config
      )
      shard_counting.count(work, batch, forest, chosen)
      marks.append(time.perf_counter())
      for name, value in zip(spent, np.diff(marks), strict=True):
        spent[name] += value
  scale = 1000 / len(bitext)
  return {f"{name} ms": round(scale * s, 2) for name, s in spent.items()}
