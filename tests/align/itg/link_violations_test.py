"""Links that derivations leave out, against trees over words."""

import functools

import numpy as np
import pytest

from jaxmt.align.itg import link_violations

# No ITG tree has all four links of the last two.
CASES = [
  (3, 4, [(0, 1), (2, 2)]),
  (4, 4, [(0, 0), (1, 2), (3, 1)]),
  (4, 4, [(0, 1), (1, 3), (2, 0), (3, 2)]),
  (5, 5, [(0, 2), (1, 0), (2, 4), (4, 1)]),
]


def slow_left_out(n, m, links):
  """The fewest links left out with each bi-span, by trees over words."""

  @functools.cache
  def inside(i, k, j, l):
    held = sum(i <= s < k and j <= t < l for s, t in links)
    best = min(held, 1)
    return best if held < 2 else max(best, *parts(i, k, j, l, None))

  def parts(i, k, j, l, wanted):
    """Links of all ways to split; one part has a bi-span, if one is wanted."""
    for s in range(i, k + 1):
      for t in range(j, l + 1):
        for one, two in (
          ((i, s, j, t), (s, k, t, l)),
          ((i, s, t, l), (s, k, j, t)),
        ):
          if (i, k, j, l) in (one, two):
            continue
          if wanted is None:
            yield inside(*one) + inside(*two)
            continue
          yield around(one, wanted) + inside(*two)
          yield inside(*one) + around(two, wanted)

  @functools.cache
  def around(box, wanted):
    if box == wanted:
      return inside(*box)
    i, k, j, l = box
    if wanted[0] < i or wanted[1] > k or wanted[2] < j or wanted[3] > l:
      return -np.inf
    return max(parts(*box, wanted), default=-np.inf)

  whole = (0, n, 0, m)
  return {
    (i, k, j, l): len(links) - around(whole, (i, k, j, l))
    for i in range(n)
    for k in range(i + 1, n + 1)
    for j in range(m)
    for l in range(j + 1, m + 1)
  }


@pytest.mark.parametrize(("n", "m", "links"), CASES)
def test_left_out_equals_trees_over_words(n, m, links):
  source, target = np.array(links).T
  found = link_violations.left_out(source, target)
  for (i, k, j, l), expected in slow_left_out(n, m, links).items():
    a, b = np.searchsorted(source, [i, k])
    c, d = np.searchsorted(np.sort(target), [j, l])
    assert found[a, b, c, d] == expected


def test_the_rest_of_a_derivation_counts():
  # After all three links, and between the last two on the target side: a part
  # there cuts no link, but with it the four are none that an ITG has.
  found = link_violations.left_out(np.array([0, 1, 2]), np.array([1, 2, 0]))
  assert found[0, 3, 0, 3] == 0
  assert found[3, 3, 2, 2] == 1
  assert found[3, 3, 3, 3] == 0


def test_best_spans_are_those_of_fewest_links_then_of_posteriors():
  rng = np.random.default_rng(0)
  posterior = rng.uniform(0.0, 0.3, size=(2, 5, 5)).astype(np.float32)
  links = [(0, 1), (1, 3), (2, 0), (3, 2)]
  for s, t in links:
    posterior[0, s, t] = 0.9 + 0.01 * s
  cost = slow_left_out(4, 5, links)
  score, place = link_violations.best_spans(
    posterior, [4, 2], [5, 3], confident=0.9, beam=4
  )
  starts, ends = np.triu_indices(5)
  for span, (i, last) in enumerate(zip(starts, ends, strict=True)):
    if last >= 4:
      assert np.isinf(score[0, span]).all()
      continue
    k = last + 1
    own = {}
    for j in range(5):
      for l in range(j + 1, 6):
        inner = posterior[0, i:k, j:l].sum()
        rows = posterior[0, i:k].sum()
        columns = posterior[0, :4, j:l].sum()
        ratio = 2 * (inner - (rows + columns - 2 * inner)) / (k - i + l - j)
        own[j, l] = (-cost[i, k, j, l], ratio)
    best = sorted(own, key=lambda name: own[name], reverse=True)[:4]
    found = [(int(p) // 5, int(p) % 5 + 1) for p in place[0, span]]
    assert found == best
