"""Tiny random grammars, language models and sentences for the chart's tests."""

import dataclasses
import functools
import itertools
import math

import numpy as np

from jaxmt.decode import model as models
from jaxmt.grammar import table as tables
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.grammar.table import Kind
from jaxmt.lm import tables as lm_tables
from jaxmt.lm.ngram_model import Level, NgramModel
from jaxmt.text.ragged import Ragged, from_rows
from jaxmt.text.vocabulary import SPECIALS, Vocabulary
from tests.reference.chart_enumeration import _fill

SOURCE = ("f", "g", "h")
TARGET = ("a", "b", "c", "d")  # the language model does not know d
LABELS = ("X", "S", "NP", "VP")
SLOTS = 2048
WEIGHTS = {
  "score": 1.0,
  "Glue": -0.3,
  "PassThrough": -1.5,
  "LanguageModel": 0.7,
  "LanguageModel_OOV": -0.4,
  "WordPenalty": -0.2,
  "Match": 0.25,
  "Mismatch": -0.35,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
  """One random case; see the functions that make the parts."""

  rules: list
  grams: dict
  order: int
  sentences: list[list[str]]
  constituents: list[dict]
  span: int


def random_lm(rng, order):
  """N-grams with log10 probability and back-off, contexts always there."""
  value = lambda: (float(-rng.uniform(0.2, 2.0)), float(-rng.uniform(0, 0.8)))
  grams = {(word,): value() for word in ("<unk>", "<s>", "</s>", *TARGET[:-1])}
  level = list(grams)
  for size in range(2, order + 1):
    level = [
      (*gram, word)
      for gram in level
      if gram[-1] != "</s>" and "<unk>" not in gram
      for word in ("a", "b", "c", "</s>", "<unk>")
      if rng.random() < 0.45
    ]
    for gram in level:
      probability, backoff = value()
      top = size == order or gram[-1] == "</s>"
      grams[gram] = (probability, 0.0 if top else backoff)
  return grams


def to_tables(grams, order):
  """The automaton's arrays, padded to one size for all cases."""
  levels, numbers = [], {(): 0}
  words = tuple(gram[0] for gram in grams if len(gram) == 1)
  for size in range(1, order + 1):
    members = [gram for gram in grams if len(gram) == size]
    own = {gram: number for number, gram in enumerate(members)}
    first = size == 1
    levels.append(
      Level(
        context=np.array([numbers[g[:-1]] for g in members], np.int32),
        word=np.array([words.index(g[-1]) for g in members], np.int32),
        suffix=np.array(
          [0 if first else numbers.get(g[1:], -1) for g in members], np.int32
        ),
        probability=np.array([grams[g][0] for g in members], np.float32),
        backoff=np.array([grams[g][1] for g in members], np.float32),
      )
    )
    numbers = own
  made = lm_tables.build_tables(NgramModel(words=words, levels=tuple(levels)))
  more = SLOTS - len(made.check)
  pad = lambda array, value: np.pad(array, (0, more), constant_values=value)
  return dataclasses.replace(
    made,
    check=pad(made.check, -1),
    follow=pad(made.follow, 0),
    score=pad(made.score, 0),
    length=pad(made.length, 0),
  )


def random_rules(rng, *, count, arity, tree_rules):
  """Rules as `chart_enumeration.derivations` takes them, without repetition."""
  rules = {}
  for number in range(count):
    tree = number < tree_rules
    sites = int(rng.integers(0, (arity if tree else 2) + 1))
    words = int(rng.integers(0 if tree and sites > 1 else 1, 3))
    label = lambda tree=tree: LABELS[int(rng.integers(2, 4))] if tree else "X"
    source = [(label(),) for _ in range(sites)]
    source += [SOURCE[int(rng.integers(0, 3))] for _ in range(words)]
    source = [source[k] for k in rng.permutation(len(source))]
    target = [int(k) for k in range(sites)]
    target += [
      TARGET[int(rng.integers(0, 4))] for _ in range(int(rng.integers(0, 3)))
    ]
    target = [target[k] for k in rng.permutation(len(target))]
    lhs = label()
    key = (tree, lhs, tuple(source), tuple(target))
    rules[key] = float(-rng.uniform(0, 3))
  return [
    ("tree" if tree else "hiero", lhs, list(source), list(target), score)
    for (tree, lhs, source, target), score in rules.items()
  ]


def random_tree(rng, length):
  """(begin, end) -> labels, nested spans with a root and all words."""
  spans = {}

  def grow(begin, end):
    label = LABELS[int(rng.integers(2, 4))]
    spans.setdefault((begin, end), set()).add(label)
    if end - begin == 1:
      return
    parts = int(rng.integers(2, min(end - begin, 4) + 1))
    cuts = np.sort(rng.permutation(np.arange(begin + 1, end))[: parts - 1])
    edges = [begin, *cuts.tolist(), end]
    for one, two in itertools.pairwise(edges):
      grow(one, two)

  grow(0, length)
  return spans


def random_case(
  seed, *, order, arity, sentences=4, rules=8, tree_rules=0, longest=4
):
  rng = np.random.default_rng(seed)
  texts = [
    [(*SOURCE, "u")[int(rng.integers(0, 4))] for _ in range(length)]
    for length in rng.integers(1, longest + 1, size=sentences)
  ]
  return Case(
    rules=random_rules(rng, count=rules, arity=arity, tree_rules=tree_rules),
    grams=random_lm(rng, order),
    order=order,
    sentences=texts,
    constituents=[
      random_tree(rng, len(text)) if tree_rules else {} for text in texts
    ],
    span=int(rng.integers(2, longest + 1)),
  )


def wide_rules(rng, *, count, arity):
  """Tree rules of `arity` sites, some with a word, that are often the best."""
  symbol = lambda names: names[int(rng.integers(0, len(names)))]
  rules = {}
  for _ in range(count):
    source = [(symbol(LABELS[2:]),) for _ in range(arity)]
    source += [symbol(SOURCE)] if rng.random() < 0.3 else []
    target = [*range(arity)]
    target += [symbol(TARGET) for _ in range(int(rng.integers(0, 3)))]
    mixed = lambda side: tuple(side[k] for k in rng.permutation(len(side)))
    key = (symbol(LABELS[2:]), mixed(source), mixed(target))
    rules[key] = float(rng.uniform(1, 7))
  return [
    ("tree", lhs, list(source), list(target), score)
    for (lhs, source, target), score in rules.items()
  ]


def joint_case(
  seed, *, order, arity=5, sentences=4, longest=6, most=150, copy="unknown"
):
  """Hiero rules and tree rules, several of them with `arity` sites.

  Sentences have three words or more; those with over `most` derivations are
  left out, so there may be fewer than asked for.
  """
  rng = np.random.default_rng(seed)
  rules = random_rules(rng, count=20, arity=arity, tree_rules=6)
  rules += wide_rules(rng, count=6, arity=arity)
  texts = [
    [(*SOURCE, "u")[int(rng.integers(0, 4))] for _ in range(length)]
    for length in rng.integers(3, longest + 1, size=sentences)
  ]
  case = Case(
    rules=rules,
    grams=random_lm(rng, order),
    order=order,
    sentences=texts,
    constituents=[random_tree(rng, len(text)) for text in texts],
    span=int(rng.integers(2, longest + 1)),
  )
  kept = [
    row for row in range(sentences) if count(case, row, copy=copy) <= most
  ]
  return dataclasses.replace(
    case,
    sentences=[case.sentences[row] for row in kept],
    constituents=[case.constituents[row] for row in kept],
  )


def arity_of(rule):
  """How many sites a rule has."""
  return sum(not isinstance(symbol, str) for symbol in rule[2])


def count(case, row, *, copy="unknown", below=None):
  """How many derivations a sentence has, without listing them.

  Args:
    case: the case.
    row: which sentence.
    copy: as for `chart_enumeration.derivations`.
    below: if given, only derivations of rules with fewer sites.
  """
  words, trees = case.sentences[row], case.constituents[row]
  rules = [r for r in case.rules if below is None or arity_of(r) < below]
  known = {
    source[0]
    for kind, _, source, _, _ in case.rules
    if kind == "hiero" and len(source) == 1
  }

  @functools.cache
  def cell(begin, end):
    copied = end == begin + 1 and (copy == "all" or words[begin] not in known)
    return int(copied) + sum(
      math.prod(cell(*span) for span in spans)
      for rule in rules
      for last, spans in ways(rule, begin, end)
      if last == end and (begin, end) not in spans
    )

  def ways(rule, begin, end):
    kind, lhs, source, _, _ = rule
    if kind == "hiero":
      fits = end - begin <= case.span
      return _fill(source, words, begin, end, None) if fits else ()
    fits = lhs in trees.get((begin, end), ())
    return _fill(source, words, begin, end, trees) if fits else ()

  totals = [1]
  for end in range(1, len(words) + 1):
    totals.append(sum(totals[b] * cell(b, end) for b in range(end)))
  return totals[-1]


def widest(case, row, *, copy="unknown", arity=5):
  """How many derivations of a sentence use a rule of `arity` sites."""
  narrow = count(case, row, copy=copy, below=arity)
  return count(case, row, copy=copy) - narrow


def to_table(rules):
  """The rules as a `RuleTable` with the feature `score`."""
  source_words = Vocabulary(words=(*SPECIALS, *SOURCE))
  target_words = Vocabulary(words=(*SPECIALS, *TARGET))
  label = LABELS.index
  return tables.make_table(
    source_words=source_words,
    target_words=target_words,
    labels=LABELS,
    lhs=np.array([label(lhs) for _, lhs, _, _, _ in rules], np.int32),
    kind=np.array(
      [
        Kind.TREE_TO_STRING if kind == "tree" else Kind.HIERO
        for kind, _, _, _, _ in rules
      ],
      np.int8,
    ),
    source=from_rows(
      [
        [
          source_words.index[s] if isinstance(s, str) else -1 - label(s[0])
          for s in source
        ]
        for _, _, source, _, _ in rules
      ]
    ),
    target=from_rows(
      [
        [
          -1 - s if isinstance(s, int) else target_words.index[s]
          for s in target
        ]
        for _, _, _, target, _ in rules
      ]
    ),
    features=np.array([[score] for *_, score in rules], np.float32),
    feature_names=("score",),
  )


def to_model(case, *, arity, pass_through="unknown", weights=None, features=()):
  """The case as a model, and its sentences."""
  made = models.make_model(
    to_table(case.rules),
    to_tables(case.grams, case.order),
    weights=WEIGHTS if weights is None else weights,
    limits=MatchConfig(
      span=case.span,
      targets=1000,
      applications=1000,
      pass_through=pass_through,
    ),
    arity=arity,
    features=features,
  )
  spans = None
  if any(case.constituents):
    rows = [
      [(b, e, LABELS.index(l)) for (b, e), ls in spans.items() for l in ls]
      for spans in case.constituents
    ]
    lengths = [len(row) for row in rows]
    spans = Ragged(
      flat=np.array([r for row in rows for r in row], np.int32).reshape(-1, 3),
      offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    )
  lines = [" ".join(text) for text in case.sentences]
  return made, models.make_source(made, lines, spans=spans)


def total(case, derivation, lm_score, weights=WEIGHTS):
  """The model score of one enumerated derivation."""
  words, score, match, mismatch, glue, copies = derivation
  unknown = sum((word,) not in case.grams for word in words)
  return (
    weights["score"] * score
    + weights["Match"] * match
    + weights["Mismatch"] * mismatch
    + weights["Glue"] * glue
    + weights["PassThrough"] * copies
    + weights["LanguageModel"] * lm_score(case.grams, case.order, words)
    + weights["LanguageModel_OOV"] * unknown
    - weights["WordPenalty"] * len(words)
  )
