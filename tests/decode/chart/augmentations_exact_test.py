"""Hope, fear and loss-augmented Viterbi against the true argmax."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import derivation, translation_forest
from jaxmt.decode.chart import augmentations, beam_forest, decoder
from jaxmt.decode.chart.search import SearchConfig
from tests.reference import chart_augmented as oracle
from tests.reference import chart_cases as cases
from tests.reference import chart_enumeration as enumeration

# Wide enough for the cells that `fits` lets pass: every candidate is scored.
LIMIT, SPREAD = 64, 20
CONFIG = decoder.DecodeConfig(
  search=SearchConfig(
    beam=LIMIT,
    pop=2 * LIMIT,
    corners=LIMIT,
    taper=((LIMIT, 700),),
    widths=(LIMIT,),
    tile=32,
    forest=True,
  )
)
BEAM = dict(beam=2, margin=1, cost=1.0)
TIE = 1e-4
TOLERANCE = 1e-3
WORDS = ("a", "b", "c", "d", "u")


def make(seed, order):
  """A joint grammar, its model, and a reference per sentence.

  All language models have the arrays of order 4, so that one compilation
  serves them all.
  """
  case = cases.random_case(
    seed, order=order, arity=5, tree_rules=10, rules=30, longest=5, sentences=13
  )
  case = dataclasses.replace(case, grams=oracle.consistent(case.grams), order=4)
  model, source = cases.to_model(case, arity=5)
  rng = np.random.default_rng(seed)
  references = [
    [WORDS[k] for k in rng.integers(0, 5, size=rng.integers(1, 7))]
    for _ in case.sentences
  ]
  return case, model, source, references


def decode(model, source, augmentation, references):
  """`(result, forest, [(augmented, loss, string)])` of one batch."""
  batches = decoder.decode(
    model,
    source,
    config=CONFIG,
    augmentation=augmentation,
    references=[" ".join(reference) for reference in references],
  )
  ((result,),) = batches
  np.testing.assert_array_equal(result.rows, np.arange(len(source)))
  words = derivation.read_off(model, result.best()).words
  texts = translation_forest.spell(model, result.source, words)
  root = np.asarray(result.chart.root)[: len(source)]
  augmented = np.asarray(result.beams.augmented)[root]
  rank = augmented.argmax(1)
  rows = np.asarray(result.beams.states[-1])[root, rank]
  losses = np.ascontiguousarray(rows[:, -1]).view(np.float32)
  found = list(zip(augmented.max(1), losses, texts, strict=True))
  return result, beam_forest.extract(model, result), found


def compete(case, row, reference):
  """The competition, or None where the search could miss something."""
  loss = lambda eta: oracle.rank_loss(eta, **BEAM)
  try:
    seen = oracle.compete(case, row, reference, loss=loss, tie=TIE, limit=LIMIT)
  except oracle.TooLargeError:
    return None
  small = seen.spread <= SPREAD and len(seen.goal) > 1 and seen.clear
  return seen if small else None


def check(found, scored):
  """Whether the search has the best of `(augmented, loss, words)`."""
  augmented, loss, text = found
  top = max(score for score, _, _ in scored)
  np.testing.assert_allclose(augmented, top, atol=TOLERANCE)
  best = [
    (one, " ".join(words))
    for score, one, words in scored
    if score > top - TOLERANCE
  ]
  assert any(
    text == words and abs(loss - one) < TOLERANCE for one, words in best
  )


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_loss_augmented_viterbi_is_the_true_argmax(order):
  hook = augmentations.loss_augmented(
    beam_weight=2.0, goodness_weight=15.0, state="accumulators", **BEAM
  )
  checked, changed = 0, 0
  for seed in range(4):
    case, model, source, references = make(seed, order)
    _, _, found = decode(model, source, hook, references)
    for row, reference in enumerate(references):
      seen = compete(case, row, reference)
      if seen is None:
        continue
      scored = [
        (
          score - 2.0 * loss + 15.0 * oracle.log_goodness(words, reference),
          loss,
          words,
        )
        for score, loss, words in seen.goal
      ]
      check(found[row], scored)
      checked += 1
      changed += found[row][2] != " ".join(max(seen.goal)[2])
  assert checked >= 25
  assert changed >= 5


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize(("name", "sign"), [("hope", 1.0), ("fear", -1.0)])
def test_hope_and_fear_are_the_true_argmax(name, sign, order):
  hook = getattr(augmentations, name)(weight=20.0, state="accumulators")
  checked, changed = 0, 0
  for seed in range(4, 8):
    case, model, source, references = make(seed, order)
    _, made, found = decode(model, source, hook, references)
    for row, reference in enumerate(references):
      if compete(case, row, reference) is None:
        continue
      every = enumeration.derivations(
        case.rules,
        case.sentences[row],
        span=case.span,
        constituents=case.constituents[row],
      )
      scored = [
        (
          cases.total(case, one, enumeration.lm_score)
          + sign * 20.0 * (oracle.sentence_bleu(one[0], reference) - 1),
          0.0,
          one[0],
        )
        for one in every
      ]
      check(found[row], scored)
      # Every derivation of the forest has its own augmented score.
      root = made.node_offsets[row + 1] - 1
      np.testing.assert_allclose(
        sorted(unfold(made, root)),
        sorted(score for score, _, _ in scored),
        atol=TOLERANCE,
      )
      checked += 1
      plain = max(
        (cases.total(case, one, enumeration.lm_score), one[0]) for one in every
      )
      changed += found[row][2] != " ".join(plain[1])
  assert checked >= 25
  assert changed >= 3


def unfold(made, node):
  """Sums of `augmented` over every derivation under a node."""
  for edge in range(made.edge_offsets[node], made.edge_offsets[node + 1]):
    totals = [made.edges.augmented[edge]]
    for tail in made.tails[edge]:
      if tail >= 0:
        below = list(unfold(made, tail))
        totals = [one + two for one in totals for two in below]
    yield from totals


def test_a_large_weight_finds_the_reference():
  hook = augmentations.loss_augmented(
    beam_weight=0.0, goodness_weight=1000.0, state="accumulators"
  )
  reached = 0
  for seed in range(4):
    case, model, source, _ = make(seed, 3)
    rng = np.random.default_rng(seed)
    strings = []
    for row, words in enumerate(case.sentences):
      every = enumeration.derivations(
        case.rules,
        words,
        span=case.span,
        constituents=case.constituents[row],
      )
      strings.append(sorted({tuple(one[0]) for one in every}))
    references = [list(one[int(rng.integers(0, len(one)))]) for one in strings]
    _, _, found = decode(model, source, hook, references)
    for row, reference in enumerate(references):
      if compete(case, row, reference) is None or len(strings[row]) < 3:
        continue
      goods = {
        text: oracle.log_goodness(text, reference) for text in strings[row]
      }
      top = max(goods.values())
      text = tuple(found[row][2].split())
      assert goods[text] > top - 1e-5
      # Counts are not clipped: longer strings can have more matches.
      best = [one for one, good in goods.items() if good > top - 1e-5]
      if best == [tuple(reference)]:
        assert text == tuple(reference)
        reached += 1
  assert reached >= 10


def viterbi(made):
  """Value of each node and the best edges of each sentence, by `augmented`."""
  value, choice = np.zeros(made.num_nodes), []
  for node in range(len(value)):
    edges = np.arange(made.edge_offsets[node], made.edge_offsets[node + 1])
    tails = made.tails[edges]
    below = np.where(tails >= 0, value[tails], 0.0).sum(1)
    totals = made.edges.augmented[edges] + below
    value[node] = totals.max()
    choice.append(edges[totals.argmax()])

  def follow(node):
    yield choice[node]
    for tail in made.tails[choice[node]]:
      if tail >= 0:
        yield from follow(tail)

  roots = made.node_offsets[1:] - 1
  return value, [np.array(list(follow(root))) for root in roots]


@pytest.mark.parametrize("state", ["lm", "accumulators"])
def test_viterbi_on_the_forest_is_the_augmented_best(state):
  hook = augmentations.loss_augmented(
    beam_weight=2.0, goodness_weight=15.0, state=state, **BEAM
  )
  losses, ranked = [], []
  for seed in range(20, 22):
    _, model, source, references = make(seed, 3)
    result, made, found = decode(model, source, hook, references)
    best = result.best()
    value, chosen = viterbi(made)
    for row, (augmented, loss, _) in enumerate(found):
      root = made.node_offsets[row + 1] - 1
      np.testing.assert_allclose(value[root], augmented, atol=TOLERANCE)
      nodes = slice(best.offsets[row], best.offsets[row + 1])
      ranks = translation_forest.derivation_ranks(made, chosen[row])
      spans = np.stack([best.begin[nodes], best.end[nodes]], axis=1)
      np.testing.assert_array_equal(ranks[:, :2], spans)
      losses.append(loss)
      ranked.append(
        sum(oracle.rank_loss(1 + rank, **BEAM) for rank in ranks[:, 3])
      )
  np.testing.assert_allclose(losses, ranked, atol=1e-5)
  assert max(losses) > 0
