"""Word links of the training part."""

import dataclasses
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxmt.align import (
  em,
  link_scores,
  named_aligners,
  symmetrize,
  tree_symmetrize,
)
from jaxmt.align.itg import word_pieces
from jaxmt.align.neural.neural_hmm import NeuralConfig
from jaxmt.errors import InputError
from jaxmt.experiment.record import Record
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.models import fitting
from jaxmt.models.fitting import FitOptions
from jaxmt.runtime import parallel, progress
from jaxmt.runtime.runner import Runner
from jaxmt.text import links as links_lib
from jaxmt.text import trees, vocabulary
from jaxmt.text.ragged import Ragged
from jaxmt.train import supervised_alignment
from jaxmt.train.itg_training import ItgConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignStageConfig:
  """How to align.

  Attributes:
    model: a name of `jaxmt.align.named_aligners`, "given" for the corpus's own
      links, "itg", which learns from hand-aligned pairs, or "neural", which
      learns from `teacher`'s links.
    symmetrize: how the two directions are combined; idsg and idsg-diag look
      at the trees of the corpus's source.
    iterations: passes over the bitext.
    teacher: of the neural aligner: "hmm", "diagonal" or "itg".
    epochs: of its network.
    window: words on either side of a word that it sees.
    objective: of its network, "hinge" or "softmax".
    start: its embeddings begin uniform in plus or minus this.
    gold: prefix of hand-aligned pairs (PREFIX.SRC, PREFIX.en, PREFIX.align).
    dictionary: source words with translations (WORD TAB A/B C/...), a feature
      of ITG; "" for none.
    kind: of ITG, "w", "p", "h" or "hp".
    training: how its weights are learnt.
    pruner: which bi-spans it looks at.
    blocks: whether ITG may link one or two words with up to four neighbouring
      words without a rule (kinds with phrase pairs).
    beam: target spans for each source span.
    emd_rounds: of semi-supervised training, at most.
    decoder: "viterbi", or "posterior" for all links above `threshold`.
    threshold: least posterior of a link; 0 for the one that scores best on the
      hand-aligned pairs.
  """

  model: str = "diagonal"
  symmetrize: str = "grow-diag-final-and"
  iterations: int = 5
  teacher: str = "hmm"
  epochs: int = 5
  window: int = 5
  objective: str = "hinge"
  start: float = 0.1
  gold: str = ""
  dictionary: str = ""
  kind: str = "hp"
  training: str = "softmax"
  pruner: str = "dpdi"
  blocks: bool = True
  beam: int = 10
  emd_rounds: int = 0
  decoder: str = "viterbi"
  threshold: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Links(Record):
  """Word links of the training part.

  Attributes:
    links: Pharaoh lines.
    metrics: precision, recall and error rate against the corpus's own links,
      if it has any, and the perplexity of every pass.
  """

  links: list[str]
  metrics: dict[str, Any] | None = None


def check(config: AlignStageConfig) -> None:
  """Raises `ValueError` for an unknown model or method, or a bad number."""
  if config.teacher not in supervised_alignment.TEACHERS:
    raise ValueError(f"unknown teacher '{config.teacher}'")
  if _needs_gold(config):
    _itg_config(config)
  if config.model in ("itg", "neural"):
    named_aligners.default_config("hmm", iterations=config.iterations)
    if config.symmetrize not in symmetrize.METHODS:
      raise ValueError(
        f"symmetrize '{config.symmetrize}' is not for model '{config.model}'"
      )
    fitting.check_options(_neural_config(config).fit)
  elif config.model != "given":
    named_aligners.default_config(config.model, iterations=config.iterations)
  methods = (*symmetrize.METHODS, *tree_symmetrize.METHODS)
  if config.symmetrize not in methods:
    raise ValueError(
      f"symmetrize '{config.symmetrize}' is none of {', '.join(methods)}"
    )


def _needs_gold(config: AlignStageConfig) -> bool:
  """Whether hand-aligned pairs are read."""
  taught = config.model == "neural" and config.teacher == "itg"
  return config.model == "itg" or taught


def _neural_config(config: AlignStageConfig) -> NeuralConfig:
  return NeuralConfig(
    window=config.window,
    objective=config.objective,
    start=config.start,
    fit=FitOptions(epochs=config.epochs, batch=512, rate=0.003),
  )


def _itg_config(config: AlignStageConfig) -> ItgConfig:
  return ItgConfig(
    kind=config.kind,
    method=config.training,
    pruner=config.pruner,
    beam=config.beam,
    blocks=config.blocks,
  )


def input_paths(config: AlignStageConfig) -> dict[str, str]:
  """Returns the files that the stage reads, by parameter of `align`.

  Raises:
    InputError: if hand-aligned pairs are needed and not there.
  """
  if not _needs_gold(config):
    return {}
  if not config.gold:
    raise InputError("config key 'align.gold' is empty: ITG learns from it")
  names = ("gold_source", "gold_target", "gold_links")
  paths = supervised_alignment.gold_paths(config.gold)
  named = dict(zip(names, paths, strict=True))
  if config.dictionary:
    named["dictionary"] = config.dictionary
  return named


def align(config: AlignStageConfig, *, corpus: Corpus, **paths: str) -> Links:
  """Links the training pairs, and compares with the corpus's own links.

  `paths` are those of the config: inputs, so that their content counts.
  """
  del paths
  given = corpus.train_links
  if config.model == "given":
    if given is None:
      raise InputError(
        "config key 'align.model' is 'given', but the corpus has no links"
      )
    return Links(links=given)
  source, _ = vocabulary.intern(corpus.train_source)
  target, _ = vocabulary.intern(corpus.train_target)
  # One device of this process: sums over more would round in other ways.
  mesh = Mesh(np.array(jax.local_devices()[:1]), (parallel.DATA,))
  if config.model == "itg":
    return _align_itg(config, corpus, mesh)
  if config.model == "neural" and config.teacher == "itg":
    taught = _align_itg(config, corpus, mesh)
    return _align_neural(
      config, corpus, (source, target), links_lib.parse_links(taught.links)
    )
  name = config.teacher if config.model == "neural" else config.model
  settings = named_aligners.default_config(name, iterations=config.iterations)
  passes = named_aligners.total_passes(settings)
  with progress.steps(label=f"align ({name})", total=passes) as advance:
    alignment = em.align(
      source, target, settings, mesh=mesh, report=lambda news: advance(1)
    )
  joined = _symmetrized(config, corpus, alignment.links)
  if config.model == "neural":
    return _align_neural(config, corpus, (source, target), joined)
  metrics: dict[str, Any] = {
    "perplexity": [
      round(news.perplexity["forward"], 4) for news in alignment.history
    ]
  }
  metrics |= _scores(joined, given)
  return Links(links=links_lib.format_links(joined), metrics=metrics)


def _scores(links: Ragged, given: list[str] | None) -> dict[str, float]:
  """Scores against the corpus's own links, if it has any."""
  if given is None:
    return {}
  scores = link_scores.score_links(links, links_lib.parse_links(given))
  return {
    "precision": round(scores.precision, 4),
    "recall": round(scores.recall, 4),
    "aer": round(scores.aer, 4),
  }


def _symmetrized(
  config: AlignStageConfig, corpus: Corpus, directions: dict[str, Ragged]
) -> Ragged:
  """Combines the two directions."""
  if config.symmetrize not in tree_symmetrize.METHODS:
    return symmetrize.symmetrize(
      directions["forward"], directions["backward"], method=config.symmetrize
    )
  parsed = None
  if config.symmetrize != "idg":
    if corpus.train_trees is None:
      raise InputError(
        f"config key 'align.symmetrize' is '{config.symmetrize}', but the"
        " corpus has no trees"
      )
    parsed = trees.parse_trees(corpus.train_trees)
  return tree_symmetrize.symmetrize(
    directions["forward"],
    directions["backward"],
    method=config.symmetrize,
    trees=parsed,
    side="source",
  )


def _align_itg(config: AlignStageConfig, corpus: Corpus, mesh: Mesh) -> Links:
  """Trains an ITG aligner on hand-aligned pairs, and links with it."""
  entries = []
  if config.dictionary:
    entries = word_pieces.read_dictionary(config.dictionary)
  alignment = supervised_alignment.align_itg(
    corpus.train_source,
    corpus.train_target,
    supervised_alignment.read_gold(config.gold),
    _itg_config(config),
    dictionary=entries,
    iterations=config.iterations,
    rounds=config.emd_rounds,
    decoder=config.decoder,
    threshold=config.threshold or None,
    mesh=mesh,
    runner=Runner(workers=2),
    report=progress.say,
  )
  metrics = {
    "emd": alignment.history,
    **_scores(alignment.links, corpus.train_links),
  }
  return Links(links=links_lib.format_links(alignment.links), metrics=metrics)


def _align_neural(
  config: AlignStageConfig,
  corpus: Corpus,
  sides: tuple[Ragged, Ragged],
  teacher: Ragged,
) -> Links:
  """Trains a neural aligner on a teacher's links, and links with it."""
  alignment = supervised_alignment.align_neural(
    *sides,
    teacher,
    _neural_config(config),
    symmetrization=config.symmetrize,
    report=progress.say,
  )
  return Links(
    links=links_lib.format_links(alignment),
    metrics=_scores(alignment, corpus.train_links),
  )
