"""The Porter stemmer for English (Porter 1980: "... for suffix stripping").

Words that are not lower-case ASCII letters only, and words of one or two
letters, are their own stems.
"""

import functools

_VOWELS = frozenset("aeiou")


def _consonant(word: str, place: int) -> bool:
  if word[place] in _VOWELS:
    return False
  if word[place] == "y":
    return place == 0 or not _consonant(word, place - 1)
  return True


def _measure(stem: str) -> int:
  """The number of vowel runs followed by a consonant: m of [C](VC)^m[V]."""
  count, vowel_before = 0, False
  for place in range(len(stem)):
    consonant = _consonant(stem, place)
    if consonant and vowel_before:
      count += 1
    vowel_before = not consonant
  return count


def _has_vowel(stem: str) -> bool:
  return any(not _consonant(stem, place) for place in range(len(stem)))


def _double_consonant(word: str) -> bool:
  return (
    len(word) > 1 and word[-1] == word[-2] and _consonant(word, len(word) - 1)
  )


def _short_end(word: str) -> bool:
  """*o: the word ends consonant, vowel, consonant other than w, x, y."""
  last = len(word) - 1
  return (
    last >= 2
    and _consonant(word, last - 2)
    and not _consonant(word, last - 1)
    and _consonant(word, last)
    and word[last] not in "wxy"
  )


def _plural(word: str) -> str:
  """Step 1a."""
  for suffix, new in (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")):
    if word.endswith(suffix):
      return word[: len(word) - len(suffix)] + new
  return word


def _past(word: str) -> str:
  """Steps 1b and 1c."""
  if word.endswith("eed"):
    if _measure(word[:-3]) > 0:
      word = word[:-1]
  else:
    for suffix in ("ed", "ing"):
      stem = word[: len(word) - len(suffix)]
      if word.endswith(suffix) and _has_vowel(stem):
        word = _repaired(stem)
        break
      if word.endswith(suffix):
        break
  if word.endswith("y") and _has_vowel(word[:-1]):
    word = word[:-1] + "i"
  return word


def _repaired(stem: str) -> str:
  """The end of a stem that lost -ed or -ing."""
  if stem.endswith(("at", "bl", "iz")):
    return stem + "e"
  if _double_consonant(stem) and stem[-1] not in "lsz":
    return stem[:-1]
  if _measure(stem) == 1 and _short_end(stem):
    return stem + "e"
  return stem


_STEP2 = (
  ("ational", "ate"),
  ("tional", "tion"),
  ("enci", "ence"),
  ("anci", "ance"),
  ("izer", "ize"),
  ("abli", "able"),
  ("alli", "al"),
  ("entli", "ent"),
  ("eli", "e"),
  ("ousli", "ous"),
  ("ization", "ize"),
  ("ation", "ate"),
  ("ator", "ate"),
  ("alism", "al"),
  ("iveness", "ive"),
  ("fulness", "ful"),
  ("ousness", "ous"),
  ("aliti", "al"),
  ("iviti", "ive"),
  ("biliti", "ble"),
)
_STEP3 = (
  ("icate", "ic"),
  ("ative", ""),
  ("alize", "al"),
  ("iciti", "ic"),
  ("ical", "ic"),
  ("ful", ""),
  ("ness", ""),
)
_STEP4 = (
  *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement"),
  *("ment", "ent", "ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)


def _replaced(word: str, table, least: int) -> str:
  """Replaces the longest suffix of a table if the measure exceeds `least`."""
  fitting = [pair for pair in table if word.endswith(pair[0])]
  if not fitting:
    return word
  suffix, new = max(fitting, key=lambda pair: len(pair[0]))
  stem = word[: len(word) - len(suffix)]
  if _measure(stem) <= least or (suffix == "ion" and stem[-1:] not in "st"):
    return word
  return stem + new


def _tidy(word: str) -> str:
  """Steps 5a and 5b."""
  if word.endswith("e"):
    stem = word[:-1]
    size = _measure(stem)
    if size > 1 or (size == 1 and not _short_end(stem)):
      word = stem
  if word.endswith("ll") and _measure(word) > 1:
    word = word[:-1]
  return word


@functools.lru_cache(maxsize=1 << 18)
def stem(word: str) -> str:
  """Returns the stem of an English word."""
  if len(word) < 3 or not (
    word.isascii() and word.isalpha() and word.islower()
  ):
    return word
  word = _past(_plural(word))
  word = _replaced(word, _STEP2, 0)
  word = _replaced(word, _STEP3, 0)
  word = _replaced(word, [(suffix, "") for suffix in _STEP4], 1)
  return _tidy(word)


def stem_line(line: str) -> str:
  """Returns a line with every word replaced by its stem."""
  return " ".join([stem(word) for word in line.split()])
