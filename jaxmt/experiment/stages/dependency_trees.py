"""Translation with dependency trees over phrases, as stages of an experiment.

    corpus, grammar, trees, the baseline's weights -> tune -> decode

Trees and phrase dependencies come from `tree_parsing`. The coarse pass is the
baseline's phrase-based search with its tuned weights.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode.dependency import (
  configurations,
  tree_translator,
)
from jaxmt.decode.dependency.configurations import SourceTree
from jaxmt.decode.dependency.phrase_trees import PhraseTree
from jaxmt.decode.dependency.probabilities import Dependencies
from jaxmt.decode.dependency.tree_translator import ParsingTask, TreeOptions
from jaxmt.decode.model import Model
from jaxmt.experiment.stages import system, tree_parsing
from jaxmt.experiment.stages import tune as tune_stage
from jaxmt.experiment.stages.corpus import PARTS, Corpus, Translations
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import SearchStageConfig, Tuned
from jaxmt.experiment.stages.tree_parsing import (
  ParseConfig,
  ParsedCorpus,
  PhraseDependencies,
)
from jaxmt.grammar import dependency_table
from jaxmt.runtime.checkpoint import Store
from jaxmt.text import word_clusters
from jaxmt.tune import loop


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreesConfig:
  """Settings of the system with trees over phrases.

  Attributes:
    parse: where trees come from.
    edges: most edges of a lattice.
    source_limit: most source words between linked phrases.
    target_limit: most target words between them.
    groups: groups of features, of `configurations.GROUPS`.
    unit: "phrases" or "words".
    length: most words of the phrases of dependencies.
    method: a name of `jaxmt.tune.methods`.
    options: settings of the method, "name=value" each.
    rounds: optimisations.
    nbest: candidates of a list.
    held_out: N: every N-th tuning sentence judges the weights that are learnt
      from the others; 0: all do both.
    pictures: test sentences whose trees the report draws.
  """

  parse: ParseConfig = dataclasses.field(default_factory=ParseConfig)
  edges: int = 500
  source_limit: int = 15
  target_limit: int = 20
  groups: tuple[str, ...] = configurations.GROUPS
  unit: str = "phrases"
  length: int = 7
  method: str = "ramp3"
  options: tuple[str, ...] = ()
  rounds: int = 10
  nbest: int = 150
  held_out: int = 0
  pictures: int = 20

  @property
  def lattices(self) -> TreeOptions:
    """How lattices are made and parsed."""
    return TreeOptions(
      edges=self.edges,
      source_limit=self.source_limit,
      target_limit=self.target_limit,
      groups=self.groups,
      unit=self.unit,
    )


def check(config: TreesConfig) -> None:
  """Raises `ValueError` for settings that make no sense."""
  tree_translator.check(config.lattices)
  tree_parsing.check(config.parse)
  for name in ("rounds", "nbest", "length"):
    if getattr(config, name) < (name != "rounds"):
      raise ValueError(f"{name} is too small")
  method = tune_stage.make_method(config.method, config.options, metric="bleu")
  loop.check_held_out(loop.LoopConfig(held_out=config.held_out), method, False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreeTuningConfig:
  """Everything that learning and translation depend on."""

  trees: TreesConfig
  search: SearchStageConfig
  metric: str = "bleu"
  seed: int = 0


def _task(config, part, corpus, grammar, lm, coarse, parsed, dependencies):
  """The sentences of a part with their lattices."""
  model, _ = system.part_model(
    config.search,
    part,
    corpus=corpus,
    grammar=grammar,
    lm=lm,
    weights=coarse.weights,
  )
  known = None
  if dependencies is not None:
    known = Dependencies(
      table=dependency_table.of_columns(
        dependencies.keys, dependencies.values, dependencies.sizes
      ),
      clusters=word_clusters.read_lines(parsed.clusters),
    )
  lines = corpus.part(part).source
  heads = getattr(parsed, f"{part}_heads")
  return make_task(
    model,
    lines,
    trees=config.trees,
    search=config.search,
    source_trees=configurations.source_trees(heads, lines),
    coarse=coarse.weights,
    dependencies=known,
  )


def make_task(
  model: Model,
  lines: Sequence[str],
  *,
  trees: TreesConfig,
  search: SearchStageConfig,
  source_trees: Sequence[SourceTree | None],
  coarse: Mapping[str, float],
  dependencies: Dependencies | None,
) -> ParsingTask:
  """Returns sentences with their lattices.

  Args:
    model: the phrase-based one, with the weights of the coarse pass.
    lines: the sentences.
    trees: settings.
    search: of the coarse pass.
    source_trees: of the sentences.
    coarse: the weights of the coarse pass.
    dependencies: of phrases, None without target trees.
  """
  settings = system.decode_config(search, model, forest=True)
  lattices: list[Any] = [None] * len(lines)
  for row, one in tree_translator.lattices(
    model, lines, options=trees.lattices, config=settings
  ):
    lattices[row] = one
  return ParsingTask(
    lattices=lattices,
    trees=source_trees,
    dependencies=dependencies,
    options=trees.lattices,
    coarse=coarse,
    names=tuple(model.feature_names),
  )


def tune(
  config: TreeTuningConfig,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  coarse: Tuned,
  parsed: ParsedCorpus,
  dependencies: PhraseDependencies | None = None,
  partial: Store | None = None,
) -> Tuned:
  """Learns the weights of the fine pass on the tuning part.

  Args:
    config: see `TreeTuningConfig`.
    corpus: the text.
    grammar: the phrase table.
    lm: the language model.
    coarse: weights of the coarse pass.
    parsed: source trees, clusters.
    dependencies: of phrases, if target trees are used.
    partial: stores the state after each round, to resume from.
  """
  trees = config.trees
  task = _task(
    config, "tune", corpus, grammar, lm, coarse, parsed, dependencies
  )
  settings = tune_stage.TuneStageConfig(
    method=trees.method,
    options=trees.options,
    rounds=trees.rounds,
    metric=config.metric,
    nbest=trees.nbest,
    held_out=trees.held_out,
  )
  return tune_stage.learn_weights(
    tree_translator.make_decode(
      task, size=trees.nbest, threads=config.search.threads
    ),
    tree_translator.start_weights(task),
    corpus.tune_references,
    settings,
    seed=config.seed,
    partial=partial,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreeTranslations(Translations):
  """Translations with their trees, and what they were chosen from.

  Attributes:
    pictures: the trees of the first test sentences: phrases, source spans,
      heads; JSON.
  """

  pictures: list[dict[str, Any] | None]


def translate(
  config: TreeTuningConfig,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  coarse: Tuned,
  tuned: Tuned,
  parsed: ParsedCorpus,
  dependencies: PhraseDependencies | None = None,
) -> TreeTranslations:
  """Translates the tuning and the test part; see `tune`."""
  hypotheses, metrics = {}, {}
  trees: list[PhraseTree | None] = []
  for part in PARTS:
    task = _task(
      config, part, corpus, grammar, lm, coarse, parsed, dependencies
    )
    trees = list(
      tree_translator.translations(
        task, tuned.weights, threads=config.search.threads
      )
    )
    hypotheses[f"{part}_hypothesis"] = [
      one.text if one else "" for one in trees
    ]
    scores = [one.score for one in trees if one]
    metrics[f"{part}_score"] = round(float(np.mean(scores or [0.0])), 4)
  pictures: list[dict[str, Any] | None] = [
    {
      "phrases": list(one.phrases),
      "spans": one.spans.tolist(),
      "heads": one.heads.tolist(),
    }
    if one is not None
    else None
    for one in trees[: config.trees.pictures]
  ]
  return TreeTranslations(**hypotheses, metrics=metrics, pictures=pictures)
