"""Our own decoder as the loop's: k-best lists of the forests it searches.

Rules, source side matching structures and the language model on the device
are made once; a round only sets weights, so that nothing is compiled again.

Sparse features are tuned with the dense ones:

rule, count, shape, pairs, edges   `rule_templates`: in the search, too
unigrams, bigrams, trigrams        of the target: they only re-rank a list,
                                   since a rule does not know its
                                   neighbours' words
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxmt.decode import (
  candidate_lists,
  decoding,
  derivation,
  translation_forest,
)
from jaxmt.decode import model as models
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.decode.chart import chart_layout
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.decoding import AnyResult
from jaxmt.decode.model import Model, Source, Units
from jaxmt.decode.portable_forest import SpelledForest
from jaxmt.errors import InputError
from jaxmt.features import (
  maxent_reordering,
  rule_templates,
  sparse,
  string_templates,
)
from jaxmt.features.rule_templates import TemplateConfig
from jaxmt.features.sparse import SparseRows
from jaxmt.features.string_templates import NGRAMS
from jaxmt.grammar.extract import static_features
from jaxmt.hypergraph import DerivationLists, Forest
from jaxmt.text.ragged import Ragged
from jaxmt.tune.forests import forest_pool
from jaxmt.tune.loop import Decode


def split_templates(
  names: Sequence[str],
) -> tuple[TemplateConfig, tuple[int, ...]]:
  """Returns the templates of the search and the orders of n-grams.

  Raises:
    InputError: for a template that does not exist.
  """
  orders = tuple(NGRAMS[name] for name in names if name in NGRAMS)
  rest = [name for name in names if name not in NGRAMS]
  return rule_templates.parse(rest), orders


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


def make_decode(
  model: Model,
  lines: Sequence[str],
  *,
  config: DecodeConfig,
  size: int = 100,
  unique: bool = True,
  spans: Ragged | None = None,
  templates: Sequence[str] = (),
  mesh: Mesh | None = None,
  density: float | None = None,
) -> Decode:
  """Returns a function from weights and sentence numbers to k-best lists.

  Args:
    model: rules and language model; its weights do not matter.
    lines: all sentences.
    config: how to decode.
    size: k.
    unique: whether all strings of a list differ.
    spans: constituents of all sentences, for tree-to-string rules.
    templates: sparse features, see `jaxmt.tune.kbest_decoder`; the lists are
      ranked with all of them.
    mesh: devices to split batches over, or None for one.
    density: edges for each source word of the forests beside the lists
      (0: all edges); None gives no forests.

  Returns:
    See `loop.Decode`. Equal derivations have equal features whatever the
    weights they were found with, so pools recognise them.

  Raises:
    InputError: if forests are to have sparse features.
  """
  if density is not None and templates:
    raise InputError("forests have dense features only: leave out templates")
  rule_features, orders = split_templates(templates)
  model = models.with_templates(model, rule_features)
  searching = dataclasses.replace(config.search, forest=True)
  decode, forest = decoding.search_of(model)
  return KBestDecoder(
    decode=decode,
    forest=forest,
    model=model,
    source=models.make_source(model, lines, spans=spans),
    parameters=models.device_parameters(model),
    config=dataclasses.replace(config, search=searching),
    size=size,
    unique=unique,
    orders=orders,
    mesh=mesh,
    density=density,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class KBestDecoder:
  """The decoder of a tuning loop; see `make_decode` and `loop.Decode`.

  Attributes:
    decode: decodes sentences, part by part (`decoding.search_of`).
    forest: the forest of such a part.
    model: rules, language model and sparse features.
    source: all sentences.
    parameters: of the stateful features, on the device.
    config: how to decode.
    size: k.
    unique: whether all strings of a list differ.
    orders: of target n-grams that re-rank lists.
    mesh: devices, or None for one.
    density: edges of forests for each source word; None: no forests.
  """

  decode: Callable[..., Any]
  forest: Callable[..., Forest]
  model: Model
  source: Source
  parameters: tuple[Any, ...]
  config: DecodeConfig
  size: int
  unique: bool
  orders: tuple[int, ...]
  mesh: Mesh | None
  density: float | None

  def __call__(
    self, weights: Mapping[str, float], numbers: np.ndarray
  ) -> CandidateLists:
    """Returns lists of the sentences with these numbers, in this order."""
    model = models.with_weights(self.model, weights)
    chosen = models.select_source(self.source, numbers)
    lists = [_no_lists(model)]
    forests = []
    for batch in self.decode(
      model,
      chosen,
      config=self.config,
      parameters=self.parameters,
      mesh=self.mesh,
    ):
      for part in batch:
        forest = self.forest(model, part)
        lists.append(
          _lists(model, part, forest, size=self.size, unique=self.unique)
        )
        if self.density is not None:
          forests.append(_spelled(model, part, forest, self.density))
    lists = [dataclasses.replace(o, sentences=len(numbers)) for o in lists]
    every = candidate_lists.concatenate(lists)
    if forests:
      every = _with_forests(every, forests)
    if self.orders:
      grams = string_templates.ngram_rows(every.lines, self.orders)
      every = candidate_lists.with_features(every, grams)
      every = rerank(every, weights)
    return every


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


def _lists(
  model: Model, part: AnyResult, grown: Forest, *, size: int, unique: bool
) -> CandidateLists:
  """The lists of a part with the features of the model.

  Sentences are numbered as the decoder was given them.
  """
  derived = translation_forest.kbest(
    model, part.source, grown, size=size, unique=unique
  )
  # Not sums over edges: what an edge says of the language model depends, in
  # its last digits, on how the search came by it.
  values = derivation.features(
    model,
    part.source,
    translation_forest.derivations(grown, derived),
    derived.words,
  )
  # `found.sentence` counts the sentences of the part.
  given = part.rows[derived.sentence]
  lines = translation_forest.strings(model, part.source, derived)
  lists = candidate_lists.from_dense(given, lines, values, model.feature_names)
  if model.templates is None:
    return lists
  more = kbest_rows(model, part.source, grown, derived)
  return candidate_lists.with_features(lists, [more])
