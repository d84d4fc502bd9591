import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.parse import saved_parsers, tagger
from jaxmt.text import treebank


def bank_of(tmp_path, seed, *, sentences=80):
  """Determiners, nouns in -er, verbs in -s; some words are rare."""
  rng = np.random.default_rng(seed)
  lines = []
  for _ in range(sentences):
    noun = lambda: f"n{rng.integers(40)}er\tNOUN"
    lines += ["the\tDET", noun(), f"v{rng.integers(40)}s\tVERB"]
    if rng.random() < 0.5:
      lines += ["a\tDET", noun()]
    lines += [".\tPUNCT", ""]
  path = tmp_path / f"bank{seed}"
  path.write_text("\n".join(lines) + "\n")
  return treebank.read_treebank(str(path))


@pytest.mark.parametrize("kind", ["plain", "features"])
def test_learns_from_tags_and_reads_what_it_wrote(tmp_path, kind):
  train, test = bank_of(tmp_path, 0), bank_of(tmp_path, 1, sentences=20)
  values = []
  if kind == "plain":
    found = tagger.count(train)
    np.testing.assert_allclose(np.exp(found.transition).sum(1), 1, rtol=1e-5)
  else:
    found = tagger.fit(
      train,
      tagger.FeatureConfig(iterations=8),
      report=lambda step, value: values.append(value),
    )
    assert values == sorted(values) and len(values) > 3
  assert tagger.accuracy(found, test, tagger.tag(found, test)) > 98
  path = str(tmp_path / "tagger")
  saved_parsers.save(path, found)
  again = saved_parsers.load(path)
  np.testing.assert_array_equal(
    tagger.tag(again, test), tagger.tag(found, test)
  )
  worse = saved_parsers.load(path)
  object.__setattr__(worse, "start", worse.start[1:])
  saved_parsers.save(path, worse)
  with pytest.raises(InputError, match="'start' is float32"):
    saved_parsers.load(path)


def test_learns_tags_from_words_alone(tmp_path):
  bank = bank_of(tmp_path, 2)
  config = tagger.FeatureConfig(tags=4, iterations=20, seed=3)
  values = []
  found = tagger.fit(
    bank, config, report=lambda step, value: values.append(value)
  )
  assert values == sorted(values)
  tags = tagger.tag(found, bank)
  chance = 100 * np.bincount(bank.tags).max() / len(bank.tags)
  assert tagger.accuracy(found, bank, tags) > chance + 10


def test_gradient_of_the_marginal_likelihood(tmp_path):
  bank = bank_of(tmp_path, 3, sentences=3)
  rng = np.random.default_rng(0)
  index = {
    name: n
    for n, name in enumerate(
      sorted({f for form in bank.forms for f in tagger.word_features(form)})
    )
  }
  rows = tagger._rows(bank.forms, "features", index)
  part = tagger._padded(bank, np.arange(3), 8, hidden=True)
  values = {
    "emit": rng.normal(size=(2, len(index))).astype(np.float32),
    "next": rng.normal(size=(2, 2)).astype(np.float32),
    "start": rng.normal(size=2).astype(np.float32),
  }
  _, slope = tagger._slope(values, rows, *part)
  for name, place in (("emit", (1, 2)), ("next", (0, 1)), ("start", (1,))):
    sides = []
    for step in (0.05, -0.05):
      moved = {key: value.copy() for key, value in values.items()}
      moved[name][place] += step
      sides.append(float(tagger._likelihood(moved, rows, *part)))
    wanted = (sides[0] - sides[1]) / 0.1
    np.testing.assert_allclose(slope[name][place], wanted, atol=2e-2)
