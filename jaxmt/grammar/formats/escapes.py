r"""Words and labels that look like markup, and back.

The table formats of other toolkits have no quoting: a word `[X,1]` would be
read as a non-terminal, a word `|||` as the end of a field, a label with a
comma as a label and an index. Where a word or label would be misread, the
characters in question are written as `\u` and four hexadecimal digits
(`\u005bX,1\u005d`), and read back from that. All other words stay as they are,
byte for byte; a word that itself contains such a sequence has its backslash
written as `\u005c`. So what is written is always read as what it was, and an
ordinary table is untouched. (Moses' own `&#91;` is not used: in its corpora it
stands in the text too, where it must keep matching.)
"""

import re

_CODE = re.compile(r"\\u00(22|28|29|2c|40|5b|5c|5d|78|7c)")


def unescape(text: str) -> str:
  r"""Returns the text with every `\u00..` sequence of ours replaced."""
  if "\\u00" not in text:
    return text
  return _CODE.sub(lambda match: chr(int(match[1], 16)), text)


def escape(text: str, characters: str) -> str:
  """Returns the text with some characters written as codes.

  The characters are among `()[],|"@x`. A backslash that would start a code is
  written as one too.
  """
  if "\\u00" in text:
    text = _CODE.sub(lambda match: "\\u005c" + match[0][1:], text)
  for character in characters:
    if character in text:
      text = text.replace(character, f"\\u{ord(character):04x}")
  return text


def escape_word(word: str, characters: str = "") -> str:
  """Escapes a word that would read as a bracketed token or field separator.

  Args:
    word: any word.
    characters: to be written as codes in any case.
  """
  if word[0] == "[" and word[-1] == "]":
    characters += "[]"
  if "|||" in word:
    characters += "|"
  return escape(word, characters)


def escape_label(label: str) -> str:
  """Returns a label that can stand in square brackets before `,1`."""
  return escape(label, "[],()" + ("|" if "|||" in label else ""))
