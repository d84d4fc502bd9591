"""Added features and augmented search of phrases against enumeration."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt import hypergraph
from jaxmt.decode import (
  decoding,
  derivation,
  translation_forest,
)
from jaxmt.decode import model as models
from jaxmt.decode.chart import augmentations, search
from jaxmt.decode.chart.accumulators import Augmentation
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.forced import forced
from jaxmt.decode.phrase import phrase_decoder, stack_forest
from jaxmt.errors import InputError
from jaxmt.features.stateful import RuleInputs, StatefulFeature
from jaxmt.runtime import parallel
from tests.extending_test import Repeats
from tests.reference import chart_augmented as oracle
from tests.reference import phrase_augmented
from tests.reference import phrase_enumeration as enumeration

BEAM = dict(beam=2, margin=1, cost=1.0)
TIE = 1e-4
WIDE = DecodeConfig(search=search.make_config(beam=260, pop=260))
WORDS = ("a", "b", "c", "d", "u")
PAID = {"Repeats": -1.25}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Descents(StatefulFeature):
  """Counts phrases whose first source word is before that of the last one.

  Its state is the spelling rank of that word, plus one; `<s>` has none.
  """

  names: tuple[str, ...] = ("Descents",)
  columns: int = 1

  def rule_inputs(self, sides, parameters):
    first = np.zeros(len(sides), np.int32)
    for row in range(len(sides)):
      own = [one for one in sides.source[row].tolist() if one >= 0]
      if own:
        first[row] = 1 + ord(sides.source_words[own[0]][0])
    return RuleInputs(arrays=first, values=np.zeros((len(sides), 1)))

  def apply(self, parameters, rule, tails):
    before = tails[..., 0, 0]
    falls = (rule > 0) & (rule < before)
    state = jnp.where(rule > 0, rule, before)
    return state[..., None], (falls.astype(jnp.float32),)


def repeats(words):
  return sum(one == two for one, two in itertools.pairwise(words))


def descents(words, chain):
  said = [words[option[0]][0] for option in chain]
  return sum(two < one for one, two in itertools.pairwise(said))


def decode(model, source, *, config=WIDE, **options):
  parts = list(phrase_decoder.decode(model, source, config=config, **options))
  ((result,),) = parts
  return result


def texts_of(model, result):
  """Strings of the best derivations, in the order of the sentences."""
  words = derivation.read_off(model, result.best()).words
  lines = translation_forest.spell(model, result.source, words)
  return [lines[place] for place in np.argsort(result.rows)]


@pytest.mark.parametrize("limit", [2, -1])
def test_added_features_are_scored_like_the_enumeration(limit):
  changed = 0
  for seed in range(3):
    case = enumeration.random_case(seed)
    weights = enumeration.WEIGHTS | PAID | {"Descents": 0.8}
    model, source = enumeration.to_model(
      case,
      distortion=limit,
      weights=weights,
      features=[(Repeats(), ()), (Descents(), ())],
    )
    result = decode(model, source)
    best = result.best()
    for place, row in enumerate(result.rows.tolist()):
      every = enumeration.scored(case, case.sentences[row], limit=limit)
      paid = [
        one[0]
        + PAID["Repeats"] * repeats(one[1])
        + 0.8 * descents(case.sentences[row], one[2])
        for one in every
      ]
      assert best.score[place] == pytest.approx(max(paid), abs=1e-4)
      changed += int(np.argmax(paid)) > 0
    # Lists, edges and derivations have the same values.
    forest = stack_forest.extract(model, result)
    vector = [model.weights.get(name, 0.0) for name in model.feature_names]
    edges = translation_forest.edge_features(model, result.source, forest)
    np.testing.assert_allclose(edges @ vector, forest.score, atol=1e-4)
    lists = translation_forest.kbest(model, result.source, forest, size=20)
    values = translation_forest.list_features(
      model, result.source, forest, lists
    )
    np.testing.assert_allclose(values @ vector, lists.score, atol=1e-3)
  assert changed >= 2


def test_exact_search_knows_added_features():
  case = enumeration.random_case(2, count=8, longest=3)
  model, source = enumeration.to_model(
    case,
    distortion=3,
    weights=enumeration.WEIGHTS | PAID,
    features=[(Repeats(), ())],
  )
  exact, complete = phrase_decoder.search_exactly(model, source, limit=256)
  assert complete.all()
  for row, words in enumerate(case.sentences):
    every = enumeration.scored(case, words, limit=3)
    best = max(one[0] + PAID["Repeats"] * repeats(one[1]) for one in every)
    assert exact.best().score[row] == pytest.approx(best, abs=1e-4)


def test_forced_decoding_scores_features_of_strings():
  case = enumeration.random_case(1)
  model, source = enumeration.to_model(
    case,
    distortion=3,
    weights=enumeration.WEIGHTS | PAID,
    features=[(Repeats(), ())],
  )
  result = decode(model, source)
  order = np.argsort(result.rows)
  found = forced.force(model, source, texts_of(model, result))
  best = hypergraph.viterbi(found.forest).score[found.forest.roots]
  np.testing.assert_allclose(best, result.best().score[order], atol=2e-4)


def test_the_host_kernel_refuses_what_it_does_not_know():
  case = enumeration.random_case(1)
  model, source = enumeration.to_model(case, distortion=3)
  sizes = search.make_config(beam=10, pop=20, backend="host")
  config = DecodeConfig(search=sizes)
  with pytest.raises(InputError, match="adds losses"):
    decode(
      model,
      source,
      config=config,
      augmentation=augmentations.hope(),
      references=["a"] * len(source),
    )
  added, source = enumeration.to_model(
    case, distortion=3, features=[(Repeats(), ())]
  )
  with pytest.raises(InputError, match="Repeats"):
    decode(added, source, config=config)
  with pytest.raises(ValueError, match="go together"):
    decode(model, source, augmentation=augmentations.hope())


def make(seed, *, limit, **options):
  """A case whose language model is consistent, its model, references."""
  case = enumeration.random_case(seed)
  case = dataclasses.replace(case, grams=oracle.consistent(case.grams))
  model, source = enumeration.to_model(case, distortion=limit, **options)
  rng = np.random.default_rng(seed)
  references = [
    [WORDS[k] for k in rng.integers(0, 5, rng.integers(1, 7))]
    for _ in case.sentences
  ]
  return case, model, source, references


def augmented(model, source, hook, references):
  """`(result, augmented scores, strings)` in the order of the sentences."""
  ((result,),) = decoding.decode(
    model,
    source,
    config=WIDE,
    augmentation=hook,
    references=[" ".join(one) for one in references],
  )
  order = np.argsort(result.rows)
  scores = result.beams.augmented.final.max(1)[order]
  return result, scores, texts_of(model, result)


def near_best(rows, scores, column):
  """Strings of the rows whose scores are the best up to rounding."""
  return [
    row[column]
    for row, score in zip(rows, scores, strict=True)
    if score > max(scores) - 1e-3
  ]


def unfold(forest, node):
  """Sums of `augmented` over every derivation under a node."""
  for edge in range(forest.edge_offsets[node], forest.edge_offsets[node + 1]):
    own, tail = forest.edges.augmented[edge], forest.tails[edge, 0]
    below = unfold(forest, tail) if tail >= 0 else [0.0]
    yield from (own + one for one in below)


@pytest.mark.parametrize("limit", [2, -1])
@pytest.mark.parametrize(("name", "sign"), [("hope", 1.0), ("fear", -1.0)])
def test_hope_and_fear_are_the_best_of_the_enumeration(name, sign, limit):
  hook = getattr(augmentations, name)(weight=12.0, state="accumulators")
  checked, changed = 0, 0
  for seed in (0, 1, 4):
    case, model, source, references = make(seed, limit=limit)
    result, scores, texts = augmented(model, source, hook, references)
    forest = stack_forest.extract(model, result)
    for row, reference in enumerate(references):
      every = enumeration.scored(case, case.sentences[row], limit=limit)
      extra = lambda words, reference=reference: (
        sign * 12.0 * (oracle.sentence_bleu(words, reference) - 1)
      )
      both = [one[0] + extra(one[1]) for one in every]
      assert scores[row] == pytest.approx(max(both), abs=1e-3)
      assert texts[row].split() in near_best(every, both, 1)
      # Every derivation of the lattice has its own augmented score.
      place = int(np.flatnonzero(result.rows == row)[0])
      root = forest.node_offsets[place + 1] - 1
      np.testing.assert_allclose(
        sorted(unfold(forest, root)), sorted(both), atol=1e-3
      )
      checked += 1
      changed += texts[row].split() != every[0][1]
  assert checked == 12
  assert changed >= 1


@pytest.mark.parametrize("limit", [2, -1])
def test_loss_augmented_search_is_that_of_whole_stacks(limit):
  hook = augmentations.loss_augmented(
    beam_weight=2.0, goodness_weight=15.0, state="accumulators", **BEAM
  )
  loss = lambda eta: oracle.rank_loss(eta, **BEAM)
  checked, changed = 0, 0
  for seed in range(4):
    case, model, source, references = make(seed, limit=limit)
    result, scores, texts = augmented(model, source, hook, references)
    places = np.argsort(result.rows)
    for row, reference in enumerate(references):
      future = result.chart.future[places[row]]
      goal, most, clear = phrase_augmented.compete(
        case,
        case.sentences[row],
        reference,
        future,
        limit=limit,
        loss=loss,
        tie=TIE,
      )
      if most > 250 or not clear or len(goal) < 2:
        continue
      both = [
        score - 2.0 * lost + 15.0 * oracle.log_goodness(words, reference)
        for score, lost, words in goal
      ]
      assert scores[row] == pytest.approx(max(both), abs=1e-3)
      assert texts[row].split() in near_best(goal, both, 2)
      checked += 1
      changed += texts[row].split() != max(goal, key=lambda one: one[0])[2]
      # The beam loss counts: without it another score is best.
      assert max(both) <= max(
        score + 15.0 * oracle.log_goodness(words, reference)
        for score, _, words in goal
      )
  assert checked >= 6
  assert changed >= 1


def per_word(value, goal, parameters):
  """An extra score that is a sum, so that merging by state loses nothing."""
  del goal, parameters
  rates = jnp.array([0.9, 0.5, 0.3, 0.2])
  return (value.matches * rates).sum(-1) - 0.1 * value.length


@pytest.mark.parametrize("prune", ["model", "augmented"])
def test_additive_extra_scores_with_added_features(prune):
  hook = Augmentation(extra=per_word, prune=prune)
  for seed in range(4):
    case, model, source, references = make(
      seed,
      limit=3,
      weights=enumeration.WEIGHTS | PAID,
      features=[(Repeats(), ())],
    )
    result, scores, _ = augmented(model, source, hook, references)
    for row, reference in enumerate(references):
      best = max(
        one[0]
        + PAID["Repeats"] * repeats(one[1])
        + np.dot(oracle.matches(one[1], reference), [0.9, 0.5, 0.3, 0.2])
        - 0.1 * len(one[1])
        for one in enumeration.scored(case, case.sentences[row], limit=3)
      )
      assert scores[row] == pytest.approx(best, abs=1e-3)
    forest = stack_forest.extract(model, result)
    root = forest.roots[0]
    top = max(unfold(forest, root))
    assert top == pytest.approx(scores[result.rows[0]], abs=1e-3)


def test_no_extra_score_changes_nothing():
  case = enumeration.random_case(9, count=30, longest=7)
  model, source = enumeration.to_model(case, distortion=3)
  config = DecodeConfig(search=search.make_config(beam=8, pop=20))
  plain = decode(model, source, config=config, kernel=False)
  hook = augmentations.loss_augmented(beam_weight=0.0, goodness_weight=0.0)
  other = decode(
    model,
    source,
    config=config,
    augmentation=hook,
    references=["a b"] * len(source),
  )
  for name in ("head", "back", "option"):
    there = plain.beams.head >= 0
    own, their = getattr(plain.beams, name), getattr(other.beams, name)
    np.testing.assert_array_equal(own[there], their[there])
  np.testing.assert_array_equal(plain.beams.score, other.beams.score)
  np.testing.assert_allclose(
    other.beams.augmented.final, other.beams.final[..., 0], rtol=1e-6
  )


def test_devices_give_the_same_hope():
  if len(jax.devices()) < 2:
    pytest.skip("one device")
  _, model, source, references = make(
    2, limit=3, weights=enumeration.WEIGHTS | PAID, features=[(Repeats(), ())]
  )
  lines = [" ".join(one) for one in references]
  options = {"augmentation": augmentations.hope(), "references": lines}
  one = decode(model, source, **options)
  two = decode(model, source, mesh=parallel.make_mesh(2), **options)
  order, other = np.argsort(one.rows), np.argsort(two.rows)
  np.testing.assert_allclose(
    one.beams.augmented.final.max(1)[order],
    two.beams.augmented.final.max(1)[other],
    rtol=1e-5,
  )


def test_models_without_added_features_have_no_start_states():
  model, _ = enumeration.to_model(enumeration.random_case(0), distortion=1)
  assert models.start_states(model) == ()
