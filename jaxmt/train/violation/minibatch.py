"""The updates of a minibatch, computed in parallel (Zhao & Huang 2013).

A minibatch is cut into packs of sentences by their lengths and the settings
alone. Packs are decoded and compared with their forced forests independently:
threads, devices, processes and Ray give the same contributions, which are added
in one fixed order.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxmt import hypergraph
from jaxmt.decode import translation_forest
from jaxmt.decode.chart import decoder
from jaxmt.decode.chart.chart_layout import NONE, Chart
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.decode.decoding import AnyResult
from jaxmt.decode.model import Model, Source
from jaxmt.decode.phrase import phrase_decoder as phrase_decoder
from jaxmt.features import feature_keys
from jaxmt.grammar.match.matching import Matches
from jaxmt.metrics import bleu
from jaxmt.metrics import encoded_text as metric_text
from jaxmt.text import ragged
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged
from jaxmt.train.violation import differences, partial_derivations, updates
from jaxmt.train.violation.differences import Chosen
from jaxmt.train.violation.learn_config import LearnConfig
from jaxmt.train.violation.partial_derivations import Partials
from jaxmt.train.violation.updates import Choices

# Columns of `Contribution.stats`.
SPAN, CATEGORY, VIOLATION, UPDATED, VALID, RIGHT, REACHED = range(7)
TOWARDS, WORDS, SIZE = range(7, 10)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pack:
  """Sentences that are decoded together.

  Attributes:
    rows: numbers of the sentences in the text, int64 `[B]`.
    good: their forced forests; empty for local updates.
    references: for local updates, the references of each sentence.
    excluded: rules that each sentence must not use, B rising rows, or None.
  """

  rows: np.ndarray
  good: Partials
  references: tuple[tuple[str, ...], ...] = ()
  excluded: Ragged | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contribution:
  """What the B sentences of a pack add to the weights' update.

  Attributes:
    rows: numbers of the sentences, int64 `[B]`.
    dense: dense features of Φ(d+) - Φ(d-), 0 without an update, `[B, F]`.
    owner: which sentence of the pack each sparse feature is of, int64 `[N]`.
    keys: sparse features, uint64 `[N]`.
    values: float64 `[N]`.
    witness: see `differences.SparseSums`; with sentences of the text, int32
      `[N, 5]`.
    stats: of each sentence: source words of the group, its category, the
      violation, whether there is an update, whether it is valid, whether the
      best hypothesis is right, whether the reference can be reached, whether
      d+ is y-good, how many target words it has more than d-, and the Euclidean
      norm of Φ(d+) - Φ(d-); `[B, 10]`.
    names: of features that are not compiled, by key.
  """

  rows: np.ndarray
  dense: np.ndarray
  owner: np.ndarray
  keys: np.ndarray
  values: np.ndarray
  witness: np.ndarray
  stats: np.ndarray
  names: dict[int, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class UpdateWork:
  """What all packs of a minibatch share.

  Attributes:
    model: with the weights before the minibatch.
    source: the whole text, scored with them.
    config: the settings.
    search: sizes of the search.
  """

  model: Model
  source: Source
  config: LearnConfig
  search: SearchConfig


def pack_rows(
  lengths: np.ndarray, rows: np.ndarray, *, span: int, cells: int
) -> list[np.ndarray]:
  """Cuts a minibatch into packs of about equal work.

  Args:
    lengths: source words of all sentences, int `[N]`.
    rows: the sentences of the minibatch, int `[B]`.
    span: longest Hiero span.
    cells: most chart cells of a pack, unless a sentence has more.
  """
  rows = np.sort(rows)
  counts = decoder.count_cells(np.asarray(lengths)[rows], span)
  total, most = int(counts.sum()), int(counts.max(initial=1))
  number = -(-total // max(cells - most, most, 1)) or 1
  even = min(-(-total // number) + most, max(cells, most))
  batches = decoder.make_batches(counts, cells=even)
  return [rows[batch] for (batch,) in batches if len(batch)]


def contribute(
  packs: Sequence[Pack],
  *,
  work: UpdateWork,
  parameters: tuple[Any, ...] | None = None,
  mesh: Mesh | None = None,
) -> list[Contribution]:
  """Decodes packs, one for each device, and compares with the references.

  Args:
    packs: as many as the mesh has devices, or fewer. Packs of phrase-based
      models are split over the devices one after the other.
    work: everything else.
    parameters: of `decoding.search_parameters`, or None.
    mesh: devices that take a pack each, or None for one device.
  """
  if work.model.order is not None:
    host = phrase_decoder.on_host(work.model, work.search.backend, mesh)
    return [
      compare(
        work,
        pack,
        phrase_decoder.search_rows(
          work.model,
          work.source,
          pack.rows,
          config=DecodeConfig(search=work.search),
          parameters=parameters,
          kernel=host,
          mesh=mesh,
          excluded=pack.excluded,
        ),
      )
      for pack in packs
    ]
  width = 1 if mesh is None else mesh.size
  filler = [np.zeros(0, np.int64)] * (width - len(packs))
  parts = [pack.rows for pack in packs] + filler
  prepared = decoder.prepare(work.model, work.source, parts, config=work.search)
  charts = list(prepared.charts)
  for place, pack in enumerate(packs):
    if pack.excluded is not None:
      charts[place] = forbid(
        charts[place], prepared.matches[place], pack.excluded
      )
  prepared = dataclasses.replace(prepared, charts=tuple(charts))
  beams = decoder.run_search(
    prepared,
    work.model,
    config=work.search,
    parameters=parameters,
    mesh=mesh,
  )
  results = decoder.results(parts, prepared, beams)
  return [
    compare(work, pack, result)
    for pack, result in zip(packs, results[: len(packs)], strict=True)
  ]


def forbid(chart: Chart, matches: Matches, excluded: Ragged) -> Chart:
  """Returns the chart without the applications of excluded rules.

  Args:
    chart: B sentences.
    matches: of the chart.
    excluded: rules that each sentence must not use, B rising rows.
  """
  static = np.array(chart.static)
  _forbid(
    static,
    np.asarray(chart.rule),
    np.asarray(chart.sentence),
    matches.rules,
    np.asarray(excluded.flat, np.int32),
    np.asarray(excluded.offsets, np.int64),
  )
  return dataclasses.replace(chart, static=static)


@njit
def _forbid(static, rule, sentence, rules, excluded, offsets):
  for cell in range(len(static)):
    row = sentence[cell]
    if row >= len(offsets) - 1 or offsets[row] == offsets[row + 1]:
      continue
    for column in range(static.shape[1]):
      if static[cell, column] <= NONE:
        continue
      which = rules[rule[cell, column]]
      low, high = offsets[row], offsets[row + 1]
      while low < high:
        middle = (low + high) >> 1
        if excluded[middle] < which:
          low = middle + 1
        else:
          high = middle
      if low < offsets[row + 1] and excluded[low] == which:
        static[cell, column] = NONE


def compare(work: UpdateWork, pack: Pack, result: AnyResult) -> Contribution:
  """Chooses where to update in each sentence, and takes the difference."""
  model, source = work.model, result.source
  searched = partial_derivations.of_beams(model, result)
  top = hypergraph.viterbi(searched.forest)
  if work.config.update == "local":
    choices = _local(work, pack, searched, top.score, source)
    plus_side, plus_back = searched, top.back
    reached = np.ones(len(pack.rows), bool)
  else:
    good = pack.good
    best = partial_derivations.score_good(model, source, good)
    is_good = partial_derivations.are_good(good, searched)
    pairs = updates.pair_groups(good, best.score, searched, top.score, is_good)
    choices = updates.choose(
      work.config.update,
      pairs,
      searched,
      is_good,
      only_wrong=work.config.only_wrong,
      margin=work.config.margin,
    )
    plus_side, plus_back = good, best.back
    reached = np.zeros(len(pack.rows), bool)
    reached[good.sentence[good.forest.roots >= 0]] = True
  read = lambda side, back, nodes: differences.read_chosen(
    model,
    source,
    side.forest,
    back,
    nodes=nodes,
    sentence=choices.sentence,
    category=side.category,
  )
  both = differences.join(
    read(plus_side, plus_back, choices.plus),
    read(searched, top.back, choices.minus),
  )
  return _contribution(work, pack, source, choices, both, reached)


def _local(
  work: UpdateWork,
  pack: Pack,
  searched: Partials,
  score: np.ndarray,
  source: Source,
) -> Choices:
  """The local update: towards the best BLEU+1 of the root group."""
  nodes, best = partial_derivations.root_group(searched)
  sentence = searched.node_sentence[nodes]
  chosen = differences.read_chosen(
    work.model,
    source,
    searched.forest,
    np.arange(searched.forest.num_nodes),
    nodes=nodes,
    sentence=sentence,
    category=searched.category,
  )
  lines = translation_forest.spell(work.model, source, chosen.words)
  known = metric_text.encode_references(pack.references)
  statistics = bleu.statistics(
    known.references, known.encode(lines), sentence, threads=1
  )
  quality = bleu.score(statistics, smoothing=bleu.PLUS_ONE)
  is_good = np.zeros(searched.forest.num_nodes, bool)
  is_good[nodes] = [
    line in pack.references[row]
    for line, row in zip(lines, sentence.tolist(), strict=True)
  ]
  return updates.choose_local(
    searched, score, nodes=nodes, best=best, quality=quality, is_good=is_good
  )


def _contribution(
  work: UpdateWork,
  pack: Pack,
  source: Source,
  choices: Choices,
  both: Chosen,
  reached: np.ndarray,
) -> Contribution:
  """The differences of chosen pairs, and what happened to each sentence."""
  model, size = work.model, len(choices)
  values = differences.dense_features(model, source, both)
  sign = np.repeat([1.0, -1.0], size)
  sums = differences.sparse_sums(model, source, both, sign)
  batch = len(pack.rows)
  dense = np.zeros((batch, values.shape[1]))
  dense[choices.sentence] = values[:size] - values[size:]
  # The violation anew, from the difference itself.
  vector = np.array([model.weights.get(n, 0.0) for n in model.feature_names])
  table = feature_keys.make_table(model.weights)
  violation = -(
    dense @ vector
    + differences.weigh(
      sums.sentence, sums.keys, sums.values, tuple(table), batch
    )
  )
  margin = 0.0 if work.config.update == "local" else work.config.margin
  updated = np.zeros(batch, bool)
  updated[choices.sentence] = True
  if work.config.update not in ("standard", "local"):
    updated &= violation >= -margin  # rounding may have made one look valid
  dense[~updated] = 0.0
  use = updated[sums.sentence]
  words = dense[:, model.feature_names.index(model.units.words)]
  squares = (dense**2).sum(1)
  np.add.at(squares, sums.sentence[use], sums.values[use] ** 2)
  stats = np.zeros((batch, 10))
  stats[choices.sentence, SPAN] = partial_derivations.group_length(
    choices.group
  )
  stats[choices.sentence, CATEGORY] = partial_derivations.group_category(
    choices.group
  )
  stats[:, VIOLATION] = np.where(updated, violation, 0.0)
  stats[:, UPDATED] = updated
  stats[:, VALID] = updated & (violation >= -margin)
  stats[:, RIGHT] = choices.right
  stats[:, REACHED] = reached
  stats[choices.sentence, TOWARDS] = choices.towards
  stats[:, TOWARDS] *= updated
  stats[:, WORDS] = words / model.units.per_word
  stats[:, SIZE] = np.sqrt(squares)
  witness = sums.witness[use]
  witness[:, 0] = pack.rows[witness[:, 0]]
  return Contribution(
    rows=pack.rows,
    dense=dense,
    owner=sums.sentence[use],
    keys=sums.keys[use],
    values=sums.values[use],
    witness=witness,
    stats=stats,
    names=sums.names,
  )


def total(
  contributions: Sequence[Contribution], size: int
) -> tuple[np.ndarray, Contribution]:
  """Averages contributions over a minibatch, sentences in rising order.

  Args:
    contributions: of all packs.
    size: sentences of the minibatch.

  Returns:
    The dense part `[F]`, and all contributions as one, whose sparse values are
    divided by `size` too.
  """
  rows = np.concatenate([one.rows for one in contributions])
  order = np.argsort(rows, kind="stable")
  rank = np.empty(len(order), np.int64)
  rank[order] = np.arange(len(order))
  starts = ragged.row_offsets([len(one.rows) for one in contributions])
  owner = np.concatenate(
    [
      rank[start + one.owner]
      for start, one in zip(starts, contributions, strict=False)
    ]
  )
  places = np.argsort(owner, kind="stable")
  column = lambda name: np.concatenate(
    [getattr(one, name) for one in contributions]
  )
  dense = column("dense")[order] / size
  names: dict[int, str] = {}
  for one in contributions:
    names |= one.names
  whole = Contribution(
    rows=rows[order],
    dense=dense,
    owner=owner[places],
    keys=column("keys")[places],
    values=column("values")[places] / size,
    witness=column("witness")[places],
    stats=column("stats")[order],
    names=names,
  )
  return dense.sum(axis=0), whole
