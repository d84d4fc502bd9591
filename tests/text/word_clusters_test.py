import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.text import word_clusters
from tests.reference import brown


def random_lines(seed, *, words=14, lines=40):
  rng = np.random.default_rng(seed)
  shares = rng.dirichlet(np.full(words, 0.5), size=words)
  out = []
  for _ in range(lines):
    word = rng.integers(words)
    line = [word]
    for _ in range(rng.integers(0, 9)):
      word = rng.choice(words, p=shares[word])
      line.append(word)
    out.append(" ".join(f"w{word}" for word in line))
  return out


@pytest.mark.parametrize("seed", range(4))
def test_equals_brute_force(seed):
  lines = random_lines(seed)
  found = word_clusters.cluster_words(lines, clusters=4)
  clusters, information = brown.cluster(lines, 4)
  assert found.information == pytest.approx(information, rel=1e-9)
  mine = {
    frozenset(
      word
      for word, own in zip(found.words, found.cluster, strict=True)
      if own == number
    )
    for number in range(4)
  }
  assert mine == {frozenset(words) for words in clusters}


def test_paths_are_a_tree():
  found = word_clusters.cluster_words(random_lines(9, words=30), clusters=6)
  paths = found.paths
  assert len(set(paths)) == 6
  assert sum(2.0 ** -len(path) for path in paths) == pytest.approx(1)
  lines = word_clusters.to_lines(found)
  assert len(lines) == len(found.words)
  assert [line.split("\t")[0] for line in lines] == sorted(
    paths[own] for own in found.cluster
  )


def test_rare_words_are_left_out_and_few_words_are_clusters():
  found = word_clusters.cluster_words(["a b a b", "a c"], clusters=5)
  assert found.words == ("a", "b", "c")
  assert sorted(found.cluster) == [0, 1, 2]
  found = word_clusters.cluster_words(
    ["a b a b", "a c"], clusters=5, min_count=2
  )
  assert found.words == ("a", "b")
  with pytest.raises(ValueError, match="no word occurs 9 times"):
    word_clusters.cluster_words(["a"], clusters=2, min_count=9)


def test_files_come_back_and_others_are_refused():
  found = word_clusters.cluster_words(["a b a b", "c b"], clusters=2)
  read = word_clusters.read_lines(word_clusters.to_lines(found))
  assert read == {
    word: found.paths[cluster]
    for word, cluster in zip(found.words, found.cluster, strict=True)
  }
  for line in ("0x\ta\t1", "01", "01\t\t1", "0\ta\t1\t2"):
    with pytest.raises(InputError, match="F:2: not 'bits TAB word"):
      word_clusters.read_lines(["1\tb\t1", line], path="F")
