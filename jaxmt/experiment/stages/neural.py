"""Trained models beside the rules: topics, similarity, scorers, networks.

Each is a system of its own: the baseline's rules and weights, a model trained
with them, weights tuned again. `launch/embed.py` does the same alone.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jaxmt.decode.model import Model
from jaxmt.errors import InputError
from jaxmt.experiment import systems
from jaxmt.experiment.stages import system
from jaxmt.experiment.stages.corpus import Corpus, spread_rows
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import (
  SearchStageConfig,
  TrainedModels,
  Tuned,
)
from jaxmt.features import rule_scores, sentence_models, topic_features
from jaxmt.models import (
  phrase_pair_training,
  topic_mixtures,
  topic_vectors,
  vector_files,
)
from jaxmt.models.phrase_pair_training import PhrasePairOptions
from jaxmt.models.topic_mixtures import MixtureOptions
from jaxmt.models.topic_vectors import TopicOptions
from jaxmt.runtime import progress
from jaxmt.runtime.checkpoint import Store
from jaxmt.text import kernels
from jaxmt.train import (
  recursive_start,
  recursive_training,
  scorer_training,
  similarity_training,
)
from jaxmt.train.recursive_start import RecursiveOptions
from jaxmt.train.scorer_training import ScorerOptions, TrainingText

# What the experiment's seed stands for; config files do not have them.
SEEDS = (
  ("topics", "fit", "seed"),
  ("mixtures", "seed"),
  ("similarity", "rebuild", "seed"),
  ("similarity", "tune", "seed"),
  ("scorer", "seed"),
  ("recursive", "seed"),
  *(
    ("recursive", n, "seed") for n in ("confidence", "recurrence", "neighbours")
  ),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeuralConfig:
  """How the models of all such systems are trained.

  Attributes:
    pairs: N: "similarity", "scorer" and "recursive" learn from N training
      pairs, evenly spread; 0: from all.
    topics: of "topics".
    mixtures: of "topic-mixtures", which retrieves as `topics` says.
    similarity: of "similarity".
    longest: most symbols of a side that it learns from.
    scorer: of "scorer".
    recursive: of "recursive".
    source_vectors: file of word vectors that "similarity" and "recursive" begin
      with, or "".
    target_vectors: the same of target words.
  """

  pairs: int = 0
  topics: TopicOptions = dataclasses.field(default_factory=TopicOptions)
  mixtures: MixtureOptions = dataclasses.field(default_factory=MixtureOptions)
  similarity: PhrasePairOptions = dataclasses.field(
    default_factory=PhrasePairOptions
  )
  longest: int = 7
  scorer: ScorerOptions = dataclasses.field(default_factory=ScorerOptions)
  recursive: RecursiveOptions = dataclasses.field(
    default_factory=RecursiveOptions
  )
  source_vectors: str = ""
  target_vectors: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeuralStageConfig:
  """Everything the stage depends on.

  Attributes:
    kind: one of `systems.NEURAL`.
    neural: see `NeuralConfig`.
    search: how to decode.
    seed: of everything random.
  """

  kind: str
  neural: NeuralConfig
  search: SearchStageConfig
  seed: int = 0


def check(config: NeuralConfig) -> None:
  """Raises `ValueError` or `InputError` for settings that make no sense."""
  if config.pairs < 0:
    raise ValueError("pairs must not be negative")
  if config.longest < 1:
    raise ValueError("longest must be at least 1")
  topic_vectors.check_options(config.topics)
  topic_mixtures.check_options(config.mixtures)
  phrase_pair_training.check_options(config.similarity)
  scorer_training.check_options(config.scorer)
  recursive_start.check_options(config.recursive)


def check_kinds(
  names: Sequence[str], *, grammar: str, documents: bool, provenance: bool
) -> None:
  """Checks that the systems have what they need.

  Args:
    names: of systems, also of others.
    grammar: kind of the rules.
    documents: whether the training pairs have documents.
    provenance: whether it is known which sentence gave which rule.

  Raises:
    InputError: if not.
  """
  for name in {systems.TOPICS, systems.MIXTURES} & {*names}:
    if not documents:
      raise InputError(
        f"config key 'systems': '{name}' needs the documents of the training"
        " pairs ('data.files.train_documents')"
      )
    if not provenance:
      raise InputError(
        f"config key 'systems': '{name}' needs 'grammar.provenance'"
      )
  if systems.RECURSIVE in names and grammar != "btg":
    raise InputError(
      f"config key 'systems': '{systems.RECURSIVE}' needs a bracketing grammar"
      " ('grammar.kind' is 'btg')"
    )
  if systems.SCORER in names and grammar == "phrase":
    raise InputError(
      f"config key 'systems': '{systems.SCORER}' needs charts ('grammar.kind'"
      " is not 'phrase')"
    )


def input_paths(config: NeuralConfig) -> dict[str, str]:
  """Returns the files that training reads, by parameter of `train`."""
  paths = {
    name: getattr(config, name) for name in ("source_vectors", "target_vectors")
  }
  return {name: path for name, path in paths.items() if path}


def train(
  config: NeuralStageConfig,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  tuned: Tuned,
  source_vectors: str = "",
  target_vectors: str = "",
  partial: Store | None = None,
) -> TrainedModels:
  """Trains the model of a system.

  Args:
    config: see `NeuralStageConfig`.
    corpus: the text.
    grammar: the rules.
    lm: the language model.
    tuned: the baseline's weights, which stay as they are.
    source_vectors: file of word vectors to begin with, or "".
    target_vectors: the same of target words.
    partial: stores epochs and rounds, to resume from.
  """
  if config.kind in (systems.TOPICS, systems.MIXTURES):
    return _topics(config, corpus, grammar, partial)
  rows = spread_rows(len(corpus.train_source), config.neural.pairs).tolist()
  source = [corpus.train_source[row] for row in rows]
  target = [corpus.train_target[row] for row in rows]
  model, _ = system.part_model(
    config.search,
    "train",
    corpus=corpus,
    grammar=grammar,
    lm=lm,
    weights=tuned.weights,
  )
  given = tuple(
    vector_files.read(path) if path else None
    for path in (source_vectors, target_vectors)
  )
  if config.kind == systems.SIMILARITY:
    return _similarity(config, model, (source, target), given, partial)
  text = TrainingText(lines=source, references=[[line] for line in target])
  development = TrainingText(
    lines=corpus.tune_source, references=corpus.tune_references
  )
  how = {
    "config": system.decode_config(config.search, model, forest=True),
    "development": development,
    "store": partial,
    "on_round": _say,
  }
  if config.kind == systems.SCORER:
    options = dataclasses.replace(config.neural.scorer, seed=config.seed)
    scorer = scorer_training.train(model, text, options, **how)
    return TrainedModels(
      models=(scorer.scorer,),
      start={rule_scores.NAME: 1.0},
      metrics=_rounds(scorer.history),
    )
  options = dataclasses.replace(config.neural.recursive, seed=config.seed)
  vectors = tuple(() if one is None else (one,) for one in given)
  network = recursive_training.train(
    model, text, options, vectors=(vectors[0], vectors[1]), **how
  )
  return TrainedModels(
    models=(network.network,),
    start={sentence_models.RECURSIVE: 1.0},
    metrics={**_rounds(network.history), "reached": network.reached},
  )


def _say(record: Mapping[str, Any]) -> None:
  note = f"  round {record['round']}: BLEU {100 * record['bleu']:.2f}"
  if "loss" in record:
    note += f", loss {record['loss']:.4f}"
  progress.say(note)


def _rounds(history: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
  """What rounds of decoding say: scores before, and of the best one."""
  scores = [round(100 * record["bleu"], 3) for record in history]
  return {
    "start_bleu": scores[0],
    "best_bleu": max(scores),
    "best_round": scores.index(max(scores)),
  }


def _similarity(
  config: NeuralStageConfig,
  model: Model,
  bitext: tuple[list[str], list[str]],
  vectors,
  partial: Store | None,
) -> TrainedModels:
  """Learns from what forced decoding uses."""
  own = config.neural.similarity
  options = dataclasses.replace(
    own,
    rebuild=dataclasses.replace(own.rebuild, seed=config.seed),
    tune=dataclasses.replace(own.tune, seed=config.seed),
  )
  use = similarity_training.used_rules(
    model,
    *bitext,
    threads=config.search.threads or kernels.available_threads(),
  )
  pairs = similarity_training.phrase_pairs(
    model, use.counts, longest=config.neural.longest
  )
  *_, (step, learned) = similarity_training.train(
    pairs, options, vectors=vectors, store=partial
  )
  progress.say(
    f"  {len(pairs[0]):,} phrase pairs, {use.reached:,} references reached,"
    f" joint error {step.error:.4f}"
  )
  return TrainedModels(
    models=(learned,),
    start={},
    metrics={
      "reached": use.reached,
      "phrase_pairs": len(pairs[0]),
      "error": round(step.error, 6),
      "ranked": step.ranked,
    },
  )


def _topics(
  config: NeuralStageConfig,
  corpus: Corpus,
  grammar: Grammar,
  partial: Store | None,
) -> TrainedModels:
  """Learns topics of sentences and rules from the documents of the pairs."""
  if corpus.train_documents is None or grammar.provenance is None:
    raise ValueError("topics need documents and provenance")
  options = config.neural.topics
  options = dataclasses.replace(
    options, fit=dataclasses.replace(options.fit, seed=config.seed)
  )
  sides = (corpus.train_source, corpus.train_target)
  documents = [topic_vectors.join(corpus.train_documents, s) for s in sides]
  first, second = (
    topic_vectors.index_documents(one, options) for one in documents
  )
  metrics: dict[str, Any] = {"documents": len(first)}
  if config.kind == systems.MIXTURES:
    mixtures = dataclasses.replace(config.neural.mixtures, seed=config.seed)
    counts = topic_mixtures.joint_counts(
      (first, second), (documents[0], documents[1])
    )
    near = [
      topic_vectors.retrieve(index, side, options.documents)
      for index, side in zip((first, second), sides, strict=True)
    ]
    shares = topic_mixtures.fit(counts, mixtures).shares
    model = topic_features.make_mixture_model(
      first,
      shares,
      (near[0], near[1]),
      grammar.table,
      grammar.provenance,
    )
  else:
    *_, (_, _, _, encoders) = topic_vectors.train_encoders(
      (first, second), sides, options, store=partial
    )
    assert encoders is not None  # the last value
    metrics |= {
      f"{part}_loss": [round(losses[0], 4), round(losses[-1], 4)]
      for part, losses in encoders.history.items()
    }
    model = topic_features.make_model(
      first, encoders, second, grammar.table, grammar.provenance
    )
  return TrainedModels(
    models=(model,), start={}, metrics={**metrics, "rules": len(model.keys)}
  )
