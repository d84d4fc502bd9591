"""Every derivation of a tiny grammar, by plain recursion."""

import itertools
import math


def lm_score(grams, order, words, *, begin=True, end=True):
  """ln p of a word list under `grams: ngram -> (log10 p, log10 back-off)`."""

  def probability(context, word):
    gram = (*context, word)
    if gram in grams:
      return grams[gram][0]
    if not context:
      return grams[("<unk>",)][0]
    backoff = grams.get(context, (0.0, 0.0))[1]
    return backoff + probability(context[1:], word)

  history = ["<s>"] if begin else []
  total = 0.0
  for word in [*words, *(["</s>"] if end else [])]:
    known = word if (word,) in grams else "<unk>"
    context = tuple(history[-(order - 1) :]) if order > 1 else ()
    total += probability(context, known)
    history.append(known)
  return total * math.log(10)


def _fill(pattern, words, begin, limit_end, constituents):
  """All ways to match a source side from `begin`: (end, site spans)."""
  if not pattern:
    yield begin, ()
    return
  head, *tail = pattern
  if isinstance(head, str):
    if begin < len(words) and words[begin] == head:
      yield from _fill(tail, words, begin + 1, limit_end, constituents)
    return
  for end in range(begin + 1, limit_end + 1):
    if constituents is not None and (begin, end) not in constituents:
      continue
    for last, spans in _fill(tail, words, end, limit_end, constituents):
      yield last, ((begin, end), *spans)


def derivations(rules, words, *, span, constituents=None, copy="unknown"):
  """All derivations of a sentence.

  Args:
    rules: (kind, lhs, source, target, score); kind "hiero" or "tree"; in the
      source a str is a word and a tuple `(label,)` a site; in the target an int
      is a site.
    words: source words.
    span: span limit of Hiero rules.
    constituents: (begin, end) -> set of labels.
    copy: "unknown" or "all".

  Returns:
    A list of (target words, rule score, matches, mismatches, glue joins,
    copies).
  """
  trees = constituents or {}
  done = {}

  def cell(begin, end):
    if (begin, end) not in done:
      done[begin, end] = list(fill(begin, end))
    return done[begin, end]

  def fill(begin, end):
    for kind, lhs, source, target, score in rules:
      if kind == "hiero":
        if end - begin > span:
          continue
        ways = _fill(source, words, begin, min(end, begin + span), None)
      else:
        if lhs not in trees.get((begin, end), ()):
          continue
        ways = _fill(source, words, begin, end, trees)
      sites = [symbol[0] for symbol in source if not isinstance(symbol, str)]
      for last, spans in ways:
        if last != end or (begin, end) in spans:
          continue
        for parts in itertools.product(*(cell(*s) for s in spans)):
          hits = sum(p[1] == s for p, s in zip(parts, sites, strict=True))
          text = []
          for symbol in target:
            text += parts[symbol][0] if isinstance(symbol, int) else [symbol]
          yield (
            text,
            lhs,
            score + sum(p[2] for p in parts),
            hits + sum(p[3] for p in parts),
            len(sites) - hits + sum(p[4] for p in parts),
            sum(p[5] for p in parts),
          )
    if end == begin + 1:
      known = any(
        kind == "hiero" and list(source) == [words[begin]]
        for kind, _, source, _, _ in rules
      )
      if copy == "all" or not known:
        yield [words[begin]], "X", 0.0, 0, 0, 1

  complete = {0: [([], 0.0, 0, 0, -1, 0)]}
  for end in range(1, len(words) + 1):
    complete[end] = [
      (
        a[0] + b[0],
        a[1] + b[2],
        a[2] + b[3],
        a[3] + b[4],
        a[4] + 1,
        a[5] + b[5],
      )
      for begin in range(end)
      for a in complete[begin]
      for b in cell(begin, end)
    ]
  return complete[len(words)]
