"""Files of word vectors."""

import gzip

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.models import vector_files
from jaxmt.models.word_vectors import WordVectors


def test_what_is_written_is_read(tmp_path):
  vectors = WordVectors(
    words=("das", "书", "a-b"),
    vectors=np.array([[1.5, -2e-7], [0, 3], [1e6, 0.1]], np.float32),
  )
  path = str(tmp_path / "v")
  vector_files.write(path, vectors)
  found = vector_files.read(path)
  assert found.words == vectors.words
  np.testing.assert_allclose(found.vectors, vectors.vectors, rtol=1e-5)


def test_files_without_a_header_and_gzipped(tmp_path):
  (tmp_path / "v.gz").write_bytes(gzip.compress(b"a 1 2\nb 3 4 \n"))
  found = vector_files.read(str(tmp_path / "v.gz"))
  assert found.words == ("a", "b")
  np.testing.assert_array_equal(found.vectors, [[1, 2], [3, 4]])


def _arrays(folder, words=b"a\nb\n", **arrays):
  np.savez(folder / "v.npz", **arrays)
  (folder / "v.words.gz").write_bytes(gzip.compress(words))
  return str(folder / "v.npz")


def test_arrays_with_their_words_beside(tmp_path):
  rows = np.array([[1, 2], [3, -4]])
  for arrays in (
    {"vectors": rows / 2},
    {"q": rows.astype(np.int8), "scale": np.float16(0.5)},
    {
      "q": np.array([[2, 4], [3, -4]], np.int8),
      "scale": np.array([0.25, 0.5], np.float16),
    },
  ):
    found = vector_files.read(_arrays(tmp_path, **arrays))
    assert found.words == ("a", "b")
    np.testing.assert_array_equal(found.vectors, rows / 2)


@pytest.mark.parametrize(
  ("words", "arrays", "message"),
  [
    (b"a\n", {"vectors": np.ones((2, 2))}, "1 words, the arrays have 2"),
    (b"a\na\n", {"vectors": np.ones((2, 2))}, ":2: 'a' stands twice"),
    (b"a\n\n", {"vectors": np.ones((2, 2))}, ":2: no word"),
    (b"a\nb\n", {"vectors": np.full((2, 2), np.nan)}, "finite numbers"),
    (b"a\nb\n", {"vectors": np.ones(2)}, "no rows of numbers"),
    (
      b"a\nb\n",
      {"q": np.ones((2, 2), np.int8), "scale": np.ones(3)},
      "one number for each row",
    ),
    (b"a\nb\n", {"q": np.int8([1]), "scale": np.ones(1)}, "no rows of numbers"),
    (b"a\nb\n", {"vectors": np.full((2, 2), "1")}, "no rows of numbers"),
    (b"a\nb\n", {"other": np.ones((2, 2))}, "neither 'vectors' nor"),
    (b"a\nb\n", {"vectors": np.array([{}, {}])}, "no arrays"),
  ],
)
def test_bad_arrays(tmp_path, words, arrays, message):
  with pytest.raises(InputError, match=message):
    vector_files.read(_arrays(tmp_path, words, **arrays))


def test_a_damaged_archive(tmp_path):
  path = _arrays(tmp_path, vectors=np.ones((2, 2)))
  whole = (tmp_path / "v.npz").read_bytes()
  for data in (b"", b"PK", whole[: len(whole) // 2]):
    (tmp_path / "v.npz").write_bytes(data)
    with pytest.raises(InputError, match="no arrays"):
      vector_files.read(path)


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("", "no word vectors"),
    ("a 1 x\n", ":1: not a number"),
    ("a 1\nb 1 2\n", ":2: 2 numbers, not 1"),
    ("a 1\na 2\n", ":2: 'a' stands twice"),
    ("a 1\nb nan\n", ":2: a word needs"),
    ("a\n", ":1: a word needs"),
    ("3 1\na 1\n", ":1: the header says 3 words"),
    (" 1 2\n", ":1: no word"),
  ],
)
def test_bad_files_are_told_by_line(tmp_path, text, message):
  path = tmp_path / "v"
  path.write_text(text)
  with pytest.raises(InputError, match=message):
    vector_files.read(str(path))


def test_a_header_of_thousands_of_digits(tmp_path):
  path = tmp_path / "v"
  path.write_text(f"{'9' * 5000} 2\na 1 2\n")
  with pytest.raises(InputError, match=r":[12]: "):
    vector_files.read(str(path))
