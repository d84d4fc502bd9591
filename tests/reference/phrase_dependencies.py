"""Phrase dependencies and their relative frequencies, by definition."""

import collections
import math

from tests.reference import hiero


def arcs(heads, child, parent):
  """(length, word) of the arcs from a child span to a parent span."""
  return sorted(
    (abs(word - heads[word]), word)
    for word in range(*child)
    if parent[0] <= heads[word] < parent[1]
  )


def gap(one, other):
  return max(one[0] - other[1], other[0] - one[1], 0)


def overlap(one, other):
  return one[0] < other[1] and other[0] < one[1]


def dependencies(source, target, heads, links, options):
  """Yields (source spans or None, child, parent, word) of a sentence.

  Tuples of the target tree have no source spans. The parent of a phrase with
  the root is None.
  """
  pairs = hiero.initial_pairs(len(source), len(target), links, options)
  pairs = [((b, e), (low, high)) for b, e, low, high in pairs]
  for child in sorted({p[1] for p in pairs}):
    for word in range(*child):
      if heads[word] == -1:
        yield None, child, None, word
        for own, other in pairs:
          if other == child:
            yield (own, None), child, None, word
    for parent in sorted({p[1] for p in pairs}):
      if overlap(child, parent):
        continue
      down, up = arcs(heads, child, parent), arcs(heads, parent, child)
      if not down or (up and up[-1][0] >= down[-1][0]):
        continue
      word = down[-1][1]
      yield None, child, parent, word
      for one in (p[0] for p in pairs if p[1] == child):
        for other in (p[0] for p in pairs if p[1] == parent):
          if not overlap(one, other):
            yield (one, other), child, parent, word


def events(source, target, clusters, spans, child, parent):
  """(feature, context, outcome) of a dependency."""
  text = lambda words, span: (
    ("$",) if span is None else tuple(words[slice(*span)])
  )
  tc, tp = text(target, child), text(target, parent)
  cc, cp = text(clusters, child), text(clusters, parent)
  if parent is None:
    direction = order = source_gap = target_gap = "root"
  else:
    direction = "right" if child[0] >= parent[1] else "left"
    target_gap = gap(child, parent) > 0
  if spans is None:
    yield "dep_phrase", (tp, direction), tc
    yield "dep_phrase_cluster", (cp, direction), cc
    return
  sc, sp = text(source, spans[0]), text(source, spans[1])
  if parent is not None:
    after = spans[0][0] > spans[1][0]
    order = "same" if after == (direction == "right") else "swap"
    source_gap = gap(*spans) > 0
  gaps = (source_gap, target_gap)
  yield "dep_given_source", (tp, direction, sc), tc
  yield "dep_given_source_cluster", (cp, direction, sc), tc
  yield "dep_order", (tp, direction, order), tc
  yield "dep_order_cluster", (cp, direction, order), cc
  yield "dep_given_source_order", (tp, direction, sc, order), tc
  yield "dep_given_source_order_cluster", (cp, direction, sc, order), tc
  yield "dep_gaps", (tp, direction, order, gaps), tc
  yield "dep_gaps_cluster", (cp, direction, order, gaps), cc
  yield "dep_pair", (sc, sp), (tc, tp, direction)
  yield "dep_pair_order", (sc, sp, order), (tc, tp, direction)
  yield (
    "dep_pair_gaps",
    (sc, sp, order, source_gap),
    (tc, tp, direction, target_gap),
  )


def table(corpus, options):
  """Values of all events: {(feature, context, outcome): value}.

  Args:
    corpus: (source, target, clusters, heads, links) of each sentence.
    options: limits of phrase pairs.
  """
  counts = collections.defaultdict(collections.Counter)
  word_arcs = collections.defaultdict(collections.Counter)
  lexical = collections.defaultdict(collections.Counter)
  for source, target, clusters, heads, links in corpus:
    texts = {"dep_word": target, "dep_word_cluster": clusters}
    arc = {}
    for word, head in enumerate(heads):
      side = "root" if head < 0 else "right" if head < word else "left"
      for name, text in texts.items():
        parent = "$" if head < 0 else text[head]
        arc[name, word] = (parent, side), text[word]
        lexical[name, parent, side][text[word]] += 1
    found = dependencies(source, target, heads, links, options)
    for spans, child, parent, word in found:
      for name, context, outcome in events(
        source, target, clusters, spans, child, parent
      ):
        counts[name, context][outcome] += 1
        words = {
          "dep_phrase": "dep_word",
          "dep_phrase_cluster": "dep_word_cluster",
        }
        if name in words:
          own = words[name]
          word_arcs[own, context, outcome][arc[own, word]] += 1
  logs = {}
  for (name, context), outcomes in counts.items():
    for outcome, count in outcomes.items():
      logs[name, context, outcome] = math.log(count / outcomes.total())
  for (name, context, outcome), found in word_arcs.items():
    likely = []
    for ((parent, side), word), count in found.items():
      own = lexical[name, parent, side]
      likely.append((count, math.log(own[word] / own.total())))
    logs[name, context, outcome] = max(likely)[1]
  least = collections.defaultdict(float)
  for (name, _, _), value in logs.items():
    least[name] = min(least[name], value)
  return {key: 0.01 - least[key[0]] + value for key, value in logs.items()}
