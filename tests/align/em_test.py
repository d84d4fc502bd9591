"""EM against plain Python, its laws, and fast_align's own numbers."""

import functools

import numpy as np
import pytest

from jaxmt.align import em, link_scores, named_aligners, symmetrize
from jaxmt.corpora import synthetic
from jaxmt.runtime import parallel
from jaxmt.text import files, links, ragged, vocabulary
from tests import util
from tests.align import bitexts
from tests.reference import alignment as reference

SIDES = ("forward", "backward")

# A bitext of our own.
GERMAN = """der alte mann liest ein buch
die frau liest die zeitung
ein mann kauft ein altes haus
die alte frau schläft
heute kauft die frau ein buch
das haus ist alt
der mann schläft heute nicht
das buch ist nicht neu
die neue zeitung liegt auf dem tisch
auf dem tisch liegt ein buch
der mann hat das buch gelesen
die frau hat ein haus gekauft
nein""".split("\n")
ENGLISH = """the old man reads a book
the woman reads the newspaper
a man buys an old house
the old woman sleeps
today the woman buys a book
the house is old
the man does not sleep today
the book is not new
the new newspaper lies on the table
there is a book on the table
the man has read the book
the woman has bought a house
no""".split("\n")

# What `fast_align -d -o -v -I 6` (-r) prints for them: links, the tension after
# each iteration and the log-likelihoods from the second on.
FORWARD = """0-0 1-1 2-2 3-3 4-4 5-5
0-0 1-1 2-2 3-3 4-4
0-0 1-1 2-2 3-3 4-4 5-5
0-0 1-1 2-2 3-3
0-0 2-1 3-2 1-3 4-4 5-5
0-0 1-1 2-2 3-3
0-0 1-1 2-2 4-3 3-4 3-5
0-0 1-1 2-2 3-3 4-4
0-0 1-1 2-2 3-3 3-4 6-6
0-0 1-1 4-2 5-3 3-4 2-6
0-0 1-1 2-2 3-3 3-4 5-5
0-0 1-1 2-2 3-3 3-4 5-5
0-0""".split("\n")
BACKWARD = """0-0 1-1 2-2 3-3 4-4 5-5
0-0 1-1 2-2 3-3 4-4
0-0 1-1 2-2 3-3 4-4 5-5
0-0 1-1 2-2 3-3
0-0 1-3 2-1 3-2 4-4 5-5
0-0 1-1 2-2 3-3
0-0 1-1 2-2 3-4 4-3
0-0 1-1 2-2 3-3 4-4
0-0 1-1 2-2 3-3 4-4 5-4 6-6
0-0 1-4 2-6 3-4 4-2 5-3
0-0 1-1 2-2 3-3 4-5 5-5
0-0 1-1 2-2 3-3 4-5 5-5
0-0""".split("\n")
TENSION = {
  "forward": [4, 4, 2.23479, 2.08612, 2.18269, 2.22164],
  "backward": [4, 4, 2.33375, 2.1363, 2.14271, 2.14243],
}
LIKELIHOOD = {
  "forward": [-177.641, -119.559, -109.393, -106.454, -105.614],
  "backward": [-188.869, -129.808, -123.341, -121.837, -121.723],
}


def words(lines):
  return vocabulary.intern(lines)[0]


def tiny():
  return ragged.from_rows(bitexts.SOURCE), ragged.from_rows(bitexts.TARGET)


def mesh(devices=1):
  return parallel.make_mesh(devices)


def test_equals_fast_align():
  result = em.align(
    words(GERMAN),
    words(ENGLISH),
    named_aligners.default_config("diagonal", iterations=6),
    mesh=mesh(),
  )
  for side, lines in (("forward", FORWARD), ("backward", BACKWARD)):
    expected = links.parse_links(lines)
    assert links.format_links(result.links[side]) == links.format_links(
      expected
    )
    np.testing.assert_allclose(
      [entry.scalars[side]["tension"] for entry in result.history],
      TENSION[side],
      rtol=1e-4,
    )
    np.testing.assert_allclose(
      [entry.log_likelihood[side] for entry in result.history[1:]],
      LIKELIHOOD[side],
      rtol=1e-5,
    )


def reference_em(model, side, settings, steps):
  """Yields (table, null, tension or jump, log-likelihood) of each iteration."""
  pairs = bitexts.oriented(bitexts.SOURCE, bitexts.TARGET, side)
  table, null = reference.uniform_tables(pairs)
  tension, width = settings.tension, 3
  jump = {d: 1.0 / (2 * width + 1) for d in range(-width, width + 1)}
  for step in range(steps):
    prior = reference.model1_prior
    own = {}
    if model == "diagonal":
      own = {"tension": tension}
      prior = functools.partial(
        reference.diagonal_prior,
        tension=tension,
        null_probability=settings.null_probability,
      )
    if model == "hmm":
      own = {
        "jump": jump,
        "uniform": settings.uniform_jump,
        "null_probability": settings.null_probability,
      }
      prior = functools.partial(reference.hmm_prior, **own)
    counts, null_counts, score = reference.expected_counts(
      pairs, table, null, prior
    )
    yield table, null, own, score
    if model == "diagonal" and step:
      tension = reference.tension_step(
        pairs,
        table,
        null,
        tension,
        settings.null_probability,
        exact=settings.tension_gradient == "exact",
      )
    if model == "hmm":
      jumps, departures = {}, {}
      for given, generated in pairs:
        for total, part in zip(
          (jumps, departures),
          reference.hmm_expectations(given, generated, table, null, **own),
          strict=True,
        ):
          for key, value in part.items():
            total[key] = total.get(key, 0.0) + value
      for _ in range(10):
        jump = reference.minorize(jump, jumps, departures)
    table, null = reference.normalize(counts, null_counts, settings.alpha)


@pytest.mark.parametrize(
  "model, changes",
  [
    ("model1", {}),
    ("model1", {"alpha": 0.01}),
    ("diagonal", {}),
    ("diagonal", {"alpha": 0.0, "tension_gradient": "exact"}),
    ("hmm", {"warm_up": 0}),
    ("hmm", {"warm_up": 0, "alpha": 0.0, "null_probability": 0.1}),
  ],
)
def test_equals_plain_em(model, changes):
  settings = named_aligners.default_config(model, iterations=4, **changes)
  result = em.align(*tiny(), settings, mesh=mesh())
  for side in SIDES:
    oracle = list(reference_em(model, side, settings, 4))
    np.testing.assert_allclose(
      [entry.log_likelihood[side] for entry in result.history],
      [score for *_, score in oracle],
      rtol=1e-5,
    )
    table, null, own, _ = oracle[-1]
    given, generated = result.table.source, result.table.target
    if side == "backward":
      given, generated = generated, given
    expected = [
      table[key] for key in zip(given.tolist(), generated.tolist(), strict=True)
    ]
    found = result.parameters[side]
    np.testing.assert_allclose(
      np.exp(found.pairs[:-1]), expected, rtol=1e-3, atol=1e-6
    )
    for word, value in null.items():
      np.testing.assert_allclose(
        np.exp(found.null[word]), value, rtol=1e-3, atol=1e-6
      )
    if model == "diagonal":
      np.testing.assert_allclose(
        found.model["tension"], own["tension"], rtol=1e-3
      )
    if model == "hmm":
      expected = [own["jump"][d] for d in range(-3, 4)]
      np.testing.assert_allclose(
        found.model["jump"], expected, rtol=1e-3, atol=1e-6
      )


def random_bitext(lines, longest, seed):
  rng = np.random.default_rng(seed)
  side = lambda: ragged.from_rows(
    [rng.integers(0, 12, n).tolist() for n in rng.integers(1, longest, lines)]
  )
  return side(), side()


@pytest.mark.parametrize("model", ["model1", "hmm"])
@pytest.mark.parametrize("text", ["written", "random"])
def test_likelihood_never_falls(model, text):
  if text == "written":
    source, target = words(GERMAN), words(ENGLISH)
  else:
    source, target = random_bitext(40, 9, seed=5)
  settings = named_aligners.default_config(
    model, iterations=12, warm_up=2, alpha=0.0
  )
  history = em.align(source, target, settings, mesh=mesh()).history
  for side in SIDES:
    values = np.array(
      [e.log_likelihood[side] for e in history if e.model == model]
    )
    assert (np.diff(values) >= -1e-6 * np.abs(values[1:])).all(), values
    assert values[-1] > values[0] + 1


@pytest.mark.parametrize("model", named_aligners.names())
def test_many_devices_equal_one(model):
  source, target = random_bitext(30, 8, seed=2)
  settings = named_aligners.default_config(model, iterations=3, warm_up=1)
  one = em.align(source, target, settings, mesh=mesh(1))
  many = em.align(source, target, settings, mesh=mesh(8))
  for side in SIDES:
    np.testing.assert_allclose(
      [entry.log_likelihood[side] for entry in many.history],
      [entry.log_likelihood[side] for entry in one.history],
      rtol=1e-5,
    )
    np.testing.assert_allclose(
      np.exp(many.parameters[side].pairs),
      np.exp(one.parameters[side].pairs),
      atol=1e-4,
    )
    scores = link_scores.score_links(many.links[side], one.links[side])
    assert scores.f1 > 0.98


@pytest.mark.parametrize("model", named_aligners.names())
def test_batches_and_widths_change_nothing(model):
  source, target = random_bitext(30, 8, seed=2)
  results = [
    em.align(
      source,
      target,
      named_aligners.default_config(model, iterations=3, warm_up=1, **changes),
      mesh=mesh(),
    )
    for changes in ({}, {"cells_per_batch": 300, "bucket_cost": 600})
  ]
  for side in SIDES:
    one, many = (result.parameters[side].pairs for result in results)
    np.testing.assert_allclose(np.exp(many), np.exp(one), atol=1e-4)
    one, many = (result.links[side] for result in results)
    assert link_scores.score_links(many, one).f1 > 0.98


def test_same_bytes_again():
  settings = named_aligners.default_config("hmm", iterations=3, warm_up=1)
  runs = [
    em.align(words(GERMAN), words(ENGLISH), settings, mesh=mesh())
    for _ in range(2)
  ]
  for side in SIDES:
    first, second = (run.parameters[side].pairs for run in runs)
    assert np.asarray(first).tobytes() == np.asarray(second).tobytes()


def test_lines_without_words_have_no_links():
  source, target = words(["", "x y", "y", ""]), words(["b", "a b", "", ""])
  for model in ("diagonal", "hmm"):
    result = em.align(
      source, target, named_aligners.default_config(model), mesh=mesh()
    )
    for side in SIDES:
      assert len(result.links[side]) == 4
      assert result.links[side].lengths[[0, 2, 3]].tolist() == [0, 0, 0]
  nothing = words(["", ""])
  result = em.align(
    nothing, nothing, named_aligners.default_config("hmm"), mesh=mesh()
  )
  assert result.links["forward"].lengths.tolist() == [0, 0]


def test_one_direction_alone_is_the_same():
  settings = named_aligners.default_config("diagonal", iterations=3)
  both = em.align(words(GERMAN), words(ENGLISH), settings, mesh=mesh())
  alone = em.align(
    words(GERMAN),
    words(ENGLISH),
    settings,
    mesh=mesh(),
    directions=("backward",),
  )
  assert list(alone.links) == ["backward"]
  np.testing.assert_array_equal(
    alone.links["backward"].flat, both.links["backward"].flat
  )


def test_posterior_decoder_is_monotone_in_its_threshold():
  counts = []
  for threshold in (0.9, 0.5, 0.05):
    settings = named_aligners.default_config(
      "hmm", iterations=3, decoder="posterior", threshold=threshold
    )
    result = em.align(words(GERMAN), words(ENGLISH), settings, mesh=mesh())
    counts.append(len(result.links["forward"].flat))
  assert 0 < counts[0] < counts[1] < counts[2]
  # Above one half, no word can have two links in its own direction.
  settings = named_aligners.default_config(
    "hmm", decoder="posterior", threshold=0.5
  )
  result = em.align(words(GERMAN), words(ENGLISH), settings, mesh=mesh())
  for side, column in (("forward", 1), ("backward", 0)):
    found = result.links[side]
    row = np.repeat(np.arange(len(found)), found.lengths)
    keys = row * 100 + found.flat[:, column]
    assert len(np.unique(keys)) == len(keys)


def test_hmm_is_better_than_the_diagonal_on_the_embedded_corpus():
  train = synthetic.generate(
    synthetic.SyntheticConfig(train=1000, tune=0, test=0)
  ).train
  gold = links.parse_links(train.links[0])
  error = {}
  for model in ("diagonal", "hmm"):
    result = em.align(
      words(train.source),
      words(train.references[0]),
      named_aligners.default_config(model),
      mesh=mesh(),
    )
    found = symmetrize.symmetrize(
      result.links["forward"],
      result.links["backward"],
      method="grow-diag-final-and",
    )
    error[model] = link_scores.score_links(found, gold).aer
  assert error["hmm"] < error["diagonal"] < 0.3


@pytest.mark.slow
def test_agrees_with_fast_align_on_a_real_bitext():
  folder = util.corpus("multi30k-de-en")
  source = words(files.read_lines(str(folder / "train.de.gz")))
  target = words(files.read_lines(str(folder / "train.en.gz")))
  expected = links.parse_links(
    files.read_lines(str(folder / "train.de-en.align.gz"))
  )
  result = em.align(
    source, target, named_aligners.default_config("diagonal"), mesh=mesh()
  )
  found = symmetrize.symmetrize(
    result.links["forward"],
    result.links["backward"],
    method="grow-diag-final-and",
  )
  assert link_scores.score_links(found, expected).f1 > 0.999
