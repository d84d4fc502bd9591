"""Augmented scores of tiny grammars, by plain recursion over whole cells.

The loss by rank depends on the competition in each cell: all hypotheses that
the search would tell apart, by label, language model state, accumulators and
loss so far. They are built here bottom-up, with strings instead of records and
sets instead of bits. The language model must be `consistent`, so that the
score of a part of a sentence is that of its words without context.
"""

import dataclasses
import itertools
import math

from tests.reference import chart_enumeration as enumeration
from tests.reference.chart_cases import WEIGHTS

ORDER = 4


def consistent(grams):
  """The same model with all suffixes, and back-offs where words follow."""
  out = dict(grams)
  longest = max(map(len, grams))
  for size in range(longest, 1, -1):
    for gram in [g for g in out if len(g) == size]:
      for part in (gram[1:], gram[:-1]):
        if part not in out:
          backoff = out.get(part[:-1], (0.0, 0.0))[1]
          lower = part[1:] if part[1:] in out else part[-1:]
          out[part] = (backoff + out[lower][0], -0.25)
  contexts = {gram[:-1] for gram in out}
  ordered = sorted(out, key=len)
  return {
    gram: (out[gram][0], out[gram][1] if gram in contexts else 0.0)
    for gram in ordered
  }


def ngrams(words, size):
  return [tuple(words[k : k + size]) for k in range(len(words) - size + 1)]


def matches(words, reference):
  """Occurrences in the reference of all n-grams of the string."""
  return tuple(
    sum(ngrams(reference, n).count(gram) for gram in ngrams(words, n))
    for n in range(1, ORDER + 1)
  )


def hits(words, reference):
  """N-grams of the string that the reference has."""
  return tuple(
    sum(gram in ngrams(reference, n) for gram in ngrams(words, n))
    for n in range(1, ORDER + 1)
  )


def edges(words, reference):
  """Where the first and the last one to three words stand: `(first, last)`.

  Places as in `accumulators.Accumulators`: of the word before the first words,
  and of the last word.
  """
  first, last = [], []
  for size in range(1, ORDER):
    found = lambda part, size=size: [
      k for k, gram in enumerate(ngrams(reference, size)) if gram == part
    ]
    whole = len(words) >= size
    before = found(tuple(words[:size])) if whole else []
    first.append(tuple(k - 1 for k in before if k > 0))
    behind = found(tuple(words[-size:])) if whole else []
    last.append(tuple(k + size - 1 for k in behind))
  return tuple(first), tuple(last)


def log_goodness(words, reference, smoothing=0.5):
  """Minus equation (11), smoothed."""
  total = math.log(max(len(words), 1))
  for n, count in enumerate(matches(words, reference)):
    possible = max(len(words) - n, 0)
    total += 0.25 * math.log((count + smoothing) / (possible + smoothing))
  return total


def sentence_bleu(words, reference):
  """BLEU+1 without clipping."""
  found = hits(words, reference)
  if not found[0]:
    return 0.0
  total = min(0.0, 1 - max(len(reference), 1) / len(words))
  total += 0.25 * math.log(found[0] / len(words))
  for n in range(1, ORDER):
    possible = max(len(words) - n, 0)
    total += 0.25 * math.log((found[n] + 1) / (possible + 1))
  return math.exp(total)


def edit_rate(words, reference, per_break):
  """The surrogate of an error rate; a break costs `per_break`."""
  size = max(len(reference), 1)
  longer = max(len(words), size)
  found = hits(words, reference)
  errors = longer - min(found[0], longer)
  chunks = found[0] - found[1]
  return (errors + per_break * max(chunks - 1 - errors, 0)) / size


GOODNESS = {
  "bleu": log_goodness,
  "bleu+1": lambda words, reference: sentence_bleu(words, reference) - 1,
  "per": lambda words, reference: -edit_rate(words, reference, 0),
  "ter": lambda words, reference: -edit_rate(words, reference, 1),
  "wer": lambda words, reference: -edit_rate(words, reference, 2),
}


def rank_loss(eta, *, beam, margin, cost):
  """Equation (10), `eta` from 1."""
  if eta > beam + margin:
    return cost
  if eta > beam - margin:
    return (eta - (beam - margin)) * cost / (2 * margin)
  return 0.0


@dataclasses.dataclass(frozen=True)
class Hypothesis:
  words: tuple
  label: str
  inner: float  # the score that its words do not determine
  loss: float


@dataclasses.dataclass
class Competition:
  """What happened in a sentence's cells.

  Attributes:
    goal: (model score, loss, words) of whole derivations.
    candidates: candidates of the cell that had most.
    spread: the largest product of the children's numbers of hypotheses.
    clear: no two scores were so near that rounding could swap them.
  """

  goal: list
  candidates: int = 0
  spread: int = 0
  clear: bool = True


class TooLargeError(Exception):
  """A cell has more candidates than the caller wants to see."""


def compete(case, row, reference, *, loss, tie, limit):
  """Builds all cells of a sentence.

  Args:
    case: the case, its language model `consistent`.
    row: the sentence.
    reference: its words.
    loss: loss of a rank (1 = best).
    tie: scores that differ by less have one rank.
    limit: candidates that a cell may have.

  Raises:
    TooLargeError: if a cell has more.
  """
  words, trees = case.sentences[row], case.constituents[row]
  states = {g for g in case.grams if any(h[:-1] == g for h in case.grams)}
  left = {g[1:] for g in case.grams if len(g) > 1}
  known = lambda word: word if (word,) in case.grams else "<unk>"
  result = Competition(goal=[])

  def model(one, begin, end=False):
    text = one.words
    ln_p = enumeration.lm_score(
      case.grams, case.order, text, begin=begin, end=end
    )
    unknown = sum((word,) not in case.grams for word in text)
    return (
      one.inner
      + WEIGHTS["LanguageModel"] * ln_p
      + WEIGHTS["LanguageModel_OOV"] * unknown
      - WEIGHTS["WordPenalty"] * len(text)
    )

  def lm_state(text, begin):
    ids = tuple(known(word) for word in text)
    listed, full = (), begin
    for word in ids:
      more = (*listed, word)
      if full or more not in case.grams or more not in left:
        full = True
        break
      listed = more
      full = more not in states or len(listed) == case.order - 1
    history = ("<s>", *ids) if begin else ids
    tails = [history[k:] for k in range(len(history))]
    right = next((t for t in tails if t in states), ())
    return listed, full, right

  def settle(candidates, begin):
    """Merges equal states and adds losses by rank."""
    best, count = {}, 0
    for count, one in enumerate(candidates, start=1):
      if count > limit:
        raise TooLargeError
      key = (
        one.label,
        lm_state(one.words, begin),
        edges(one.words, reference),
        len(one.words),
        matches(one.words, reference),
        hits(one.words, reference),
        one.loss,
      )
      score = model(one, begin)
      if key not in best or score > best[key][0]:
        best[key] = (score, one)
    result.candidates = max(result.candidates, count)
    kept = list(best.values())
    scores = [score for score, _ in kept]
    for a, b in itertools.combinations(scores, 2):
      result.clear &= not tie / 3 < abs(a - b) < 3 * tie
    return [
      dataclasses.replace(
        one, loss=one.loss + loss(1 + sum(s > score + tie for s in scores))
      )
      for score, one in kept
    ]

  done = {}

  def cell(begin, end):
    if (begin, end) not in done:
      done[begin, end] = settle(fill(begin, end), begin=False)
    return done[begin, end]

  def fill(begin, end):
    for kind, lhs, source, target, score in case.rules:
      if kind == "hiero":
        if end - begin > case.span:
          continue
        limit, within = min(end, begin + case.span), None
      else:
        if lhs not in trees.get((begin, end), ()):
          continue
        limit, within = end, trees
      sites = [symbol[0] for symbol in source if not isinstance(symbol, str)]
      for last, spans in enumeration._fill(source, words, begin, limit, within):
        if last != end or (begin, end) in spans:
          continue
        parts_of = [cell(*span) for span in spans]
        spread(parts_of)
        for parts in itertools.product(*parts_of):
          fits = sum(p.label == s for p, s in zip(parts, sites, strict=True))
          text = []
          for symbol in target:
            text += parts[symbol].words if isinstance(symbol, int) else [symbol]
          yield Hypothesis(
            tuple(text),
            lhs,
            score
            + WEIGHTS["Match"] * fits
            + WEIGHTS["Mismatch"] * (len(sites) - fits)
            + sum(p.inner for p in parts),
            sum(p.loss for p in parts),
          )
    if end == begin + 1 and not any(
      kind == "hiero" and list(source) == [words[begin]]
      for kind, _, source, _, _ in case.rules
    ):
      yield Hypothesis((words[begin],), "X", WEIGHTS["PassThrough"], 0.0)

  def spread(parts):
    result.spread = max(result.spread, math.prod(len(p) for p in parts))

  def joined(end):
    spread([cell(0, end)])
    for one in cell(0, end):
      yield dataclasses.replace(one, label="S")
    for middle in range(1, end):
      spread([complete[middle], cell(middle, end)])
      for one, two in itertools.product(complete[middle], cell(middle, end)):
        yield Hypothesis(
          one.words + two.words,
          "S",
          one.inner + two.inner + WEIGHTS["Glue"],
          one.loss + two.loss,
        )

  complete = {}
  for end in range(1, len(words) + 1):
    complete[end] = settle(joined(end), begin=True)
  spread([complete[len(words)]])
  result.goal = [
    (model(one, begin=True, end=True), one.loss, one.words)
    for one in complete[len(words)]
  ]
  return result
