"""A small random pool with real text, for tests of tuners."""

import itertools

import numpy as np

from jaxmt.decode import candidate_lists
from jaxmt.features import sparse
from jaxmt.tune import pool

WORDS = "the a cat dog sees bird house green big in on garden".split()


def references(rng, sentences):
  return [
    [" ".join(rng.choice(WORDS, rng.integers(4, 9)))] for _ in range(sentences)
  ]


def noisy(rng, line):
  """A candidate: the reference with words dropped, changed or added."""
  words = []
  for word in line.split():
    draw = rng.uniform()
    if draw < 0.15:
      continue
    words.append(str(rng.choice(WORDS)) if draw < 0.35 else word)
    if draw > 0.92:
      words.append(str(rng.choice(WORDS)))
  return " ".join(words)


def make(
  seed=0, *, sentences=24, width=10, sparse_features=0, metrics=("bleu",)
):
  """Features are noisy hints at quality and length; one is pure noise.

  Sentence 1 has one candidate; sentence 2 has an empty translation among its
  own; sentence 3 has no candidate.
  """
  rng = np.random.default_rng(seed)
  refs = references(rng, sentences)
  lines, owner, rows = [], [], []
  names = ["hint", "length", "noise", "constant"]
  names += [f"word_{n}" for n in range(sparse_features)]
  for number, (ref,) in enumerate(refs):
    count = {1: 1, 3: 0}.get(number, width)
    for k in range(count):
      line = "" if number == 2 and k == 0 else noisy(rng, ref)
      overlap = len(set(line.split()) & set(ref.split()))
      row = [(0, overlap + rng.normal()), (1, float(len(line.split())))]
      row += [(2, rng.normal()), (3, 1.0)]
      if sparse_features:
        row += [
          (4 + (hash_word(word) % sparse_features), 1.0)
          for word in line.split()
        ]
      lines.append(line)
      owner.append(number)
      rows.append(row)
  offsets = np.cumsum([0] + [len(row) for row in rows])
  flat = [pair for row in rows for pair in row]
  features = sparse.canonical(
    np.array([f for f, _ in flat]), np.array([v for _, v in flat]), offsets
  )
  candidates = candidate_lists.from_rows(
    sentence=np.array(owner), lines=lines, features=features, names=tuple(names)
  )
  made = pool.make_pool(
    candidates,
    sentences=sentences,
    dense_names=("hint", "length", "noise", "constant"),
  )
  return pool.with_statistics(made, refs, metrics)


def hash_word(word):
  return sum((n + 1) * ord(c) for n, c in enumerate(word))


START = np.array([0.02, 0.1, 0.3, 0.0])


def start(made):
  """Poor weights: almost blind to the hint."""
  return np.concatenate([START, np.zeros(len(made.names) - len(START))])


def as_lists(made):
  """Full feature rows and statistics per sentence."""
  full = sparse.to_dense(made.features, len(made.names))
  spans = list(itertools.pairwise(made.offsets))
  return (
    [full[low:high] for low, high in spans],
    [made.statistics["bleu"][low:high] for low, high in spans],
  )
