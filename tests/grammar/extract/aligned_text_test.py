"""Corpora from files: shards, vocabularies, faults with file and line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmt.errors import InputError
from jaxmt.grammar.extract import aligned_text
from jaxmt.text import vocabulary
from jaxmt.text.trees import format_trees


def write(folder, **sides):
  """Writes files of lines; returns their paths as `reading.Paths`."""
  for name, lines in sides.items():
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
  return aligned_text.Paths(**{name: str(folder / name) for name in sides})


def shards(paths, *, tokens=100, **options):
  source_words, _ = aligned_text.read_vocabulary(paths.source)
  target_words, _ = aligned_text.read_vocabulary(paths.target)
  return list(
    aligned_text.read_shards(
      paths,
      source_words=source_words,
      target_words=target_words,
      tokens=tokens,
      **options,
    )
  )


GOOD = {
  "source": ["a b", "", "c"],
  "target": ["x y", "z", "x"],
  "links": ["0-0 1-1", "", "0-0"],
}


@settings(max_examples=30)
@given(st.lists(st.text("ab é<s>/\t ", max_size=8), max_size=8))
def test_the_vocabulary_is_that_of_the_whole_text(tmp_path_factory, lines):
  file = tmp_path_factory.getbasetemp() / "text"
  file.write_text("".join(f"{line}\n" for line in lines))
  found, size = aligned_text.read_vocabulary(str(file))
  assert found == vocabulary.build([lines])
  assert size == len(lines)


def test_chunks_do_not_show(tmp_path, monkeypatch):
  paths = write(tmp_path, **{name: 5 * side for name, side in GOOD.items()})
  whole = shards(paths)
  monkeypatch.setattr(aligned_text, "_LINES", 4)
  parts = shards(paths)
  assert len(whole) == 1 and len(parts) == 4
  assert [part.first for part in parts] == [0, 4, 8, 12]
  for name in GOOD:
    flat = np.concatenate([getattr(part, name).flat for part in parts])
    assert flat.tolist() == getattr(whole[0], name).flat.tolist()
    lengths = np.concatenate([getattr(part, name).lengths for part in parts])
    assert lengths.tolist() == getattr(whole[0], name).lengths.tolist()


@pytest.mark.parametrize("lines", [2, 10_000])
@pytest.mark.parametrize(
  ("side", "change", "message"),
  [
    ("links", ["0-0 1-1", "", "0:0"], "links:3: not a link: '0:0'"),
    ("links", ["0-0 1-1", "", "1-0"], "links:3: link 1-0: the source has 1"),
    ("links", ["0-0 1-1", "0-0", "0-0"], "links:2: link 0-0: the source has 0"),
    ("links", ["0-2", "", "0-0"], "links:1: link 0-2: the target has 2"),
    ("links", ["0-0", ""], "links:2: uneven: ends after 2 lines"),
    ("target", ["x y", "z"], "target:2: uneven: ends after 2 lines"),
    ("source", ["a b"], "source:1: uneven: ends after 1 lines"),
  ],
)
def test_faults_are_named_with_their_line(
  tmp_path, monkeypatch, lines, side, change, message
):
  monkeypatch.setattr(aligned_text, "_LINES", lines)
  paths = write(tmp_path, **{**GOOD, side: change})
  with pytest.raises(InputError, match=message):
    shards(paths)


def test_bad_sentences_can_be_skipped(tmp_path):
  paths = write(
    tmp_path,
    source=["a b", "b a", "c", "c"],
    target=["x y", "x y", "z", "z"],
    links=["0-0", "0-9", "zero", "0-0"],
  )
  faults = []
  (found,) = shards(paths, on_bad=faults.append)
  assert [(fault.line, fault.path) for fault in faults] == [
    (2, paths.links),
    (3, paths.links),
  ]
  assert found.source.lengths.tolist() == [2, 0, 0, 1]
  assert found.target.lengths.tolist() == [2, 0, 0, 1]
  assert found.links.flat.tolist() == [[0, 0], [0, 0]]
  assert found.links.lengths.tolist() == [1, 0, 0, 1]


TREES = ["(S (A a) (B b))", "()", "(C c)"]


def test_trees_come_with_the_table_labels(tmp_path):
  paths = write(tmp_path, **GOOD, trees=TREES)
  labels = aligned_text.read_labels(
    paths.trees, binarize=False, on_bad=aligned_text.refuse
  )
  assert labels == ("X", "S", "A", "B", "C")
  found = shards(paths, labels=labels, tokens=1)
  assert [format_trees(shard.trees) for shard in found] == [
    [TREES[0]],
    [TREES[1], TREES[2]],
  ]
  assert found[0].trees.label.tolist() == [1, 2, 3]
  assert found[1].trees.label.tolist() == [4]


def test_trees_can_be_made_binary(tmp_path):
  paths = write(
    tmp_path,
    source=["a b c"],
    target=["x"],
    links=["0-0"],
    trees=["(S (A a) (B b) (C c))"],
  )
  labels = aligned_text.read_labels(
    paths.trees, binarize=True, on_bad=aligned_text.refuse
  )
  assert "@S" in labels
  (found,) = shards(paths, labels=labels, binarize=True)
  assert format_trees(found.trees) == ["(S (@S (A a) (B b)) (C c))"]


@pytest.mark.parametrize(
  ("tree", "message"),
  [("(C c", "trees:3: "), ("(C d)", "trees:3: leaf 1 is 'd'")],
)
def test_bad_trees_are_named_or_skipped(tmp_path, tree, message):
  paths = write(tmp_path, **GOOD, trees=[*TREES[:2], tree])
  labels = ("X", "S", "A", "B", "C")
  with pytest.raises(InputError, match=message):
    shards(paths, labels=labels)
  faults = []
  (found,) = shards(paths, labels=labels, on_bad=faults.append)
  assert [fault.line for fault in faults] == [3]
  assert format_trees(found.trees) == [TREES[0], "()", "()"]
  assert found.source.lengths.tolist() == [2, 0, 0]


def test_standard_input_cannot_be_read_twice():
  with pytest.raises(InputError, match="standard input"):
    aligned_text.check_paths(
      aligned_text.Paths(source="-", target="t", links="l")
    )
