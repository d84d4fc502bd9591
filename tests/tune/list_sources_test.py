"""Candidates beside the k best against enumeration of the forests."""

import collections

import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.decode import translation_forest
from jaxmt.decode.chart import beam_forest, decoder, search
from jaxmt.decode.forced import forced
from jaxmt.errors import InputError
from jaxmt.features import sparse
from jaxmt.tune import kbest_decoder, list_sources
from jaxmt.tune.list_sources import Sources
from tests.reference import chart_augmented as oracle
from tests.reference import phrase_enumeration as enumeration
from tests.tune.kbest_decoder_test import CONFIG, OTHER, case  # noqa: F401

SIZE = 8


def lists(case, names, weights=OTHER, *, refs=(), seed=0, **more):  # noqa: F811
  model, lines, spans = case
  config = more.pop("config", CONFIG)
  decode = kbest_decoder.make_decode(
    model,
    lines,
    kbest_decoder.ListOptions(
      size=SIZE,
      sources=Sources(names=names, references=refs, seed=seed),
      **more,
    ),
    config=config,
    spans=spans,
  )
  return decode(weights, np.arange(len(lines)))


def parts(case):  # noqa: F811
  """(part, forest) of all sentences that have derivations."""
  model, lines, spans = case
  model = models.with_weights(model, OTHER)
  source = models.make_source(model, lines, spans=spans)
  config = search.make_config(beam=16, pop=64, forest=True)
  for batch in decoder.decode(
    model, source, config=decoder.DecodeConfig(search=config)
  ):
    for part in batch:
      yield model, part, beam_forest.extract(model, part)


def every_string(case):  # noqa: F811
  """The strings of all derivations, by sentence."""
  out = collections.defaultdict(set)
  for model, part, forest in parts(case):
    found = translation_forest.kbest(model, part.source, forest, size=5000)
    texts = translation_forest.strings(model, part.source, found)
    for row, text in zip(part.rows[found.sentence], texts, strict=True):
      out[int(row)].add(text)
  return out


def linear_cost(line, references):
  """Words less matching n-grams, each reference n-gram any number of times."""
  words, total = line.split(), 0.0
  total = float(len(words))
  for n in range(1, 5):
    known = {
      tuple(ref.split()[k : k + n])
      for ref in references
      for k in range(len(ref.split()) - n + 1)
    }
    grams = [tuple(words[k : k + n]) for k in range(len(words) - n + 1)]
    total -= sum(g in known for g in grams) / (4 * 0.85 * 0.72 ** (n - 1))
  return total


def test_oracles_are_the_best_of_all_derivations(case):  # noqa: F811
  strings = every_string(case)
  rng = np.random.default_rng(0)
  refs = []
  for row in range(6):
    some = sorted(strings.get(row, {"a"}))
    words = str(rng.choice(some)).split()
    refs.append([" ".join([*words[:-1], "zz"]), " ".join([*words[1:], "a"])])
  found = lists(case, ("oracle",), refs=refs)
  plain = lists(case, ("kbest",))
  better = 0
  for row, texts in strings.items():
    own = [found.lines[k] for k in np.flatnonzero(found.sentence == row)]
    first = plain.lines[int(np.flatnonzero(plain.sentence == row)[0])]
    assert own[0] == first and len(own) <= 2
    least = min(linear_cost(text, refs[row]) for text in texts)
    assert linear_cost(own[-1], refs[row]) == pytest.approx(least, abs=1e-4)
    better += own[-1] != first
  assert better >= 2


def test_samples_are_derivations_of_the_forest(case):  # noqa: F811
  strings = every_string(case)
  found = lists(case, ("sampled",), unique=False)
  for row, texts in strings.items():
    own = [found.lines[k] for k in np.flatnonzero(found.sentence == row)]
    assert len(own) == 1 + SIZE and set(own) <= texts
  again = lists(case, ("sampled",), unique=False)
  assert again.lines == found.lines
  assert lists(case, ("sampled",), seed=1, unique=False).lines != found.lines
  other = {**OTHER, "LanguageModel": 1.25}
  assert lists(case, ("sampled",), other, unique=False).lines != found.lines
  both = lists(case, ("kbest", "sampled"))
  keys = list(zip(both.sentence.tolist(), both.lines, strict=True))
  assert len(keys) == len(set(keys))
  plain = lists(case, ("kbest",))
  for row in strings:
    own = [both.lines[k] for k in np.flatnonzero(both.sentence == row)]
    best = [plain.lines[k] for k in np.flatnonzero(plain.sentence == row)]
    assert own[: len(best)] == best


def test_references_that_the_search_lost_are_there(case):  # noqa: F811
  model, lines, spans = case
  strings = every_string(case)
  narrow = decoder.DecodeConfig(search=search.make_config(beam=1, pop=4))
  plain = lists(case, ("kbest",), config=narrow)
  lost = {}
  for row, texts in strings.items():
    there = {plain.lines[k] for k in np.flatnonzero(plain.sentence == row)}
    lost[row] = sorted(texts - there)
  refs = [[(lost.get(row) or ["zz"])[-1], "zz"] for row in range(len(lines))]
  found = lists(case, ("kbest", "forced"), refs=refs, config=narrow)
  reached = 0
  for row in strings:
    own = [found.lines[k] for k in np.flatnonzero(found.sentence == row)]
    assert "zz" not in own
    first = [plain.lines[k] for k in np.flatnonzero(plain.sentence == row)]
    assert own[: len(first)] == first
    if lost[row]:
      assert own[len(first) :] == [refs[row][0]]
      reached += 1
  assert reached >= 3
  # Their features are those of the derivation: the score is forcing's own.
  weighted = models.with_weights(model, OTHER)
  source = models.make_source(weighted, lines, spans=spans)
  forest = forced.force(weighted, source, [row[0] for row in refs]).forest
  best = translation_forest.kbest(weighted, source, forest, size=1)
  vector = np.array([OTHER.get(name, 0.0) for name in found.names])
  scores = sparse.dot(found.features, vector)
  for place, row in enumerate(best.sentence.tolist()):
    (mine,) = [
      k
      for k in np.flatnonzero(found.sentence == row)
      if found.lines[k] == refs[row][0]
    ]
    assert scores[mine] == pytest.approx(best.score[place], abs=1e-3)


def test_unknown_sources_are_named():
  with pytest.raises(InputError, match="candidates 'beam' are none of: kbest"):
    list_sources.check(["kbest", "beam"])
  with pytest.raises(InputError, match="no candidates"):
    list_sources.check([])


def phrase_case():
  """A phrase-based model and its sentences, without constituents."""
  made = enumeration.random_case(3, count=24, longest=5)
  model, _ = enumeration.to_model(made, distortion=3)
  return model, [" ".join(words) for words in made.sentences], None


@pytest.mark.parametrize("kind", ["chart", "phrase"])
def test_hope_and_fear_are_of_augmented_searches(case, kind):  # noqa: F811
  several = case if kind == "chart" else phrase_case()
  rng = np.random.default_rng(1)
  size = len(several[1])
  weights = OTHER if kind == "chart" else enumeration.WEIGHTS
  plain = lists(several, ("kbest",), weights)
  # References are listed translations, the better for one, the worse for two.
  refs = []
  for row in range(size):
    own = [plain.lines[k] for k in np.flatnonzero(plain.sentence == row)]
    refs.append([str(rng.choice(own)), "a b c"] if own else ["a", "b"])
  goods = {}
  for name in ("hope", "fear"):
    found = lists(several, ("kbest", name), weights, refs=refs)
    only = lists(several, (name,), weights, refs=refs)
    total = 0.0
    for row in range(size):
      own = [only.lines[k] for k in np.flatnonzero(only.sentence == row)]
      every = [found.lines[k] for k in np.flatnonzero(found.sentence == row)]
      assert set(own) <= set(every) and len(own) <= 3
      total += sum(
        oracle.sentence_bleu(line.split(), ref.split())
        for line in own[1:] or own
        for ref in refs[row][:1]
      ) / max(len(own[1:] or own), 1)
    goods[name] = total
  assert goods["hope"] > goods["fear"]
