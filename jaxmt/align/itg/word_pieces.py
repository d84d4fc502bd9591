"""Word pairs judged by stems, characters and a dictionary.

Most words of a small bitext are rare, and words that hand-aligned pairs have
may be segmented in another way than those of the bitext. Three kinds of
evidence look inside of words; they are additions to the papers' features.

  stems       the first letters of a word: an HMM of the text of stems.
  pieces      the characters of a word of Chinese, Japanese or Korean script,
              the stem of any other: Model 1 of the text of pieces. A word pair
              f, e with pieces a, b scores
                mean over b of ln (mean over a of t(b | a))
              and the same from e to f.
  dictionary  whether a translation of f has a word with the stem of e, and
              whether one of a part of f has.

P: word pairs. V: words of a side.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxmt.align import em, named_aligners
from jaxmt.align.aligner import Parameters
from jaxmt.align.cooccurrence import PairTable
from jaxmt.errors import InputError
from jaxmt.text import files, ragged
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

PAIR_SCORES = (
  "pieces forward",
  "pieces backward",
  "in dictionary",
  "part in dictionary",
)
_LETTERS, _CHARACTERS = 5, 2  # of a stem
_MIN_LOG = float(np.log(1e-6))
_LONGEST_PART = 4  # characters of a part that the dictionary may have
# Ranges of scripts in which a character says something about the meaning.
_SYLLABIC = (
  ("\u2e80", "\ud7ff"),
  ("\uf900", "\ufaff"),
  ("\uff66", "\uff9f"),
  ("\U00020000", "\U0003ffff"),
)


def is_syllabic(word: str) -> bool:
  """Whether a word has a character of Chinese, Japanese or Korean script."""
  return any(
    low <= letter <= high for letter in word for low, high in _SYLLABIC
  )


def stem(word: str) -> str:
  """Returns the first letters of a word in lower case."""
  return word.lower()[: _CHARACTERS if is_syllabic(word) else _LETTERS]


def pieces(word: str) -> list[str]:
  """Returns the characters of a word, or its stem; see the module."""
  return list(word) if is_syllabic(word) else [stem(word)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StemEvidence:
  """An HMM of stems.

  Attributes:
    stems: stem of each word, per side, int32 `[V]`.
    table: pairs of stems.
    keys: `source << 32 | target` of each pair, rising, int64.
    parameters: of the HMM, per direction.
  """

  stems: tuple[np.ndarray, np.ndarray]
  table: PairTable
  keys: np.ndarray
  parameters: dict[str, Parameters]


def number_stems(words: Sequence[str], size: int) -> np.ndarray:
  """Returns the stem of each word, numbered from 1, int32 `[size]`.

  Word 0 is NULL and has number 0. Words without a spelling are their own
  stems.
  """
  if len(words) < size:
    return np.arange(size, dtype=np.int32)
  numbers: dict[str, int] = {}
  out = np.zeros(size, np.int32)
  for place, word in enumerate(words[1:size], 1):
    out[place] = numbers.setdefault(stem(word), len(numbers) + 1)
  return out


def learn_stems(
  source: Ragged,
  target: Ragged,
  stems: tuple[np.ndarray, np.ndarray],
  *,
  iterations: int,
  **options,
) -> StemEvidence:
  """Learns an HMM of stems.

  Args:
    source: word ids per line.
    target: word ids per line.
    stems: of each word, per side.
    iterations: passes of Model 1 and of the HMM.
    **options: of `em.align`.
  """
  texts = [
    dataclasses.replace(text, flat=own[text.flat])
    for text, own in zip((source, target), stems, strict=True)
  ]
  config = named_aligners.default_config(
    "hmm", iterations=iterations, warm_up=iterations
  )
  result = em.align(texts[0], texts[1], config, **options)
  return StemEvidence(
    stems=stems,
    table=result.table,
    keys=pair_keys(result.table.source, result.table.target),
    parameters=result.parameters,
  )


def pair_keys(source, target) -> np.ndarray:
  """Returns one number per pair, rising with source, then target."""
  return (np.asarray(source, np.int64) << 32) | np.asarray(target, np.int64)


# --- pieces -------------------------------------------------------------------


def piece_scores(
  source: Ragged,
  target: Ragged,
  words: tuple[Sequence[str], Sequence[str]],
  table: PairTable,
  *,
  iterations: int,
  **options,
) -> np.ndarray:
  """Returns the scores of word pairs by Model 1 of pieces, `[P, 2]`.

  Zeros if the words have no spelling.

  Args:
    source: word ids per line.
    target: word ids per line.
    words: spelling of each id, per side.
    table: the word pairs.
    iterations: passes of Model 1.
    **options: of `em.align`.
  """
  out = np.zeros((len(table), 2), np.float32)
  sizes = (table.source_size, table.target_size)
  if any(len(own) < size for own, size in zip(words, sizes, strict=True)):
    return out
  lists = [
    _piece_lists(own[:size]) for own, size in zip(words, sizes, strict=True)
  ]
  texts = [
    _split(text, own) for text, own in zip((source, target), lists, strict=True)
  ]
  config = named_aligners.default_config("model1", iterations=iterations)
  found = em.align(texts[0], texts[1], config, **options)
  keys = pair_keys(found.table.source, found.table.target)
  for column, side in enumerate(em.DIRECTIONS):
    probability = np.exp(np.asarray(found.parameters[side].pairs))
    _score_pairs(
      np.asarray(table.source),
      np.asarray(table.target),
      lists[0].flat,
      lists[0].offsets,
      lists[1].flat,
      lists[1].offsets,
      keys,
      probability[: len(keys)].astype(np.float32),
      side == "forward",
      out[:, column],
    )
  return out


def _piece_lists(words: Sequence[str]) -> Ragged:
  """Returns the pieces of each word, numbered from 1; NULL has none."""
  numbers: dict[str, int] = {}
  rows: list[list[int]] = [[]]
  for word in words[1:]:
    rows.append(
      [numbers.setdefault(piece, len(numbers) + 1) for piece in pieces(word)]
    )
  return ragged.from_rows(rows)


def _split(text: Ragged, lists: Ragged) -> Ragged:
  """Returns the text of pieces."""
  own = ragged.select(lists, text.flat)
  return Ragged(
    flat=own.flat.astype(np.int32), offsets=own.offsets[text.offsets]
  )


@njit
def _score_pairs(
  sources,
  targets,
  source_flat,
  source_offsets,
  target_flat,
  target_offsets,
  keys,
  probability,
  forward,
  out,
):
  """Writes the score of each word pair in one direction."""
  for pair in range(len(sources)):
    first, last = (
      source_offsets[sources[pair]],
      source_offsets[sources[pair] + 1],
    )
    low, high = target_offsets[targets[pair]], target_offsets[targets[pair] + 1]
    if first == last or low == high:
      continue
    # The generated side is the outer one.
    total = 0.0
    outer = high - low if forward else last - first
    inner = last - first if forward else high - low
    for g in range(outer):
      mass = 0.0
      for c in range(inner):
        a = source_flat[first + (c if forward else g)]
        b = target_flat[low + (g if forward else c)]
        key = (np.int64(a) << 32) | np.int64(b)
        place = np.searchsorted(keys, key)
        if place < len(keys) and keys[place] == key:
          mass += probability[place]
      mass /= inner
      total += np.log(mass) if mass > 1e-6 else _MIN_LOG
    out[pair] = total / outer


# --- a dictionary -------------------------------------------------------------


def read_dictionary(path: str) -> list[tuple[str, str]]:
  """Reads a dictionary: lines of a source word, a tab and its translations.

  Translations are separated by "/", their words by spaces.

  Raises:
    InputError: for a line without a tab.
  """
  out = []
  for number, line in enumerate(files.read_lines(path), 1):
    word, tab, translations = line.partition("\t")
    if not tab or not word.strip():
      raise InputError(
        "a word, a tab and its translations expected", path=path, line=number
      )
    out.append((word.strip(), translations))
  return out


def dictionary_scores(
  dictionary: Sequence[tuple[str, str]],
  words: tuple[Sequence[str], Sequence[str]],
  stems: np.ndarray,
  stop: np.ndarray,
  table: PairTable,
) -> np.ndarray:
  """Returns whether a dictionary has word pairs, or parts of them, `[P, 2]`.

  Args:
    dictionary: source words with translations, see `read_dictionary`.
    words: spelling of each id, per side.
    stems: of target words, `[V]`.
    stop: which target words are stop words, bool `[V]`; they count only where
      they are the whole translation.
    table: the word pairs.
  """
  out = np.zeros((len(table), 2), np.float32)
  if not dictionary or not len(table):
    return out
  stop_stems = {
    stem(words[1][place]) for place in np.flatnonzero(stop).tolist()
  }
  entries: dict[str, set[str]] = {}
  for word, translations in dictionary:
    own = entries.setdefault(word.lower(), set())
    for translation in translations.split("/"):
      parts = [stem(part) for part in translation.split()]
      # "to" of "to help" is no translation.
      content = [part for part in parts if part not in stop_stems]
      own.update(content if content else parts)
  numbers: dict[str, int] = {}
  for place, word in enumerate(words[1]):
    numbers.setdefault(stem(word), int(stems[place]))
  pair = pair_keys(table.source, stems[np.asarray(table.target)])
  for column, spelled in enumerate((lambda word: [word], _parts)):
    keys = []
    for place, word in enumerate(words[0]):
      for part in spelled(word.lower()):
        for other in entries.get(part, ()):
          if other in numbers:
            keys.append((place << 32) | numbers[other])
    out[:, column] = np.isin(pair, np.array(keys, np.int64))
  return out


def _parts(word: str) -> list[str]:
  """Returns the shorter parts of a word in a syllabic script."""
  if not is_syllabic(word):
    return []
  longest = min(_LONGEST_PART, len(word) - 1)
  return [
    word[start : start + size]
    for size in range(1, longest + 1)
    for start in range(len(word) - size + 1)
  ]
