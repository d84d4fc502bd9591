"""N-best lists of lines that were cut into pieces."""

import itertools

import hypothesis
import numpy as np
from hypothesis import strategies

from jaxmt.decode import candidate_lists, nbest, translate
from jaxmt.features import sparse, string_templates
from jaxmt.text.ragged import Ragged

WORDS = ("a", "b", "c d", "")


NAMES = ("score", "words")


def rows_of(values):
  """Dense values as sparse rows."""
  ids = np.tile(np.arange(values.shape[1]), len(values))
  offsets = np.arange(len(values) + 1) * values.shape[1]
  return sparse.canonical(ids, values.reshape(-1), offsets)


def random_lists(rng, pieces):
  """One list per piece, in two parts whose order is mixed up."""
  parts = [], []
  for piece in rng.permutation(len(pieces.lines)).tolist():
    size = int(rng.integers(1, 4))
    score = np.sort(rng.integers(-6, 0, size=size))[::-1] / 2
    lines = [WORDS[k] for k in rng.integers(0, 4, size=size)]
    counts = [len(line.split()) for line in lines]
    both = [score, np.array(counts)]  # columns in another order in each part
    parts[piece % 2].append(
      candidate_lists.from_rows(
        sentence=np.full(size, piece),
        lines=lines,
        score=score,
        features=rows_of(np.stack(both if piece % 2 else both[::-1], 1)),
        names=NAMES if piece % 2 else NAMES[::-1],
        links=Ragged(
          flat=np.array(
            [[0, word] for count in counts for word in range(count)], np.int32
          ).reshape(-1, 2),
          offsets=np.cumsum([0, *counts]),
        ),
        derivations=[(f"({piece} {line})",) for line in lines],
      )
    )
  return [candidate_lists.concatenate(part) for part in parts if part]


@hypothesis.given(
  seed=strategies.integers(0, 10**6),
  size=strategies.sampled_from([1, 3, 50]),
  unique=strategies.booleans(),
)
def test_cut_lines_have_the_best_combinations(seed, size, unique):
  rng = np.random.default_rng(seed)
  lines = ["w w w w w", "v", "w w w w", "w w w w w w w"]
  pieces = translate.cut_lines(lines, longest=int(rng.integers(2, 8)))
  parts = random_lists(rng, pieces)
  whole = candidate_lists.concatenate(parts)
  settings = nbest.ListSettings(size=size, unique=unique)
  got = nbest.collect(parts, pieces, settings, {})
  assert (np.diff(got.sentence) >= 0).all()
  dense = sparse.to_dense(got.features, 2)
  dense = dense[:, [got.names.index(name) for name in NAMES]]
  for line in range(len(lines)):
    own = np.flatnonzero(got.sentence == line)
    of_pieces = [
      np.flatnonzero(whole.sentence == piece).tolist()
      for piece in np.flatnonzero(pieces.row == line)
    ]
    if line not in pieces.cut:
      assert len(own) == len(of_pieces[0])
      continue
    want = {}
    for number, chosen in enumerate(itertools.product(*of_pieces)):
      text = " ".join(whole.lines[k] for k in chosen if whole.lines[k])
      key = text if unique else number
      want[key] = max(want.get(key, -99.0), whole.score[list(chosen)].sum())
    totals = sorted(want.values(), reverse=True)[:size]
    np.testing.assert_allclose(got.score[own], totals)
    np.testing.assert_allclose(dense[own, 0], totals)
    for row in own.tolist():
      words = got.lines[row].split()
      assert dense[row, 1] == len(words) == len(got.links[row])
      assert len(got.derivations[row]) == len(of_pieces)
      np.testing.assert_array_equal(got.links[row][:, 1], range(len(words)))
      firsts = pieces.first[pieces.row == line]
      assert np.isin(got.links[row][:, 0], firsts).all()
      if unique:
        assert want[got.lines[row]] == got.score[row]
    if unique:
      texts = [got.lines[row] for row in own.tolist()]
      assert len(set(texts)) == len(texts)


def small_list():
  """Three translations of sentence 0, one of the empty sentence 1."""
  values = np.array([[-1.0], [-2.0], [-3.0], [0.0]])
  return candidate_lists.from_rows(
    sentence=np.array([0, 0, 0, 1]),
    lines=["a b", "b a", "a a", ""],
    score=values[:, 0],
    features=rows_of(values),
    names=("score",),
    links=Ragged(flat=np.zeros((0, 2), np.int32), offsets=np.zeros(5, int)),
    derivations=[("(0)",), ("(1)",), ("(2)",), ()],
  )


def test_further_features_change_the_order():
  whole = small_list()
  weights = {"score": 1.0, "ngram:a_a": 5.0, "ngram:a": -0.5, "ngram:q": 9.0}
  weights["ngram:<s>_</s>"] = 7.0
  parts = [string_templates.target_ngrams(whole.lines, order=n) for n in (1, 2)]
  got = nbest.rerank(whole, parts, weights)
  assert got.lines == ["a a", "a b", "b a", ""]
  np.testing.assert_allclose(got.score, [1.0, -1.5, -2.5, 0.0])
  vector = np.array([weights[name] for name in got.names])
  np.testing.assert_allclose(sparse.dot(got.features, vector), got.score)
  first, empty = nbest.best(got)
  assert first.features == {"score": -3.0, "ngram:a": 2.0, "ngram:a_a": 1.0}
  assert (first.text, first.derivation) == ("a a", ("(2)",))
  assert (empty.text, empty.features) == ("", {})
  assert candidate_lists.shorten(got, 2).lines == ["a a", "a b", ""]


def test_features_of_one_name_are_added():
  """A word may be spelled as two words are."""
  whole = small_list()
  whole.lines[0] = "a b a_b"
  parts = [string_templates.target_ngrams(whole.lines, order=n) for n in (1, 2)]
  got = nbest.best(nbest.rerank(whole, parts, {"score": 1, "ngram:a_b": 1}))
  assert got[0].features == {"score": -1.0, "ngram:a_b": 2.0}
