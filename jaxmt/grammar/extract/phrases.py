"""Phrase tables: phrase pairs with their features and reordering columns.

A phrase pair is a rule without non-terminals, so that the rule table, its
formats and the engine that counts rules serve phrases too. Extraction takes all
consistent pairs up to a length, unaligned words at their edges included (Koehn,
Och & Marcu 2003). The features are those of Moses: p(f|e), lex(f|e), p(e|f),
lex(e|f), and a count of phrases; see `reordering` for six columns more.
"""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from jaxmt.grammar import estimate, lexical, reordering
from jaxmt.grammar import provenance as provenance_lib
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.extract import (
  extraction,
  orientations,
  phrase_significance,
  phrase_smoothing,
  shards,
)
from jaxmt.grammar.extract.extraction import Extracted
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.shards import AlignedShard, CountOptions
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.runtime.runner import Runner
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import Vocabulary

SCORES = (
  estimate.THETA[0],
  lexical.NAMES[0],
  estimate.THETA[1],
  lexical.NAMES[1],
)
NAMES = (*SCORES, "rule_count", "pass_through")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseOptions:
  """What phrase pairs are taken, and how they are scored.

  Attributes:
    length: most words of either side.
    smoothing: one of `phrase_smoothing.METHODS`.
    significance: least significance of a pair, "" for any; see
      `phrase_significance`.
    reordering: kind of the reordering model, one of `orientations.KINDS`, or ""
      for none.
  """

  length: int = 7
  smoothing: str = "none"
  significance: str = ""
  reordering: str = "word"

  @property
  def limits(self) -> HieroOptions:
    """The same for the extraction of rules."""
    return HieroOptions(
      max_phrase=self.length,
      max_target_phrase=self.length,
      max_words=self.length,
      max_nonterminals=0,
      tight=False,
    )


def check_options(options: PhraseOptions) -> None:
  """Raises `ValueError` for settings that make no sense."""
  if options.length < 1:
    raise ValueError("the length of phrases must be at least 1")
  if options.smoothing not in phrase_smoothing.METHODS:
    raise ValueError(
      f"smoothing '{options.smoothing}' is none of"
      f" {', '.join(phrase_smoothing.METHODS)}"
    )
  if options.significance:
    phrase_significance.threshold(options.significance, 1)
  if options.reordering and options.reordering not in orientations.KINDS:
    raise ValueError(
      f"reordering '{options.reordering}' is none of"
      f" {', '.join(orientations.KINDS)}"
    )


def finish(
  table: RuleTable,
  read_shards: Callable[[], Iterator[AlignedShard]],
  *,
  options: PhraseOptions,
  count: CountOptions,
  runner: Runner,
) -> tuple[RuleTable, np.ndarray]:
  """Makes a phrase table of extracted phrase pairs.

  Args:
    table: of `extraction`, extracted with `options.limits`.
    read_shards: gives the corpus again, for what is counted beside the pairs.
    options: see `PhraseOptions`.
    count: memory and where to spill.
    runner: where to work.

  Returns:
    `(phrase table, rules)`: which rules of `table` it has, int64.
  """
  keep = table.kind == Kind.HIERO
  if options.significance:
    values, sentences = phrase_significance.significances(table, read_shards())
    keep &= values > phrase_significance.threshold(
      options.significance, sentences
    )
  if options.smoothing != "none":
    table = _smoothed(table, options.smoothing)
  # The rule that copies unknown words stays, the glue goes.
  rules = np.flatnonzero(keep | (table.kind == Kind.PASS_THROUGH))
  table = _with_columns(table_lib.select(table, rules), NAMES)
  if options.reordering:
    model = orientations.count_orientations(
      read_shards(),
      options=options.limits,
      kind=options.reordering,
      count=count,
      runner=runner,
      source_words=table.source_words,
      target_words=table.target_words,
    )
    table = reordering.attach(table, model)
  return table, rules


def _with_columns(table: RuleTable, names: tuple[str, ...]) -> RuleTable:
  """The table with these features only, in this order."""
  columns = [table.feature_names.index(name) for name in names]
  return dataclasses.replace(
    table,
    features=np.ascontiguousarray(table.features[:, columns]),
    feature_names=names,
  )


def for_moses(table: RuleTable) -> RuleTable:
  """Returns a phrase table with Moses' four scores only."""
  return _with_columns(
    table_lib.select(table, table.kind == Kind.HIERO), SCORES
  )


def _smoothed(table: RuleTable, method: str) -> RuleTable:
  """The table with smoothed probabilities."""
  phrases = np.flatnonzero(table.kind == Kind.HIERO)
  groups = estimate.group_rules(table)
  logs = np.log(
    phrase_smoothing.pair_probabilities(
      table.counts[phrases],
      groups.source[phrases],
      groups.target[phrases],
      method=method,
    )
  )
  names = estimate.THETA[:2]
  columns = [table.feature_names.index(name) for name in names]
  values = table.features[:, columns].copy()
  values[phrases] = logs
  return table_lib.with_features(table, names, values)


def extract(
  source: Ragged,
  target: Ragged,
  links: Ragged,
  *,
  source_words: Vocabulary,
  target_words: Vocabulary,
  options: PhraseOptions,
  count: CountOptions,
  runner: Runner,
) -> Extracted:
  """Returns the phrase table of a corpus in memory; see `extraction.extract`.

  Raises:
    ValueError: for settings that make no sense.
  """
  check_options(options)
  emission = extraction.extract_hiero(
    source,
    target,
    links,
    source_words=source_words,
    target_words=target_words,
    options=options.limits,
    count=count,
    runner=runner,
  )
  table, rules = finish(
    emission.table,
    lambda: shards.split(source, target, links),
    options=options,
    count=dataclasses.replace(count, provenance=False),
    runner=runner,
  )
  provenance = emission.provenance
  if provenance is not None:
    stays = np.zeros(len(emission.table), np.bool_)
    stays[rules] = True
    provenance = provenance_lib.select(provenance, stays)
  return Extracted(table=table, provenance=provenance)
