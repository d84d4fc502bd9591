"""Forest MERT against k-best MERT on all derivations."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import candidate_lists, portable_forest
from jaxmt.errors import InputError
from jaxmt.tune import methods, pool
from jaxmt.tune.forests import forest_mert, forest_pool
from jaxmt.tune.lists import envelope
from tests.reference import forests as reference

NAMES = ("one", "two", "three")
WORDS = ("a", "b", "c", "d")


def random_pool(seed, *, sentences=4, nodes=5, **options):
  """Forests with random words and features, and their references."""
  rng = np.random.default_rng(seed)
  made = reference.random_forest(
    seed, sentences=sentences, nodes=nodes, disjoint=True, **options
  )
  edges = made.num_edges
  rows = []
  for edge in range(edges):
    row = [-1 - k for k in range(int((made.tails[edge] >= 0).sum()))]
    row += rng.integers(0, len(WORDS), rng.integers(0, 3)).tolist()
    rows.append(rng.permutation(row).astype(np.int32))
  features = rng.normal(size=(edges, len(NAMES)))
  features[:, 1] = rng.integers(-2, 3, edges)  # parallel lines
  target = forest_pool.Ragged(
    flat=np.concatenate([np.zeros(0, np.int32), *rows]).astype(np.int32),
    offsets=np.cumsum([0, *map(len, rows)], dtype=np.int64),
  )
  references = [
    [" ".join(rng.choice(WORDS, rng.integers(2, 6)))] for _ in range(sentences)
  ]
  spelled = portable_forest.SpelledForest(
    forest=made,
    sentence=np.arange(sentences),
    target=target,
    words=WORDS,
    labels=("X",),
    features=features,
    names=NAMES,
    weights={},
  )
  return forest_pool.ForestPool(spelled=spelled).bind(references)


def text_of(spelled, edges):
  """The words of a derivation in preorder."""

  def words(edges):
    edge, rest = edges[0], edges[1:]
    below = []
    for tail in spelled.forest.tails[edge]:
      if tail >= 0:
        text, rest = words(rest)
        below.append(text)
    low, high = spelled.target.offsets[edge : edge + 2]
    out = []
    for symbol in spelled.target.flat[low:high].tolist():
      out += [spelled.words[symbol]] if symbol >= 0 else below[-1 - symbol]
    return out, rest

  return " ".join(words(edges)[0])


def enumerated_pool(forests, metric="bleu"):
  """All derivations as a k-best pool."""
  spelled = forests.spelled
  sentence, lines, values = [], [], []
  for row in range(len(spelled)):
    for edges in reference.derivations(spelled.forest, row, limit=10**4):
      sentence.append(row)
      lines.append(text_of(spelled, edges))
      values.append(spelled.features[edges].sum(0))
  features = np.array(values).reshape(len(lines), len(NAMES))
  made = pool.make_pool(
    candidate_lists.from_dense(
      np.array(sentence, np.int64), lines, features, NAMES
    ),
    sentences=len(spelled),
    dense_names=NAMES,
  )
  return pool.with_statistics(made, forests.references, [metric])


def empty_pool(forests, metric="bleu"):
  """No candidates: only the forests count."""
  none = candidate_lists.from_dense(
    np.zeros(0, np.int64), [], np.zeros((0, len(NAMES))), NAMES
  )
  made = pool.make_pool(
    dataclasses.replace(none, forests=forests),
    sentences=len(forests.spelled),
    dense_names=NAMES,
  )
  return pool.with_statistics(made, forests.references, [metric])


@pytest.mark.parametrize(
  ("seed", "metric"),
  [
    *((seed, "bleu") for seed in range(24)),
    *((seed, metric) for seed in range(4) for metric in ("ter", "chrf")),
  ],
)
def test_lines_equal_those_of_all_derivations(seed, metric):
  rng = np.random.default_rng(seed)
  arity = 1 + seed % 3  # 1: lattices, as of phrases
  forests = random_pool(seed, arity=arity, nodes=6, fan=3)
  everything = enumerated_pool(forests, metric)
  lines = forest_mert.ForestLines(empty_pool(forests, metric), forests, metric)
  weights = rng.normal(size=3)
  for direction in (*np.eye(3)[[0, 2]], rng.normal(size=3)):
    steps, sums = lines.trace(weights, direction)
    known, table = envelope.trace(
      everything.dense @ weights,
      everything.dense @ direction,
      everything.offsets,
      everything.statistics[metric],
    )
    np.testing.assert_allclose(steps, known, atol=1e-6, rtol=1e-5)
    np.testing.assert_allclose(sums, table)


@pytest.mark.parametrize("variant", ["powell", "best"])
@pytest.mark.parametrize(("metric", "sign"), [("chrf", 1), ("ter", -1)])
def test_optimum_is_that_of_k_best_mert(variant, metric, sign):
  """On all derivations both do the same, and find the same score."""
  for seed in range(4):
    forests = random_pool(seed, sentences=5, arity=1 + seed % 2)
    everything = enumerated_pool(forests, metric)
    only = empty_pool(forests, metric)
    start = np.random.default_rng(seed).normal(size=3)
    config = forest_mert.ForestMertConfig(
      restarts=3, variant=variant, metric=metric, threads=1
    )
    tuned, history = forest_mert.optimise(only, start, config, seed)
    assert len(history) == 3
    before = sign * pool.pool_score(everything, start, metric)
    after = sign * pool.pool_score(everything, tuned, metric)
    assert after >= before - 1e-9
    best = max(row["score"] for row in history)
    np.testing.assert_allclose(after, best, atol=1e-9)
    threaded = dataclasses.replace(config, threads=3)
    again, _ = forest_mert.optimise(only, start, threaded, seed)
    np.testing.assert_array_equal(again, tuned)
    # The same searches on the list of all derivations.
    found = methods.find("mert")
    listed = dataclasses.replace(
      found.config,
      restarts=3,
      variant=variant,
      metric=metric,
      random_directions=config.random_directions,
    )
    other, known = found.optimise(everything, start, listed, seed)
    np.testing.assert_allclose(
      [row["score"] for row in history], [row["score"] for row in known]
    )
    np.testing.assert_allclose(tuned, other, rtol=1e-3, atol=1e-4)


def test_candidates_of_earlier_rounds_count():
  """A line above all of the forest's is the best one."""
  forests = random_pool(0, sentences=1)
  high = candidate_lists.from_dense(
    np.zeros(1, np.int64), ["d d d d"], np.array([[50.0, 0, 0]]), NAMES
  )
  made = pool.make_pool(
    dataclasses.replace(high, forests=forests), dense_names=NAMES
  )
  made = pool.with_statistics(made, [["d d d d"]], ["bleu"])
  lines = forest_mert.ForestLines(made, made.forests, "bleu")
  steps, sums = lines.trace(np.array([1.0, 0, 0]), np.array([1.0, 0, 0]))
  place = int(np.searchsorted(steps, 0.0)) - 1
  np.testing.assert_array_equal(sums[place], made.statistics["bleu"][0])
  assert (sums[0] != sums[place]).any()  # far left the forest wins


def test_what_it_cannot_do():
  forests = random_pool(0)
  bare = enumerated_pool(forests)
  method = methods.find("forest-mert")
  with pytest.raises(InputError, match="needs forests"):
    method.optimise(bare, np.zeros(3), method.config, 0)
  with pytest.raises(InputError, match="variant"):
    dataclasses.replace(method.config, variant="none")
  with pytest.raises(ValueError, match="references"):
    forests.bind([["a"]])
  with pytest.raises(ValueError, match="missing"):
    forest_pool.join([portable_forest.select(forests.spelled, [2])])


def test_some_sentences():
  forests = random_pool(6)
  whole = empty_pool(forests)
  chosen = np.array([3, 1])
  part = candidate_lists.take_sentences(whole, chosen)
  assert part.forests.references == [forests.references[k] for k in chosen]
  direction = np.array([0.5, 1.0, -1.0])
  lines = forest_mert.ForestLines(part, part.forests, "bleu")
  _, sums = lines.trace(np.zeros(3), direction)
  everything = candidate_lists.take_sentences(enumerated_pool(forests), chosen)
  _, table = envelope.trace(
    np.zeros(len(everything)),
    everything.dense @ direction,
    everything.offsets,
    everything.statistics["bleu"],
  )
  np.testing.assert_allclose(sums, table)
