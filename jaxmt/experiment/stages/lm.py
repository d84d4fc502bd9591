"""The language model: of the training part's target side, of other text."""

import dataclasses
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.lm import arpa_write, estimate, host, tables, text
from jaxmt.text import ragged, vocabulary


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


def _estimate_config(config: LmStageConfig) -> estimate.EstimateConfig:
  return estimate.EstimateConfig(
    order=config.order, prune=config.prune, fallback=estimate.FALLBACK
  )


def check(config: LmStageConfig) -> None:
  """Raises `ValueError` for an order or pruning that makes no sense."""
  estimate.check(_estimate_config(config))


def language_model(
  config: LmStageConfig, *, corpus: dict[str, Any]
) -> dict[str, Any]:
  """Estimates a model and scores the references of tune and test with it.

  Returns:
    "arpa": the model's lines; the arrays of the automaton by their names in
    `tables.Tables`, its numbers in "facts"; "metrics": perplexities and
    unknown words.
  """
  lines = list(corpus["train_target"]) if config.bitext else []
  lines += corpus.get("lm_text", [])
  if not lines:
    raise InputError(
      "config key 'lm.bitext' is false, and the corpus has no other text"
    )
  sentences, words = text.encode_corpus(lines, skip_symbols=True)
  model = estimate.estimate(sentences, words, _estimate_config(config))
  table = tables.build_tables(model)
  metrics: dict[str, Any] = {"ngrams": table.ngrams}
  for part in ("tune", "test"):
    lines = [line for row in corpus[f"{part}_references"] for line in row]
    ids, tokens = vocabulary.intern(lines)
    known = tables.word_map(table, tokens)
    scores = host.score_text(
      table, ragged.Ragged(flat=known[ids.flat], offsets=ids.offsets)
    )
    metrics[f"{part}_perplexity"] = round(host.perplexities(scores)[0], 3)
    metrics[f"{part}_unknown"] = int(np.sum(scores.unknown))
  arpa = b"".join(arpa_write.format_arpa(model)).decode("utf-8")
  return {
    "arpa": arpa.removesuffix("\n").split("\n"),
    "check": table.check,
    "follow": table.follow,
    "score": table.score,
    "length": table.length,
    "words": list(table.words),
    "facts": {
      "begin": int(table.begin),
      "order": int(table.order),
      "ngrams": int(table.ngrams),
    },
    "metrics": metrics,
  }
