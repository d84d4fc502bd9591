import copy
import pickle

import pytest

from jaxmt.errors import InputError


@pytest.mark.parametrize(
  ("where", "text"),
  [
    ({}, "bad"),
    ({"path": "a.txt"}, "a.txt: bad"),
    ({"path": "a.txt", "line": 3}, "a.txt:3: bad"),
    ({"path": "-", "line": 1}, "-:1: bad"),
  ],
)
def test_says_where(where, text):
  error = InputError("bad", **where)
  assert str(error) == text
  assert (error.cause, error.path, error.line) == (
    "bad",
    where.get("path"),
    where.get("line"),
  )
  assert isinstance(error, ValueError)


def test_crosses_process_borders_unchanged():
  error = InputError("bad", path="a.txt", line=3)
  for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
    assert str(twin) == str(error)
    assert vars(twin) == vars(error)
