"""Raw text in and out: tokenisation and its inverse, as the training text had.

Words, case and escapes are told from the vocabulary of the model. Languages
with spaces are tokenised by sacremoses, which has Moses' rules and lists of
abbreviations; most tokenised corpora are made with these. Chinese is segmented
by rjieba, Japanese by fugashi (MeCab with UniDic). These libraries are the
extra `raw` of the package and are loaded when they are needed.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from jaxmt.errors import InputError
from jaxmt.text import detokenize as detokenize_lib
from jaxmt.text.detokenize import LANGUAGES

_LIBRARIES = {"zh": "rjieba", "ja": "fugashi"}
_ESCAPES = ("&apos;", "&quot;", "&amp;", "&#91;", "&#124;")


def check(**languages: str) -> None:
  """Raises `InputError` for a language that is not supported.

  Args:
    **languages: the language of each flag, empty if not given.
  """
  for flag, language in languages.items():
    if language and language not in LANGUAGES:
      known = ", ".join(LANGUAGES)
      raise InputError(f"--{flag}={language} is none of: {known}")


def is_lower(words: Sequence[str]) -> bool:
  """Whether a vocabulary has letters with case, all of them small."""
  small = any(word != word.upper() for word in words if word[:1] != "<")
  return small and all(
    word == word.lower() for word in words if word[:1] != "<"
  )


def tokenize(
  lines: Sequence[str], *, language: str, words: Sequence[str]
) -> list[str]:
  """Returns lines of words with spaces between, as the model knows them.

  Args:
    lines: raw text, a sentence a line.
    language: one of `detokenize.LANGUAGES`.
    words: the model's source vocabulary. If it is all lower-case, so are the
      lines; if it has entities such as `&apos;` or hyphens as `@-@`, special
      characters and hyphens are written so.

  Raises:
    InputError: if the library for this language is not installed.
  """
  split = _splitter(language, frozenset(words))
  if is_lower(words):
    lines = [line.lower() for line in lines]
  return [" ".join(split(line)) for line in lines]


def _splitter(
  language: str, words: frozenset[str]
) -> Callable[[str], Sequence[str]]:
  """A function from a line to its words."""
  library = _library(_LIBRARIES.get(language, "sacremoses"), language)
  if language == "zh":
    return lambda line: [
      word for part in line.split() for word in library.cut(part)
    ]
  if language == "ja":
    tagger = library.Tagger("-Owakati")
    return lambda line: tagger.parse(line).split()
  tokenizer = library.MosesTokenizer(lang=language)
  escape = any(word in words for word in _ESCAPES)
  hyphens = "@-@" in words
  return lambda line: tokenizer.tokenize(
    line, aggressive_dash_splits=hyphens, escape=escape
  )


def _library(name: str, language: str) -> Any:
  try:
    return importlib.import_module(name)
  except ImportError as error:
    raise InputError(
      f"raw text of '{language}' needs {name}: pip install 'jaxmt[raw]'"
    ) from error


def detokenize(
  lines: Sequence[str], *, language: str, capitalize: bool = False
) -> list[str]:
  """Returns raw text.

  Args:
    lines: words with spaces between.
    language: one of `detokenize.LANGUAGES`.
    capitalize: whether lines begin with a capital letter, which lower-case
      models do not write.
  """
  out = detokenize_lib.detokenize(lines, language=language)
  return [line[:1].upper() + line[1:] for line in out] if capitalize else out
