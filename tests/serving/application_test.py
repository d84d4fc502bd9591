"""The application with a service that only says what it was asked."""

import asyncio
import dataclasses
import json

import pytest

from jaxmt.serving import application
from jaxmt.serving.requests import Limits
from jaxmt.serving.service import VIEWS


@dataclasses.dataclass
class Letters:
  """Takes every letter for a word, as in raw text without spaces."""

  source_language: str = "zh"
  system: str = "letters"
  features: tuple[str, ...] = ()
  weights: tuple[float, ...] = ()

  def tokenised(self, lines):
    return [" ".join(line) for line in lines]

  def work(self, kind, lines, size):
    del size
    return [
      {"text": line, **({"chart": 1} if kind == VIEWS else {"score": 0.0})}
      for line in lines
    ]


def ask(path, body, service):
  """What the application answers: `(status, JSON)`."""
  app = application.make(service, limits=Limits(words=6, forest_words=3))
  scope = {
    "type": "http",
    "method": "POST",
    "path": path,
    "headers": [],
    "query_string": b"",
  }
  sent = []

  async def receive():
    return {"type": "http.request", "body": json.dumps(body).encode()}

  async def send(message):
    sent.append(message)

  asyncio.run(app(scope, receive, send))
  return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.mark.parametrize(
  ("path", "text", "status"),
  [
    ("/translate", "abcdef", 200),
    ("/translate", "abcdefg", 413),
    ("/forest", "abc", 200),
    ("/forest", "abcd", 413),
  ],
)
def test_long_raw_text_without_spaces_is_refused(path, text, status):
  got, answer = ask(path, {"text": text}, Letters())
  assert got == status
  assert ("words" in answer.get("error", "")) == (status == 413)


def test_tokenised_text_is_taken_as_it_is():
  status, answer = ask("/translate", {"text": "ab cd"}, Letters(""))
  assert status == 200
  assert answer["translations"][0]["text"] == "ab cd"
