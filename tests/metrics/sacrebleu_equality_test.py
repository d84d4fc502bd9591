"""BLEU, TER and chrF equal sacreBLEU, sentence by sentence and in sum."""

import functools
import gzip
import logging

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from jaxmt.metrics import bleu, chrf, encoded_text, ter
from tests import util
from tests.reference import metric_pairs

logging.getLogger("sacrebleu").setLevel(logging.ERROR)
TOLERANCE = 1e-6


def check(metric, tokenizer, peer, hypotheses, references):
  """Compares sentence and corpus scores."""
  known = encoded_text.encode_references(
    references, unit=metric.unit, tokenizer=tokenizer
  )
  rows = metric.statistics(
    metric.prepare(known.references),
    known.encode(tokenizer(hypotheses)),
    np.arange(len(hypotheses)),
  )
  # What `peer.sentence_score` and `peer.corpus_score` do, at half the cost.
  theirs = peer._extract_corpus_statistics(
    hypotheses, metric_pairs.streams(references)
  )
  want = [peer._aggregate_and_compute([row]).score for row in theirs]
  got = 100 * metric.sentence_score(rows)
  np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE)
  want = peer._aggregate_and_compute(theirs).score
  got = 100 * metric.corpus_score(rows.sum(0))
  assert got == pytest.approx(want, abs=TOLERANCE)


@functools.cache
def random_pairs():
  """2,000 pairs, the awkward ones both ways, and several references."""
  hypotheses, references = metric_pairs.pairs(1, 1500)
  more, several = metric_pairs.pairs(2, 500, references=4)
  hypotheses, references = hypotheses + more, references + several
  for one, other in metric_pairs.AWKWARD:
    hypotheses += [one, other, one]
    references += [[other], [one], [one]]
  several = [other for _, other in metric_pairs.AWKWARD]
  hypotheses.append("a b")
  references.append(several)
  # A reference may be missing, or be empty beside others.
  hypotheses += ["a b", "a b", ""]
  references += [[None, "a c"], ["", "a c"], ["", ""]]
  assert len(hypotheses) > 2000
  return hypotheses, references


@functools.cache
def real_pairs():
  """1,014 first-best translations, and 1,000 from further down."""
  folder = util.corpus("kbest-multi30k-de-en")
  references = (folder / "dev.ref.en").read_text().split("\n")
  hypotheses, rows = [], []
  with gzip.open(folder / "dev.kbest.cdec.gz", "rt") as lines:
    seen = -1
    for number, line in enumerate(lines):
      sentence, candidate = line.split(" ||| ", 2)[:2]
      if int(sentence) != seen or number % 95 == 0:
        seen = int(sentence)
        hypotheses.append(candidate)
        rows.append([references[seen]])
  assert len(hypotheses) > 2000
  return hypotheses, rows


@functools.cache
def conversation_pairs():
  """Real sentences with four references each; one of five plays the system."""
  folder = util.corpus("fisher-callhome-es-en")
  sides = []
  for number in range(4):
    with gzip.open(folder / f"dev.en.{number}.gz", "rt") as lines:
      sides.append([line.rstrip("\n") for line in lines][:600])
  return sides[3], [list(row) for row in zip(*sides[:3], strict=True)]


SOURCES = [random_pairs, real_pairs, conversation_pairs]


def test_the_public_functions_agree_too():
  """The other tests go below sacreBLEU's documented functions."""
  hypotheses, references = random_pairs()
  hypotheses, references = hypotheses[-76:], references[-76:]
  for metric, peers, tokenizer in (
    (bleu.metric(), (BLEU(effective_order=True), BLEU()), None),
    (ter.metric(), (TER(), TER()), encoded_text.tercom_tokenized),
    (chrf.metric(), (CHRF(), CHRF()), list),
  ):
    tokenizer = tokenizer or functools.partial(
      encoded_text.tokenized, tokenize="13a"
    )
    known = encoded_text.encode_references(
      references, unit=metric.unit, tokenizer=tokenizer
    )
    rows = metric.statistics(
      metric.prepare(known.references),
      known.encode(tokenizer(hypotheses)),
      np.arange(len(hypotheses)),
    )
    for line, row, got in zip(
      hypotheses, references, metric.sentence_score(rows), strict=True
    ):
      row = [reference for reference in row if reference is not None]
      want = peers[0].sentence_score(line, row).score
      assert 100 * got == pytest.approx(want, abs=TOLERANCE)
    want = peers[1].corpus_score(hypotheses, metric_pairs.streams(references))
    got = 100 * metric.corpus_score(rows.sum(0))
    assert got == pytest.approx(want.score, abs=TOLERANCE)


BLEU_SETTINGS = [
  {},
  {"tokenize": "none", "smooth_method": "add-k"},
  {"tokenize": "none", "smooth_method": "floor", "smooth_value": 0.5},
  {"tokenize": "intl", "smooth_method": "none"},
  {"tokenize": "zh", "lowercase": True, "max_ngram_order": 6},
  {"tokenize": "char", "max_ngram_order": 2, "effective_order": True},
]


@pytest.mark.parametrize("options", BLEU_SETTINGS)
@pytest.mark.parametrize("source", SOURCES)
def test_bleu(source, options):
  hypotheses, references = source()
  smoothing = bleu.Smoothing(
    method=options.get("smooth_method", "exp"),
    value=options.get("smooth_value"),
    effective_order=options.get("effective_order", False),
  )
  metric = bleu.metric(
    order=options.get("max_ngram_order", 4),
    smoothing=smoothing,
    sentence_smoothing=smoothing,
  )
  tokenizer = functools.partial(
    encoded_text.tokenized,
    tokenize=options.get("tokenize", "13a"),
    lowercase=options.get("lowercase", False),
  )
  peer = BLEU(**options)
  check(metric, tokenizer, peer, hypotheses, references)


TER_SETTINGS = [
  {},
  {"case_sensitive": True, "normalized": True},
  {"no_punct": True, "asian_support": True},
  {"normalized": True, "no_punct": True, "asian_support": True},
]


@pytest.mark.parametrize("options", TER_SETTINGS)
@pytest.mark.parametrize("source", SOURCES)
def test_ter(source, options):
  hypotheses, references = source()
  if options:  # sacreBLEU is slow here
    hypotheses = hypotheses[:-90:4] + hypotheses[-90:]
    references = references[:-90:4] + references[-90:]
  tokenizer = functools.partial(encoded_text.tercom_tokenized, **options)
  peer = TER(**options)
  check(ter.metric(), tokenizer, peer, hypotheses, references)


CHRF_SETTINGS = [
  {},
  {"word_order": 2},
  {"word_order": 3, "char_order": 4, "beta": 1, "lowercase": True},
  {"whitespace": True, "beta": 3},
  {"eps_smoothing": True, "word_order": 1},
]


@pytest.mark.parametrize("options", CHRF_SETTINGS)
@pytest.mark.parametrize("source", SOURCES)
def test_chrf(source, options):
  hypotheses, references = source()
  metric = chrf.metric(
    char_order=options.get("char_order", 6),
    word_order=options.get("word_order", 0),
    beta=options.get("beta", 2),
    whitespace=options.get("whitespace", False),
    epsilon=options.get("eps_smoothing", False),
  )
  tokenizer = functools.partial(
    encoded_text.tokenized, lowercase=options.get("lowercase", False)
  )
  peer = CHRF(**options)
  check(metric, tokenizer, peer, hypotheses, references)


@pytest.mark.parametrize(
  ("seed", "longest", "edits", "vocabulary"),
  [
    (1, 60, 8, 400),
    (2, 110, 12, 400),  # references over 64 words
    (3, 45, 20, 6),  # over 1,000 shift candidates
  ],
)
def test_ter_of_long_sentences(seed, longest, edits, vocabulary):
  words = [f"w{number}" for number in range(vocabulary)]
  hypotheses, references = metric_pairs.pairs(
    seed, 25, longest=longest, edits=edits, words=words
  )
  check(
    ter.metric(), encoded_text.tercom_tokenized, TER(), hypotheses, references
  )


def names(letter, count):
  return [f"{letter}{number}" for number in range(count)]


def test_ter_at_its_limits():
  """Cases that come out differently if a limit moves by one."""
  cases = []
  for size in range(9, 13):  # the longest block to shift
    block, rest = names("b", size), names("r", 24)
    cases += [(block + rest, rest + block), (rest + block, block + rest)]
  for gap in range(49, 52):  # the longest way to shift
    for tail in (3, 30):
      front, back = names("f", gap), names("t", tail)
      inside, before = [*front, "x", *back], ["x", *front, *back]
      cases += [(inside, before), (before, inside)]
  # The band: a common part that is worth reaching at just this distance. Out
  # of reach, it offers over 1,000 shifts.
  for offset, size in [(24, 27), (25, 27), (26, 27), (25, 42)]:
    common = names("c", size)
    one, other = names("j", offset) + common, common + names("o", offset)
    cases += [(one, other), (other, one)]
  # Plain edit distance and that in the band differ.
  for size in (30, 31, 40):
    line = names("w", size)
    cases += [(line[place : place + 4], line) for place in (0, 1, size - 4)]
  # Just over 1,000 shifts: with ten more allowed the result is another. Words
  # are single characters here.
  cases += [
    (
      "65331634601427320tuvwxyz0111670077403",
      "51713323101116700774030513101465331634601427320",
    ),
    (
      "13413431430303341322x3033413223341322",
      "022143233242010412343241113413413431430303341322",
    ),
  ]
  for short, long in [(1, 49), (1, 50), (1, 51), (1, 60), (2, 120), (3, 90)]:
    line = [f"w{number * 7 % 30}" for number in range(long)]
    cases += [(line[:short], line), (line, line[:short]), (["w5"], line)]
  hypotheses = [" ".join(words) for words, _ in cases]
  references = [[" ".join(words)] for _, words in cases]
  check(
    ter.metric(), encoded_text.tercom_tokenized, TER(), hypotheses, references
  )
