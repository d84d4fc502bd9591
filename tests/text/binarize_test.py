import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.errors import InputError
from jaxmt.text import binarize, files, trees
from jaxmt.text.ragged import Ragged
from tests import util
from tests.reference import bracketed
from tests.text import text_strategies

labels = st.sampled_from("ABC") | text_strategies.words.filter(
  lambda word: not word.startswith("@")
)
tree = st.recursive(
  st.tuples(labels, text_strategies.words),
  lambda inner: st.tuples(labels, st.lists(inner, min_size=1, max_size=6)),
  max_leaves=16,
)
forests = st.lists(tree | st.none(), max_size=4)


def same(one, two):
  """Whether two corpora of trees are equal column by column."""
  for field in dataclasses.fields(one):
    a, b = getattr(one, field.name), getattr(two, field.name)
    if isinstance(a, Ragged):
      assert np.array_equal(a.flat, b.flat), field.name
      assert np.array_equal(a.offsets, b.offsets), field.name
    elif isinstance(a, np.ndarray):
      assert np.array_equal(a, b), field.name
      assert a.dtype == b.dtype, field.name
    else:
      assert a == b, field.name


@given(forests)
def test_binarizing_equals_the_reference_and_comes_back(forest):
  lines = [bracketed.format_tree(item) for item in forest]
  parsed = trees.parse_trees(lines)
  done = binarize.binarize_left_heavy(parsed)
  expected = [
    bracketed.format_tree(bracketed.binarize(item)) for item in forest
  ]
  assert trees.format_trees(done) == expected
  assert trees.children(done).lengths.max(initial=0) <= 2
  same(binarize.unbinarize(done), parsed)
  # The columns are those of reading the binarised text.
  again = trees.parse_trees(expected)
  for name in ("size", "parent", "start", "end", "offsets"):
    assert np.array_equal(getattr(done, name), getattr(again, name)), name


def test_the_left_part_is_the_new_node():
  parsed = trees.parse_trees(["(A (B b) (C c) (D d) (E (F f)))"])
  done = binarize.binarize_left_heavy(parsed)
  assert trees.format_trees(done) == [
    "(A (@A (@A (B b) (C c)) (D d)) (E (F f)))"
  ]
  assert done.labels == ("A", "B", "C", "D", "E", "F", "@A")


def test_marked_labels_are_refused_with_their_line():
  parsed = trees.parse_trees(["()", "(A a)", "(A (@B (C c)))"])
  with pytest.raises(InputError) as caught:
    binarize.binarize_left_heavy(parsed, path="t")
  assert str(caught.value) == (
    "t:3: label '@B' begins with the mark of binarised trees"
  )


def test_unused_marked_labels_are_no_harm():
  parsed = trees.parse_trees(["(A (B b) (B b) (B b))", "(A (@A (B b)))"])
  one = trees.select(parsed, np.array([0]))
  done = binarize.binarize_left_heavy(one)
  assert done.labels == ("A", "B", "@A")
  assert trees.format_trees(done) == ["(A (@A (B b) (B b)) (B b))"]


@pytest.mark.parametrize(
  ("line", "cause"),
  [
    ("(@A (B b))", "label '@A' stands at the root"),
    ("(A (@B b))", "label '@B' holds a word"),
  ],
)
def test_what_cannot_be_undone_is_refused(line, cause):
  parsed = trees.parse_trees(["(A a)", line])
  with pytest.raises(InputError) as caught:
    binarize.unbinarize(parsed, path="t")
  assert str(caught.value) == f"t:2: {cause}"


def test_other_binarisations_are_undone_too():
  parsed = trees.parse_trees(
    ["(A (B b) (@A (C c) (@A (D d) (@X (E e)))))", "()"]
  )
  assert trees.format_trees(binarize.unbinarize(parsed)) == [
    "(A (B b) (C c) (D d) (E e))",
    "()",
  ]


def test_a_very_wide_node():
  wide = trees.parse_trees(["(A" + " (B w)" * 100_000 + ")"])
  done = binarize.binarize_left_heavy(wide)
  assert trees.children(done).lengths.max() == 2
  same(binarize.unbinarize(done), wide)


@pytest.mark.parametrize(
  ("name", "stem"), [("tatoeba-zh-en", "dev.zh"), ("enja-trees", "dev.en")]
)
def test_real_trees_come_back(name, stem):
  lines = files.read_lines(str(util.corpus(name) / f"{stem}.tree.gz"))
  parsed = trees.parse_trees(lines)
  done = binarize.binarize_left_heavy(parsed)
  assert trees.children(done).lengths.max() == 2
  assert trees.format_trees(done) == [
    bracketed.format_tree(bracketed.binarize(bracketed.parse(line)))
    for line in lines
  ]
  same(binarize.unbinarize(done), parsed)


@given(forests)
def test_barred_binarisation_equals_the_reference(forest):
  parsed = trees.parse_trees([bracketed.format_tree(item) for item in forest])
  for how in (binarize.LEFT, binarize.RIGHT):
    done = binarize.binarize(parsed, how)
    expected = [
      bracketed.format_tree(bracketed.bar(item, how)) for item in forest
    ]
    assert trees.format_trees(done) == expected
    again = trees.parse_trees(expected)
    for name in ("size", "parent", "start", "end", "offsets"):
      assert np.array_equal(getattr(done, name), getattr(again, name)), name
  assert binarize.binarize(parsed, "") is parsed
  with pytest.raises(ValueError, match="up"):
    binarize.binarize(parsed, "up")
