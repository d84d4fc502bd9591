"""The language model: of the training part's target side, of other text."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from jaxmt.errors import InputError
from jaxmt.experiment.record import Record
from jaxmt.experiment.stages.corpus import PARTS, Corpus
from jaxmt.lm import arpa_write, kneser_ney, tables, word_ids
from jaxmt.lm.tables import Tables
from jaxmt.text import ragged, vocabulary

_ARRAYS = ("check", "follow", "score", "length")
_FACTS = ("begin", "order", "ngrams")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LmStageConfig:
  """What to estimate.

  Attributes:
    order: longest n-grams.
    prune: see `launch/lm.py --prune`.
    bitext: whether to use the training part's target side. Without it, the
      corpus must have `lm_text`. A model that knows the sentences it is later
      used to train on makes them look easy.
  """

  order: int = 4
  prune: tuple[int, ...] = ()
  bitext: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageModel(Record):
  """A language model.

  Attributes:
    tables: the automaton.
    arpa: the lines of the same model as an ARPA file.
    metrics: perplexities and unknown words of tune and test.
  """

  tables: Tables
  arpa: list[str]
  metrics: dict[str, Any]

  def to_values(self) -> dict[str, Any]:
    """See `Record`; the arrays of the automaton are values of their own."""
    arrays = {name: getattr(self.tables, name) for name in _ARRAYS}
    return {
      **arrays,
      "words": list(self.tables.words),
      "facts": {name: int(getattr(self.tables, name)) for name in _FACTS},
      "arpa": self.arpa,
      "metrics": self.metrics,
    }

  @classmethod
  def from_values(cls, values: Mapping[str, Any]) -> Self:
    """See `Record`."""
    facts: dict[str, Any] = {
      name: int(values["facts"][name]) for name in _FACTS
    }
    table = Tables(
      words=tuple(values["words"]),
      **{name: values[name] for name in _ARRAYS},
      **facts,
    )
    tables.validate(table)
    return cls(tables=table, arpa=values["arpa"], metrics=values["metrics"])


def _estimate_config(config: LmStageConfig) -> kneser_ney.EstimateConfig:
  return kneser_ney.EstimateConfig(
    order=config.order, prune=config.prune, fallback=kneser_ney.FALLBACK
  )


def check(config: LmStageConfig) -> None:
  """Raises `ValueError` for an order or pruning that makes no sense."""
  kneser_ney.check(_estimate_config(config))


def language_model(config: LmStageConfig, *, corpus: Corpus) -> LanguageModel:
  """Estimates a model and scores the references of tune and test with it."""
  lines = list(corpus.train_target) if config.bitext else []
  lines += corpus.lm_text or []
  if not lines:
    raise InputError(
      "config key 'lm.bitext' is false, and the corpus has no other text"
    )
  sentences, words = word_ids.encode_corpus(lines, skip_symbols=True)
  model = kneser_ney.estimate(sentences, words, _estimate_config(config))
  table = tables.build_tables(model)
  metrics: dict[str, Any] = {"ngrams": table.ngrams}
  for part in PARTS:
    lines = [line for row in corpus.part(part).references for line in row]
    ids, tokens = vocabulary.intern(lines)
    known = tables.word_map(table, tokens)
    scores = tables.score_text(
      table, ragged.Ragged(flat=known[ids.flat], offsets=ids.offsets)
    )
    metrics[f"{part}_perplexity"] = round(tables.perplexities(scores)[0], 3)
    metrics[f"{part}_unknown"] = int(np.sum(scores.unknown))
  arpa = b"".join(arpa_write.format_arpa(model)).decode("utf-8")
  return LanguageModel(
    tables=table, arpa=arpa.removesuffix("\n").split("\n"), metrics=metrics
  )
