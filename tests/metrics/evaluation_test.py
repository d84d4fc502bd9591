"""Scoring text by name: settings, labels, signatures, tables."""

import importlib
import logging

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from jaxmt.metrics import evaluation
from tests.reference import metric_pairs

logging.getLogger("sacrebleu").setLevel(logging.ERROR)

CASES = [
  ("bleu", BLEU, {}, {}),
  (
    "bleu",
    BLEU,
    {"tokenize": "zh", "lowercase": True, "smoothing": "floor"},
    {"tokenize": "zh", "lowercase": True, "smooth_method": "floor"},
  ),
  (
    "bleu",
    BLEU,
    {"smoothing": "add-k", "smoothing_value": 0.25, "effective_order": True},
    {"smooth_method": "add-k", "smooth_value": 0.25, "effective_order": True},
  ),
  ("ter", TER, {}, {}),
  (
    "ter",
    TER,
    {
      "ter_normalized": True,
      "ter_no_punct": True,
      "ter_asian_support": True,
      "ter_case_sensitive": True,
    },
    {
      "normalized": True,
      "no_punct": True,
      "asian_support": True,
      "case_sensitive": True,
    },
  ),
  ("chrf", CHRF, {}, {}),
  ("chrf++", CHRF, {}, {"word_order": 2}),
  (
    "chrf",
    CHRF,
    {
      "chrf_char_order": 4,
      "chrf_word_order": 1,
      "chrf_beta": 3,
      "chrf_whitespace": True,
      "chrf_epsilon": True,
      "lowercase": True,
    },
    {
      "char_order": 4,
      "word_order": 1,
      "beta": 3,
      "whitespace": True,
      "eps_smoothing": True,
      "lowercase": True,
    },
  ),
]


@pytest.mark.parametrize(("name", "peer", "settings", "options"), CASES)
@pytest.mark.parametrize("count", [1, 3])
def test_names_and_signatures_are_sacrebleus(
  name, peer, settings, options, count
):
  hypotheses, references = metric_pairs.pairs(3, 60)
  references = [row * count for row in references]
  theirs = peer(**options)
  want = theirs.corpus_score(hypotheses, metric_pairs.streams(references))
  settings = evaluation.Settings(metrics=(name,), **settings)
  (scored,) = evaluation.evaluate(references, [hypotheses], settings)
  assert scored.label == want.name
  assert scored.corpus_score(0) == pytest.approx(want.score, abs=1e-6)
  signature = evaluation.signature(scored, references_per_sentence=count)
  assert signature == theirs.get_signature().format()


def test_detail_of_bleu():
  settings = evaluation.Settings(metrics=("bleu",))
  hypotheses, references = metric_pairs.pairs(3, 60)
  (scored,) = evaluation.evaluate(references, [hypotheses], settings)
  want = BLEU().corpus_score(hypotheses, metric_pairs.streams(references))
  assert evaluation.bleu_detail(scored, 0) == want._verbose


def test_signatures_of_what_sacrebleu_lacks():
  settings = evaluation.Settings(
    metrics=("bleu", "nist", "wer", "per", "gtm"),
    order=3,
    reference_length="shortest",
    gtm_exponent=1.5,
  )
  scored = evaluation.evaluate([["a b c"]], [["a b c"]], settings)
  sacrebleu = importlib.metadata.version("sacrebleu")
  jaxmt = importlib.metadata.version("jaxmt")
  common = "nrefs:1|case:mixed"
  own = f"version:jaxmt-{jaxmt}"
  assert [
    evaluation.signature(item, references_per_sentence=1) for item in scored
  ] == [
    f"{common}|eff:no|tok:13a|smooth:exp|order:3|len:shortest"
    f"|version:{sacrebleu}",
    f"{common}|tok:13a|order:5|{own}",
    f"{common}|tok:13a|{own}",
    f"{common}|tok:13a|{own}",
    f"{common}|tok:13a|exponent:1.5|{own}",
  ]


def test_all_metrics_of_several_systems():
  first, references = metric_pairs.pairs(8, 50)
  second, _ = metric_pairs.pairs(9, 50)
  settings = evaluation.Settings(metrics=evaluation.NAMES)
  both = evaluation.evaluate(references, [first, second], settings)
  alone = evaluation.evaluate(references, [second], settings)
  assert [item.label for item in both] == (
    "BLEU TER NIST WER PER GTM METEOR chrF2 chrF2++".split()
  )
  for two, one in zip(both, alone, strict=True):
    assert two.statistics.shape == (2, 50, two.metric.size)
    np.testing.assert_array_equal(two.statistics[1], one.statistics[0])
    better = two.corpus_score(0) > two.corpus_score(1)
    assert better == two.metric.higher_is_better
    assert two.sentence_scores(0).shape == (50,)


def test_wrong_numbers_of_lines():
  with pytest.raises(ValueError, match="system 1 has 1 lines, not 2"):
    evaluation.evaluate(
      [["a"], ["b"]], [["a", "b"], ["a"]], evaluation.Settings()
    )
  with pytest.raises(ValueError, match="no metric 'meant'"):
    evaluation.metric_of("meant", evaluation.Settings())
