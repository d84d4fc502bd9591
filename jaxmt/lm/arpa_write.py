r"""Writes ARPA files.

Numbers have the fewest digits that read back as the same float32. N-grams
stand in the model's own order, so that write, read, write gives equal bytes,
and a model estimated here is written as lmplz would write it.
"""

import math
from collections.abc import Iterator

import numpy as np

from jaxmt.lm.ngram_model import NgramModel
from jaxmt.text import files
from jaxmt.text.kernels import grown, njit

_BLOCK = 1 << 16  # n-grams formatted at a time
_NUMBER = 32  # no number takes more bytes than this, with its tab
_POWERS = np.array([10.0**power for power in range(64)])


def write_arpa(path: str, model: NgramModel) -> None:
  """Writes the model atomically; `.gz` compresses, `-` is standard output."""
  with files.atomic_writer(path) as out:
    for block in format_arpa(model):
      out.write(block)


def format_arpa(model: NgramModel) -> Iterator[bytes]:
  """Yields the file in blocks of bytes."""
  header = ["\\data\\"]
  header += [f"ngram {k}={n}" for k, n in enumerate(model.counts, start=1)]
  yield ("\n".join(header) + "\n").encode()
  packed = [word.encode("utf-8") for word in model.words]
  ends = np.cumsum([len(word) for word in packed], dtype=np.int64)
  starts = np.concatenate([np.zeros(1, np.int64), ends])
  text = np.frombuffer(b"".join(packed), np.uint8)
  words = np.concatenate([level.word for level in model.levels])
  context = np.concatenate([level.context for level in model.levels])
  bases = np.cumsum((0, *model.counts), dtype=np.int64)
  for order, level in enumerate(model.levels, start=1):
    yield f"\n\\{order}-grams:\n".encode()
    for first in range(0, len(level), _BLOCK):
      yield _format_block(
        (text, starts),
        (words, context, bases),
        (level.probability, level.backoff),
        order,
        (first, min(first + _BLOCK, len(level))),
        order < model.order,
      ).tobytes()
  yield b"\n\\end\\\n"


@njit
def _format_block(spelling, grams, values, order, block, with_backoff):
  """Formats n-grams of one order; uint8.

  Args:
    spelling: bytes of all words, and where each begins.
    grams: last words and contexts of all n-grams, and where each order begins.
    values: probabilities and back-offs of this order.
    order: words of an n-gram.
    block: the first n-gram, and the one after the last.
    with_backoff: whether back-offs are written.
  """
  text, starts = spelling
  words, context, bases = grams
  probability, backoff = values
  first, last = block
  ids = np.empty(order, np.int64)
  out = np.empty((last - first) * (2 * _NUMBER + 8 * order), np.uint8)
  at = 0
  for number in range(first, last):
    need = 2 * _NUMBER + order
    row = number
    for position in range(order - 1, -1, -1):
      word = words[bases[position] + row]
      ids[position] = word
      row = context[bases[position] + row]
      need += starts[word + 1] - starts[word]
    out = grown(out, at + need)
    at = _write_float(out, at, probability[number])
    for position in range(order):
      out[at] = 9 if position == 0 else 32
      at += 1
      word = ids[position]
      for byte in range(starts[word], starts[word + 1]):
        out[at] = text[byte]
        at += 1
    if with_backoff:
      out[at] = 9
      at = _write_float(out, at + 1, backoff[number])
    out[at] = 10
    at += 1
  return out[:at].copy()


@njit
def _write_float(out, at, value):
  """Writes a finite float32 with the fewest digits that give it back.

  A decimal of at most 6 digits survives the way to float32 and back, so the
  search starts there: shorter numbers are the 6-digit one without its zeros.
  Nine digits always suffice.
  """
  if value == 0:
    out[at] = 48
    return at + 1
  if value < 0:
    out[at] = 45
    at += 1
  target = np.float32(abs(value))
  size = np.float64(target)
  # The guess may be one off at powers of ten, which costs or saves a digit.
  exponent = np.int64(math.floor(math.log10(size)))
  digits = np.int64(0)
  shift = np.int64(0)  # the number is digits / 10**shift
  for precision in range(6, 13):
    shift = precision - 1 - exponent
    digits = np.int64(np.rint(_scaled(size, shift)))
    if np.float32(_scaled(np.float64(digits), -shift)) == target:
      break
  while digits % 10 == 0:
    digits //= 10
    shift -= 1
  return _write_decimal(out, at, digits, shift)


@njit
def _write_decimal(out, at, digits, shift):
  """Writes digits / 10**shift, with an exponent below 1e-6 and from 1e21."""
  count = np.int64(0)
  rest = digits
  while rest:
    rest //= 10
    count += 1
  exponent = count - 1 - shift
  plain = -6 <= exponent < 21
  point = exponent + 1 if plain else np.int64(1)  # digits before the point
  if point <= 0:
    out[at] = 48
    out[at + 1] = 46
    at += 2
    for _ in range(-point):
      out[at] = 48
      at += 1
    point = np.int64(0)
  with_point = 0 < point < count
  last = at + count + (1 if with_point else 0)
  place = last - 1
  for digit in range(count - 1, -1, -1):
    out[place] = 48 + digits % 10
    digits //= 10
    place -= 1
    if with_point and digit == point:
      out[place] = 46
      place -= 1
  at = last
  for _ in range(point - count):
    out[at] = 48
    at += 1
  if not plain:
    out[at] = 101
    at += 1
    if exponent < 0:
      out[at] = 45
      at += 1
      exponent = -exponent
    if exponent >= 10:
      out[at] = 48 + exponent // 10
      at += 1
    out[at] = 48 + exponent % 10
    at += 1
  return at


@njit
def _scaled(value, power):
  """Returns value * 10**power; for small powers correctly rounded."""
  if power >= 0:
    return value * _POWERS[power]
  return value / _POWERS[-power]
