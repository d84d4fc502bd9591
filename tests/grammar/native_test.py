"""The table's own format: round trips, damage, atomic replacement."""

import json

import numpy as np
import pytest
from hypothesis import given, settings

from jaxmt.errors import InputError
from jaxmt.grammar import native, table
from jaxmt.grammar.extract import packed_rules
from jaxmt.grammar.provenance import Provenance
from jaxmt.text import array_folder
from jaxmt.text.ragged import Ragged
from tests.grammar import rule_strategies as rules


@settings(max_examples=12)  # every write is flushed to disk
@given(rules.tables())
def test_what_was_written_is_read(tmp_path_factory, made):
  path = str(tmp_path_factory.getbasetemp() / "table")
  native.write(path, made)  # an older one is replaced
  assert rules.same(native.read(path), made)
  assert rules.same(native.from_values(native.to_values(made)), made)


def sample():
  glue = table.glue_rules(rules.SOURCE_WORDS, rules.TARGET_WORDS)
  return table.with_features(glue, ("a", "b"), np.arange(6).reshape(3, 2))


def test_pieces_make_a_whole(tmp_path):
  made = sample()
  path = str(tmp_path / "table")
  with native.open_writer(
    path,
    labels=made.labels,
    source_words=made.source_words,
    target_words=made.target_words,
  ) as writer:
    for rule in range(3):
      part = table.select(made, np.array([rule]))
      writer.append(packed_rules.unpack(packed_rules.pack(part)), part.counts)
    assert len(writer.table()) == 3
    writer.write_features(("a", "b"), [made.features[:1], made.features[1:]])
  assert rules.same(native.read(path), made)


def test_provenance_is_kept_beside(tmp_path):
  origin = Provenance(
    rules=Ragged(
      flat=np.array([0, 2, 1], np.int32), offsets=np.array([0, 2, 2, 3])
    ),
    counts=np.array([1.0, 0.5, 2.0]),
  )
  path = str(tmp_path / "table")
  native.write(path, sample(), provenance=origin)
  found = native.read_provenance(path)
  assert found.rules.flat.tolist() == [0, 2, 1]
  assert found.rules.offsets.tolist() == [0, 2, 2, 3]
  assert found.counts.tolist() == [1.0, 0.5, 2.0]
  native.write(path, sample())
  with pytest.raises(InputError, match="without provenance"):
    native.read_provenance(path)


def test_arrays_are_mapped_and_read_only(tmp_path):
  path = str(tmp_path / "table")
  native.write(path, sample())
  found = native.read(path)
  assert isinstance(found.features.base, np.memmap)
  with pytest.raises(ValueError, match="read-only"):
    found.features[0, 0] = 1


def names():
  return ["source.npy", "features.npy", "counts.npy", "source_words.txt"]


@pytest.mark.parametrize("name", names())
def test_a_file_cut_short_is_named(tmp_path, name):
  native.write(str(tmp_path / "t"), sample())
  file = tmp_path / "t" / name
  file.write_bytes(file.read_bytes()[:-1])
  with pytest.raises(InputError, match=rf"{name}: has \d+ bytes, not \d+"):
    native.read(str(tmp_path / "t"), verify=False)


@pytest.mark.parametrize("name", names())
def test_a_changed_byte_is_found(tmp_path, name):
  native.write(str(tmp_path / "t"), sample())
  file = tmp_path / "t" / name
  data = bytearray(file.read_bytes())
  data[-1] ^= 1
  file.write_bytes(data)
  with pytest.raises(InputError, match=f"{name}: has been changed"):
    native.read(str(tmp_path / "t"))


@pytest.mark.parametrize("name", names())
def test_a_missing_file_is_named(tmp_path, name):
  native.write(str(tmp_path / "t"), sample())
  (tmp_path / "t" / name).unlink()
  with pytest.raises(InputError, match=f"{name}: missing"):
    native.read(str(tmp_path / "t"))


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("", "not a manifest"),
    ("[]", "not a manifest"),
    ('{"files": {"lhs.npy": 3}}', "not a manifest"),
    ('{"files": {}}', "not a rule table"),
    ('{"format": "jaxmt-rules", "version": 1, "files": {}}', "lacks lhs.npy"),
  ],
)
def test_a_wrong_manifest_is_refused(tmp_path, text, message):
  native.write(str(tmp_path / "t"), sample())
  (tmp_path / "t" / "manifest.json").write_text(text)
  with pytest.raises(InputError, match=message):
    native.read(str(tmp_path / "t"))


def test_other_things_are_not_overwritten(tmp_path):
  (tmp_path / "t").mkdir()
  (tmp_path / "t" / "thesis.txt").write_text("mine")
  with pytest.raises(InputError, match="something else"):
    native.write(str(tmp_path / "t"), sample())
  assert (tmp_path / "t" / "thesis.txt").read_text() == "mine"
  with pytest.raises(InputError, match="no such file"):
    native.read(str(tmp_path / "nothing"))
  with pytest.raises(InputError, match="no such file"):
    native.write(str(tmp_path / "nowhere" / "t"), sample())


def test_a_failed_write_leaves_the_old_table(tmp_path):
  path = str(tmp_path / "t")
  native.write(path, sample())
  made = sample()
  with (
    pytest.raises(RuntimeError, match="halfway"),
    native.open_writer(
      path,
      labels=made.labels,
      source_words=made.source_words,
      target_words=made.target_words,
    ) as writer,
  ):
    writer.append(made, made.counts)
    raise RuntimeError("halfway")
  assert rules.same(native.read(path), made)
  assert [file.name for file in tmp_path.iterdir()] == ["t"]


def test_columns_keep_their_type(tmp_path):
  with (
    pytest.raises(ValueError, match=r"a\.npy: int64"),
    array_folder.open_writer(str(tmp_path / "t")) as writer,
  ):
    writer.append("a", np.zeros(2, np.int32))
    writer.append("a", np.zeros(2, np.int64))
  with (
    pytest.raises(ValueError, match="newline"),
    array_folder.open_writer(str(tmp_path / "t")) as writer,
  ):
    writer.write_lines("b", ["x\ny"])


def test_equal_tables_have_equal_bytes(tmp_path):
  for name in ("one", "two"):
    native.write(str(tmp_path / name), sample())
  for file in (tmp_path / "one").iterdir():
    assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
  manifest = json.loads((tmp_path / "one" / "manifest.json").read_text())
  assert set(manifest["files"]) | {"manifest.json"} == {
    file.name for file in (tmp_path / "one").iterdir()
  }
