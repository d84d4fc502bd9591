"""Attachment scores of dependency trees."""

import numpy as np

from jaxmt.text import treebank
from jaxmt.text.ragged import Ragged
from jaxmt.text.treebank import Treebank

SHORT = 10  # words without punctuation


def attachment(bank: Treebank, heads: Ragged) -> dict[str, float | int]:
  """Returns directed and undirected accuracies in percent.

  Args:
    bank: sentences with right trees.
    heads: of the same sentences, -1 is the root.

  Returns:
    `sentences`, `words`; `accuracy` of all tokens, `words_accuracy` without
    punctuation, the same of sentences of at most 10 words
    (`short_sentences`, `short_words_accuracy`), `undirected_accuracy` of words
    (their arc is right in one of both directions), and `exact`, sentences
    without a wrong head.
  """
  right = heads.flat == bank.heads
  words = ~treebank.is_punctuation(bank)
  row = np.repeat(np.arange(len(bank)), bank.lengths)
  counts = np.bincount(row[words], minlength=len(bank))
  short = (counts <= SHORT)[row]
  wrong_rows = np.bincount(row[~right], minlength=len(bank)) > 0
  # An arc is right in one direction if the gold head's head is the token.
  base = bank.words.offsets[:-1][row]
  token = np.arange(len(row)) - base
  has_head = bank.heads >= 0
  back = np.zeros(len(row), bool)
  back[has_head] = (
    heads.flat[base[has_head] + bank.heads[has_head]] == token[has_head]
  )
  percent = lambda flags: float(100 * flags.mean()) if len(flags) else 0.0
  return {
    "sentences": len(bank),
    "words": int(words.sum()),
    "accuracy": percent(right),
    "words_accuracy": percent(right[words]),
    "undirected_accuracy": percent((right | back)[words]),
    "short_sentences": int((counts <= SHORT).sum()),
    "short_words_accuracy": percent(right[words & short]),
    "exact": percent(~wrong_rows),
  }
