"""N-best lists of lines that were cut into pieces."""

import itertools

import hypothesis
import numpy as np
from hypothesis import strategies

from jaxmt.chart import nbest, translate
from jaxmt.data.ragged import Ragged

WORDS = ("a", "b", "c d", "")


def random_lists(rng, pieces):
  """One list per piece, in two parts whose order is mixed up."""
  parts = [], []
  for piece in rng.permutation(len(pieces.lines)).tolist():
    size = int(rng.integers(1, 4))
    score = np.sort(rng.integers(-6, 0, size=size))[::-1] / 2
    lines = [WORDS[k] for k in rng.integers(0, 4, size=size)]
    counts = [len(line.split()) for line in lines]
    parts[piece % 2].append(
      nbest.NBest(
        sentence=np.full(size, piece),
        lines=lines,
        score=score,
        features=np.stack([score, np.array(counts)], axis=1),
        names=("score", "words"),
        links=Ragged(
          flat=np.array(
            [[0, word] for count in counts for word in range(count)], np.int32
          ).reshape(-1, 2),
          offsets=np.cumsum([0, *counts]),
        ),
      )
    )
  return [nbest.concatenate(part) for part in parts if part]


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
  whole = nbest.concatenate(parts)
  got = nbest.collect(parts, pieces, size=size, unique=unique)
  assert (np.diff(got.sentence) >= 0).all()
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
    np.testing.assert_allclose(got.features[own, 0], totals)
    for row in own.tolist():
      words = got.lines[row].split()
      assert got.features[row, 1] == len(words) == len(got.links[row])
      np.testing.assert_array_equal(got.links[row][:, 1], range(len(words)))
      firsts = pieces.first[pieces.row == line]
      assert np.isin(got.links[row][:, 0], firsts).all()
      if unique:
        assert want[got.lines[row]] == got.score[row]
    if unique:
      texts = [got.lines[row] for row in own.tolist()]
      assert len(set(texts)) == len(texts)
