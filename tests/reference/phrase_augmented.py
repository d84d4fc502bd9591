"""Stacks of a tiny phrase-based model without pruning, with losses by rank.

Built by plain recursion, with strings in place of records and sets in place of
bits. Hypotheses that an augmented search with `state="accumulators"` tells
apart are told apart here.
"""

import dataclasses

import numpy as np

from tests.reference import chart_augmented as oracle
from tests.reference import chart_enumeration
from tests.reference import phrase_enumeration as enumeration


@dataclasses.dataclass(frozen=True)
class Hypothesis:
  """A hypothesis: its phrases, model score, estimate of the rest, loss."""

  chain: tuple
  score: float
  ahead: float
  loss: float

  @property
  def words(self):
    return [word for option in self.chain for word in option[2]]


def lm_state(case, words):
  """The longest end of the words that is a context of longer n-grams."""
  contexts = {gram[:-1] for gram in case.grams}
  known = [word if (word,) in case.grams else "<unk>" for word in words]
  history = ("<s>", *known)
  tails = [history[place:] for place in range(len(history))]
  return next((tail for tail in tails if tail in contexts), ())


def _key(case, one, reference):
  words = one.words
  covered = {p for option in one.chain for p in range(option[0], option[1])}
  last = one.chain[-1]
  return (
    frozenset(covered),
    last[:2],
    tuple(last[4][3:]),
    lm_state(case, words),
    oracle.edges(words, reference),
    len(words),
    oracle.matches(words, reference),
    oracle.hits(words, reference),
    one.loss,
  )


def _ahead(future, covered, size):
  """Future cost of the runs of uncovered words."""
  total, begin = 0.0, None
  for place in range(size + 1):
    free = place < size and place not in covered
    if free and begin is None:
      begin = place
    if not free and begin is not None:
      total += float(future[begin, place])
      begin = None
  return total


def compete(case, words, reference, future, *, limit, loss, tie):
  """Fills all stacks of a sentence.

  Args:
    case: the model; its language model is `chart_augmented.consistent`.
    words: the sentence.
    reference: words of its reference.
    future: best score of each span, `[N + 1, N + 1]`.
    limit: the distortion limit.
    loss: loss of a rank (1 = best).
    tie: totals that differ by less have one rank.

  Returns:
    `(goal, most, clear)`: (model score, loss, words) of complete hypotheses;
    the most candidates of a stack; whether no two totals were so near that
    rounding could swap them.
  """
  limit = len(words) if limit < 0 else limit
  every = enumeration.options_of(case, words)
  stacks = [[Hypothesis((), 0.0, 0.0, 0.0)]]
  most, clear = 0, True
  for size in range(1, len(words) + 1):
    best, count = {}, 0
    for level in range(size):
      for before in stacks[level]:
        covered = {p for o in before.chain for p in range(o[0], o[1])}
        gap = min(set(range(len(words))) - covered)
        end = before.chain[-1][1] if before.chain else 0
        for option in every:
          own = set(range(option[0], option[1]))
          if level + len(own) != size or own & covered:
            continue
          if abs(end - option[0]) > limit:
            continue
          if option[0] > gap and option[1] - gap > limit:
            continue
          chain = (*before.chain, option)
          one = Hypothesis(
            chain,
            partial_score(case, chain),
            _ahead(future, covered | own, len(words)),
            before.loss,
          )
          count += 1
          key = _key(case, one, reference)
          if key not in best or one.score > best[key].score:
            best[key] = one
    kept = list(best.values())
    totals = np.array([one.score + one.ahead for one in kept])
    gaps = np.abs(totals[:, None] - totals)
    clear &= not ((gaps > tie / 3) & (gaps < 3 * tie)).any()
    stacks.append(
      [
        dataclasses.replace(
          one, loss=one.loss + loss(1 + int((totals > total + tie).sum()))
        )
        for one, total in zip(kept, totals, strict=True)
      ]
    )
    most = max(most, count)
  goal = []
  for one in stacks[-1]:
    values, said = enumeration.features(case, one.chain)
    score = sum(enumeration.WEIGHTS.get(n, 0.0) * v for n, v in values.items())
    goal.append((score, one.loss, said))
  return goal, most, clear


def partial_score(case, chain):
  """Model score of a chain that need not be complete, without `</s>`."""
  values, said = enumeration.features(case, chain)
  values["LanguageModel"] = chart_enumeration.lm_score(
    case.grams, case.order, said, end=False
  )
  return sum(enumeration.WEIGHTS.get(n, 0.0) * v for n, v in values.items())
