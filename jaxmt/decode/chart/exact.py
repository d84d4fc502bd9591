"""Exact search: every hypothesis of every cell, nothing pruned.

Hypotheses are still merged when their states are equal, which loses nothing.
The work grows with the product of the children's states, so this is for small
inputs: to measure what beam search misses, and to test it. A compiled kernel
searches with the language model and labels. Models with further stateful
features take the general path, which is slower. The result has the same form
as that of `search`.
"""

import dataclasses
import itertools

import jax
import numpy as np

from jaxmt.decode.chart import (
  chart_layout,
  decoder,
  exact_kernel,
  feature_states,
)
from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE
from jaxmt.decode.chart.search import Beams
from jaxmt.decode.model import (
  Model,
  Source,
  device_parameters,
  ranked_rules,
  rescore_source,
  rule_column,
)
from jaxmt.errors import InputError
from jaxmt.grammar.match import matching
from jaxmt.grammar.match.matching import Matches
from jaxmt.lm.tables import Tables
from jaxmt.text.ragged import row_offsets


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExactResult:
  """Exact beams; cell c of `matches` is row c + 1 of the beams.

  Attributes:
    beams: all hypotheses, K being the most any cell has.
    counts: hypotheses of each cell, int64 `[C]`.
    complete: whether nothing was cut off, per sentence, bool `[B]`.
  """

  beams: Beams
  counts: np.ndarray
  complete: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Found:
  """H hypotheses, cell by cell, best first.

  Attributes:
    score: float32 `[H]`.
    states: of each feature, int32 `[H, S]`.
    back: application and child ranks, int32 `[H, 1 + A]`.
    offsets: hypotheses of cell c are `offsets[c] : offsets[c + 1]`.
    complete: bool `[B]`.
  """

  score: np.ndarray
  states: tuple[np.ndarray, ...]
  back: np.ndarray
  offsets: np.ndarray
  complete: np.ndarray


def without_limits(model: Model) -> Model:
  """Returns the model with all target sides of every source pattern."""
  size = max(len(model.table), 1)
  return dataclasses.replace(
    model,
    limits=dataclasses.replace(model.limits, targets=size, applications=size),
    ranked=ranked_rules(model.trie, model.columns, limit=size),
  )


def search_exactly(
  model: Model, source: Source, *, limit: int
) -> tuple[Matches, ExactResult, np.ndarray]:
  """Searches every derivation of the sentences.

  Those are the derivations of the rules in `Model.ranked`, which holds only
  some target sides of each source pattern: see `without_limits`.

  Args:
    model: the model.
    source: N sentences.
    limit: candidates a sentence may take.

  Returns:
    The rule applications, the result, and each sentence's root cell among
    `result.beams`, int `[N]`; cell 0 is that of no derivation.

  Raises:
    InputError: if the model has sparse features beyond those of rules alone.
  """
  if chart_layout.need_sentences(model):
    raise InputError(
      "exact search cannot use Word-Edges or other features of sentences"
    )
  source = rescore_source(model, source)
  limits = dataclasses.replace(
    model.limits, applications=max(len(model.table), 1)
  )
  matches = matching.match(
    source.ids,
    table=model.table,
    trie=model.trie,
    ranked=model.ranked,
    scores=np.concatenate([model.columns.score, source.columns.score]),
    copies=source.copies,
    config=limits,
    spans=source.spans,
    width=model.arity,
  )
  result = exact_search(model, source, matches, limit=limit)
  return matches, result, np.where(matches.goal >= 0, matches.goal + 1, 0)


def exact_search(
  model: Model,
  source: Source,
  matches: Matches,
  *,
  limit: int = 1 << 22,
  general: bool = False,
) -> ExactResult:
  """Finds all hypotheses of all cells.

  Args:
    model: rules, features and weights.
    source: some sentences.
    matches: their applications (match them without limits).
    limit: candidates a sentence may have; beyond, the rest of its cells stay
      empty and it is not `complete`.
    general: whether to take the general path where the kernel would do.
  """
  source = rescore_source(model, source)
  use = _by_features if general or model.extra else _by_kernel
  beams = use(model, source, matches, limit)
  counts = np.diff(beams.offsets)
  width = max(int(counts.max(initial=0)), 1)
  cells = len(counts) + 1
  row = np.repeat(np.arange(1, cells), counts)
  column = np.arange(beams.offsets[-1]) - np.repeat(beams.offsets[:-1], counts)
  spread = lambda part, fill: _spread(part, row, column, cells, width, fill)
  scores = spread(beams.score, NONE)
  scores[0, 0] = 0.0
  return ExactResult(
    beams=Beams(
      score=scores,
      order=scores,
      states=tuple(spread(state, 0) for state in beams.states),
      back=spread(beams.back, 0),
    ),
    counts=counts,
    complete=beams.complete,
  )


def _spread(part, row, column, cells, width, fill):
  out = np.full((cells, width, *part.shape[1:]), fill, part.dtype)
  out[row, column] = part
  return out


def _by_kernel(model, source, matches, limit) -> _Found:
  """Searches with the compiled kernel: language model and labels."""
  used, local = np.unique(matches.rule, return_inverse=True)
  take = lambda pick: np.ascontiguousarray(
    rule_column(model, source, used, pick)
  )
  lm: Tables = model.lm
  first = model.features[0]
  match, mismatch = map(np.float32, model.label_weights)
  score, record, back, offsets, complete = exact_kernel.search(
    (
      matches.offsets,
      local.reshape(-1).astype(np.int32),
      matches.child,
      matches.sentence,
    ),
    (
      take(lambda c: c.slots),
      take(lambda c: c.inputs[0].arrays),
      take(lambda c: c.score),
      take(lambda c: c.label),
      take(lambda c: c.site),
    ),
    lm.columns,
    first.columns - 3,
    (float(np.float32(model.lm_weight)), float(match), float(mismatch)),
    limit,
    len(matches.goal),
  )
  return _Found(
    score=score,
    states=(record[:, : first.columns], record[:, first.columns :]),
    back=back,
    offsets=offsets,
    complete=complete,
  )


def _by_features(model, source, matches, limit) -> _Found:
  """Searches with any stateful features, cell by cell on the host."""
  pick = lambda read: rule_column(model, source, matches.rule, read)
  rules = (
    pick(lambda c: c.slots),
    pick(lambda c: tuple(one.arrays for one in c.inputs)),
    pick(lambda c: c.score),
  )
  parameters = device_parameters(model)
  arity = matches.child.shape[1]
  scores = [np.zeros(0, np.float32)]
  states = [[np.zeros((0, f.columns), np.int32) for f in model.features]]
  backs = [np.zeros((0, 1 + arity), np.int32)]
  complete = np.ones(len(matches.goal), bool)
  spent = np.zeros(len(matches.goal), np.int64)
  for cell in range(len(matches)):
    low, high = matches.offsets[cell : cell + 2]
    children = matches.child[low:high]
    # Blocks [0] are empty: cell c has block c + 1, and no child block 0.
    sizes = np.array(
      [max(len(one), 1 - place) for place, one in enumerate(scores)]
    )
    ways, sentence = [], matches.sentence[cell]
    for number, below in enumerate(children):
      counts = np.where(below >= 0, sizes[below + 1], 1)
      if spent[sentence] + counts.prod() > limit:
        complete[sentence] = False
        continue
      spent[sentence] += counts.prod()
      ranks = itertools.product(*map(range, counts[::-1]))
      ways += [(number, *way[::-1]) for way in ranks]
    back = np.array(ways, np.int32).reshape(-1, 1 + arity)
    cell_beams = _cell(
      model, parameters, rules, low, children, back, scores, states
    )
    scores.append(cell_beams[0])
    states.append(cell_beams[1])
    backs.append(cell_beams[2])
  lengths = [len(one) for one in scores[1:]]
  return _Found(
    score=np.concatenate(scores),
    states=tuple(map(np.concatenate, zip(*states, strict=True))),
    back=np.concatenate(backs),
    offsets=row_offsets(lengths),
    complete=complete,
  )


def _cell(model, parameters, rules, low, children, back, scores, states):
  """The hypotheses of one cell: scores, states and back pointers.

  Args:
    model: features and weights.
    parameters: of the features, on the device.
    rules: slots, inputs and static scores of all applications.
    low: the cell's first application.
    children: child cells of its applications, -1 for none.
    back: the N candidates: application and child ranks, int32 `[N, 1 + A]`.
    scores: scores of the hypotheses of each block, cell c having block c + 1.
    states: their states.
  """
  slots, inputs, static = rules
  if not len(back):
    return scores[0], states[0], back
  application = low + back[:, 0]
  below = children[back[:, 0]]
  total = static[application].astype(np.float64)
  tails = [
    np.zeros((*below.shape, feature.columns), np.int32)
    for feature in model.features
  ]
  # Gather the children's scores and states.
  for row, part in zip(*np.nonzero(below >= 0), strict=True):
    block, rank = below[row, part] + 1, back[row, 1 + part]
    total[row] += scores[block][rank]
    for tail, state in zip(tails, states[block], strict=True):
      tail[row, part] = state[rank]
  new_states, values = feature_states.apply_rules(
    model.features,
    parameters,
    jax.tree.map(lambda leaf: leaf[application], inputs),
    slots[application],
    tuple(tails),
  )
  weights = decoder.search_weights(model).features
  for feature_values, weigh in zip(values, weights, strict=True):
    for value, weight in zip(feature_values, weigh or (), strict=False):
      total += np.float64(weight) * value
  # The best candidate of each state, best first.
  total = total.astype(np.float32)
  order = np.argsort(-total, kind="stable")
  keys = np.concatenate(
    [s[:, f.key] for f, s in zip(model.features, new_states, strict=True)],
    axis=1,
  )
  _, first = np.unique(keys[order], axis=0, return_index=True)
  best = order[np.sort(first)]
  return total[best], [state[best] for state in new_states], back[best]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchErrors:
  """How far a search fell short of the exact one.

  Attributes:
    sentences: sentences compared (those the exact search completed).
    errors: share of them whose best score was missed.
    mean: mean shortfall over all of them.
    worst: largest shortfall.
  """

  sentences: int
  errors: float
  mean: float
  worst: float


def search_errors(
  scores: np.ndarray,
  exact: np.ndarray,
  complete: np.ndarray,
  *,
  tolerance: float = 1e-3,
) -> SearchErrors:
  """Compares model scores `[B]` with the exact ones `[B]`."""
  use = np.asarray(complete) & (np.asarray(exact) > POSSIBLE)
  short = np.maximum(np.asarray(exact)[use] - np.asarray(scores)[use], 0.0)
  missed = short > tolerance
  return SearchErrors(
    sentences=int(use.sum()),
    errors=float(missed.mean()) if use.any() else 0.0,
    mean=float(short.mean()) if use.any() else 0.0,
    worst=float(short.max(initial=0.0)),
  )
