"""Text for the language model: sentences of word ids, without the markers."""

from collections.abc import Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.lm import ngram_model as model_lib
from jaxmt.text import ragged, vocabulary
from jaxmt.text.ragged import Ragged


def encode_corpus(
  lines: Sequence[str], *, path: str | None = None, skip_symbols: bool = False
) -> tuple[Ragged, list[str]]:
  """Numbers the words of a text to be estimated from.

  Args:
    lines: one sentence each; an empty one is a sentence without words.
    path: for error messages.
    skip_symbols: leave out the words `<s>`, `</s>` and `<unk>`; otherwise they
      are an error, since the model has them with a meaning of their own.

  Returns:
    `(ids, words)`: int32 ids per line in order of first occurrence, and the
    distinct words.
  """
  ids, words = vocabulary.intern(lines)
  specials = {model_lib.UNKNOWN, model_lib.BEGIN, model_lib.END}
  special = np.array([word in specials for word in words], bool)
  if not special.any():
    return ids, words
  marked = special[ids.flat]
  if not skip_symbols:
    first = int(np.argmax(marked))
    line = int(np.searchsorted(ids.offsets, first, side="right"))
    word = words[int(ids.flat[first])]
    raise InputError(
      f"the text contains the special word {word}"
      " (--skip_symbols leaves such words out)",
      path=path,
      line=line,
    )
  kept_before = ragged.row_offsets(~marked)
  renumber = np.cumsum(~special, dtype=np.int32) - np.int32(1)
  unmarked = ragged.Ragged(
    flat=renumber[ids.flat[~marked]], offsets=kept_before[ids.offsets]
  )
  return unmarked, [word for word in words if word not in specials]
