"""Phrase-based decoding of many sentences: batches, threads, devices.

On a CPU the search runs as a host kernel (`stack_kernel`), on other devices and
over several of them as an array program (`stack_search`), which gives the same
results up to rounding. Added features and extra scores are the array program's.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxmt.decode import model as models
from jaxmt.decode.chart.accumulators import Augmentation
from jaxmt.decode.chart.chart_layout import POSSIBLE
from jaxmt.decode.chart.decoder import DecodeConfig, in_order
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import (
  Model,
  Source,
  rescore_source,
  select_source,
)
from jaxmt.decode.phrase import device_search, phrase_chart, stack_kernel
from jaxmt.decode.phrase.phrase_chart import PhraseChart
from jaxmt.decode.phrase.stack_beams import PhraseBeams, StackConfig
from jaxmt.errors import InputError
from jaxmt.features import feature_keys, rule_templates
from jaxmt.features.rule_templates import Applications
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

  @property
  def top(self) -> np.ndarray:
    """Rank of the best complete hypothesis of each sentence, int64 `[B]`."""
    if self.beams.augmented is None:
      return np.argmax(np.asarray(self.beams.final)[:, :, 0], axis=1)
    return np.argmax(np.asarray(self.beams.augmented.final), axis=1)

  def best(self) -> Derivations:
    """The best derivations, by augmented score if there is one."""
    final = np.asarray(self.beams.final)[:, :, 0]
    final = np.take_along_axis(final, self.top[:, None], axis=1)[:, 0]
    columns, offsets = _follow(
      self.chart.length,
      self.chart.rule,
      self.chart.longest,
      self.beams.head,
      self.beams.back,
      self.beams.option,
      np.where(final > POSSIBLE, self.top, -1),
      self.arity,
    )
    return Derivations(
      offsets=offsets,
      rule=columns[:, 0].copy(),
      begin=columns[:, 1].copy(),
      end=columns[:, 2].copy(),
      child=columns[:, 3:].copy(),
      score=np.where(final > POSSIBLE, final, 0.0).astype(np.float32),
    )


@njit
def _follow(lengths, rule, longest, head, back, option, top, arity):
  """The phrases of derivations by rank (-1: none), the last phrase first."""
  offsets = np.zeros(len(lengths) + 1, np.int64)
  columns = np.full((np.sum(lengths), 3 + arity), -1, np.int32)
  width = rule.shape[2]
  filled = 0
  for sentence in range(len(lengths)):
    stack = lengths[sentence]
    rank = top[sentence]
    if rank < 0:
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


def build_chart(
  model: Model,
  source: Source,
  *,
  excluded: Ragged | None = None,
  changes: Callable[[np.ndarray], np.ndarray] | None = None,
) -> PhraseChart:
  """Returns the options of sentences with all their scores.

  Args:
    model: phrases, order and weights.
    source: B sentences.
    excluded: rules that each sentence must not use, B rising rows.
    changes: what is added to the scores of options, from their rules, both
      `[B, spans, options]`.
  """
  rule = phrase_chart.find_options(model, source, excluded=excluded)
  extra = _application_scores(model, source, rule)
  if changes is not None:
    extra = changes(rule) + (0.0 if extra is None else extra)
  return phrase_chart.score_chart(model, source, rule, extra=extra)


def _application_scores(
  model: Model, source: Source, rule: np.ndarray
) -> np.ndarray | None:
  """What features of span or sentence add to options; None without any."""
  if model.templates is None or not model.templates.need_sentences:
    return None
  sentence, span, item = np.nonzero(rule >= 0)
  longest = phrase_chart.longest_phrase(model)
  begin = span // longest
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
      end=(begin + span % longest + 1).astype(np.int32),
      sentence=sentence.astype(np.int32),
    ),
    feature_keys.make_table(model.weights),
  )
  return extra


def run_kernel(
  model: Model,
  source: Source,
  chart: PhraseChart,
  *,
  config: StackConfig,
  threshold: float = float("inf"),
) -> PhraseBeams:
  """Searches sentences on the host."""
  weights, lm = device_search.stack_weights(model, threshold), model.lm
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
    run = device_search.search_batch if model.extra else run_kernel
    beams = run(model, source, chart, config=sizes)
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


def on_host(
  model: Model,
  backend: str,
  mesh: Mesh | None = None,
  *,
  augmented: bool = False,
) -> bool:
  """Returns whether the search runs as a host kernel; "auto": on a CPU alone.

  Args:
    model: phrases; the kernel knows no added features.
    backend: of the `SearchConfig`.
    mesh: devices to split batches over.
    augmented: whether the search adds extra scores.

  Raises:
    InputError: if the host is asked for and cannot.
  """
  able = not model.extra and not augmented
  if backend == "auto":
    return able and mesh is None and jax.default_backend() == "cpu"
  if backend == "host" and not able:
    what = "adds losses" if augmented else f"scores {model.extra[0].names[0]}"
    raise InputError(f"a search that {what} does not run on the host")
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
  changes: Callable[[np.ndarray], np.ndarray] | None = None,
  augmentation: Augmentation | None = None,
  references: Sequence[str] | None = None,
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
    changes: see `build_chart`.
    augmentation: extra scores; not on the host.
    references: with an augmentation, a line of each of the B sentences.
  """
  part = select_source(source, rows)
  chart = build_chart(model, part, excluded=excluded, changes=changes)
  sizes = stack_config(model, config)
  if kernel:
    beams = run_kernel(
      model, part, chart, config=sizes, threshold=config.threshold
    )
  else:
    beams = device_search.search_batch(
      model,
      part,
      chart,
      config=sizes,
      parameters=parameters,
      threshold=config.threshold,
      mesh=mesh,
      augmentation=augmentation,
      references=references,
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
  augmentation: Augmentation | None = None,
  references: Sequence[str] | None = None,
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
    augmentation: extra scores (see `augmentations`); the best derivation is
      then that of the best augmented score.
    references: with an augmentation, one tokenised line per sentence.
    kernel: whether to search on the host; if None, the config's backend says
      it.
    read: what is made of each `PhraseResult`, in the thread that searched it.

  Raises:
    ValueError: if there is an augmentation but not N references, or references
      without an augmentation.
  """
  if (augmentation is None) != (references is None):
    raise ValueError("an augmentation and references go together")
  if references is not None and len(references) != len(source):
    raise ValueError(f"{len(references)} references, {len(source)} sentences")
  source = rescore_source(model, source)
  host = kernel
  if host is None:
    host = on_host(
      model, config.search.backend, mesh, augmented=augmentation is not None
    )
  if not host and parameters is None:
    parameters = models.device_parameters(model)

  def work(rows: np.ndarray) -> list[Any]:
    lines = None
    if references is not None:
      lines = [references[row] for row in rows.tolist()]
    found = search_rows(
      model,
      source,
      rows,
      config=config,
      parameters=parameters,
      kernel=host,
      mesh=mesh,
      augmentation=augmentation,
      references=lines,
    )
    return [read(found)]

  parts = 1 if mesh is None else mesh.size
  batches = make_batches(source.ids.lengths, parts=parts)
  yield from in_order(work, batches, threads=config.threads)
