"""Our own decoder as the loop's: k-best lists of the forests it searches.

What does not depend on weights is made once: the sentences, the places where
source patterns match, the language model on the device. A round sets weights
and searches; nothing is compiled again.

Sparse features are tuned with the dense ones:

rule, count, shape, pairs, edges   `rule_templates`: in the search, too
bins                               binned probabilities: in the search, too
unigrams, bigrams, trigrams        of the target: they only re-rank a list,
                                   since a rule does not know its
                                   neighbours' words
all-pairs                          source and target word of a sentence pair,
                                   linked or not; re-ranks lists
rule-bigrams                       a rule in a site of another; re-ranks lists
frequent                           the most frequent word pairs, n-grams and
                                   triggers (`features.frequent_events`): in a
                                   second pass over phrase lattices, which
                                   makes the lists
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxmt.decode import (
  candidate_lists,
  decoding,
  nbest,
  translation_forest,
)
from jaxmt.decode import model as models
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.decode.chart import chart_layout
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.decoding import AnyResult
from jaxmt.decode.model import Model, Source, Units
from jaxmt.decode.phrase import lattice_search
from jaxmt.decode.phrase.lattice_search import LatticeOptions
from jaxmt.decode.portable_forest import SpelledForest
from jaxmt.errors import InputError
from jaxmt.features import (
  frequent_events,
  maxent_reordering,
  rule_templates,
  sparse,
  string_templates,
)
from jaxmt.features.frequent_events import EventTable
from jaxmt.features.rule_templates import TemplateConfig
from jaxmt.features.sparse import SparseRows
from jaxmt.features.string_templates import RULE_BIGRAMS
from jaxmt.grammar.extract import static_features
from jaxmt.hypergraph import DerivationLists, Forest
from jaxmt.text.ragged import Ragged
from jaxmt.tune import list_sources
from jaxmt.tune.forests import forest_pool
from jaxmt.tune.list_sources import Listed, Sources
from jaxmt.tune.loop import Decode

# (model, part of a decoded text) -> lists; see `ListOptions`.
StageLists = Callable[[Model, AnyResult], CandidateLists]


def split_templates(
  names: Sequence[str],
) -> tuple[TemplateConfig, tuple[str, ...]]:
  """Returns the templates of the search, and those that only re-rank lists.

  Raises:
    InputError: for a template that does not exist.
  """
  of_lists = tuple(name for name in names if name in string_templates.NAMES)
  others = (*string_templates.NAMES, frequent_events.NAME)
  rest = [name for name in names if name not in others]
  return rule_templates.parse(rest), of_lists


def kbest_rows(
  model: Model, source: Source, forest: Forest, lists: DerivationLists
) -> tuple[SparseRows, tuple[str, ...]]:
  """Returns the sparse features of the D derivations of a k-best list.

  Raises:
    ValueError: if the model has no templates.
  """
  if model.templates is None:
    raise ValueError("the model has no sparse features")
  edges, place = np.unique(lists.edges.flat, return_inverse=True)
  text = chart_layout.make_text(model.templates, source)
  rows, names = rule_templates.extract(
    model.templates, text, translation_forest.applications(forest, edges)
  )
  members = Ragged(flat=place, offsets=lists.edges.offsets)
  return rule_templates.sum_rows(rows, members), names


def rerank(
  lists: CandidateLists, weights: Mapping[str, float]
) -> CandidateLists:
  """Returns each sentence's candidates by falling score, ties as they were."""
  vector = np.array([weights.get(name, 0.0) for name in lists.names])
  score = sparse.dot(lists.features, vector)
  return candidate_lists.take(lists, np.lexsort((-score, lists.sentence)))


def start_weights(
  names: Sequence[str], units: Units | None = None
) -> dict[str, float]:
  """Returns documented weights to start tuning from.

  Language model 1, word penalty -0.5 for each of its units of a word (so that
  words are rewarded, against the language model's taste for short output), 0.1
  for a label in its place and -0.1 for another, 0.3 for distortion and
  orientations of phrases, 0.5 for ln p of the order of blocks in a bracketing
  grammar, for static features what their records say, 0 for what is not known.

  Args:
    names: `Model.feature_names`.
    units: names of the features that are not columns of the table.
  """
  units = units or models.DIALECTS["jaxmt"]
  known = {
    units.lm: 1.0 / units.lm_scale,
    units.unknown: -1.0,
    units.words: 0.5 / units.per_word,
    units.match: 0.1,
    maxent_reordering.NAME: 0.5,
    units.mismatch: -0.1,
    units.glue: -0.1,
    units.pass_through: -5.0,
    units.distortion: 0.3,
    **dict.fromkeys(units.reordering, 0.3),
    **static_features.start_weights(),
  }
  return {name: known.get(name, 0.0) for name in names}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListOptions:
  """Which lists the decoder of a tuning loop gives.

  Attributes:
    size: k.
    unique: whether all strings of a list differ.
    templates: sparse features, see `split_templates`; the lists are ranked
      with all of them.
    density: edges for each source word of the forests beside the lists
      (0: all edges); None gives no forests.
    sources: where candidates come from.
    stages: N, lists of partial translations for each sentence, numbered after
      all sentences, see `loop.Stages`.
    stage_lists: gives those of a part; if there are stages.
    events: names of frequent events; lists are then those of a second pass.
    lattice: how that pass prunes.
  """

  size: int = 100
  unique: bool = True
  templates: Sequence[str] = ()
  density: float | None = None
  sources: Sources = dataclasses.field(default_factory=Sources)
  stages: int = 0
  stage_lists: StageLists | None = None
  events: Sequence[str] = ()
  lattice: LatticeOptions = dataclasses.field(default_factory=LatticeOptions)


def check_options(options: ListOptions) -> None:
  """Raises InputError if forests are asked for with what they cannot have.

  They have no sparse features, stages or further candidates. So it does if a
  source of candidates does not exist.
  """
  list_sources.check(options.sources.names)
  if options.density is None:
    return
  if options.stages or len(options.sources.names) > 1:
    raise InputError("forests go with neither stages nor further candidates")
  if options.templates:
    raise InputError("forests have dense features only: leave out templates")
  if options.events:
    raise InputError("forests have dense features only: no frequent events")


def make_decode(
  model: Model,
  lines: Sequence[str],
  options: ListOptions | None = None,
  *,
  config: DecodeConfig,
  spans: Ragged | None = None,
  mesh: Mesh | None = None,
) -> Decode:
  """Returns a function from weights and sentence numbers to k-best lists.

  Args:
    model: rules and language model; its weights do not matter.
    lines: all sentences.
    options: which lists; None: the 100 best strings.
    config: how to decode.
    spans: constituents of all sentences, for tree-to-string rules.
    mesh: devices to split batches over, or None for one.

  Returns:
    See `loop.Decode`. Equal derivations have equal features whatever the
    weights they were found with, so pools recognise them.

  Raises:
    InputError: see `check_options`.
  """
  options = options or ListOptions()
  check_options(options)
  events = tuple(options.events)
  if events:
    lattice_search.check_model(model)
  rule_features, of_lists = split_templates(options.templates)
  model = models.with_templates(model, rule_features)
  searching = dataclasses.replace(config.search, forest=True)
  config = dataclasses.replace(config, search=searching)
  decode, forest = decoding.search_of(model)
  source = models.make_source(model, lines, spans=spans)
  return KBestDecoder(
    decode=decode,
    forest=forest,
    model=model,
    source=source,
    prepared=decoding.prepared(model, source, config=config, mesh=mesh),
    parameters=decoding.search_parameters(
      model, config=config.search, mesh=mesh
    ),
    config=config,
    options=options,
    of_lists=of_lists,
    lines=tuple(lines),
    mesh=mesh,
    events=frequent_events.make_table(events) if events else None,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class KBestDecoder:
  """The decoder of a tuning loop; see `make_decode` and `loop.Decode`.

  Attributes:
    decode: decodes sentences, part by part (`decoding.search_of`).
    forest: the forest of such a part.
    model: rules, language model and sparse features.
    source: all sentences.
    prepared: what decoding all of them takes beside weights.
    parameters: of the stateful features (`decoding.search_parameters`).
    config: how to decode.
    options: which lists.
    of_lists: templates that re-rank lists.
    lines: the sentences as text.
    mesh: devices, or None for one.
    events: frequent events, or None for a single pass.
  """

  decode: Callable[..., Any]
  forest: Callable[..., Forest]
  model: Model
  source: Source
  prepared: Mapping[str, Any]
  parameters: tuple[Any, ...] | None
  config: DecodeConfig
  options: ListOptions
  of_lists: tuple[str, ...]
  lines: tuple[str, ...]
  mesh: Mesh | None
  events: EventTable | None

  def __call__(
    self, weights: Mapping[str, float], numbers: np.ndarray
  ) -> CandidateLists:
    """Returns lists of the sentences with these numbers, in this order."""
    model = models.with_weights(self.model, weights)
    if np.array_equal(numbers, np.arange(len(self.source))):
      chosen, prepared = self.source, self.prepared
    else:
      chosen, prepared = models.select_source(self.source, numbers), {}
    lists, more, staged = ([_no_lists(model)] for _ in range(3))
    forests = []
    for batch in self.decode(
      model,
      chosen,
      config=self.config,
      parameters=self.parameters,
      mesh=self.mesh,
      read=functools.partial(self._read, model, numbers),
      **prepared,
    ):
      for best, others, of_stages, spelled in batch:
        lists.append(best)
        more += others
        staged += of_stages
        if spelled is not None:
          forests.append(spelled)
    every = self._joined(lists, weights, numbers)
    if len(more) > 1:
      # The decoder's own translations stay first, whatever others score.
      others = self._joined(more, weights, numbers)
      every = candidate_lists.concatenate([every, others])
      every = _distinct(every) if self.options.unique else every
    if len(staged) > 1:
      every = candidate_lists.concatenate([every, *staged])
    return _with_forests(every, forests) if forests else every

  def _read(self, model: Model, numbers: np.ndarray, part: AnyResult):
    """What is read off a part, in the thread that searched it.

    Returns:
      `(lists, further lists, lists of its stages, forests or None)`.
    """
    forest = self.forest(model, part)
    size = (
      self.options.size
      if list_sources.KBEST in self.options.sources.names
      else 1
    )
    derived = self._kbest(model, part.source, forest, size)
    best = Listed(
      source=part.source,
      forest=forest,
      derived=derived,
      owner=np.arange(len(part.rows)),
    )
    further: list[Listed] = []
    if set(self.options.sources.names) != {list_sources.KBEST}:
      further = list_sources.further(
        self.options.sources,
        model,
        part.source,
        forest,
        np.asarray(numbers)[part.rows],
        size=self.options.size,
        config=self.config,
      )
    staged, spelled = [], None
    if self.options.stage_lists is not None:
      staged.append(self._staged(model, part, len(numbers)))
    if self.options.density is not None:
      spelled = _spelled(model, part, forest, self.options.density)
    lists = self._listed(model, best, part.rows)
    others = [self._listed(model, one, part.rows) for one in further]
    return lists, others, staged, spelled

  def _kbest(
    self, model: Model, source: Source, forest: Forest, size: int
  ) -> DerivationLists:
    """The best derivations; with events, those of the second pass."""
    if self.events is None:
      return translation_forest.kbest(
        model, source, forest, size=size, unique=self.options.unique
      )
    return lattice_search.kbest(
      model,
      source,
      forest,
      self.events,
      size=size,
      unique=self.options.unique,
      options=self.options.lattice,
    )

  def _listed(
    self, model: Model, listed: Listed, rows: np.ndarray
  ) -> CandidateLists:
    """Derivations as lists with the features of the model.

    Args:
      model: the model.
      listed: the derivations.
      rows: what the sentences of the part are called, int `[B]`.
    """
    source, forest, derived = listed.source, listed.forest, listed.derived
    values = translation_forest.list_features(model, source, forest, derived)
    # `derived.sentence` counts the sentences of the forest.
    given = rows[listed.owner[derived.sentence]]
    lines = translation_forest.strings(model, source, derived)
    names = model.feature_names
    lists = candidate_lists.from_dense(given, lines, values, names)
    more = []
    if model.templates is not None:
      more.append(kbest_rows(model, source, forest, derived))
    if self.events is not None:
      more.append(
        lattice_search.event_rows(model, source, forest, derived, self.events)
      )
    if RULE_BIGRAMS in self.of_lists:
      nodes = translation_forest.derivations(forest, derived)
      more.append(nbest.bigram_rows(model, source, nodes))
    return candidate_lists.with_features(lists, more) if more else lists

  def _staged(
    self, model: Model, part: AnyResult, count: int
  ) -> CandidateLists:
    """The lists of a part's stages, numbered after `count` sentences."""
    if self.options.stage_lists is None:
      return _no_lists(model)
    lists = self.options.stage_lists(model, part)
    row, stage = np.divmod(lists.sentence, self.options.stages)
    order = part.rows[row] * self.options.stages + stage
    by_number = np.argsort(order, kind="stable")
    lists = candidate_lists.take(lists, by_number)
    return dataclasses.replace(
      lists,
      sentence=count + order[by_number],
      sentences=count * (1 + self.options.stages),
    )

  def _joined(
    self,
    lists: Sequence[CandidateLists],
    weights: Mapping[str, float],
    numbers: np.ndarray,
  ) -> CandidateLists:
    """All lists by sentence, ranked with features of whole candidates."""
    every = candidate_lists.concatenate(
      [dataclasses.replace(one, sentences=len(numbers)) for one in lists]
    )
    if not self.of_lists:
      return every
    more = string_templates.text_rows(
      self.of_lists,
      every.lines,
      source_lines=[self.lines[number] for number in numbers.tolist()],
      sentence=every.sentence,
    )
    return rerank(candidate_lists.with_features(every, more), weights)


def _distinct(lists: CandidateLists) -> CandidateLists:
  """The first candidate of each string of a sentence."""
  seen: set[tuple[int, str]] = set()
  rows = []
  for row, key in enumerate(
    zip(lists.sentence.tolist(), lists.lines, strict=True)
  ):
    if key not in seen:
      seen.add(key)
      rows.append(row)
  return candidate_lists.take(lists, np.array(rows, np.int64))


def _no_lists(model: Model) -> CandidateLists:
  """No candidates, with the names of the features."""
  return candidate_lists.from_rows(
    np.zeros(0, np.int64), [], sparse.empty(0), model.feature_names
  )


def _with_forests(
  lists: CandidateLists, forests: Sequence[SpelledForest]
) -> CandidateLists:
  """The lists with the forests that they are of."""
  listed = frozenset(zip(lists.sentence.tolist(), lists.lines, strict=True))
  joined = dataclasses.replace(forest_pool.join(forests), listed=listed)
  return dataclasses.replace(lists, forests=joined)


def _spelled(
  model: Model, part: AnyResult, forest: Forest, density: float
) -> SpelledForest:
  """The forests of a part, small enough to keep."""
  small = forest_pool.pruned(model, part.source, forest, density=density)
  return dataclasses.replace(small, sentence=part.rows)
