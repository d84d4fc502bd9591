"""Scores text against references with the settings and names users know.

settings = evaluation.Settings(metrics=("bleu", "ter"))
scored = evaluation.evaluate(references, [hypotheses], settings)
scored[0].corpus_score(0)          # as printed: 100 * BLEU
evaluation.signature(scored[0], references_per_sentence=1)
"""

import dataclasses
import functools
import importlib.metadata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxmt.metrics import (
  base,
  bleu,
  chrf,
  edits,
  encoded_text,
  gtm,
  meteor,
  nist,
  ter,
)

NAMES = ("bleu", "ter", "nist", "wer", "per", "gtm", "meteor", "chrf", "chrf++")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
  """What to compute; defaults as in sacreBLEU where it has the metric.

  Attributes:
    metrics: names in `NAMES`.
    tokenize: for all but TER and chrF, which have their own ways.
    lowercase: for all but TER.
    order: longest n-gram of BLEU.
    smoothing: of BLEU, one of `bleu.METHODS`.
    smoothing_value: floor or k.
    effective_order: see `bleu.Smoothing`.
    reference_length: of BLEU.
    nist_order: longest n-gram of NIST.
    gtm_exponent: see `gtm`.
    meteor_version: one of `meteor.VERSIONS`.
    chrf_char_order: longest character n-gram.
    chrf_word_order: longest word n-gram of `chrf`; `chrf++` has 2.
    chrf_beta: weight of recall.
    chrf_whitespace: count white space.
    chrf_epsilon: see `chrf.score`.
    ter_normalized: see `encoded_text.tercom_tokenized`, as for the next three.
    ter_no_punct: leave out punctuation.
    ter_asian_support: split CJK characters.
    ter_case_sensitive: do not fold case.
  """

  metrics: tuple[str, ...] = ("bleu", "ter", "chrf")
  tokenize: str = "13a"
  lowercase: bool = False
  order: int = 4
  smoothing: str = "exp"
  smoothing_value: float | None = None
  effective_order: bool = False
  reference_length: str = "closest"
  nist_order: int = 5
  gtm_exponent: float = 1.0
  meteor_version: str = "1.5"
  chrf_char_order: int = 6
  chrf_word_order: int = 0
  chrf_beta: int = 2
  chrf_whitespace: bool = False
  chrf_epsilon: bool = False
  ter_normalized: bool = False
  ter_no_punct: bool = False
  ter_asian_support: bool = False
  ter_case_sensitive: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scored:
  """One metric's statistics for M systems on N sentences.

  Attributes:
    label: the metric's name in print.
    metric: its functions.
    settings: what it was computed with.
    statistics: `[M, N, S]`.
  """

  label: str
  metric: base.Metric
  settings: Settings
  statistics: np.ndarray

  @property
  def scale(self) -> float:
    """What scores are multiplied by in print."""
    return 100.0 if self.metric.percent else 1.0

  def corpus_score(self, system: int) -> float:
    """Returns a system's corpus score as printed."""
    total = self.statistics[system].sum(0, dtype=np.float64)
    return self.scale * float(self.metric.corpus_score(total))

  def sentence_scores(self, system: int) -> np.ndarray:
    """Returns a system's sentence scores as printed, `[N]`."""
    return self.scale * self.metric.sentence_score(self.statistics[system])


def metric_of(name: str, settings: Settings) -> base.Metric:
  """Returns the metric `name` with these settings.

  Raises:
    ValueError: for an unknown metric or an invalid setting.
  """
  if name not in NAMES:
    raise ValueError(f"no metric '{name}'; there are {', '.join(NAMES)}")
  if name == "bleu":
    smoothing = bleu.Smoothing(
      method=settings.smoothing,
      value=settings.smoothing_value,
      effective_order=settings.effective_order,
    )
    return bleu.metric(
      order=settings.order,
      reference_length=settings.reference_length,
      smoothing=smoothing,
      sentence_smoothing=dataclasses.replace(smoothing, effective_order=True),
    )
  if name.startswith("chrf"):
    return chrf.metric(
      char_order=settings.chrf_char_order,
      word_order=2 if name == "chrf++" else settings.chrf_word_order,
      beta=settings.chrf_beta,
      whitespace=settings.chrf_whitespace,
      epsilon=settings.chrf_epsilon,
    )
  if name == "nist":
    return nist.metric(order=settings.nist_order)
  if name == "gtm":
    return gtm.metric(exponent=settings.gtm_exponent)
  if name == "meteor":
    return meteor.metric(version=settings.meteor_version)
  return ter.metric() if name == "ter" else edits.metric(name)


def tokenizer_of(
  name: str, settings: Settings
) -> Callable[[Sequence[str]], list[str]]:
  """Returns what turns lines into tokens for a metric."""
  if name == "ter":
    return functools.partial(
      encoded_text.tercom_tokenized,
      normalized=settings.ter_normalized,
      no_punct=settings.ter_no_punct,
      asian_support=settings.ter_asian_support,
      case_sensitive=settings.ter_case_sensitive,
    )
  return functools.partial(
    encoded_text.tokenized,
    tokenize="none" if name.startswith("chrf") else settings.tokenize,
    lowercase=settings.lowercase,
  )


def evaluate(
  references: encoded_text.ReferenceLines,
  systems: Sequence[Sequence[str]],
  settings: Settings,
) -> list[Scored]:
  """Computes all metrics of all systems.

  Args:
    references: for each of N sentences one or more lines.
    systems: for each of M systems its N lines.
    settings: what to compute.

  Returns:
    One `Scored` per name in `settings.metrics`.

  Raises:
    ValueError: if numbers of sentences differ, or a setting makes no sense.
  """
  for number, lines in enumerate(systems):
    if len(lines) != len(references):
      raise ValueError(
        f"system {number} has {len(lines)} lines, not {len(references)}"
      )
  sentence = np.tile(np.arange(len(references)), len(systems))
  every_line = [line for lines in systems for line in lines]
  encoded: dict[Any, tuple] = {}  # metrics that see the same tokens share them
  results = []
  for name in settings.metrics:
    metric = metric_of(name, settings)
    key = (metric.unit, "ter" if name == "ter" else "")
    if key not in encoded:
      tokenizer = tokenizer_of(name, settings)
      known = encoded_text.encode_references(
        references, unit=metric.unit, tokenizer=tokenizer
      )
      encoded[key] = known.references, known.encode(tokenizer(every_line))
    tokens, hypotheses = encoded[key]
    statistics = metric.statistics(metric.prepare(tokens), hypotheses, sentence)
    results.append(
      Scored(
        label=_label(name, metric, settings),
        metric=metric,
        settings=settings,
        statistics=statistics.reshape(len(systems), -1, metric.size),
      )
    )
  return results


def _label(name: str, metric: base.Metric, settings: Settings) -> str:
  if name.startswith("chrf"):
    words = dict(metric.settings)["word_order"]
    return f"chrF{settings.chrf_beta}" + "+" * words
  return name.upper()


def signature(
  scored: Scored, *, references_per_sentence: int | str, test: Sequence = ()
) -> str:
  """Returns the string that makes a score reproducible.

  It is sacreBLEU's own where sacreBLEU could have computed the score. Settings
  it does not have are added before the version; the version is sacreBLEU's
  where the metric is, else ours.

  Args:
    scored: of one metric.
    references_per_sentence: a number, or `var`.
    test: pairs to name the significance test, e.g. `(("bs", 1000), ("seed",
      12345))`.
  """
  settings, metric = scored.settings, scored.metric
  case = "lc" if settings.lowercase else "mixed"
  version = importlib.metadata.version("sacrebleu")
  parts: list[tuple[str, Any]] = [("nrefs", references_per_sentence), *test]
  if metric.name == "ter":
    parts += [
      ("case", "mixed" if settings.ter_case_sensitive else "lc"),
      ("tok", "tercom"),
      ("norm", settings.ter_normalized),
      ("punct", not settings.ter_no_punct),
      ("asian", settings.ter_asian_support),
    ]
  elif metric.name.startswith("chrf"):
    parts += [
      ("case", case),
      ("eff", not settings.chrf_epsilon),
      ("nc", settings.chrf_char_order),
      ("nw", dict(metric.settings)["word_order"]),
      ("space", settings.chrf_whitespace),
    ]
  elif metric.name == "bleu":
    parts += _bleu_parts(settings, case)
  else:
    parts += [("case", case), ("tok", settings.tokenize), *metric.settings]
    version = f"jaxmt-{importlib.metadata.version('jaxmt')}"
  parts.append(("version", version))
  return "|".join(f"{key}:{_plain(value)}" for key, value in parts)


def _bleu_parts(settings: Settings, case: str) -> list[tuple[str, Any]]:
  smoothing = bleu.Smoothing(
    method=settings.smoothing, value=settings.smoothing_value
  )
  method = smoothing.method
  if smoothing.amount:
    method += f"[{smoothing.amount:.2f}]"
  parts: list[tuple[str, Any]] = [
    ("case", case),
    ("eff", settings.effective_order),
    ("tok", settings.tokenize),
    ("smooth", method),
  ]
  if settings.order != 4:
    parts.append(("order", settings.order))
  if settings.reference_length != "closest":
    parts.append(("len", settings.reference_length))
  return parts


def _plain(value: Any) -> str:
  if isinstance(value, bool):
    return "yes" if value else "no"
  return str(value)


def bleu_detail(scored: Scored, system: int) -> str:
  """Returns BLEU's precisions, brevity penalty and lengths in one line."""
  order = scored.settings.order
  total = scored.statistics[system].sum(0, dtype=np.float64)
  length, reference = total[order], total[2 * order]
  share = base.ratio(np, total[:order], total[order : 2 * order])
  penalty = bleu.brevity_penalty(np, length, reference)
  return (
    "/".join(f"{100 * value:.1f}" for value in share)
    + f" (BP = {penalty:.3f} ratio = {base.ratio(np, length, reference):.3f}"
    + f" hyp_len = {length:.0f} ref_len = {reference:.0f})"
  )
