"""Our own decoder as the loop's: k-best lists of the forests it searches.

Rules, source side matching structures and the language model on the device
are made once; a round only sets weights, so that nothing is compiled again.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jax.sharding import Mesh

from jaxmt.decode import candidate_lists, derivation, kbest
from jaxmt.decode import model as models
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.decode.chart import beam_forest, decoder
from jaxmt.decode.chart.decoder import DecodeConfig, Result
from jaxmt.decode.model import Model, Units
from jaxmt.decode.portable_forest import SpelledForest
from jaxmt.errors import InputError
from jaxmt.features import sparse, string_templates
from jaxmt.grammar.extract import static_features
from jaxmt.hypergraph import Forest
from jaxmt.text.ragged import Ragged
from jaxmt.tune import sparse_decoding
from jaxmt.tune.forests import forest_pool
from jaxmt.tune.loop import Decode


def start_weights(
  names: Sequence[str], units: Units | None = None
) -> dict[str, float]:
  """Returns documented weights to start tuning from.

  Language model 1, word penalty -0.5 for each of its units of a word (so that
  words are rewarded, against the language model's taste for short output), 0.1
  for a label in its place and -0.1 for another, for static features what their
  records say, 0 for what is not known.

  Args:
    names: `Model.feature_names`.
    units: names of the features that are not columns of the table.
  """
  units = units or models.DIALECTS["jaxmt"]
  own = {
    units.lm: 1.0 / units.lm_scale,
    units.unknown: -1.0,
    units.words: 0.5 / units.per_word,
    units.match: 0.1,
    units.mismatch: -0.1,
    units.glue: -0.1,
    units.pass_through: -5.0,
    **static_features.start_weights(),
  }
  return {name: own.get(name, 0.0) for name in names}


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
    templates: sparse features, see `jaxmt.tune.sparse_decoding`; the lists are
      ranked with all of them.
    mesh: devices to split batches over, or None for one.
    density: also give forests with so many edges for each source word (0: with
      all), as forest-mert needs them; None gives none.

  Returns:
    See `loop.Decode`. Equal derivations have equal features whatever the
    weights they were found with, so pools recognise them.

  Raises:
    InputError: if forests are to have sparse features.
  """
  if density is not None and templates:
    raise InputError("forests have dense features only: leave out templates")
  rule_features, orders = sparse_decoding.split(templates)
  model = models.with_templates(model, rule_features)
  source = models.make_source(model, lines, spans=spans)
  parameters = models.device_parameters(model)
  searching = dataclasses.replace(config.search, forest=True)
  config = dataclasses.replace(config, search=searching)

  def decode(
    weights: Mapping[str, float], numbers: np.ndarray
  ) -> CandidateLists:
    now = models.with_weights(model, weights)
    chosen = models.select_source(source, numbers)
    parts, forests = [], []
    for batch in decoder.decode(
      now, chosen, config=config, parameters=parameters, mesh=mesh
    ):
      for part in batch:
        grown = beam_forest.extract(now, part)
        lists = _lists(now, part, grown, size=size, unique=unique)
        parts.append(dataclasses.replace(lists, sentences=len(numbers)))
        if density is not None:
          forests.append(_spelled(now, part, grown, density))
    nothing = candidate_lists.from_rows(
      np.zeros(0, np.int64),
      [],
      sparse.empty(0),
      model.feature_names,
      sentences=len(numbers),
    )
    found = candidate_lists.concatenate([nothing, *parts])
    if forests:
      joined = forest_pool.join(forests)
      listed = frozenset(zip(found.sentence.tolist(), found.lines, strict=True))
      joined = dataclasses.replace(joined, listed=listed)
      found = dataclasses.replace(found, forests=joined)
    if orders:
      grams = string_templates.ngram_rows(found.lines, orders)
      found = candidate_lists.with_features(found, grams)
      found = sparse_decoding.rerank(found, weights)
    return found

  return decode


def _spelled(
  model: Model, part: Result, grown: Forest, density: float
) -> SpelledForest:
  """The forests of a part, small enough to keep."""
  made = forest_pool.pruned(model, part.source, grown, density=density)
  return dataclasses.replace(made, sentence=part.rows)


def _lists(
  model: Model, part: Result, grown: Forest, *, size: int, unique: bool
) -> CandidateLists:
  """The lists of a part with the features of the model.

  Sentences are numbered as the decoder was given them.
  """
  found = kbest.best(model, part.source, grown, size=size, unique=unique)
  # Not sums over edges: what an edge says of the language model depends, in
  # its last digits, on how the search came by it.
  values = derivation.features(
    model, part.source, kbest.derivations(grown, found), found.words
  )
  # `found.sentence` counts the sentences of the part.
  given = part.rows[found.sentence]
  lines = kbest.strings(model, part.source, found)
  lists = candidate_lists.from_dense(given, lines, values, model.feature_names)
  if model.templates is None:
    return lists
  more = sparse_decoding.kbest_rows(model, part.source, grown, found)
  return candidate_lists.with_features(lists, [more])
