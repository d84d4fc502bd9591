"""Modified Kneser-Ney by the book, with dictionaries and fractions of loops.

N-grams are tuples of words. `<s>` opens and `</s>` ends every sentence.
"""

from collections import Counter, defaultdict

BOS, EOS, UNK = "<s>", "</s>", "<unk>"


class NoDiscounts(Exception):
  """The text is too small for the closed form."""


def estimate(sentences, order, thresholds, fallback=None):
  """Returns `{ngram: (probability, back-off weight)}`, not logarithms."""
  raw = _raw_counts(sentences, order)
  rank = _ranks(sentences)
  adjusted = {}
  for k in range(1, order + 1):
    for gram in raw[k]:
      if k == order or (gram[0] == BOS and k > 1):
        adjusted[gram] = raw[k][gram]
    if k < order:
      before = defaultdict(set)
      for gram in raw[k + 1]:
        before[gram[1:]].add(gram[0])
      for gram, words in before.items():
        adjusted.setdefault(gram, len(words))
  by_order = defaultdict(list)
  for gram in adjusted:
    by_order[len(gram)].append(gram)
  discounts = {
    k: _discounts(by_order, adjusted, raw, rank, k, order, fallback)
    for k in range(1, order + 1)
  }
  pruned = {
    gram
    for gram in adjusted
    if raw[len(gram)][gram] <= thresholds[len(gram) - 1] and gram != (EOS,)
  }
  return _interpolate(by_order, adjusted, pruned, discounts, order)


def _raw_counts(sentences, order):
  raw = {k: Counter() for k in range(1, order + 1)}
  for sentence in sentences:
    words = [BOS, *sentence, EOS]
    for k in range(1, order + 1):
      for start in range(len(words) - k + 1):
        raw[k][tuple(words[start : start + k])] += 1
  del raw[1][(BOS,)]
  return raw


def _ranks(sentences):
  rank = {UNK: 0, BOS: 1, EOS: 2}
  for sentence in sentences:
    for word in sentence:
      rank.setdefault(word, len(rank))
  return rank


def _discounts(by_order, adjusted, raw, rank, k, order, fallback):
  totals = Counter(adjusted[gram] for gram in by_order[k])
  # The program we agree with counts the very last n-gram of each order, in the
  # order of reversed words, by its occurrences.
  chain = []
  for length in range(1, order):
    last = max(
      by_order[length], key=lambda gram: [rank[word] for word in gram[::-1]]
    )
    chain.append(last)
    if last[0] == BOS:
      break
  for gram in chain:
    if len(gram) == k:
      totals[adjusted[gram]] -= 1
      totals[raw[k][gram]] += 1
  try:
    if not all(totals[j] for j in (1, 2, 3)):
      raise NoDiscounts(k)
    y = totals[1] / (totals[1] + 2 * totals[2])
    result = [0.0]
    for j in (1, 2, 3):
      result.append(j - (j + 1) * y * totals[j + 1] / totals[j])
      if not 0 <= result[-1] <= j:
        raise NoDiscounts(k)
    return result
  except NoDiscounts:
    if fallback is None:
      raise
    return [0.0, *fallback]


def _interpolate(by_order, adjusted, pruned, discounts, order):
  vocabulary = {UNK} | {gram[0] for gram in by_order[1] if gram not in pruned}
  continuations = defaultdict(list)
  for gram in adjusted:
    continuations[gram[:-1]].append(gram)

  def weight(context):
    grams = continuations.get(context)
    if not grams:
      return 1.0
    mass = 0.0
    for gram in grams:
      count = adjusted[gram]
      mass += count if gram in pruned else discounts[len(gram)][min(count, 3)]
    return mass / sum(adjusted[gram] for gram in grams)

  probability = {(): 1 / len(vocabulary)}

  def fill(gram):
    context = gram[:-1]
    total = sum(adjusted[other] for other in continuations[context])
    count = adjusted.get(gram, 0)
    own = (count - discounts[len(gram)][min(count, 3)]) / total
    lower = probability[()] if len(gram) == 1 else probability[gram[1:]]
    probability[gram] = own + weight(context) * lower

  fill((UNK,))
  for k in range(1, order + 1):
    for gram in by_order[k]:
      if gram not in pruned:
        fill(gram)
  probability[(BOS,)] = 1.0
  del probability[()]
  return {
    gram: (p, 1.0 if len(gram) == order or gram[-1] == EOS else weight(gram))
    for gram, p in probability.items()
  }
