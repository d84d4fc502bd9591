r"""Compiled kernels that read the n-gram lines of ARPA files.

A line is `log10 p`, the words, and perhaps a back-off weight, between spaces or
tabs. The kernels get whole lines (the data ends in `\n`), stop at the first
line that is blank or starts with a backslash, and report a fault by its code;
the caller knows the file and counts the lines.
"""

import numpy as np

from jaxmt.text.kernels import njit

STOP, DONE = 1, 0
FAULTS = {
  2: "not a number where the log probability should be",
  3: "the log probability is not a number (NaN)",
  4: "the log probability is positive",
  5: "too few words",
  6: "bad back-off weight",
  7: "more fields than words and a back-off weight",
  8: "a word that is not among the unigrams",
  9: "back-off weight at the highest order",
  10: "duplicate n-gram",
  11: "its context is not among the shorter n-grams",
}
_PROBABILITY, _NAN, _POSITIVE, _FEW, _BACKOFF = 2, 3, 4, 5, 6
_FIELDS, _UNKNOWN, _HIGHEST, _TWICE, _CONTEXT = 7, 8, 9, 10, 11

_LOG_ZERO = -99.0
_TAB, _NEWLINE, _RETURN, _SPACE, _BACKSLASH = 9, 10, 13, 32, 92
_POWERS = np.array([10.0**power for power in range(23)])


@njit
def _skip_blanks(data, at):
  while data[at] == _SPACE or data[at] == _TAB or data[at] == _RETURN:
    at += 1
  return at


@njit
def _word_end(data, at):
  byte = data[at]
  while byte != _SPACE and byte != _TAB and byte != _NEWLINE:
    if byte == _RETURN:
      break
    at += 1
    byte = data[at]
  return at


@njit
def _spells(data, at, end, small, large):
  """Whether the three bytes `at .. end` spell a word, in any case."""
  if end - at != 3:
    return False
  for place in range(3):
    if data[at + place] != small[place] and data[at + place] != large[place]:
      return False
  return True


@njit
def _number(data, at):
  """Reads a decimal number; returns `(value, end, ok)`.

  Up to 18 digits count; that and one correctly rounded operation give the
  nearest float32 except where a double rounding falls on a tie.
  """
  end = _word_end(data, at)
  sign = 1.0
  if data[at] == 45 or data[at] == 43:
    if data[at] == 45:
      sign = -1.0
    at += 1
  if _spells(data, at, end, b"inf", b"INF"):
    return sign * np.inf, end, True
  if _spells(data, at, end, b"nan", b"NAN"):
    return np.nan, end, True
  digits = np.int64(0)
  seen, used, scale = 0, 0, 0
  point = False
  while at < end:
    byte = data[at]
    if 48 <= byte <= 57:
      seen += 1
      if used < 18:
        digits = digits * 10 + (byte - 48)
        used += 1 if digits else 0
        scale -= 1 if point else 0
      else:
        scale += 0 if point else 1
    elif byte == 46 and not point:
      point = True
    else:
      break
    at += 1
  if seen == 0:
    return 0.0, end, False
  if at < end and (data[at] == 101 or data[at] == 69):
    exponent, at, ok = _exponent(data, at + 1, end)
    scale += exponent
    if not ok:
      return 0.0, end, False
  return sign * _scaled(np.float64(digits), scale), end, at == end


@njit
def _exponent(data, at, end):
  negative = False
  if at < end and (data[at] == 45 or data[at] == 43):
    negative = data[at] == 45
    at += 1
  start = at
  value = 0
  while at < end and 48 <= data[at] <= 57:
    value = min(value * 10 + (data[at] - 48), 9999)
    at += 1
  return -value if negative else value, at, at > start


@njit
def _scaled(value, power):
  while power > 22 and value < np.inf:
    value *= 1e22
    power -= 22
  while power < -22 and value != 0:
    value /= 1e22
    power += 22
  if value == 0 or value == np.inf:
    return value
  return value * _POWERS[power] if power >= 0 else value / _POWERS[-power]


@njit
def _log_probability(data, at):
  """Reads the first field; returns `(value, end, code)`."""
  value, at, ok = _number(data, at)
  if not ok:
    return value, at, _PROBABILITY
  if np.isnan(value):
    return value, at, _NAN
  if value > 0:
    return value, at, _POSITIVE
  return max(value, _LOG_ZERO) if value == -np.inf else value, at, DONE


@njit
def _rest_of_line(data, at, highest):
  """Reads an optional back-off weight; returns `(value, at, code)`."""
  at = _skip_blanks(data, at)
  value = 0.0
  if data[at] != _NEWLINE:
    value, at, ok = _number(data, at)
    at = _skip_blanks(data, at)
    if not ok or np.isnan(value) or value == np.inf:
      return value, at, _BACKOFF
    value = max(value, _LOG_ZERO) if value == -np.inf else value
    if data[at] != _NEWLINE:
      return value, at, _FIELDS
    if highest and value != 0:
      return value, at, _HIGHEST
  return value, at + 1, DONE


@njit
def _stops(data, at):
  return data[at] == _NEWLINE or data[at] == _BACKSLASH


@njit
def parse_unigrams(data, at, highest, probability, backoff, lengths, text):
  """Reads unigram lines until the arrays are full or the data ends.

  Args:
    data: whole lines, uint8 `[B]`.
    at: where to start.
    highest: whether this is the highest order.
    probability: filled, float32 `[n]`.
    backoff: filled, float32 `[n]`.
    lengths: filled with the words' numbers of bytes, int64 `[n]`.
    text: filled with the words end to end, uint8, at least `B - at`.

  Returns:
    `(code, at, lines, used)`: `DONE`, `STOP` or a fault; where it stopped; how
    many unigrams were read; how many bytes of `text` were filled.
  """
  lines, used = 0, 0
  while lines < len(probability) and at < len(data):
    start = _skip_blanks(data, at)
    if _stops(data, start):
      return STOP, at, lines, used
    value, place, code = _log_probability(data, start)
    if code != DONE:
      return code, at, lines, used
    place = _skip_blanks(data, place)
    end = _word_end(data, place)
    if end == place:
      return _FEW, at, lines, used
    weight, following, code = _rest_of_line(data, end, highest)
    if code != DONE:
      return code, at, lines, used
    for byte in range(place, end):
      text[used] = data[byte]
      used += 1
    probability[lines] = value
    backoff[lines] = weight
    lengths[lines] = end - place
    lines += 1
    at = following
  return DONE, at, lines, used


@njit
def parse_ngrams(
  data, at, highest, probability, backoff, ids, text, starts, hashes, slots
):
  """Reads n-gram lines of order `ids.shape[1]`, as `parse_unigrams` does.

  Args:
    data: whole lines, uint8 `[B]`.
    at: where to start.
    highest: whether this is the highest order.
    probability: filled, float32 `[n]`.
    backoff: filled, float32 `[n]`.
    ids: filled with the words' ids, int32 `[n, k]`.
    text: the vocabulary of `index_words`, with `starts`, `hashes`, `slots`.
    starts: see `index_words`.
    hashes: see `index_words`.
    slots: see `index_words`.

  Returns:
    `(code, at, lines)`.
  """
  lines = 0
  while lines < len(probability) and at < len(data):
    start = _skip_blanks(data, at)
    if _stops(data, start):
      return STOP, at, lines
    value, place, code = _log_probability(data, start)
    if code != DONE:
      return code, at, lines
    for position in range(ids.shape[1]):
      place = _skip_blanks(data, place)
      end = _word_end(data, place)
      if end == place:
        return _FEW, at, lines
      word = _find_word(data, place, end, text, starts, hashes, slots)
      if word < 0:
        return _UNKNOWN, at, lines
      ids[lines, position] = word
      place = end
    weight, following, code = _rest_of_line(data, place, highest)
    if code != DONE:
      return code, at, lines
    probability[lines] = value
    backoff[lines] = weight
    lines += 1
    at = following
  return DONE, at, lines


@njit
def _hash_bytes(data, start, end):
  value = np.uint64(0xCBF29CE484222325)
  for position in range(start, end):
    value = (value ^ np.uint64(data[position])) * np.uint64(0x100000001B3)
  return value ^ (value >> np.uint64(29))


@njit
def _find_word(data, start, end, text, starts, hashes, slots):
  """The id of the word `data[start:end]`, or minus one minus a free slot."""
  mask = np.uint64(len(slots) - 1)
  value = _hash_bytes(data, start, end)
  slot = value & mask
  while slots[slot] >= 0:
    word = slots[slot]
    if hashes[word] == value:
      first = starts[word]
      if starts[word + 1] - first == end - start:
        same = True
        for shift in range(end - start):
          if data[start + shift] != text[first + shift]:
            same = False
            break
        if same:
          return np.int64(word)
    slot = (slot + np.uint64(1)) & mask
  return -np.int64(slot) - 1


@njit
def index_words(text, starts):
  """Makes a hash table of words; the hash only finds, bytes decide.

  Args:
    text: the words' bytes end to end, uint8.
    starts: where each begins, int64 `[V + 1]`.

  Returns:
    `(hashes uint64 [V], slots int32, twice)`; `twice` is the first word that
    stood there before, or -1.
  """
  words = len(starts) - 1
  size = 16
  while size < 4 * words:
    size *= 2
  slots = np.full(size, -1, np.int32)
  hashes = np.empty(words, np.uint64)
  for word in range(words):
    first, last = starts[word], starts[word + 1]
    hashes[word] = _hash_bytes(text, first, last)
    known = _find_word(text, first, last, text, starts, hashes, slots)
    if known >= 0:
      return hashes, slots, word
    slots[-known - 1] = word
  return hashes, slots, -1


@njit
def _find_ngram(context, word, contexts, words, slots):
  """The n-gram (context, word), or minus one minus a free slot."""
  mask = np.uint64(len(slots) - 1)
  value = np.uint64(context) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(word)
  value ^= value >> np.uint64(32)
  value *= np.uint64(0xD6E8FEB86659FD93)
  slot = (value ^ (value >> np.uint64(32))) & mask
  while slots[slot] >= 0:
    number = slots[slot]
    if words[number] == word and contexts[number] == context:
      return np.int64(number)
    slot = (slot + np.uint64(1)) & mask
  return -np.int64(slot) - 1


@njit
def index_ngrams(first, contexts, words, slots):
  """Enters n-grams from number `first` on into an empty table."""
  for number in range(first, len(words)):
    slot = _find_ngram(contexts[number], words[number], contexts, words, slots)
    slots[-slot - 1] = number


@njit
def link_ngrams(ids, first, contexts, words, suffixes, slots):
  """Finds context and suffix of every n-gram of one order k >= 2.

  All orders share one numbering: unigrams, then bigrams, and so on.

  Args:
    ids: the words, int32 `[n, k]`.
    first: number of the first n-gram of this order.
    contexts: by number; filled from `first` on, int32.
    words: last words by number; filled.
    suffixes: by number, -1 where there is none; filled.
    slots: hash table of (context, last word); entered into.

  Returns:
    `(code, row)`: the first fault, or `(DONE, n)`.
  """
  order = ids.shape[1]
  context = np.int64(-1)
  for row in range(len(ids)):
    same = row > 0
    for position in range(order - 1):
      same = same and ids[row, position] == ids[row - 1, position]
    if not same:
      context = np.int64(ids[row, 0])
      for position in range(1, order - 1):
        context = _find_ngram(
          context, ids[row, position], contexts, words, slots
        )
        if context < 0:
          return _CONTEXT, row
    word = ids[row, order - 1]
    suffix = np.int64(word)
    if order > 2:
      suffix = np.int64(suffixes[context])
      if suffix >= 0:
        suffix = max(
          _find_ngram(suffix, word, contexts, words, slots), np.int64(-1)
        )
    known = _find_ngram(context, word, contexts, words, slots)
    if known >= 0:
      return _TWICE, row
    number = first + row
    contexts[number] = context
    words[number] = word
    suffixes[number] = suffix
    slots[-known - 1] = number
  return DONE, len(ids)
