import pytest

from jaxmt.errors import InputError
from jaxmt.text import references


@pytest.fixture
def put(tmp_path):
  def write(name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return str(tmp_path / name)

  return write


def test_a_list_per_sentence(put):
  paths = [put("r0", "a\n\n"), put("r1", "b\nc d"), put("r2", "é\n中\n")]
  rows = references.read_references(paths, expected=2)
  assert rows == [["a", "b", "é"], ["", "c d", "中"]]
  assert references.streams(rows) == [["a", ""], ["b", "c d"], ["é", "中"]]
  assert references.read_references(paths[:1]) == [["a"], [""]]


def test_uneven_references_name_the_shortest(put):
  paths = [put("r0", "a\nb\n"), put("r1", "a\nb\nc\n"), put("r2", "a\n")]
  with pytest.raises(InputError) as caught:
    references.read_references(paths)
  assert str(caught.value) == (
    f"{paths[2]}:1: uneven: ends after 1 lines, {paths[1]} has 3"
  )


def test_uneven_with_the_hypotheses(put):
  path = put("r0", "a\nb\n")
  with pytest.raises(InputError, match="h:1: uneven: ends after 1 lines"):
    references.read_references([path], expected=1, expected_path="h")
  with pytest.raises(InputError, match="ends after 2 lines, h has 3"):
    references.read_references([path], expected=3, expected_path="h")


def test_no_files():
  with pytest.raises(ValueError, match="no reference"):
    references.read_references([])
