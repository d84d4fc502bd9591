"""Forest files of any annotation."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.hypergraph import Forest, archive
from tests.reference import forests


def annotated(annotation):
  made = forests.random_forest(3)
  return dataclasses.replace(made, edges=annotation(made.num_edges))


@pytest.mark.parametrize(
  "annotation",
  [
    lambda size: None,
    lambda size: np.arange(size),
    lambda size: {"a": np.ones((size, 2)), "b": {"c": np.zeros(size, bool)}},
  ],
)
def test_what_is_written_is_read(annotation, tmp_path):
  want = annotated(annotation)
  archive.save(f"{tmp_path}/f.npz", want)
  got = archive.load(f"{tmp_path}/f.npz")
  assert jax.tree.structure(got) == jax.tree.structure(want)
  for one, two in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
    assert one.dtype == two.dtype
    np.testing.assert_array_equal(one, two)


def test_annotation_of_a_class_is_read_as_a_dict():
  @jax.tree_util.register_dataclass
  @dataclasses.dataclass(frozen=True)
  class Spans:
    begin: np.ndarray
    end: np.ndarray

  made = forests.random_forest(3)
  ones = np.ones(made.num_nodes)
  arrays = archive.to_arrays(
    dataclasses.replace(made, nodes=Spans(begin=ones, end=2 * ones))
  )
  np.testing.assert_array_equal(arrays["nodes/end"], 2 * ones)
  back = archive.from_arrays({**arrays, "other": ones})
  np.testing.assert_array_equal(Spans(**back.nodes).end, 2 * ones)


def broken(name, change):
  arrays = archive.to_arrays(forests.random_forest(3))
  return {**arrays, name: change(arrays[name])}


@pytest.mark.parametrize(
  ("name", "change", "cause"),
  [
    ("node_offsets", lambda array: array[:-1], "add up"),
    ("edge_offsets", lambda array: array + 1, "begin at 0"),
    ("edge_offsets", lambda array: -array, "negative"),
    ("score", lambda array: array[:-1], "score"),
    ("tails", lambda array: array + 99, "before its head"),
    ("tails", lambda array: array - 1, "before its head"),
    ("nodes", lambda array: array[:-1], "annotation"),
    ("edges/number", lambda array: array[:-1], "of 'number'"),
    ("tails", lambda array: array[:, 0], "'tails' is int32 with 1 axes"),
    ("tails", lambda array: array.astype(np.int64), "'tails' is int64"),
    ("score", lambda array: array.astype(np.int32), "'score' is int32"),
    ("node_offsets", lambda array: array.astype(np.int32), "int32"),
    ("edge_offsets", lambda array: array.astype(np.float64), "float64"),
  ],
)
def test_arrays_that_are_no_forest(name, change, cause):
  with pytest.raises(ValueError, match=cause):
    archive.from_arrays(broken(name, change))


def test_bad_files(tmp_path):
  path = f"{tmp_path}/f.npz"
  archive.save(path, forests.random_forest(1))
  with open(path, "rb") as file:
    data = file.read()
  for bad in (b"", b"PK\x03\x04", data[: len(data) // 2], b"text"):
    with open(path, "wb") as file:
      file.write(bad)
    with pytest.raises(InputError, match=r"not a file of arrays|damaged"):
      archive.load(path)
  np.savez(path, tails=np.zeros((1, 2)))
  with pytest.raises(InputError, match="no array 'node_offsets'"):
    archive.load(path)


def test_an_empty_forest(tmp_path):
  none = Forest(
    node_offsets=np.zeros(4, np.int64),
    edge_offsets=np.zeros(1, np.int64),
    tails=np.zeros((0, 2), np.int32),
    score=np.zeros(0, np.float32),
  )
  archive.save(f"{tmp_path}/f.npz", none)
  assert len(archive.load(f"{tmp_path}/f.npz")) == 3
