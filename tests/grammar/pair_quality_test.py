"""Random walks over sentence pairs and phrase pairs."""

import numpy as np
import pytest

from jaxmt.grammar import estimate, pair_quality
from jaxmt.grammar.extract import extraction
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.shards import CountOptions
from jaxmt.grammar.pair_quality import WalkOptions
from jaxmt.grammar.provenance import Provenance
from jaxmt.runtime.runner import Runner
from jaxmt.text import links as links_lib
from jaxmt.text import vocabulary
from jaxmt.text.ragged import Ragged

SERIAL = Runner(kind="serial")


def provenance_of(rows, counts):
  lengths = [len(row) for row in rows]
  return Provenance(
    rules=Ragged(
      flat=np.array([x for row in rows for x in row], np.int32),
      offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    ),
    counts=np.array([x for row in counts for x in row], np.float64),
  )


def random_provenance(seed, *, sentences=12, phrases=9):
  rng = np.random.default_rng(seed)
  rows = [
    np.flatnonzero(rng.uniform(size=phrases) < 0.5).tolist() or [0]
    for _ in range(sentences)
  ]
  return provenance_of(
    rows, [rng.integers(1, 4, len(row)).tolist() for row in rows]
  )


def slow_walk(provenance, *, damping, steps):
  """The equations on full matrices; phrase pairs of one sentence go first."""
  size = len(provenance)
  matrix = np.zeros((size, int(provenance.rules.flat.max()) + 1))
  for sentence in range(size):
    start, stop = provenance.rules.offsets[sentence : sentence + 2]
    for item in range(start, stop):
      matrix[sentence, provenance.rules.flat[item]] = provenance.counts[item]
  frequency = (matrix > 0).sum(0)
  matrix = matrix[:, frequency >= 2]
  matrix *= np.log(1 + size / (matrix > 0).sum(0))
  matrix /= np.maximum(matrix.sum(1, keepdims=True), 1e-300)
  u, v = np.ones(matrix.shape[0]), np.ones(matrix.shape[1])
  for _ in range(steps):
    u, v = (
      (1 - damping) + damping * (matrix / matrix.sum(0)) @ v,
      (1 - damping) + damping * matrix.T @ u,
    )
  return u, v


@pytest.mark.parametrize("seed", range(3))
def test_the_walk_follows_the_equations(seed):
  provenance = random_provenance(seed)
  graph = pair_quality.make_graph(provenance, min_sentences=2)
  for steps in (1, 2, 5, 300):
    got = pair_quality.random_walk(
      graph, WalkOptions(max_steps=steps, damping=0.7)
    )
    want = slow_walk(provenance, damping=0.7, steps=steps)
    np.testing.assert_allclose(got.sentences, want[0], rtol=1e-10)
    np.testing.assert_allclose(got.phrases, want[1], rtol=1e-10)
  assert got.steps < 300  # it stopped at its fixed point


def test_mass_at_the_fixed_point():
  graph = pair_quality.make_graph(random_provenance(5), min_sentences=2)
  walk = pair_quality.random_walk(graph, WalkOptions())
  n, m, d = graph.sentences, graph.phrases, 0.85
  np.testing.assert_allclose(walk.sentences.sum(), (n + d * m) / (1 + d))
  np.testing.assert_allclose(walk.phrases.sum(), (m + d * n) / (1 + d))


def test_convergence_is_geometric():
  graph = pair_quality.make_graph(random_provenance(6), min_sentences=2)
  exact = pair_quality.random_walk(graph, WalkOptions()).sentences
  gaps = []
  for steps in (10, 20, 30):
    walk = pair_quality.random_walk(graph, WalkOptions(max_steps=steps))
    gaps.append(np.abs(walk.sentences - exact).max())
  assert gaps[1] <= gaps[0] * 0.85**10 * 1.01
  assert gaps[2] <= gaps[1] * 0.85**10 * 1.01


def corpus(seed, *, good=140, bad=60):
  """Word-for-word translations and, at the end, shuffled ones."""
  rng = np.random.default_rng(seed)
  source, target, links = [], [], []
  for number in range(good + bad):
    words = rng.integers(0, 100, 7)
    other = words if number < good else rng.integers(0, 100, 7)
    source.append(" ".join(f"s{w}" for w in words))
    target.append(" ".join(f"t{w}" for w in other))
    links.append(" ".join(f"{k}-{k}" for k in range(7)))
  source_words, target_words = (
    vocabulary.build([lines]) for lines in (source, target)
  )
  return {
    "source": vocabulary.encode(source_words, source),
    "target": vocabulary.encode(target_words, target),
    "links": links_lib.parse_links(links),
    "source_words": source_words,
    "target_words": target_words,
  }


def weights_of(data, **changes):
  return pair_quality.pair_weights(
    **data, options=WalkOptions(**changes), runner=SERIAL
  )


@pytest.mark.parametrize("normalize", pair_quality.NORMALIZATIONS)
def test_pairs_that_are_no_translations_get_low_weights(normalize):
  weights = weights_of(corpus(0), normalize=normalize)
  np.testing.assert_allclose(weights.mean(), 1.0)
  better = weights[:140, None] > weights[None, 140:]
  assert better.mean() > 0.8  # area under the curve
  # With phrase pairs of one sentence the walk rewards what nobody shares.
  misled = weights_of(corpus(0), min_sentences=1)
  assert (misled[:140, None] > misled[None, 140:]).mean() < 0.5


def test_equal_weights_give_the_usual_probabilities():
  data = corpus(1)
  links = data.pop("links")
  extracted = extraction.extract_hiero(
    data.pop("source"),
    data.pop("target"),
    links,
    **data,
    options=HieroOptions(),
    count=CountOptions(provenance=True),
    runner=SERIAL,
  )
  table = extracted.table
  usual = np.stack([table.features[:, :2]])[0]
  assert table.feature_names[:2] == estimate.THETA[:2]
  for scale in (1.0, 3.0):
    got = pair_quality.weighted_probabilities(
      table, extracted.provenance, np.full(200, scale)
    )
    np.testing.assert_allclose(got, usual, atol=1e-5)
  none = pair_quality.weighted_probabilities(
    table, extracted.provenance, np.arange(200.0) < 140
  )
  assert np.abs(none - usual).max() > 0.1


@pytest.mark.parametrize(
  "wrong",
  [
    {"phrase_length": 0},
    {"min_sentences": 0},
    {"damping": 1.0},
    {"tolerance": 0.0},
    {"normalize": "length"},
  ],
)
def test_settings_that_make_no_sense(wrong):
  with pytest.raises(ValueError):
    pair_quality.check_options(WalkOptions(**wrong))
