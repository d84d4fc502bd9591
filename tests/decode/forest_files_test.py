"""Forest files: what is written is read, what is bad is named."""

import dataclasses
import gzip
import json

import jax
import numpy as np
import pytest

from jaxmt.decode import forest_files, portable_forest, translation_forest
from jaxmt.errors import InputError
from jaxmt.hypergraph import log_totals, select
from jaxmt.text import files
from tests.reference import forests


def load(seed, **options):
  _, model, source, made = forests.decoded(seed, **options)
  numbers = np.array([7, 3, 12, 0])
  return model, source, portable_forest.spell(model, source, made, numbers)


def strings(spelled, row):
  """Every derivation of a sentence: its words and score, best first."""
  cuts = spelled.target.offsets
  made = spelled.forest

  def words(edges):
    """Words of a derivation, and the edges after it."""
    edge, rest = edges[0], edges[1:]
    below = []
    for tail in made.tails[edge]:
      if tail >= 0:
        text, rest = words(rest)
        below.append(text)
    out = []
    for symbol in spelled.target.flat[cuts[edge] : cuts[edge + 1]].tolist():
      out += [spelled.words[symbol]] if symbol >= 0 else below[-1 - symbol]
    return out, rest

  every = forests.derivations(made, row, limit=5000)
  scored = [(float(made.score[e].sum()), " ".join(words(e)[0])) for e in every]
  return sorted(scored, reverse=True)


def assert_same(got, want, *, exact=True):
  order = np.argsort(want.sentence)
  want = portable_forest.select(want, order)
  np.testing.assert_array_equal(got.sentence, want.sentence)
  assert got.names == want.names
  assert got.weights == want.weights
  if not exact:
    return
  assert got.labels == want.labels
  arity = got.forest.tails.shape[1]
  assert (want.forest.tails[:, arity:] == -1).all()
  cut = dataclasses.replace(want.forest, tails=want.forest.tails[:, :arity])
  assert jax.tree.structure(got.forest) == jax.tree.structure(cut)
  for one, two in zip(
    jax.tree.leaves(got.forest), jax.tree.leaves(cut), strict=True
  ):
    assert one.dtype == two.dtype
    np.testing.assert_array_equal(one, two)
  np.testing.assert_array_equal(got.features, want.features)
  np.testing.assert_array_equal(got.target.offsets, want.target.offsets)
  spell = lambda f: [f.words[s] if s >= 0 else s for s in f.target.flat]
  assert spell(got) == spell(want)


@pytest.mark.parametrize("name", ["f.jsonl", "f.jsonl.gz", "f.npz"])
@pytest.mark.parametrize(("order", "arity"), [(2, 2), (4, 5)])
def test_own_formats_bring_everything_back(tmp_path, name, order, arity):
  _, _, want = load(1, order=order, arity=arity)
  parts = [portable_forest.select(want, rows) for rows in ([2, 0], [1, 3])]
  path = str(tmp_path / name)
  forest_files.write(path, parts)
  assert_same(forest_files.read(path), want)
  forest_files.write(path, [want])
  again = files.read_bytes(path)
  forest_files.write(path, [want])
  assert files.read_bytes(path) == again


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("order", "arity"), [(3, 2), (4, 5)])
def test_moses_folder(tmp_path, seed, order, arity):
  model, source, want = load(seed, order=order, arity=arity)
  path = f"{tmp_path}/graphs/"
  forest_files.write(path, [want])
  got = forest_files.read(path)
  assert set(got.names) >= {
    want.names[place] for place in np.flatnonzero(want.features.any(0))
  }
  # The same sums, the same best scores, the same strings.
  rank = np.argsort(want.sentence)
  totals = log_totals(got.forest)
  known = log_totals(want.forest)
  np.testing.assert_allclose(totals, known[rank], atol=1e-4)
  found = translation_forest.kbest(model, source, want.forest, size=30)
  sorted_want = portable_forest.select(want, rank)
  for row, old in enumerate(rank.tolist()):
    ours = strings(got, row)
    scores = found.score[found.offsets[old] : found.offsets[old + 1]]
    np.testing.assert_allclose(
      [score for score, _ in ours[: len(scores)]], scores, atol=1e-4
    )
    theirs = strings(sorted_want, row)
    assert sorted(text for _, text in ours) == sorted(t for _, t in theirs)
  lines = files.read_lines(f"{path}7.gz")
  assert lines[0] == "# target ||| features ||| source-covered"
  assert sum("<s> [" in line and "] </s> " in line for line in lines) > 0


def test_a_graph_of_moses(tmp_path):
  """As Moses writes it: ends are nodes and rules of their own."""
  text = """# target ||| features ||| source-covered
4 5
# node 0
1
<s>  ||| LM0=0  ||| 1
# node 1
2
a house  ||| LM0=-1.5 Phrase0_1=0.5  ||| 2
house  ||| LM0=-1  ||| 2
1
[0] [1]  ||| LM0=-0.25 X-Y==2  ||| 3
1
[2] </s>  ||| LM0=-0.5  ||| 4
"""
  (tmp_path / "4").write_text(text)
  (tmp_path / "weights").write_text("LM0 2\nPhrase0_1 4\n")
  got = forest_files.read(str(tmp_path))
  assert got.sentence.tolist() == [4]
  assert got.names == ("LM0", "Phrase0_1", "X-Y=")
  assert strings(got, 0) == [(-2.5, "a house"), (-3.5, "house")]


@pytest.mark.parametrize(
  ("change", "line", "cause"),
  [
    (("2\n", "two\n"), 6, "bad hypergraph"),
    (("2 3", "2 4"), 8, "3 edges, not 4"),
    (("[0]", "[1]"), 7, "does not stand before"),
    (("a=1", "a"), 4, "has no value"),
    (("a=1", "a=nan"), 4, "not finite"),
    (("# target", "target"), 1, "first line"),
    ((" ||| 2", ""), 7, "2 fields"),
    (("b=3  ||| 2\n", "b=3  ||| 2\nmore\n"), 9, "more lines"),
    (("b  ||| b=3  ||| 2\n", ""), None, "ends too early"),
  ],
)
def test_bad_graphs(tmp_path, change, line, cause):
  text = """# target ||| features ||| source-covered
2 3
1
a  ||| a=1  ||| 1
# node 1
2
[0] b  ||| b=2  ||| 2
b  ||| b=3  ||| 2
"""
  (tmp_path / "0").write_text(text)
  forest_files.read(str(tmp_path))
  assert change[0] in text
  (tmp_path / "0").write_text(text.replace(*change))
  with pytest.raises(InputError, match=cause) as caught:
    forest_files.read(str(tmp_path))
  assert caught.value.path.endswith("/0")
  assert caught.value.line == line


@pytest.mark.parametrize(
  ("change", "cause"),
  [
    ({"edges": [0]}, "not"),
    ({"edges": None}, "bad forest"),
    ({"score": [0.0]}, "'score'"),
    ({"score": "x"}, "bad forest"),
    ({"begin": [0]}, "'begin'"),
    ({"sentence": "x"}, "bad forest"),
    ({"features": [[0.0]]}, "bad forest"),
  ],
)
def test_bad_lines(tmp_path, change, cause):
  _, _, want = load(0)
  path = str(tmp_path / "f.jsonl")
  forest_files.write(path, [want])
  lines = files.read_lines(path)
  files.write_lines(
    path, [*lines[:2], json.dumps({**json.loads(lines[2]), **change})]
  )
  with pytest.raises(InputError, match=cause) as caught:
    forest_files.read(path)
  assert (caught.value.path, caught.value.line) == (path, 3)
  for text, number in (("{", 2), ('{"sentence": 0}', 2), ("[]", 2)):
    files.write_lines(path, [lines[0], text])
    with pytest.raises(InputError) as caught:
      forest_files.read(path)
    assert caught.value.line == number


def test_tails_after_heads_are_not_a_forest(tmp_path):
  _, _, want = load(0)
  path = str(tmp_path / "f.jsonl")
  forest_files.write(path, [portable_forest.select(want, [1])])
  lines = files.read_lines(path)
  value = json.loads(lines[1])
  place = next(k for k, tails in enumerate(value["tails"]) if tails)
  value["tails"][place][0] = 10**6
  files.write_lines(path, [lines[0], json.dumps(value)])
  with pytest.raises(InputError, match="before its head"):
    forest_files.read(path)


def test_bad_files(tmp_path):
  path = str(tmp_path / "f")
  for data, cause in (
    (b"", "no forests"),
    (b"{}\n", "jaxmt forest"),
    (b"\xff\xfe\n", "UTF-8"),
    (b'{"format": "jaxmt forest", "version": 9}\n', "version 9"),
    (b"PK\x03\x04 rubbish", "damaged"),
    (gzip.compress(b"[1]\n"), "no JSON object"),
  ):
    with files.atomic_writer(path) as out:
      out.write(data)
    with pytest.raises(InputError, match=cause):
      forest_files.read(path)
  with pytest.raises(InputError, match="no such file"):
    forest_files.read(str(tmp_path / "missing"))
  with pytest.raises(InputError, match="named by numbers"):
    forest_files.read(str(tmp_path))
  for name in ("none.npz", "none.jsonl", "none/"):
    with pytest.raises(InputError, match="no forests to write"):
      forest_files.write(f"{tmp_path}/{name}", [])
  with pytest.raises(ValueError, match="format"):
    forest_files.write(path, [], format="dot")


def test_npz_with_pickles_is_refused(tmp_path):
  path = tmp_path / "f.npz"
  np.savez(path, header=np.array([{"a": 1}], dtype=object))
  with pytest.raises(InputError):
    forest_files.read(str(path))


def test_empty_sentences(tmp_path):
  _, _, some = load(2)
  none, _ = select(some.forest, [])
  empty = dataclasses.replace(
    portable_forest.select(some, []),
    forest=dataclasses.replace(none, node_offsets=np.zeros(2, np.int64)),
    sentence=np.array([1]),
  )
  for name in ("e.npz", "e.jsonl", "e/"):
    path = f"{tmp_path}/{name}"
    forest_files.write(path, [empty, some])
    got = forest_files.read(path)
    assert got.sentence.tolist() == [0, 1, 3, 7, 12]
    assert np.diff(got.forest.node_offsets)[1] == 0
    forest_files.write(path, [empty])
  assert len(forest_files.read(f"{tmp_path}/e.npz")) == 1


def test_words_that_look_like_nodes(tmp_path):
  _, _, some = load(2)
  odd = dataclasses.replace(
    some, words=("[0]", "|||", *map(str, range(len(some.words) - 2)))
  )
  forest_files.write(f"{tmp_path}/m/", [odd])
  got = forest_files.read(f"{tmp_path}/m/")
  assert set(got.words) & {"&#91;0&#93;", "&#124;&#124;&#124;"}
  assert got.forest.num_edges == odd.forest.num_edges
