"""METEOR against all alignments, laws, and Porter's published examples."""

import itertools
import math

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.metrics import encoded_text, evaluation, meteor, named_metrics
from jaxmt.text import porter

STEMS = """caresses caress ponies poni ties ti caress caress cats cat feed feed
agreed agre plastered plaster bled bled motoring motor sing sing conflated
conflat troubled troubl sized size hopping hop tanned tan falling fall hissing
hiss fizzed fizz failing fail filing file happy happi sky sky relational relat
conditional condit rational ration valenci valenc hesitanci hesit digitizer
digit conformabli conform radicalli radic differentli differ vileli vile
analogousli analog vietnamization vietnam predication predic operator oper
feudalism feudal decisiveness decis hopefulness hope callousness callous
formaliti formal sensitiviti sensit sensibiliti sensibl triplicate triplic
formative form formalize formal electriciti electr electrical electr hopeful
hope goodness good revival reviv allowance allow inference infer airliner
airlin gyroscopic gyroscop adjustable adjust defensible defens irritant irrit
replacement replac adjustment adjust dependent depend adoption adopt homologou
homolog communism commun activate activ angulariti angular homologous homolog
effective effect bowdlerize bowdler probate probat rate rate cease ceas
controll control roll roll generalizations gener oscillators oscil""".split()


@pytest.mark.parametrize(
  ("word", "stem"), list(zip(STEMS[::2], STEMS[1::2], strict=True))
)
def test_porters_examples(word, stem):
  assert porter.stem(word) == stem


@pytest.mark.parametrize("word", ["is", "Running", "über", "x-ing", "123", ""])
def test_other_words_are_their_own_stems(word):
  assert porter.stem(word) == word


def slow_alignment(words, reference):
  """The best alignment by trying all: (equal, stems, chunks)."""
  best = None
  choices = [
    [None]
    + [
      j
      for j, other in enumerate(reference)
      if word == other or porter.stem(word) == porter.stem(other)
    ]
    for word in words
  ]
  for pairing in itertools.product(*choices):
    places = [j for j in pairing if j is not None]
    if len(set(places)) < len(places):
      continue
    pairs = [(i, j) for i, j in enumerate(pairing) if j is not None]
    chunks = sum((i - 1, j - 1) not in pairs for i, j in pairs)
    distance = sum(abs(i - j) for i, j in pairs)
    equal = sum(words[i] == reference[j] for i, j in pairs)
    rank = (-len(pairs), chunks, distance, -equal)
    if best is None or rank < best[0]:
      best = rank, (equal, len(pairs) - equal, chunks)
  return best[1]


WORDS = ["walk", "walks", "walked", "the", "cat", "cats", "a", "seeing"]


def rows(lines, references, **how):
  known = encoded_text.encode_references(references, unit="stemmed word")
  return meteor.statistics(
    known.references,
    known.encode(lines),
    np.arange(len(lines)),
    parameters=meteor.VERSIONS["1.5"],
    **how,
  )


def test_statistics_equal_the_best_of_all_alignments():
  rng = np.random.default_rng(0)
  draw = lambda most: [str(w) for w in rng.choice(WORDS, rng.integers(0, most))]
  cases = [(draw(8), draw(8)) for _ in range(150)]
  got = rows(
    [" ".join(one) for one, _ in cases],
    [[" ".join(two)] for _, two in cases],
    beam=5000,
  )
  for (one, two), row in zip(cases, got, strict=True):
    assert tuple(row) == (*slow_alignment(one, two), len(one), len(two))


def test_the_beam_of_meteor_loses_no_pair_here():
  rng = np.random.default_rng(1)
  lines = [" ".join(rng.choice(WORDS, 9)) for _ in range(60)]
  refs = [[" ".join(rng.choice(WORDS, 9))] for _ in range(60)]
  narrow, wide = rows(lines, refs), rows(lines, refs, beam=20000)
  np.testing.assert_array_equal(narrow[:, :2].sum(1), wide[:, :2].sum(1))
  assert (narrow[:, 2] >= wide[:, 2]).all()
  assert (narrow[:, 2] == wide[:, 2]).mean() > 0.9


def test_scores_by_hand():
  """Two equal words, one equal stem, two chunks; 5 and 4 words."""
  (row,) = rows(["the cats were walking home"], [["the cat walked home"]])
  assert row.tolist() == [2, 2, 2, 5, 4]
  for version, m in (("1.5", 3.2), ("2007", 4.0), ("2005", 4.0)):
    p = meteor.VERSIONS[version]
    precision, recall = m / 5, m / 4
    mean = precision * recall / (p.alpha * precision + (1 - p.alpha) * recall)
    want = mean * (1 - p.gamma * math.pow(2 / 4, p.beta))
    assert meteor.score(row, parameters=p) == pytest.approx(want, abs=1e-12)


def test_best_reference_counts():
  lines = ["a cat walks"]
  both = rows(lines, [["seeing the", "a cat walked"]])
  np.testing.assert_array_equal(both, rows(lines, [["a cat walked"]]))


def test_sums_with_metrics_of_words():
  lines, refs = ["a cat walks home"], [["a cat walked home", "a cats walks"]]
  metric = named_metrics.find("bleu+1:0.25,meteor:0.75")
  known = encoded_text.encode_references(refs, unit=metric.unit)
  row = metric.statistics(
    metric.prepare(known.references), known.encode(lines), np.zeros(1, int)
  )
  total = 0.0
  for name, weight in (("bleu+1", 0.25), ("meteor", 0.75)):
    part = named_metrics.METRICS[name]
    own = encoded_text.encode_references(refs, unit=part.unit)
    single = part.statistics(
      part.prepare(own.references), own.encode(lines), np.zeros(1, int)
    )
    total += weight * part.sentence_score(single)[0]
  assert metric.sentence_score(row)[0] == pytest.approx(total, abs=1e-12)
  with pytest.raises(InputError, match="mixes units"):
    named_metrics.find("meteor,chrf")


def test_evaluation_has_it():
  settings = evaluation.Settings(metrics=("meteor",), meteor_version="2005")
  (scored,) = evaluation.evaluate([["a cat walked ."]], [["a cat ."]], settings)
  signature = evaluation.signature(scored, references_per_sentence=1)
  assert "version:2005|modules:exact+stem" in signature
  assert 0 < scored.corpus_score(0) < 100
  with pytest.raises(InputError, match="no version '3'"):
    meteor.metric(version="3")
