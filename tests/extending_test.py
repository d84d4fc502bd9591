"""Each contract of the package is met from outside it, end to end."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxmt import align
from jaxmt.text import links, vocabulary


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
