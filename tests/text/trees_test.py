import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.errors import InputError
from jaxmt.text import files, trees
from tests import util
from tests.reference import bracketed
from tests.text import text_strategies

leaf = st.tuples(text_strategies.words, text_strategies.words)
tree = st.recursive(
  leaf,
  lambda inner: st.tuples(
    text_strategies.words, st.lists(inner, min_size=1, max_size=4)
  ),
  max_leaves=8,
)
forests = st.lists(tree | st.none(), max_size=5)


def columns_of(parsed, row):
  """The oracle's rows for one sentence, from the columns."""
  nodes = slice(parsed.offsets[row], parsed.offsets[row + 1])
  kids = trees.children(parsed)
  return [
    (parsed.labels[label], size, parent, start, end, kids[node].tolist())
    for node, label, size, parent, start, end in zip(
      range(nodes.start, nodes.stop),
      parsed.label[nodes].tolist(),
      parsed.size[nodes].tolist(),
      parsed.parent[nodes].tolist(),
      parsed.start[nodes].tolist(),
      parsed.end[nodes].tolist(),
      strict=True,
    )
  ]


def check(parsed, expected):
  """The columns say what the oracle's trees say."""
  assert len(parsed) == len(expected)
  assert parsed.failed.tolist() == [item is None for item in expected]
  for row, item in enumerate(expected):
    assert columns_of(parsed, row) == bracketed.columns(item)
    words = [parsed.vocabulary[number] for number in parsed.words[row]]
    assert words == bracketed.leaves(item)
  assert parsed.is_preterminal.sum() == len(parsed.words.flat)
  assert len(set(parsed.labels)) == len(parsed.labels)
  assert len(set(parsed.vocabulary)) == len(parsed.vocabulary)
  for name in ("label", "size", "parent", "start", "end"):
    assert getattr(parsed, name).dtype == np.int32
  assert parsed.words.flat.dtype == np.int32


@given(forests)
def test_parsing_equals_the_reference(forest):
  lines = [bracketed.format_tree(item) for item in forest]
  parsed = trees.parse_trees(lines, path="x")
  check(parsed, forest)
  assert trees.format_trees(parsed) == lines


@given(forests, st.randoms(use_true_random=False))
def test_spacing_and_bare_brackets_change_nothing(forest, random):
  def loose(item):
    gap = random.choice(["", " ", "\t \r", "\v\f"])
    if item is None:
      return random.choice(["", " ", "()", "(())", "( ( ) )", "\t(() )"])
    some = gap or " "
    text = bracketed.format_tree(item).replace(" ", some)
    text = text.replace("(", "(" + gap).replace(")", gap + ")")
    return random.choice(["{}", "({})", " ( {} ) ", "(({}))"]).replace(
      "{}", text
    )

  parsed = trees.parse_trees([loose(item) for item in forest])
  check(parsed, forest)
  again = trees.parse_trees(trees.format_trees(parsed))
  check(again, forest)


near_trees = st.lists(
  st.sampled_from(
    "( ) (A_a) (A_ (B(C_c)(D _d) a 中 () _ (\u3000_\xa0) -LRB- (A) (_(S_s)_)"
    " \x00".replace(" ", "|")
    .replace("_", " ")
    .split("|")
  ),
  max_size=8,
).map("".join)


def check_garbage(lines):
  expected, bad = [], None
  for number, line in enumerate(lines, start=1):
    try:
      expected.append(bracketed.parse(line))
    except ValueError:
      bad = number
      break
  if bad is None:
    check(trees.parse_trees(lines, path="x"), expected)
  else:
    with pytest.raises(InputError) as caught:
      trees.parse_trees(lines, path="x")
    assert (caught.value.path, caught.value.line) == ("x", bad)
    assert "\n" not in str(caught.value)


@given(st.lists(near_trees, max_size=4) | text_strategies.lines)
def test_garbage_is_read_as_the_reference_does_or_refused(lines):
  check_garbage(lines)


def test_random_strings_are_read_as_the_reference_does():
  rng = random.Random(7)
  for _ in range(2000):
    lines = [
      "".join(rng.choices("(()) aA\t中\u3000", k=rng.randrange(12)))
      for _ in range(rng.randrange(4))
    ]
    check_garbage(lines)


def test_spoilt_trees_are_read_as_the_reference_does():
  rng = random.Random(7)
  good = "( ( S ( A a ) ( B ( C c ) ( D ( E e ) ) ) ) )"
  for _ in range(3000):
    pieces = good.split(" ")[rng.randrange(2) :]
    for _ in range(rng.randrange(4)):
      place = rng.randrange(len(pieces))
      pieces[place : place + rng.randrange(2)] = rng.choice(
        [[], ["("], [")"], ["w"], ["(", "L"], ["w", ")"], ["(", ")"]]
      )
    check_garbage([good, " ".join(pieces)])


@pytest.mark.parametrize(
  ("line", "cause"),
  [
    ("(S (NP a)", "unbalanced: the line ends inside a bracket"),
    ("(", "unbalanced: the line ends inside a bracket"),
    ("(S (NP a)))", "closing bracket without an opening one"),
    (")", "closing bracket without an opening one"),
    ("word", "word 'word' outside the brackets"),
    ("(S (NP a)) 多余 x", "text after the tree: '多余'"),
    ("(S (NP a)) (S (NP a))", "text after the tree: '(S'"),
    ("( (S (NP a)) (S (NP a)) )", "text after the tree: '(S'"),
    ("(S () (NP a))", "bracket without a label inside a tree"),
    ("(S ((NP a)))", "bracket without a label inside a tree"),
    ("(S (NP ))", "bracket 'NP' holds nothing"),
    ("(S)", "bracket 'S' holds nothing"),
    ("(S (NP a b))", "word 'b' beside another word or bracket"),
    ("(S (NP a) b)", "word 'b' beside another word or bracket"),
    ("(S a (NP b))", "bracket '(NP' beside a word"),
    ("x" * 500, "word '" + "x" * 40 + "...' outside the brackets"),
    ("{0}", "word '{0}' outside the brackets"),
  ],
)
def test_cause_file_and_line(line, cause):
  with pytest.raises(InputError) as caught:
    trees.parse_trees(["(S (NP a))", "", line, ")("], path="a.tree")
  assert str(caught.value) == f"a.tree:3: {cause}"


def test_no_lines():
  parsed = trees.parse_trees([])
  assert (len(parsed), parsed.labels, parsed.vocabulary) == (0, (), ())
  assert trees.format_trees(parsed) == []
  assert len(trees.children(parsed)) == 0


def test_escapes_and_unary_chains_are_kept():
  line = "(ROOT (S (NP (NP (-LRB- -LRB-))) (VP (: \\/) (-RRB- -rrb-))))"
  parsed = trees.parse_trees([line])
  assert trees.format_trees(parsed) == [line]
  assert parsed.vocabulary == ("-LRB-", "\\/", "-rrb-")


def test_depth_and_width_have_no_limit():
  many = 100_000
  deep = "(A " * many + "(B w)" + ")" * many
  wide = "(A" + " (B w)" * many + ")"
  parsed = trees.parse_trees([deep, wide])
  assert trees.format_trees(parsed) == [deep, wide]
  assert parsed.end.max() == many
  assert parsed.parent[many] == many - 1
  assert (parsed.parent[many + 2 :] == 0).all()


@given(forests, st.data())
def test_select_equals_parsing_the_selected_lines(forest, data):
  lines = [bracketed.format_tree(item) for item in forest]
  rows = st.integers(0, max(0, len(lines) - 1))
  picked = data.draw(st.lists(rows, max_size=4 if lines else 0))
  chosen = trees.select(trees.parse_trees(lines), np.array(picked, np.int64))
  check(chosen, [forest[row] for row in picked])


def test_select_takes_a_mask():
  parsed = trees.parse_trees(["(A a)", "", "(B (C c))"])
  chosen = trees.select(parsed, ~parsed.failed)
  assert trees.format_trees(chosen) == ["(A a)", "(B (C c))"]


@given(forests)
def test_leaves_equal_their_own_sentence(forest):
  parsed = trees.parse_trees([bracketed.format_tree(item) for item in forest])
  lines = [
    "anything" if item is None else "  ".join(bracketed.leaves(item))
    for item in forest
  ]
  trees.check_leaves(parsed, lines)
  trees.check_leaves(parsed, lines, unescape=True)


@pytest.mark.parametrize(
  ("sentence", "cause"),
  [
    ("x ) b", "leaf 1 is 'a', the sentence has 'x'"),
    ("a -RRB- x", "leaf 3 is 'b', the sentence has 'x'"),
    ("a -RRB-", "the tree has 3 leaves, the sentence 2 words"),
    ("", "the tree has 3 leaves, the sentence 0 words"),
    ("a ) b", "leaf 2 is '-RRB-', the sentence has ')'"),
  ],
)
def test_other_leaves_name_file_and_line(sentence, cause):
  line = "(S (A a) (-RRB- -RRB-) (B b))"
  parsed = trees.parse_trees(["()", line, line, "(A z)"])
  lines = ["", "a -RRB- b", sentence, "z z"]
  with pytest.raises(InputError) as caught:
    trees.check_leaves(parsed, lines, path="t", lines_path="s")
  assert str(caught.value) == f"t:3: {cause}"


def test_leaves_may_differ_by_escapes_if_asked():
  parsed = trees.parse_trees(
    ["(S (A -LRB-) (A -rsb-) (A 1\\/2) (A -LCB-) (A {))"]
  )
  trees.check_leaves(parsed, ["( ] 1/2 { -LCB-"], unescape=True)
  with pytest.raises(InputError, match="leaf 2"):
    trees.check_leaves(parsed, ["( [ 1/2 { {"], unescape=True)


def test_number_of_sentences_must_agree():
  parsed = trees.parse_trees(["(A a)", "(A a)"])
  with pytest.raises(
    InputError, match="s:1: uneven: ends after 1 lines, t has"
  ):
    trees.check_leaves(parsed, ["a"], path="t", lines_path="s")


@pytest.mark.parametrize(
  ("name", "stem"),
  [
    ("tatoeba-zh-en", "dev.zh"),
    ("enja-trees", "dev.en"),
    ("multi30k-de-en", "dev.en"),
  ],
)
def test_real_trees(name, stem):
  folder = util.corpus(name)
  path = str(folder / f"{stem}.tree.gz")
  lines = files.read_lines(path)
  parsed = trees.parse_trees(lines, path=path)
  assert not parsed.failed.any()
  assert trees.format_trees(parsed) == lines
  check(
    trees.select(parsed, np.arange(100)),
    [bracketed.parse(line) for line in lines[:100]],
  )
  sentences = files.read_lines(str(folder / f"{stem}.gz"))
  trees.check_leaves(parsed, sentences, path=path, unescape=True)
  if name != "multi30k-de-en":  # its trees escape brackets
    trees.check_leaves(parsed, sentences, path=path)


def test_trees_of_sentences_that_were_left_after_dropping_some():
  bank = trees.parse_trees(
    [
      "(S (A a) (B b))",
      "(S (A a))",
      "()",
      "(S (A -LRB-) (B b))",
      "(S (A c))",
    ]
  )
  lines = ["a b", "x y z", "( b", "c"]
  np.testing.assert_array_equal(trees.rows_of(bank, lines), [0, 2, 3, 4])
  np.testing.assert_array_equal(trees.rows_of(bank, ["a", "c"]), [1, 2])
  with pytest.raises(InputError, match=r"f: no tree of sentence 3, 'c', in"):
    trees.rows_of(bank, ["c", "c", "c"], path="f")
