"""A tagger whose log likelihood is concave (Gimpel 2012, appendix B.3.1).

The tags of a sentence are drawn apart from each other, from constants:

    ∑_j log ∑_{z ∈ D(w_j)} C(z | s_j) p(w_j | z)

D(w) are the tags that a dictionary allows for a word, s_j those it allows for
the words before and after, and C constants: how often the tags of words that
have one tag only stand between such words. Constants before the probabilities
and terms that are left out keep the function concave, so EM finds a global
maximum from uniform distributions. The result is a hidden Markov model whose
counts are the posteriors of neighbouring words, for `tagger.fit` to start from.

The CCV1 of `concave` is the same model with tags drawn from the other words of
the sentence: `fit_emissions` learns both.

M: rows. G: distinct words in distinct contexts. K: tags.
"""

from collections.abc import Callable

import numpy as np

from jaxmt.parse import tagger
from jaxmt.parse.tagger import Tagger
from jaxmt.text import ragged
from jaxmt.text.treebank import Treebank


def fit_emissions(
  group: np.ndarray,
  context: np.ndarray,
  constants: np.ndarray,
  counts: np.ndarray,
  *,
  iterations: int,
  report: Callable[[int, float], None] = lambda iteration, value: None,
) -> tuple[np.ndarray, list[float]]:
  """Returns p(word | tag, context), by EM from uniform distributions.

  Args:
    group: the word in its context of each row, numbers below G, `[M]`.
    context: the context of each of them, `[G]`.
    constants: what stands before the probability of each tag, `[M, K]`.
    counts: how often each row occurs, `[M]`.
    iterations: steps.
    report: called with the number and the log likelihood of each step.

  Returns:
    (probabilities `[G, K]`, 0 for tags that no row of the context may have; the
    log likelihood before each step).
  """
  size, contexts = len(context), int(context.max()) + 1
  tags = constants.shape[1]
  shared = np.bincount(context, minlength=contexts)[context]
  table = np.repeat(1.0 / shared[:, None], tags, axis=1)
  order = np.argsort(group, kind="stable")
  rows = ragged.row_offsets(np.bincount(group, minlength=size))[:-1]
  by_context = np.argsort(context, kind="stable")
  groups = ragged.row_offsets(np.bincount(context, minlength=contexts))[:-1]
  history = []
  for step in range(iterations):
    shares, value = _posteriors(table, group, constants, counts)
    history.append(value)
    report(step + 1, value)
    table = np.add.reduceat(shares[order], rows)
    sums = np.add.reduceat(table[by_context], groups)[context]
    table = np.divide(table, sums, out=np.zeros_like(table), where=sums > 0)
  return table, history


def _posteriors(table, group, constants, counts):
  """Counts of the tags of each row `[M, K]`, and the log likelihood."""
  chosen = constants * table[group]
  total = chosen.sum(1)
  value = float(counts @ np.log(np.maximum(total, 1e-300)))
  return chosen * (counts / np.maximum(total, 1e-300))[:, None], value


def fit(
  bank: Treebank,
  dictionary: Treebank,
  *,
  iterations: int = 100,
  least: int = 1,
  report: Callable[[int, float], None] = lambda iteration, value: None,
) -> Tagger:
  """Returns a hidden Markov model learnt from words and a dictionary.

  Args:
    bank: sentences; tags are not looked at.
    dictionary: words with tags; other words may have any tag.
    iterations: of EM.
    least: words that the dictionary's sentences have less often are left out.
    report: called with the number and the log likelihood of each step.

  Raises:
    ValueError: without sentences, or without words in the dictionary.
  """
  if not len(bank.words.flat):
    raise ValueError("no sentences")
  allowed = _allowed(bank, dictionary, least)
  first, later = tagger.first_and_later(bank)
  classes, kind = np.unique(allowed, axis=0, return_inverse=True)
  beside = _neighbours(kind.reshape(-1)[bank.words.flat], later, len(classes))
  # Equal words between equal neighbours are one row.
  seen, row, counts = np.unique(
    np.stack([*beside, bank.words.flat]),
    axis=1,
    return_inverse=True,
    return_counts=True,
  )
  row = row.reshape(-1)
  constants = _constants(seen, counts, allowed)
  group = seen[2]
  table, _ = fit_emissions(
    group,
    np.zeros(len(allowed), np.int64),
    constants,
    counts.astype(np.float64),
    iterations=iterations,
    report=report,
  )
  token = _posteriors(table, group, constants, np.ones(len(group)))[0][row]
  emitted = np.zeros(allowed.shape)
  np.add.at(emitted, bank.words.flat, token)
  return tagger.of_counts(
    dictionary.tag_names,
    bank.forms,
    emitted=emitted.T,
    first=token[first].sum(0),
    pairs=token[later - 1].T @ token[later],
  )


def _neighbours(kind, later, border):
  """The kinds of the words before and after each token."""
  before = np.full(len(kind), border)
  after = np.full(len(kind), border)
  before[later], after[later - 1] = kind[later - 1], kind[later]
  return before, after


def _constants(seen, counts, allowed):
  """C(tag | kinds of the neighbours) of each row, 0 for other tags, `[M, K]`.

  Each neighbour counts by itself: C(z | b, a) ~ p(z | b) p(z | a) / p(z).
  """
  own = allowed[seen[2]]
  known = own * (own.sum(1, keepdims=True) == 1) * counts[:, None]
  prior = (known.sum(0) + 1.0) / (known.sum() + own.shape[1])
  out = 1.0 / prior
  for kind in seen[:2]:
    sums = np.zeros((int(kind.max()) + 1, own.shape[1])) + prior
    np.add.at(sums, kind, known)
    out = out * (sums / sums.sum(1, keepdims=True))[kind]
  return own * out / out.sum(1, keepdims=True)


def _allowed(bank: Treebank, dictionary: Treebank, least: int) -> np.ndarray:
  """Tags that each word of the treebank may have, bool `[V, K]`."""
  counts = np.zeros((len(dictionary.forms), len(dictionary.tag_names)))
  np.add.at(counts, (dictionary.words.flat, dictionary.tags), 1)
  known = {
    form: counts[row] > 0
    for row, form in enumerate(dictionary.forms)
    if counts[row].sum() >= least
  }
  if not known:
    raise ValueError(f"no word stands {least} times in the dictionary")
  every = np.ones(len(dictionary.tag_names), bool)
  return np.array([known.get(form, every) for form in bank.forms])
