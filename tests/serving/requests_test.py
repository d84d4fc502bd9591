"""Requests are checked before anything is decoded."""

import json

import pytest

from jaxmt.serving import requests
from jaxmt.serving.requests import BadRequest, Limits

LIMITS = Limits(bytes=200, lines=3, characters=100, words=5, nbest=10)


def read(value):
  body = value if isinstance(value, bytes) else json.dumps(value).encode()
  return requests.read(body, limits=LIMITS, size_name="nbest")


def test_lists_and_single_texts_are_read():
  asked = read({"text": ["a b", " c\n\td "], "nbest": 5})
  assert asked.lines == ["a b", "c d"] and asked.nbest == 5
  assert read({"text": "a"}) == requests.TextRequest(lines=["a"], nbest=1)


@pytest.mark.parametrize(
  ("value", "status", "reason"),
  [
    (b"{", 400, "not JSON"),
    (b"\xff\xfe", 400, "not JSON"),
    (b"[" * 190, 400, "not JSON"),
    ([], 400, "object"),
    ({}, 400, "'text'"),
    ({"text": []}, 400, "'text'"),
    ({"text": 3}, 400, "'text'"),
    ({"text": ["a", None]}, 400, "'text' 1"),
    ({"text": "\ud800"}, 400, "half a character"),
    ({"text": "a", "nbest": 0}, 400, "'nbest'"),
    ({"text": "a", "nbest": True}, 400, "'nbest'"),
    ({"text": "a", "nbest": "5"}, 400, "'nbest'"),
    ({"text": "a", "beam": 5}, 400, "'beam'"),
    ({"text": "a", "nbest": 11}, 413, "10"),
    ({"text": ["a"] * 4}, 413, "3 lines"),
    ({"text": "a" * 101}, 413, "100 characters"),
    (b'"' + b"a" * 300 + b'"', 413, "200 bytes"),
  ],
)
def test_other_requests_are_refused_with_a_reason(value, status, reason):
  with pytest.raises(BadRequest, match=reason) as error:
    read(value)
  assert error.value.status == status


def test_words_are_counted_after_they_are_found():
  requests.check_words(["a b", "", "a b c"], 3)
  with pytest.raises(BadRequest, match="'text' 1: more than 2 words") as error:
    requests.check_words(["a b", "a b c"], 2)
  assert error.value.status == 413
