"""Random tiny aligned corpora, rule tables, and readable views of tables."""

import numpy as np
from hypothesis import strategies as st

from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.table import Kind, make_table, nonterminals
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import SPECIALS, Vocabulary

SOURCE = tuple("abcde")
TARGET = tuple("vwxyz")
SOURCE_WORDS = Vocabulary(words=(*SPECIALS, *SOURCE))
TARGET_WORDS = Vocabulary(words=(*SPECIALS, *TARGET))


def corpora(*, longest=6, most=3):
  """A few `(source, target, links)` with words as strings.

  Drawn from a seed: independent draws of words and links would hardly ever
  give phrase pairs inside phrase pairs.
  """
  seeds = st.integers(0, 2**32 - 1)
  return seeds.map(lambda seed: _tiny_corpus(seed, longest, most))


def _tiny_corpus(seed, longest, most):
  rng = np.random.default_rng(seed)
  keep, noise = rng.choice([1.0, 0.8, 0.4]), rng.choice([0.0, 0.1, 0.4])
  words = rng.integers(2, len(SOURCE) + 1)
  corpus = []
  for _ in range(rng.choice(most + 1, p=_rising(most + 1))):
    sizes = rng.choice(np.arange(longest + 1), 2, p=_rising(longest + 1))
    spread = rng.choice([0.0, 1.0, 9.0])
    source, target = (rng.integers(0, words, size) for size in sizes)
    order = np.argsort(np.arange(sizes[1]) + rng.normal(0, spread, sizes[1]))
    links = set()
    for j in range(sizes[1]):
      if order[j] < sizes[0] and rng.random() < keep:
        links.add((int(order[j]), j))
      if sizes[0] and rng.random() < noise:
        links.add((int(rng.integers(sizes[0])), j))
    corpus.append(
      (
        tuple(SOURCE[word] for word in source),
        tuple(TARGET[word] for word in target),
        tuple(sorted(links)),
      )
    )
  return corpus


def _rising(size):
  """Probabilities that grow with the place."""
  return np.arange(1, size + 1) / (size * (size + 1) / 2)


OTHER_OPTIONS = {
  "max_phrase": (6, 5, 4, 3, 2, 1),
  "max_target_phrase": (6, 5, 4, 3, 2, 1),
  "max_symbols": (4, 3, 2, 1),
  "max_words": (3, 2, 1, 0),
  "max_nonterminals": (1, 0),
  "min_hole": (2, 3),
  "adjacent": (True,),
  "tight": (False,),
  "fractional": (True,),
}


def hiero_options():
  """The usual options with up to four others."""

  def choose(seed):
    rng = np.random.default_rng(seed)
    changed = rng.permutation(list(OTHER_OPTIONS))[: rng.integers(5)].tolist()
    values = {
      name: OTHER_OPTIONS[name][rng.integers(len(OTHER_OPTIONS[name]))]
      for name in changed
    }
    return HieroOptions(**values)

  return st.integers(0, 2**32 - 1).map(choose)


def encode(corpus):
  """Word ids and links of a corpus, as `(source, target, links)` arrays."""
  source = ragged.from_rows(
    [[SOURCE_WORDS.index[word] for word in pair[0]] for pair in corpus]
  )
  target = ragged.from_rows(
    [[TARGET_WORDS.index[word] for word in pair[1]] for pair in corpus]
  )
  flat = [link for pair in corpus for link in pair[2]]
  links = Ragged(
    flat=np.array(flat, np.int32).reshape(-1, 2),
    offsets=_offsets(pair[2] for pair in corpus),
  )
  return source, target, links


def _offsets(rows):
  return np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)


def random_corpus(sentences, *, longest=12, seed=0):
  """A larger corpus with mostly sensible links."""
  rng = np.random.default_rng(seed)
  corpus = []
  for _ in range(sentences):
    size = int(rng.integers(1, longest + 1))
    source = rng.integers(0, len(SOURCE), size)
    order = np.argsort(np.arange(size) + rng.normal(0, 1, size))
    links = {(int(order[j]), j) for j in range(size) if rng.random() < 0.9} | {
      tuple(rng.integers(0, size, 2).tolist()) for _ in range(size // 6)
    }
    corpus.append(
      (
        tuple(SOURCE[w] for w in source),
        tuple(TARGET[source[o]] for o in order),
        tuple(sorted(links)),
      )
    )
  return corpus


def readable(table):
  """`{(source, target): (count, links)}` of a table's extracted rules."""
  view = {}
  for rule in np.flatnonzero(table.kind == Kind.HIERO):
    sites = iter(range(9))
    source = tuple(
      table.source_words.words[s] if s >= 0 else ("X", next(sites))
      for s in table.source[rule].tolist()
    )
    target = tuple(
      table.target_words.words[s] if s >= 0 else ("X", -1 - s)
      for s in table.target[rule].tolist()
    )
    links = tuple(tuple(link) for link in table.links[rule].tolist())
    assert (source, target) not in view, "duplicate rule"
    view[source, target] = (table.counts[rule], links)
  return view


@st.composite
def tables(draw, *, most=8, labels=("X", "S", "NP", "VP")):
  """Arbitrary valid tables with some features."""
  drawn = [draw(_rules(len(labels))) for _ in range(draw(st.integers(0, most)))]
  rows = lambda name: [rule[name] for rule in drawn]
  column = lambda values: np.array(
    draw(st.lists(values, min_size=len(drawn), max_size=len(drawn)))
  )
  return make_table(
    labels=labels,
    source_words=SOURCE_WORDS,
    target_words=TARGET_WORDS,
    lhs=np.array(rows("lhs")),
    kind=np.array(rows("kind")),
    source=ragged.from_rows(rows("source")),
    target=ragged.from_rows(rows("target")),
    links=Ragged(
      flat=np.array(
        [link for row in rows("links") for link in row], np.int16
      ).reshape(-1, 2),
      offsets=_offsets(rows("links")),
    ),
    counts=column(st.integers(0, 5)),
    features=column(st.integers(-3, 3))[:, None] * np.ones((1, 2)),
    feature_names=("one", "two"),
    fragments=ragged.from_rows(rows("fragment")),
  )


@st.composite
def _rules(draw, labels):
  """A valid rule as a dict; glue and pass-through rules have one form each."""
  kind = Kind(draw(st.integers(0, 3)))
  rule = {"kind": kind, "lhs": 1, "links": [], "fragment": []}
  if kind == Kind.GLUE:
    left, right = draw(st.sampled_from([([-1], [-1]), ([-2, -1], [-1, -2])]))
    return rule | {"source": left, "target": right}
  if kind == Kind.PASS_THROUGH:
    return rule | {"lhs": 0, "source": [1], "target": [1]}
  rule["lhs"] = draw(st.integers(0, labels - 1))
  source = draw(st.lists(st.integers(-labels, 8), min_size=1, max_size=4))
  sites = sum(symbol < 0 for symbol in source)
  words = draw(st.lists(st.integers(4, 8), max_size=3))
  target = draw(st.permutations([*words, *(-1 - k for k in range(sites))]))
  pairs = [
    (i, j)
    for i, one in enumerate(source)
    for j, two in enumerate(target)
    if one >= 0 and two >= 0
  ]
  if pairs:
    rule["links"] = sorted(draw(st.sets(st.sampled_from(pairs))))
  if kind == Kind.TREE_TO_STRING and draw(st.booleans()):
    cut = draw(st.integers(0, len(source) - 1))  # the rest is one level down
    inner = [-2 - draw(st.integers(0, labels - 1)), *_leaves(source[cut:]), -1]
    rule["fragment"] = [-2 - rule["lhs"], *_leaves(source[:cut]), *inner, -1]
  return rule | {"source": source, "target": target}


def _leaves(source):
  """Source symbols as fragments write them."""
  return [c for s in source for c in ([s] if s >= 0 else [s - 1, -1])]


def same(one, other):
  """Whether two tables have the same bytes in every column."""
  for name in ("lhs", "kind", "counts", "features"):
    a, b = getattr(one, name), getattr(other, name)
    if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
      return False
  for name in ("source", "target", "links", "fragments"):
    a, b = getattr(one, name), getattr(other, name)
    if (
      a.flat.dtype != b.flat.dtype
      or a.flat.tobytes() != b.flat.tobytes()
      or a.offsets.tobytes() != b.offsets.tobytes()
    ):
      return False
  return (
    one.labels == other.labels
    and one.source_words == other.source_words
    and one.target_words == other.target_words
    and one.feature_names == other.feature_names
  )


def sites(table):
  """Labels of each rule's non-terminals, as lists."""
  found = nonterminals(table)
  return [found[rule].tolist() for rule in range(len(table))]
