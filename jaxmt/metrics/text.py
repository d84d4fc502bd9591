r"""From lines of text to the integers that metric kernels compare.

Tokenisers are sacreBLEU's own. Words are then what stands between white space
in the sense of `str.split`, as they are for sacreBLEU.
"""

import dataclasses
import functools
import importlib
from collections.abc import Callable, Sequence

import numpy as np

from jaxmt.metrics import base, words
from jaxmt.text.ragged import Ragged, row_offsets

TOKENIZERS = {
  "none": None,
  "13a": ("tokenizer_13a", "Tokenizer13a"),
  "zh": ("tokenizer_zh", "TokenizerZh"),
  "intl": ("tokenizer_intl", "TokenizerV14International"),
  "char": ("tokenizer_char", "TokenizerChar"),
  "ja-mecab": ("tokenizer_ja_mecab", "TokenizerJaMecab"),
  "ko-mecab": ("tokenizer_ko_mecab", "TokenizerKoMecab"),
}

Lines = Sequence[str]
# For each sentence its references; None stands for a missing one.
ReferenceLines = Sequence[Sequence[str | None]]


@functools.cache
def _tokenizer(name: str) -> Callable[[str], str]:
  module, kind = TOKENIZERS[name]  # pyrefly: ignore
  module = importlib.import_module(f"sacrebleu.tokenizers.{module}")
  return getattr(module, kind)()


def tokenized(
  lines: Lines, *, tokenize: str = "none", lowercase: bool = False
) -> list[str]:
  """Returns the lines with tokens between white space, as sacreBLEU has them.

  Args:
    lines: as written.
    tokenize: a name in `TOKENIZERS`.
    lowercase: whether to fold case first.

  Raises:
    ValueError: for an unknown tokeniser.
  """
  if tokenize not in TOKENIZERS:
    raise ValueError(f"no tokenizer '{tokenize}'")
  if lowercase:
    lines = [line.lower() for line in lines]
  if tokenize == "none":
    return list(lines)
  split = _tokenizer(tokenize)
  return [split(line.rstrip()) for line in lines]


def tercom_tokenized(
  lines: Lines,
  *,
  normalized: bool = False,
  no_punct: bool = False,
  asian_support: bool = False,
  case_sensitive: bool = False,
) -> list[str]:
  """Returns the lines as TER compares them; options as in sacreBLEU's TER."""
  if not (normalized or no_punct):
    return list(lines) if case_sensitive else [line.lower() for line in lines]
  module = importlib.import_module("sacrebleu.tokenizers.tokenizer_ter")
  split = module.TercomTokenizer(
    normalized=normalized,
    no_punct=no_punct,
    asian_support=asian_support,
    case_sensitive=case_sensitive,
  )
  return [split(line.rstrip()) for line in lines]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncodedReferences:
  """References as ids, and what is needed to encode hypotheses alike.

  Attributes:
    references: word ids, or code points.
    table: the reference's words; None for code points.
  """

  references: base.References
  table: words.WordTable | None

  def encode(self, lines: Lines) -> Ragged:
    """Returns hypotheses as ids; words no reference has share one id."""
    if self.table is None:
      return code_points(lines)
    return words.look_up(self.table, lines)


def encode_references(
  references: ReferenceLines,
  *,
  unit: str = base.WORD,
  tokenizer: Callable[[Lines], list[str]] = list,
) -> EncodedReferences:
  """Numbers the tokens of references.

  Args:
    references: for each of N sentences one or more lines; None is left out.
    unit: `base.WORD` or `base.CHARACTER`.
    tokenizer: applied to all lines, and by the caller to hypotheses too.

  Raises:
    ValueError: if a sentence has no reference.
  """
  kept = [[line for line in row if line is not None] for row in references]
  counts = np.array([len(row) for row in kept], np.int64)
  lines = tokenizer([line for row in kept for line in row])
  table = None
  if unit == base.CHARACTER:
    tokens = code_points(lines)
  else:
    tokens, table = words.number(lines)
  return EncodedReferences(
    references=base.make_references(tokens, counts), table=table
  )


def code_points(lines: Lines) -> Ragged:
  """Returns each line's code points with its white space, int32."""
  lengths = np.array([len(line) for line in lines], np.int64)
  offsets = row_offsets(lengths)
  data = "".join(lines).encode("utf-32-le")
  return Ragged(flat=np.frombuffer(data, np.int32), offsets=offsets)
