"""Tables whose files agree with their manifest and are wrong all the same."""

import json
import pathlib
import zlib

import numpy as np
import pytest
from hypothesis import given, settings

from jaxmt.errors import InputError
from jaxmt.grammar import native, table, validation
from jaxmt.grammar.provenance import Provenance
from jaxmt.grammar.table import CLOSE, Kind
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from tests.grammar import rule_strategies as rules


def sample():
  """Glue, pass-through, a phrase pair, a rule with a hole, a tree rule."""
  own = table.make_table(
    source_words=rules.SOURCE_WORDS,
    target_words=rules.TARGET_WORDS,
    labels=("X", "S", "NP"),
    lhs=np.array([0, 0, 2]),
    kind=np.array([Kind.HIERO, Kind.HIERO, Kind.TREE_TO_STRING]),
    source=ragged.from_rows([[4, 5], [4, -1, 6], [-3, 7]]),
    target=ragged.from_rows([[4], [-1, 5], [7, -1]]),
    links=Ragged(
      flat=np.array([[0, 0], [2, 1], [1, 0]], np.int16),
      offsets=np.array([0, 1, 2, 3]),
    ),
    counts=np.array([1.0, 2.0, 3.0]),
    fragments=ragged.from_rows([[], [], [-4, -4, CLOSE, 7, CLOSE]]),
  )
  glue = table.glue_rules(rules.SOURCE_WORDS, rules.TARGET_WORDS)
  made = table.concatenate([glue, own])
  return table.with_features(made, ("a", "b"), np.arange(12).reshape(6, 2))


ORIGIN = Provenance(
  rules=Ragged(
    flat=np.array([3, 5, 4], np.int32), offsets=np.array([0, 2, 2, 3])
  ),
  counts=np.array([1.0, 0.5, 2.0]),
)


def rewrite(folder: pathlib.Path, name: str, data: bytes) -> None:
  """Changes a file and the manifest with it."""
  (folder / name).write_bytes(data)
  manifest = json.loads((folder / "manifest.json").read_text())
  manifest["files"][name] = {"bytes": len(data), "crc32": zlib.crc32(data)}
  (folder / "manifest.json").write_text(json.dumps(manifest))


def change(folder: pathlib.Path, name: str, function) -> None:
  """Applies a function to the array, or the lines, in a file."""
  if name.endswith(".txt"):
    lines = (folder / name).read_text().split("\n")[:-1]
    text = "".join(line + "\n" for line in function(lines))
    rewrite(folder, name, text.encode())
    return
  array = function(np.load(folder / name).copy())
  np.save(folder / name, array)
  rewrite(folder, name, (folder / name).read_bytes())


def put(index, value):
  def function(array):
    array[index] = value
    return array

  return function


CHANGES = [
  ("lhs.npy", put(4, 9)),
  ("lhs.npy", put(4, -1)),
  ("lhs.npy", lambda a: a[:-1]),
  ("lhs.npy", lambda a: a.astype(np.float32)),
  ("lhs.npy", lambda a: a.astype(">i4")),
  ("lhs.npy", lambda a: a[0]),
  ("kind.npy", put(slice(None), 3)),
  ("kind.npy", put(3, 0)),
  ("kind.npy", put(5, 1)),
  ("kind.npy", put(3, 4)),
  ("kind.npy", put(3, -1)),
  ("counts.npy", put(3, np.inf)),
  ("counts.npy", put(3, -1)),
  ("source_offsets.npy", put(2, 99)),
  ("source_offsets.npy", put(2, -1)),
  ("source_offsets.npy", put(slice(None), 10**9)),
  ("source_offsets.npy", put(0, 1)),
  ("source_offsets.npy", lambda a: a.astype(np.int32)),
  ("source.npy", put(4, -4)),
  ("source.npy", put(4, 99)),
  ("source.npy", lambda a: a.astype(np.uint8)),
  ("source.npy", lambda a: a[:, None]),
  ("target_offsets.npy", put(3, 10**6)),
  ("target_offsets.npy", put(-1, 10**6)),
  ("target.npy", put(5, -(10**9))),
  ("target.npy", put(5, -2)),
  ("target.npy", put(-2, 99)),
  ("links_offsets.npy", put(4, 10**6)),
  ("links_offsets.npy", put(-1, 2)),
  ("links.npy", put((2, 0), 9999)),
  ("links.npy", put((2, 1), -7)),
  ("links.npy", put((2, 0), 1)),
  ("links.npy", lambda a: np.c_[a, a]),
  ("fragments_offsets.npy", put(3, 10**6)),
  ("fragments.npy", put(1, -9)),
  ("fragments.npy", put(3, 99)),
  ("fragments.npy", put(4, -4)),
  ("fragments.npy", put(2, 7)),
  ("fragments.npy", put(0, -2)),
  ("features.npy", put((3, 1), np.nan)),
  ("features.npy", put((3, 1), -np.inf)),
  ("features.npy", lambda a: a[:-1]),
  ("features.npy", lambda a: a.astype(np.float64)),
  ("labels.txt", lambda lines: ["S", "X", "NP"]),
  ("labels.txt", lambda lines: [*lines, "NP"]),
  ("labels.txt", lambda lines: lines[:-1]),
  ("source_words.txt", lambda lines: lines[:-2]),
  ("source_words.txt", lambda lines: lines[1:]),
  ("target_words.txt", lambda lines: lines[:-2]),
  ("target_words.txt", lambda lines: [*lines[:-1], "two words"]),
  ("feature_names.txt", lambda lines: ["a"]),
  ("feature_names.txt", lambda lines: ["a", "a"]),
]
OTHER_FILE = {  # where shortened lists show
  "labels.txt": "lhs.npy",
  "source_words.txt": "source.npy",
  "target_words.txt": "target.npy",
  "lhs.npy": "kind.npy",
  "feature_names.txt": "features.npy",
}


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_every_wrong_column_is_refused_by_name(tmp_path, number):
  name, function = CHANGES[number]
  path = tmp_path / "t"
  native.write(str(path), sample())
  native.read(str(path))
  change(path, name, function)
  with pytest.raises(InputError) as caught:
    native.read(str(path))
  named = [str(path / name), str(path / OTHER_FILE.get(name, name))]
  assert caught.value.path in named
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
  ("name", "function"),
  [
    ("provenance_rules.npy", put(0, 6)),
    ("provenance_rules.npy", put(0, 10**9)),
    ("provenance_rules.npy", put(0, -1)),
    ("provenance_rules.npy", put(1, 3)),
    ("provenance_rules.npy", lambda a: a.astype(np.int64)),
    ("provenance_offsets.npy", put(1, 9)),
    ("provenance_offsets.npy", put(1, -1)),
    ("provenance_offsets.npy", put(-1, 2)),
    ("provenance_offsets.npy", lambda a: a[:0]),
    ("provenance_counts.npy", put(1, np.nan)),
    ("provenance_counts.npy", lambda a: a[:-1]),
  ],
)
def test_every_wrong_provenance_is_refused_by_name(tmp_path, name, function):
  path = tmp_path / "t"
  native.write(str(path), sample(), provenance=ORIGIN)
  native.read_provenance(str(path), verify=False)
  change(path, name, function)
  with pytest.raises(InputError) as caught:
    native.read_provenance(str(path), verify=False)
  assert caught.value.path == str(path / name)


def test_values_of_artefacts_are_checked_too():
  values = native.to_values(sample())
  native.from_values(values)
  spoilt = values["target"].copy()
  spoilt[5] = -9
  with pytest.raises(InputError, match="target: rule 4"):
    native.from_values(values | {"target": spoilt})
  origin = {
    "provenance_rules": np.array([6], np.int32),
    "provenance_offsets": np.array([0, 1]),
    "provenance_counts": np.ones(1),
  }
  with pytest.raises(InputError, match="provenance_rules: sentence 0"):
    native.provenance_from_values(values | origin)


def test_a_header_that_is_not_python_is_told(tmp_path):
  native.write(str(tmp_path / "t"), sample())
  for damage in (b"{'descr': (", b"{" * 20, b"{'descr': '<i4', '\x00"):
    data = bytearray((tmp_path / "t" / "lhs.npy").read_bytes())
    data[10 : 10 + len(damage)] = damage
    rewrite(tmp_path / "t", "lhs.npy", bytes(data))
    with pytest.raises(InputError, match=r"lhs\.npy: not an array"):
      native.read(str(tmp_path / "t"))


def test_a_file_of_another_folder_is_refused(tmp_path):
  native.write(str(tmp_path / "t"), sample())
  text = (tmp_path / "t" / "manifest.json").read_text()
  text = text.replace('"lhs.npy"', '"../lhs.npy"')
  (tmp_path / "t" / "manifest.json").write_text(text)
  with pytest.raises(InputError, match="another folder"):
    native.read(str(tmp_path / "t"))


@settings(max_examples=50)
@given(rules.tables())
def test_valid_tables_pass(made):
  validation.validate(made)
