"""θ, lexical weights and rule matching by definition, with dictionaries."""

import collections
import math


def theta(rules, *, alpha=0.0):
  """The five probabilities of each rule.

  Args:
    rules: `(lhs, source, target, count)`; sides are tuples whose non-terminals
      carry their labels.
    alpha: added to each rule's and each pair of sides' count.

  Returns:
    A list of five-tuples; None where the condition has no count.
  """
  pairs = collections.Counter()
  for _, source, target, count in rules:
    pairs[source, target] += count
  pairs = {key: count + alpha for key, count in pairs.items()}
  answer = []
  for lhs, source, target, count in rules:
    both = pairs[source, target]
    by_target = sum(c for (_, t), c in pairs.items() if t == target)
    by_source = sum(c for (s, _), c in pairs.items() if s == source)
    of_lhs = sum(c + alpha for l, _, _, c in rules if l == lhs)
    of_source = sum(c + alpha for _, s, _, c in rules if s == source)
    of_target = sum(c + alpha for _, _, t, c in rules if t == target)
    one = count + alpha
    answer.append(
      tuple(
        above / below if below else None
        for above, below in (
          (both, by_target),
          (both, by_source),
          (one, of_lhs),
          (one, of_source),
          (one, of_target),
        )
      )
    )
  return answer


def lexicon(corpus):
  """w(target|source) and w(source|target) of `(source, target, links)`."""
  counts = collections.Counter()
  for source, target, links in corpus:
    counts.update((source[i], target[j]) for i, j in links)
    lone = set(range(len(source))) - {i for i, _ in links}
    counts.update((source[i], None) for i in lone)
    lone = set(range(len(target))) - {j for _, j in links}
    counts.update((None, target[j]) for j in lone)
  forward, backward = {}, {}
  for (one, two), count in counts.items():
    forward[one, two] = count / sum(
      c for (s, _), c in counts.items() if s == one
    )
    backward[one, two] = count / sum(
      c for (_, t), c in counts.items() if t == two
    )
  return forward, backward


def lexical_weight(source, target, links, tables):
  """ln lex(α|β, a) and ln lex(β|α, a); non-terminals are not strings."""
  forward, backward = tables
  total = [0.0, 0.0]
  for i, word in enumerate(source):
    if isinstance(word, str):
      linked = [backward[word, target[t]] for s, t in links if s == i]
      linked = linked or [backward[word, None]]
      total[0] += math.log(sum(linked) / len(linked))
  for j, word in enumerate(target):
    if isinstance(word, str):
      linked = [forward[source[s], word] for s, t in links if t == j]
      linked = linked or [forward[None, word]]
      total[1] += math.log(sum(linked) / len(linked))
  return total


def matches(pattern, sentence):
  """Whether ids (negative: at least one word) match inside a sentence."""

  def here(place, position):
    if place == len(pattern):
      return True
    if pattern[place] >= 0:
      return (
        position < len(sentence)
        and sentence[position] == pattern[place]
        and here(place + 1, position + 1)
      )
    return any(
      here(place + 1, end) for end in range(position + 1, len(sentence) + 1)
    )

  return any(here(0, start) for start in range(len(sentence) + 1))
