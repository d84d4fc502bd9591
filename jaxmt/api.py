"""The library in one page: load, decode, k-best lists, forcing, tuning, scores.

    model = jaxmt.load("runs/quickstart", system="primary")
    out = jaxmt.decode(model, lines, beam=30)
    lists = jaxmt.kbest(out, k=100, references=references)
    loss, weight = jaxmt.losses.risk(lists.scores, lists.costs, lists.mask)

Lines are tokenised, with spaces between words. References are lists of lines,
one list for each sentence. What follows from the model is not asked for: how
labels are scored, how scores change with weights, where batches are cut.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import (
  candidate_lists,
  decoding,
  derivation_text,
  loading,
  nbest,
  translation_forest,
)
from jaxmt.decode import model as models
from jaxmt.decode import translate as translate_lib
from jaxmt.decode import translator as translators
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.decode.dependency.phrase_trees import PhraseTree as PhraseTree
from jaxmt.decode.forced import forced as forced_lib
from jaxmt.decode.translator import Translator as Translator
from jaxmt.decode.translator import with_weights as with_weights
from jaxmt.experiment import (
  finished_run,
  learning_run,
  saved_systems,
  tree_systems,
)
from jaxmt.experiment.tree_systems import TreeSystem as TreeSystem
from jaxmt.features import frequent_events, string_templates
from jaxmt.hypergraph import forest as forest_lib
from jaxmt.hypergraph.forest import Forest
from jaxmt.metrics import encoded_text as metric_text
from jaxmt.metrics import evaluation, named_metrics
from jaxmt.results import Decoded as Decoded
from jaxmt.results import Derivation as Derivation
from jaxmt.results import Forced as Forced
from jaxmt.results import KBestLists as KBestLists
from jaxmt.runtime.runner import Runner
from jaxmt.text import kernels, raw_text
from jaxmt.train.shard_store import MemoryStore
from jaxmt.train.training import Resources
from jaxmt.train.violation import learn_config as learn_config
from jaxmt.train.violation.development import Development
from jaxmt.train.violation.learn_config import LearnConfig
from jaxmt.tune import kbest_decoder, loop, methods

References = Sequence[Sequence[str]]


def load(
  path: str, system: str | None = None, *, store: str | None = None
) -> Translator:
  """Returns a finished run, or an exported folder, as a translator.

  Args:
    path: workdir of launch/train.py, or folder of launch/export.py.
    system: which system of the run; its last one if None.
    store: the run's artefacts, if they are not in the workdir.

  Raises:
    InputError: if the run or system does not exist.
  """
  return saved_systems.load(path, system, store=store)


def load_files(
  grammar: str,
  lm: str,
  weights: str | Mapping[str, float],
  *,
  dialect: str = "jaxmt",
  span: int | None = None,
  targets: int | None = None,
  kind: str = "scfg",
  reordering: str = "",
  distortion: int | None = None,
  models: Sequence[str] = (),
) -> Translator:
  """Returns a translator of files.

  Args:
    grammar: rule table; in other dialects several files, comma-separated.
    lm: language model, ARPA.
    weights: a weights file or a moses.ini, or weights by feature name.
    dialect: format of the grammar and units of its features.
    span: longest Hiero span; that of a moses.ini, or else 10, if None.
    targets: target sides per source pattern; that of a moses.ini, or 20.
    kind: "scfg" for rules, "phrase" for a phrase table, "btg" for one in a
      bracketing grammar.
    reordering: for "phrase" the file of a reordering model in Moses' format,
      for "btg" a folder that has one, if not the grammar itself.
    distortion: distortion limit of phrases, -1 for none; that of a moses.ini,
      or else 6, if None.
    models: folders of `launch/embed.py` with trained features of rules in
      sentences.

  Raises:
    InputError: if a file is missing or malformed.
  """
  return loading.load_files(
    grammar,
    lm=lm,
    weights=weights,
    dialect=dialect,
    span=span,
    targets=targets,
    kind=kind,
    reordering=reordering,
    distortion=distortion,
    folders=models,
  )


def load_trees(path: str, *, store: str | None = None) -> TreeSystem:
  """Returns the system with trees over phrases of a finished run.

  Args:
    path: workdir of launch/train.py.
    store: the run's artefacts, if they are not in the workdir.

  Raises:
    InputError: if the run has none.
  """
  return tree_systems.read(path, store)


def translate_trees(
  system: TreeSystem,
  lines: Sequence[str],
  *,
  source_trees: Sequence[Sequence[int] | None] | None = None,
) -> list[PhraseTree | None]:
  """Returns the best translation with a tree over its phrases of each line.

  Args:
    system: from `load_trees`.
    lines: N tokenised sentences.
    source_trees: heads of the words of each, -1 is the root; None to parse
      them with the run's parser.

  Raises:
    InputError: for trees that do not fit, or that are missing.
  """
  return tree_systems.translate(
    system, _checked(lines), source_trees=source_trees
  )


def export(path: str, output: str, system: str | None = None) -> None:
  """Writes a system of a finished run as a folder of its own; see `load`."""
  saved_systems.export(finished_run.read(path), system, output)


def decode(
  model: Translator,
  lines: Sequence[str],
  *,
  trees: Sequence[str] | None = None,
  beam: int | None = None,
  pop: int | None = None,
  forests: bool = True,
) -> Decoded:
  """Translates lines.

  Args:
    model: from `load` or `load_files`.
    lines: N tokenised sentences.
    trees: bracketed trees of the sentences, for tree-to-string rules.
    beam: hypotheses per cell; the model's own if None.
    pop: candidates scored per cell; the model's own if None.
    forests: whether to keep forests, as `kbest` needs them.
  """
  model = dataclasses.replace(
    model, beam=beam or model.beam, pop=pop or model.pop
  )
  pieces = translate_lib.cut_lines(_checked(lines), longest=model.max_words)
  spans = _spans(model, lines, trees)
  lists = nbest.list_settings(model.weights)  # some weights choose from lists
  done: list[Any] = [None] * len(pieces.lines)
  grown, rows, chosen = [], [], []
  for part, read in translate_lib.stream(
    model.model,
    pieces,
    config=translators.decode_config(model, forest=forests or bool(lists)),
    spans=spans,
    derivations="nodes",
  ):
    for row, one in zip(part.rows.tolist(), read, strict=True):
      done[row] = one
    if not (forests or lists):
      continue
    rows.append(part.rows)
    grown.append(decoding.forest(model.model, part))
    if lists:
      chosen.append(
        nbest.lists(
          model.model,
          part.source,
          grown[-1],
          lists,
          rows=part.rows,
          text="nodes",
          shift=pieces.first[part.rows],
        )
      )
  whole = translate_lib.assemble(done, pieces, size=len(lines))
  if lists and chosen:
    ranked = nbest.collect(chosen, pieces, lists, model.weights)
    whole = nbest.best(ranked)
  return Decoded(
    model=model,
    pieces=pieces,
    source=translate_lib.piece_source(model.model, pieces, spans),
    translations=tuple(whole),
    kept=_in_order(grown, rows) if forests else None,
  )


def translate(
  model: Translator,
  texts: Sequence[str],
  *,
  source_language: str,
  target_language: str,
) -> list[str]:
  """Translates raw text, a sentence a string; see `jaxmt.text.raw_text`."""
  raw_text.check(
    source_language=source_language, target_language=target_language
  )
  table = model.model.table
  lines = raw_text.tokenize(
    _checked(texts), language=source_language, words=table.source_words.words
  )
  return raw_text.detokenize(
    decode(model, lines, forests=False).text,
    language=target_language,
    capitalize=raw_text.is_lower(table.target_words.words),
  )


def kbest(
  out: Decoded,
  k: int = 100,
  *,
  references: References | None = None,
  metric: str = "bleu",
  unique: bool = True,
  diversity: float = 0.0,
  weights: Mapping[str, float] | None = None,
  derivations: bool = False,
) -> KBestLists:
  """Returns the k best translations of every line.

  Args:
    out: from `decode`, with forests.
    k: translations per line; fewer if there are not as many.
    references: for each line its references; gives the lists costs.
    metric: of the costs, one of `jaxmt.metrics.named_metrics.METRICS`.
    unique: whether all strings of a line differ.
    diversity: penalty for each bigram shared with an earlier translation.
    weights: others than the model's: forests are rescored, not
      searched again.
    derivations: whether lists have derivations.

  Raises:
    ValueError: if there are no forests, or not N lists of references.
  """
  if references is not None and len(references) != len(out):
    raise ValueError(f"{len(references)} references for {len(out)} lines")
  model, scores = out.model, None
  if weights is not None:
    scores = rescore(out, weights)
    model = with_weights(model, weights)
  settings = nbest.ListSettings(
    size=k,
    unique=unique or diversity > 0,
    diversity=diversity,
    templates=string_templates.templates_of(model.weights),
    events=frequent_events.of_weights(model.weights),
  )
  flat = nbest.lists(
    model.model,
    out.source,
    out.forests,
    settings,
    rows=np.arange(len(out.source)),
    text="nodes" if derivations else "",
    shift=out.pieces.first,
    scores=scores,
  )
  flat = nbest.collect([flat], out.pieces, settings, model.weights)
  errors = None
  if references is not None:
    errors = _errors(flat, references, metric)
  sizes = np.bincount(flat.sentence, minlength=len(out))
  return KBestLists(
    flat=flat, sizes=sizes, errors=errors, weights=model.weights
  )


def rescore(out: Decoded, weights: Mapping[str, float]) -> np.ndarray:
  """Returns the scores of the forests' edges under other weights, `[E]`.

  Raises:
    ValueError: if the model has sparse features, or there are no forests.
  """
  model = out.model.model
  if model.templates is not None:
    raise ValueError("sparse features: decode again with other weights")
  values = translation_forest.edge_features(model, out.source, out.forests)
  return values @ candidate_lists.to_vector(weights, model.feature_names)


def force(
  model: Translator,
  lines: Sequence[str],
  references: Sequence[str],
  *,
  trees: Sequence[str] | None = None,
) -> Forced:
  """Finds all derivations of given translations; nothing is pruned.

  Args:
    model: from `load` or `load_files`.
    lines: N tokenised sentences.
    references: one translation of each.
    trees: bracketed trees of the sentences.

  Raises:
    ValueError: if the numbers of lines differ.
  """
  source = models.make_source(
    model.model, _checked(lines), spans=_spans(model, lines, trees)
  )
  config = forced_lib.ForceConfig(threads=kernels.available_threads())
  forced = forced_lib.force(
    model.model, source, _checked(references), config=config
  )
  best = translation_forest.kbest(model.model, source, forced.forest, size=1)
  roots = derivation_text.trees(
    model.model, source, translation_forest.derivations(forced.forest, best)
  )
  derivations: list[Derivation | None] = [None] * len(source)
  for row, root in zip(best.sentence.tolist(), roots, strict=True):
    derivations[row] = Derivation((root,) if root else ())
  return Forced(
    reached=forced.reached,
    reasons=forced.reason,
    derivations=derivations,
    forests=forced.forest,
  )


def tune(
  model: Translator,
  lines: Sequence[str],
  references: References,
  *,
  method: str = "kbmira",
  space: str = "kbest",
  metric: str = "bleu",
  rounds: int = 5,
  k: int = 100,
  trees: Sequence[str] | None = None,
  seed: int = 0,
  options: Mapping[str, str] | None = None,
) -> Translator:
  """Returns the model with weights tuned from its own ones on.

  Args:
    model: where to start.
    lines: N tokenised sentences.
    references: for each line its references.
    method: one of `jaxmt.tune.methods.names(space=space)`.
    space: what the method sees of a sentence: "kbest", its list of candidates,
      or "forest", all derivations of the decoder's forest.
    metric: what to optimise; on forests, methods other than MERT need BLEU.
    rounds: decodings followed by an optimisation.
    k: candidates per sentence and round.
    trees: bracketed trees of the sentences.
    seed: of everything random.
    options: settings of the method, as launch/tune.py --option takes them.

  Raises:
    InputError: for a method, space, metric or option that does not exist.
  """
  chosen = methods.configure(
    methods.find(method, space=space), {"metric": metric, **(options or {})}
  )
  decoder = kbest_decoder.make_decode(
    model.model,
    _checked(lines),
    kbest_decoder.ListOptions(
      size=k,
      density=methods.forest_density(chosen),
    ),
    config=translators.decode_config(model, forest=True),
    spans=_spans(model, lines, trees),
  )
  state = loop.run(
    decoder,
    references,
    chosen,
    loop.begin(model.weights),
    loop.LoopConfig(metric=metric, rounds=rounds),
    seed,
  )
  return with_weights(model, state.best_weights)


def learn(
  model: Translator,
  lines: Sequence[str],
  references: References,
  *,
  dev_lines: Sequence[str],
  dev_references: References,
  trees: Sequence[str] | None = None,
  dev_trees: Sequence[str] | None = None,
  settings: LearnConfig | None = None,
) -> Translator:
  """Returns the model with weights learned on a bitext, from its own ones on.

  Args:
    model: where to start; its rules must derive some of the references.
    lines: N tokenised sentences.
    references: for each line its references.
    dev_lines: sentences that judge each epoch.
    dev_references: their references.
    trees: bracketed trees of the sentences.
    dev_trees: bracketed trees of the sentences that judge.
    settings: the update and everything else, see `LearnConfig`.

  Raises:
    InputError: for settings that make no sense, or if nothing can be learned.
  """
  config = settings or LearnConfig()
  learn_config.check(config)
  task = learning_run.Task(
    model=model.model,
    lines=_checked(lines),
    references=references,
    start=model.model.weights,
    beam=model.beam,
    pop=model.pop,
    development=Development(
      model=model.model,
      lines=_checked(dev_lines),
      references=dev_references,
      config=translators.decode_config(model, forest=True),
      spans=_spans(model, dev_lines, dev_trees),
    ),
    spans=_spans(model, lines, trees),
  )
  store, threads = MemoryStore(), kernels.available_threads()
  setting, _ = learning_run.prepare(task, config, store=store, threads=threads)
  resources = Resources(runner=Runner(workers=threads))
  learned = learning_run.run(setting, config, store=store, resources=resources)
  sparse = dataclasses.replace(
    model, model=setting.model
  )  # has their templates
  return with_weights(sparse, learned.weights)


def evaluate(
  hypotheses: Sequence[str],
  references: References,
  *,
  metrics: Sequence[str] = ("bleu", "ter", "chrf"),
  **settings: Any,
) -> dict[str, float]:
  """Returns corpus scores by metric, as sacreBLEU prints them.

  Args:
    hypotheses: N lines.
    references: for each line its references.
    metrics: names in `jaxmt.metrics.evaluation.NAMES`.
    **settings: fields of `evaluation.Settings`; `tokenize="none"` for text
      that is tokenised.
  """
  chosen = evaluation.Settings(metrics=tuple(metrics), **settings)
  scored = evaluation.evaluate(references, [_checked(hypotheses)], chosen)
  return {
    name: one.corpus_score(0) for name, one in zip(metrics, scored, strict=True)
  }


def _checked(lines: Sequence[str]) -> list[str]:
  """A list of lines; one string is not taken for a list of letters."""
  if isinstance(lines, str):
    raise ValueError("expected a list of lines, not one string")
  return list(lines)


def _spans(model: Translator, lines: Sequence[str], trees):
  if trees is None:
    return None
  return loading.make_spans(model.model, trees, lines, binarize=model.binarize)


def _in_order(grown: list[Forest], rows: list[np.ndarray]) -> Forest:
  """The forests of all parts, by line."""
  order = np.argsort(np.concatenate(rows))
  return forest_lib.select(forest_lib.concatenate(grown), order)[0]


def _errors(
  flat: CandidateLists, references: References, metric: str
) -> np.ndarray:
  """The sentence-level error of each translation, float64 `[N]`."""
  kind = named_metrics.find("bleu+1" if metric == "bleu" else metric)
  known = metric_text.encode_references(references, unit=kind.unit)
  statistics = kind.statistics(
    kind.prepare(known.references), known.encode(flat.lines), flat.sentence
  )
  values = np.asarray(kind.sentence_score(statistics), np.float64)
  return 1.0 - values if kind.higher_is_better else values
