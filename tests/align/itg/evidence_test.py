"""Features of links: posteriors of the models, counts, ranks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.align import aligner, em, named_aligners
from jaxmt.align.itg import evidence, link_features
from jaxmt.text import ragged
from tests.align import bitexts

SOURCE = [[1, 2], [3], [1, 3, 2], [2, 2], [4, 1, 3]]
TARGET = [[1, 2, 3], [2], [4, 1], [3, 3], [1, 5, 2]]
WORDS = ["", "a", "b", "c", "d"]


@pytest.fixture(scope="module")
def learnt():
  source, target = ragged.from_rows(SOURCE), ragged.from_rows(TARGET)
  found = evidence.learn(
    source,
    target,
    source_words=WORDS,
    target_words=["-", "x", "b", "y", "a", "z"],
    iterations=3,
  )
  lines = np.arange(5)
  ((rows, matrices),) = link_features.batches(found, source, target, lines)
  return found, rows, matrices, link_features.arrays(matrices, len(rows))


def column(name):
  return link_features.LINK_FEATURES.index(name)


@pytest.mark.parametrize("model", ["hmm", "diagonal"])
@pytest.mark.parametrize("side", em.DIRECTIONS)
def test_posteriors_are_those_of_the_engine(learnt, model, side):
  found, _, matrices, _ = learnt
  data = bitexts.place(SOURCE, TARGET)
  config = found.configs[model]
  parameters = found.parameters[model][side]
  if model == "diagonal":
    settings = named_aligners.default_config(
      model, tension=float(parameters.model["tension"])
    )
    own = named_aligners.find(model).initialise(data.sizes[side], settings)
    parameters = aligner.Parameters(
      pairs=parameters.pairs, null=parameters.null, model=own
    )
  parameters = jax.tree.map(jnp.asarray, parameters)
  values = np.asarray(matrices.link)[..., column(f"{model} {side} posterior")]
  for grid, lines in zip(bitexts.grids(data, side), data.lines, strict=True):
    expected = (
      named_aligners.find(model).expectation(parameters, grid, config).links
    )
    expected = np.asarray(expected)
    if side == "forward":
      expected = expected.swapaxes(0, 1)
    for place, line in enumerate(lines[0].tolist()):
      n, m = len(SOURCE[line]), len(TARGET[line])
      np.testing.assert_allclose(
        np.exp(values[line, :n, :m]) - 1e-6,
        expected[:n, :m, place],
        atol=2e-5,
      )


def test_counts_ranks_and_spelling(learnt):
  found, _, matrices, arrays = learnt
  link = np.asarray(matrices.link)
  # "b" on both sides: source id 2, target id 2.
  same = link[..., column("same spelling")]
  assert same[0, 1, 1] == 1 and same[0, 1, 0] == 0
  ranks = link[4, :3, :3, column("association rank of target")]
  score = found.association[
    np.searchsorted(
      found.keys,
      [[s << 32 | t for t in TARGET[4]] for s in SOURCE[4]],
    )
  ]
  expected = (score[:, None, :] > score[:, :, None]).sum(-1)
  np.testing.assert_array_equal(ranks, expected)
  assert arrays.link.shape == (
    6 + 1 + 6 + 4 + 9,
    len(link_features.LINK_FEATURES),
  )
  assert np.all(found.link_probability >= 0)
  for table in found.fertility:
    np.testing.assert_allclose(np.exp(table[1:]).sum(1), 1.0, rtol=1e-5)


def test_other_links_change_what_is_counted(learnt):
  found = learnt[0]
  source, target = ragged.from_rows(SOURCE), ragged.from_rows(TARGET)
  none = ragged.Ragged(
    flat=np.zeros((0, 2), np.int32), offsets=np.zeros(6, np.int64)
  )
  changed = evidence.with_links(found, source, target, none)
  assert not changed.link_probability.any()
  assert np.all(changed.fertility[0][:, 0] > np.log(0.5))
