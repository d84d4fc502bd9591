"""Each contract of the package is met from outside it, end to end."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxmt import align
from jaxmt.losses import registry as losses
from jaxmt.text import links, vocabulary
from jaxmt.tune import loop, methods, pool_scores
from tests.tune import loop_test, small_pool


def test_an_aligner_from_outside():
  """Learns how often a word stands where its translation stands."""

  def joint(parameters, grid):
    share = parameters.model["share"]
    same = jnp.eye(len(grid.pairs))[..., None] * share[0]
    prior = same + share[1] / jnp.maximum(grid.conditioning, 1)
    translation, null = align.emissions(parameters, grid)
    return translation + jnp.log(prior), null - 3.0, same / prior

  def expectation(parameters, grid, config):
    *scores, same = joint(parameters, grid)
    found = align.independent_posteriors(*scores, grid)
    counts = jnp.stack([same, 1.0 - same]) * found.links
    return dataclasses.replace(found, model={"share": counts.sum((1, 2, 3))})

  aligner = align.Aligner(
    name="same-place",
    initialise=lambda sizes, config: {"share": jnp.array([0.5, 0.5])},
    expectation=expectation,
    maximise=lambda own, counts, sizes, config: {
      "share": jnp.asarray(counts["share"] / counts["share"].sum())
    },
    links=lambda p, grid, _: align.independent_viterbi(*joint(p, grid)[:2]),
    warm_up="model1",
  )
  align.register(aligner)
  source, _ = vocabulary.intern(["a b c", "a b c", "d a"])
  target, _ = vocabulary.intern(["x y z", "x y z", "w x"])
  config = align.default_config("same-place", iterations=6, warm_up=1)
  result = align.align(source, target, config)
  for side in ("forward", "backward"):
    rows = links.format_links(result.links[side])
    assert rows == ["0-0 1-1 2-2", "0-0 1-1 2-2", "0-0 1-1"]
    assert result.parameters[side].model["share"][0] > 0.9
    passes = [p for p in result.history if p.model == "same-place"]
    assert (np.diff([p.log_likelihood[side] for p in passes]) > 0).all()


def tune_everywhere(name):
  """Tunes on a small list, then with a decoder in the loop; both must gain."""
  made = small_pool.make(0)
  start = small_pool.start(made)
  method = methods.configure(methods.find(name), {"metric": "bleu"})
  tuned, history = methods.run(method, made, start, 0)
  before = pool_scores.pool_score(made, start, "bleu")
  assert pool_scores.pool_score(made, tuned, "bleu") > before + 0.01
  assert history
  refs = small_pool.references(np.random.default_rng(0), made.sentences)
  state = loop.run(
    loop_test.decoder(made),
    refs,
    method,
    loop.begin(loop_test.START),
    loop.LoopConfig(rounds=2),
    seed=0,
  )
  assert state.best_score > state.history[0]["score"]


def squared_risk(scores, costs, mask, *, power=2.0):
  """The expected cost, large costs weighing more."""
  probabilities = jnp.where(mask, jnp.exp(scores - scores.max()), 0.0)
  total = jnp.maximum(probabilities.sum(-1, keepdims=True), 1e-30)
  loss = (probabilities / total * jnp.where(mask, costs, 0.0) ** power).sum(-1)
  exists = mask.any(-1)
  return jnp.where(exists, loss, 0.0).sum(), exists.sum().astype(scores.dtype)


def test_a_loss_from_outside():
  losses.register(
    losses.Loss(
      name="outside-risk",
      function=squared_risk,
      settings={"power": 2.0},
      cost_scale=3.0,
      start_scale=0.1,
    )
  )
  assert "outside-risk" in methods.names()
  harder = methods.configure(methods.find("outside-risk"), {"power": "3"})
  assert harder.config.settings == {"power": 3.0}
  tune_everywhere("outside-risk")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RandomSearchConfig:
  """How many points to try, and how far away."""

  metric: str = "bleu"
  points: int = 50
  spread: float = 1.0


def random_search(lists, weights, config, seed):
  """Tries random weights and returns the best."""
  rng = np.random.default_rng(seed)
  noise = rng.normal(0, config.spread, (config.points, len(weights)))
  tried = [weights, *(weights + noise)]
  scores = [pool_scores.pool_score(lists, w, config.metric) for w in tried]
  best = int(np.argmax(scores))
  return tried[best], [{"score": scores[best]}]


def test_a_tuner_from_outside():
  methods.register(
    "outside-search",
    methods.Method(optimise=random_search, config=RandomSearchConfig()),
  )
  assert methods.find("outside-search").needs == methods.LISTS
  tune_everywhere("outside-search")
