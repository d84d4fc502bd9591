"""Phrase-based decoding of many sentences: batches, threads, devices.

On a CPU the search runs as a host kernel (`stack_kernel`), on other devices and
over several of them as an array program (`stack_search`), which gives the same
results up to rounding.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxmt.decode import model as models
from jaxmt.decode.chart.chart_layout import POSSIBLE
from jaxmt.decode.chart.decoder import DecodeConfig, in_order
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import (
  Model,
  Source,
  rescore_source,
  rule_column,
  select_source,
)
from jaxmt.decode.phrase import phrase_chart, stack_kernel, stack_search
from jaxmt.decode.phrase.phrase_chart import PhraseChart
from jaxmt.decode.phrase.stack_search import (
  LocalRules,
  PhraseBeams,
  StackConfig,
  StackWeights,
)
from jaxmt.features import feature_keys, rule_templates
from jaxmt.features.language_model import LanguageModelFeature
from jaxmt.features.rule_templates import Applications
from jaxmt.runtime import parallel
from jaxmt.runtime.compiling import CompiledOnce
from jaxmt.text import ragged
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

_EXACT_BEAM = 256  # hypotheses of exact search, first
_WORDS = 1024  # padded words of the sentences searched together


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseResult:
  """Part of a decoded text.

  Attributes:
    rows: which sentences, int64 `[B]`.
    source: those sentences.
    chart: their options.
    beams: hypotheses and candidates, on the host.
    arity: columns of the derivations' children.
  """

  rows: np.ndarray
  source: Source
  chart: PhraseChart
  beams: PhraseBeams
  arity: int

  def best(self) -> Derivations:
    """The best derivations."""
    columns, offsets = _follow(
      self.chart.length,
      self.chart.rule,
      self.chart.longest,
      self.beams.head,
      self.beams.back,
      self.beams.option,
      self.beams.final,
      self.arity,
    )
    final = self.beams.final[:, :, 0].max(1)
    return Derivations(
      offsets=offsets,
      rule=columns[:, 0].copy(),
      begin=columns[:, 1].copy(),
      end=columns[:, 2].copy(),
      child=columns[:, 3:].copy(),
      score=np.where(final > POSSIBLE, final, 0.0).astype(np.float32),
    )


@njit
def _follow(lengths, rule, longest, head, back, option, final, arity):
  """The phrases of the best derivations, the last phrase first."""
  offsets = np.zeros(len(lengths) + 1, np.int64)
  columns = np.full((np.sum(lengths), 3 + arity), -1, np.int32)
  width = rule.shape[2]
  filled = 0
  for sentence in range(len(lengths)):
    stack = lengths[sentence]
    rank = np.argmax(final[sentence, :, 0])
    if final[sentence, rank, 0] < POSSIBLE:
      stack = 0
    while stack > 0:
      # The best candidate of a hypothesis is the first one.
      place = 0
      while head[sentence, stack, place] != rank:
        place += 1
      span = option[sentence, stack, place] // width
      item = option[sentence, stack, place] % width
      columns[filled, 0] = rule[sentence, span, item]
      columns[filled, 1] = span // longest
      columns[filled, 2] = span // longest + span % longest + 1
      rank = back[sentence, stack, place, 1]
      stack = back[sentence, stack, place, 0]
      if stack > 0:
        columns[filled, 3] = filled + 1
      filled += 1
    offsets[sentence + 1] = filled
  return columns[:filled], offsets


def make_batches(lengths: np.ndarray, *, parts: int = 1) -> list[np.ndarray]:
  """Packs sentences of about equal length, longest first."""
  order = np.argsort(-lengths, kind="stable")
  batches, first = [], 0
  while first < len(order):
    size = phrase_chart.padded_length(int(lengths[order[first]]))
    count = max(_WORDS // size, 1) * parts
    batches.append(order[first : first + count])
    first += count
  return batches


def stack_config(model: Model, config: DecodeConfig) -> StackConfig:
  """Returns the sizes of the search."""
  order = model.phrase_order
  return StackConfig(
    beam=config.search.beam,
    pop=max(config.search.pop, config.search.beam),
    limit=order.limit,
    hierarchical=order.hierarchical,
  )


def stack_weights(model: Model, threshold: float) -> StackWeights:
  """Returns the weights that act during the search."""
  return StackWeights(
    lm=np.asarray(model.lm_weight, np.float32),
    distortion=np.asarray(model.distortion, np.float32),
    threshold=np.asarray(threshold, np.float32),
  )


def build_chart(
  model: Model, source: Source, *, excluded: Ragged | None = None
) -> PhraseChart:
  """Returns the options of sentences with all their scores.

  Args:
    model: phrases, order and weights.
    source: B sentences.
    excluded: rules that each sentence must not use, B rising rows.
  """
  chart = phrase_chart.build_chart(model, source, excluded=excluded)
  if model.templates is None or not model.templates.need_sentences:
    return chart
  # Features of span or sentence are added to the options they fire for.
  rule = np.asarray(chart.rule)
  sentence, span, item = np.nonzero(rule >= 0)
  begin = span // chart.longest
  text = rule_templates.make_text(
    model.templates,
    ragged.Ragged(flat=source.copies, offsets=source.ids.offsets),
    source.words,
  )
  extra = np.zeros(rule.shape, np.float32)
  extra[sentence, span, item] = rule_templates.application_scores(
    model.templates,
    text,
    Applications(
      rule=rule[sentence, span, item],
      begin=begin.astype(np.int32),
      end=(begin + span % chart.longest + 1).astype(np.int32),
      sentence=sentence.astype(np.int32),
    ),
    feature_keys.make_table(model.weights),
  )
  return phrase_chart.score_chart(model, source, rule, extra=extra)


def run_kernel(
  model: Model,
  source: Source,
  chart: PhraseChart,
  *,
  config: StackConfig,
  threshold: float = float("inf"),
) -> PhraseBeams:
  """Searches sentences on the host."""
  weights, lm = stack_weights(model, threshold), model.lm
  score, _, head, back, option, values, final = stack_kernel.search_batch(
    (
      chart.length,
      chart.rule,
      chart.ranked,
      chart.order,
      chart.future,
      chart.reach,
      chart.zones,
    ),
    (model.columns.inputs[0].arrays, model.columns.score[-1]),
    source.columns.inputs[0].arrays,
    (lm.columns, np.int32(lm.begin)),
    model.order_scores,
    model.phrase_order.classes,
    tuple(
      np.float32(one)
      for one in (weights.lm, weights.distortion, weights.threshold)
    ),
    (config.beam, config.pop, config.limit, config.hierarchical),
  )
  return PhraseBeams(
    score=score,
    head=head,
    back=back,
    option=option,
    values=values,
    final=final,
  )


@functools.cache
def searcher(
  config: StackConfig, feature: LanguageModelFeature, mesh: Mesh | None = None
) -> Any:
  """Returns the compiled array program: (chart, rules, lm, weights) to beams.

  With a mesh, the sentences of the chart are split over it.
  """

  def run(chart, rules, lm, weights):
    return stack_search.search(
      chart, rules, lm, weights, config=config, feature=feature
    )

  if mesh is None:
    return CompiledOnce(jax.jit(run))
  return CompiledOnce(
    parallel.data_parallel(
      lambda *inputs: (run(*inputs),),
      mesh=mesh,
      inputs=("split", "copied", "copied", "copied"),
      outputs=("split",),
    )
  )


def localise(
  model: Model, source: Source, chart: PhraseChart, *, parts: int = 1
) -> tuple[PhraseChart, LocalRules]:
  """Returns the chart with rows of the rules it uses, and those rules.

  Sentences and rules are padded to few sizes.
  """
  used, place = np.unique(np.maximum(chart.rule, 0), return_inverse=True)
  there = chart.rule >= 0
  local = np.where(there, 1 + place.reshape(chart.rule.shape), -1)
  rows = ragged.bucket(1 + len(used))
  runs = rule_column(
    model,
    source,
    used.astype(np.int32),
    lambda columns: columns.inputs[0].arrays[:, 0],
  )
  known = np.minimum(used, len(model.table))
  fill = lambda values: np.concatenate(
    [
      np.zeros((1, *values.shape[1:]), values.dtype),
      values,
      np.zeros((rows - 1 - len(values), *values.shape[1:]), values.dtype),
    ]
  )
  rules = LocalRules(
    runs=fill(runs),
    forward=fill(model.order_scores[known, 3:]),
    classes=fill(model.phrase_order.classes[known]),
    goal=model.columns.inputs[0].arrays[-1, 0],
    goal_score=model.columns.score[-1],
  )
  more = ragged.bucket(max(len(chart.length), 8))
  more = -(-more // parts) * parts - len(chart.length)
  pad = lambda array, value=0.0: np.pad(
    array, [(0, more)] + [(0, 0)] * (array.ndim - 1), constant_values=value
  )
  padded = PhraseChart(
    length=pad(chart.length),
    rule=pad(local.astype(np.int32), -1),
    ranked=pad(chart.ranked, float(stack_search.NONE)),
    order=pad(chart.order),
    future=pad(chart.future),
    reach=pad(chart.reach),
    zones=pad(chart.zones),
  )
  return padded, rules


def run_device(
  model: Model,
  source: Source,
  chart: PhraseChart,
  *,
  config: StackConfig,
  parameters: Any = None,
  threshold: float = float("inf"),
  mesh: Mesh | None = None,
) -> PhraseBeams:
  """Searches sentences with the array program; returns host beams."""
  parts = 1 if mesh is None else mesh.size
  padded, rules = localise(model, source, chart, parts=parts)
  if parameters is None:
    parameters = models.device_parameters(model)
  found = searcher(config, model.features[0], mesh)(
    padded, rules, parameters[0], stack_weights(model, threshold)
  )
  beams = found if mesh is None else found[0]
  return jax.tree.map(lambda leaf: np.asarray(leaf)[: len(source)], beams)


def search_exactly(
  model: Model, source: Source, *, limit: int
) -> tuple[PhraseResult, np.ndarray]:
  """Searches without pruning: beams grow until nothing falls out of them.

  Args:
    model: phrases, order and weights.
    source: B sentences.
    limit: most candidates of a stack.

  Returns:
    `(result, complete bool [B])`: whether the search was exact.
  """
  source = rescore_source(model, source)
  chart = build_chart(model, source)
  sizes = stack_config(model, DecodeConfig())
  beam = min(_EXACT_BEAM, limit)
  while True:
    sizes = dataclasses.replace(sizes, beam=beam, pop=beam)
    beams = run_kernel(model, source, chart, config=sizes)
    full = np.any(np.asarray(beams.values)[:, :, -1, 0] > POSSIBLE, axis=1)
    if not full.any() or beam >= limit:
      break
    beam = min(8 * beam, limit)
  result = PhraseResult(
    rows=np.arange(len(source)),
    source=source,
    chart=chart,
    beams=beams,
    arity=model.arity,
  )
  return result, ~full


def on_host(backend: str, mesh: Mesh | None = None) -> bool:
  """Returns whether the search runs as a host kernel; "auto": on a CPU alone.

  Args:
    backend: of the `SearchConfig`.
    mesh: devices to split batches over.
  """
  if backend == "auto":
    return mesh is None and jax.default_backend() == "cpu"
  return backend == "host"


def search_rows(
  model: Model,
  source: Source,
  rows: np.ndarray,
  *,
  config: DecodeConfig,
  parameters: Any = None,
  kernel: bool = True,
  mesh: Mesh | None = None,
  excluded: Ragged | None = None,
) -> PhraseResult:
  """Searches some sentences as one batch.

  Args:
    model: phrases, order and weights.
    source: N sentences under the model's weights.
    rows: which of them, int `[B]`.
    config: how to decode.
    parameters: see `decode`.
    kernel: whether to search on the host.
    mesh: devices to split the batch over.
    excluded: rules that each of the B sentences must not use, rising rows.
  """
  part = select_source(source, rows)
  chart = build_chart(model, part, excluded=excluded)
  sizes = stack_config(model, config)
  if kernel:
    beams = run_kernel(
      model, part, chart, config=sizes, threshold=config.threshold
    )
  else:
    beams = run_device(
      model,
      part,
      chart,
      config=sizes,
      parameters=parameters,
      threshold=config.threshold,
      mesh=mesh,
    )
  return PhraseResult(
    rows=rows, source=part, chart=chart, beams=beams, arity=model.arity
  )


def decode(
  model: Model,
  source: Source,
  *,
  config: DecodeConfig,
  mesh: Mesh | None = None,
  parameters: Any = None,
  kernel: bool | None = None,
  read: Callable[[PhraseResult], Any] = lambda result: result,
) -> Iterator[list[Any]]:
  """Decodes sentences; yields the parts of each batch when it is done.

  Args:
    model: phrases, order and weights.
    source: N sentences; scored anew if they were made for other weights.
    config: how to decode.
    mesh: devices to split each batch over.
    parameters: of `model.device_parameters`, if they are on the device already.
    kernel: whether to search on the host; if None, the config's backend says
      it.
    read: what is made of each `PhraseResult`, in the thread that searched it.
  """
  source = rescore_source(model, source)
  host = on_host(config.search.backend, mesh) if kernel is None else kernel
  if not host and parameters is None:
    parameters = models.device_parameters(model)

  def work(rows: np.ndarray) -> list[Any]:
    found = search_rows(
      model,
      source,
      rows,
      config=config,
      parameters=parameters,
      kernel=host,
      mesh=mesh,
    )
    return [read(found)]

  parts = 1 if mesh is None else mesh.size
  batches = make_batches(source.ids.lengths, parts=parts)
  yield from in_order(work, batches, threads=config.threads)
