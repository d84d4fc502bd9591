"""Detokenisation: from words between spaces to text as people write it.

Rules of the kind Moses' detokeniser has, by language: closing punctuation
leans to the left, opening brackets and currencies to the right, quotation
marks to the inside, English clitics ('s, n't) to the word before, French and
Italian elisions (l', dell') to the word after. Chinese and Japanese words are
joined without spaces, except between words in Latin letters or digits.
Entities that tokenisers write (&quot; &#124; ...) and `@-@` are undone.
"""

import re
from collections.abc import Sequence

JOINED = ("ja", "zh")
SPACED = (
  *("bg", "ca", "cs", "da", "de", "el", "en", "es", "et", "fi", "fr", "ga"),
  *("hr", "hu", "is", "it", "lt", "lv", "mt", "nb", "nl", "no", "pl", "pt"),
  *("ro", "ru", "sk", "sl", "sr", "sv", "tr", "uk"),
)
LANGUAGES = tuple(sorted((*JOINED, *SPACED)))

_ENTITIES = {
  "&bar;": "|",
  "&#124;": "|",
  "&lt;": "<",
  "&gt;": ">",
  "&bra;": "[",
  "&ket;": "]",
  "&#91;": "[",
  "&#93;": "]",
  "&quot;": '"',
  "&apos;": "'",
  "&#39;": "'",
  "&amp;": "&",
}
_ENTITY = re.compile("|".join(map(re.escape, _ENTITIES)))
_HYPHEN = re.compile(r" ?@([-/])@ ?")
_OPENING = re.compile(r"[(\[{¿¡$£€¥]+")
_CLOSING = re.compile(r"[,.?!:;%)\]}…]+")
_CLITIC = re.compile(r"(['’]\w+|n['’]t)", re.IGNORECASE)  # 's, 're; don't
_ELISION = re.compile(r"\w*[^\W\d_]['’]")  # l', qu', dell'
_LATIN = re.compile(r"[0-9A-Za-z\u00c0-\u024f]")
_ELIDING = ("ca", "fr", "ga", "it", "mt")
# Marks that open and those that close, where it does not depend on the count.
_QUOTES = {
  "en": ("“‘", "”’"),
  "de": ("„‚»", "“‘«"),
  "fr": ("“‘", "”’"),
  "other": ("„‚«", "“”’»"),
}
_FRENCH_SPACED = re.compile(r"[?!:;%»]+")


def detokenize(lines: Sequence[str], *, language: str) -> list[str]:
  """Returns text without tokenisation.

  Args:
    lines: words separated by spaces.
    language: one of `LANGUAGES`.

  Raises:
    ValueError: for another language.
  """
  if language not in LANGUAGES:
    raise ValueError(f"language '{language}' is none of {LANGUAGES}")
  one = _join_words if language in JOINED else _spaced
  return [
    one(_plain(line).split(" "), language) if line else "" for line in lines
  ]


def _plain(line: str) -> str:
  """Undoes entities (once: `&amp;lt;` is `&lt;`) and marked hyphens."""
  line = _HYPHEN.sub(r"\1", line)
  return _ENTITY.sub(lambda found: _ENTITIES[found[0]], line)


def _join_words(words: list[str], language: str) -> str:
  del language
  out = ""
  for word in words:
    both = out[-1:], word[:1]
    # Two words in Latin letters or digits would become one.
    if all(_LATIN.fullmatch(character) for character in both):
      out += " "
    out += word
  return out


def _spaced(words: list[str], language: str) -> str:
  openers, closers = _QUOTES.get(language, _QUOTES["other"])
  is_open = {'"': False, "'": False}
  out: list[str] = []
  glue = True  # nothing stands before the first word
  for place, word in enumerate(words):
    before = words[place - 1] if place else ""
    left, right = _leaning(word, before, language)
    if word in is_open and not left:
      # An odd mark opens, unless it ends a plural possessive (the dogs').
      possessive = (
        word == "'" and language == "en" and before[-1:] in ("s", "S")
      )
      opens = not is_open[word] and not possessive
      is_open[word] = opens
      left, right = not opens, opens
    elif word in openers:
      left, right = False, True
    elif word in closers:
      left, right = True, False
    out.append(word if glue or left else " " + word)
    glue = right
  return "".join(out)


def _leaning(word: str, before: str, language: str) -> tuple[bool, bool]:
  """Whether a word leans on the one before and on the one after."""
  if language == "fr" and (
    word == "«" or (_FRENCH_SPACED.fullmatch(word) and word != "...")
  ):
    return False, False
  if _CLOSING.fullmatch(word):
    return True, False
  if _OPENING.fullmatch(word):
    return False, True
  if language == "en" and before and _CLITIC.fullmatch(word):
    return before[-1].isalnum() or before[-1] == ".", False
  if language in _ELIDING and _ELISION.fullmatch(word):
    return False, True
  return False, False
