"""Requests of the JSON interface: read, checked, refused with a reason."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any


class BadRequest(Exception):
  """A request that cannot be served.

  Attributes:
    status: HTTP status, 4xx.
  """

  def __init__(self, reason: str, status: int = 400):
    super().__init__(reason)
    self.status = status


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
  """How large requests may be.

  Attributes:
    bytes: of a body.
    lines: of a request.
    characters: of a line.
    words: of a line, as the system knows words.
    forest_words: of a line whose forest is asked for.
    nbest: translations of a line.
    seconds: until an answer must be there.
  """

  bytes: int = 1 << 20
  lines: int = 256
  characters: int = 20_000
  words: int = 500
  forest_words: int = 120
  nbest: int = 200
  seconds: float = 60.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextRequest:
  """A request for translations.

  Attributes:
    lines: the lines to translate.
    nbest: translations wanted of each line.
  """

  lines: list[str]
  nbest: int


def read(body: bytes, *, limits: Limits, size_name: str) -> TextRequest:
  """Returns a checked request.

  Args:
    body: JSON: `{"text": ["..."], SIZE: 5}`; one text may stand without a list.
    limits: how large it may be.
    size_name: what the number of translations is called.

  Raises:
    BadRequest: if it is not such a request, or too large.
  """
  if len(body) > limits.bytes:
    raise BadRequest(f"body of more than {limits.bytes} bytes", 413)
  try:
    value: Any = json.loads(body)
  except (ValueError, RecursionError) as error:
    raise BadRequest(f"not JSON: {error}") from error
  if not isinstance(value, dict):
    raise BadRequest("not a JSON object")
  unknown = set(value) - {"text", size_name}
  if unknown:
    raise BadRequest(f"unknown field {min(unknown)!r}")
  return TextRequest(
    lines=_lines(value.get("text"), limits),
    nbest=_size(value.get(size_name, 1), size_name, limits),
  )


def _lines(text: Any, limits: Limits) -> list[str]:
  lines = [text] if isinstance(text, str) else text
  if not isinstance(lines, list) or not lines:
    raise BadRequest("'text' must be a string or a list of strings")
  if len(lines) > limits.lines:
    raise BadRequest(f"more than {limits.lines} lines", 413)
  for number, line in enumerate(lines):
    if not isinstance(line, str):
      raise BadRequest(f"'text' {number}: not a string")
    if any("\ud800" <= sign <= "\udfff" for sign in line):
      raise BadRequest(f"'text' {number}: half a character")
    if len(line) > limits.characters:
      cause = f"'text' {number}: more than {limits.characters} characters"
      raise BadRequest(cause, 413)
  # Line breaks and other white space separate words.
  return [" ".join(line.split()) for line in lines]


def check_words(lines: Sequence[str], most: int) -> None:
  """Refuses lines that are too long for the decoder.

  Args:
    lines: the lines, tokenised.
    most: words that a line may have.

  Raises:
    BadRequest: naming the first one.
  """
  for number, line in enumerate(lines):
    if len(line.split()) > most:
      raise BadRequest(f"'text' {number}: more than {most} words", 413)


def _size(value: Any, name: str, limits: Limits) -> int:
  whole = isinstance(value, int) and not isinstance(value, bool)
  if not whole or value < 1:
    raise BadRequest(f"'{name}' must be a whole number from 1")
  if value > limits.nbest:
    raise BadRequest(f"'{name}' of more than {limits.nbest}", 413)
  return value
