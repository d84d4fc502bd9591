"""Losses over all derivations of packed forests.

    packed = pack(forest)
    loss, sentences = risk(packed, scores, costs)

The counterparts of the losses on lists, with the derivations of a forest as the
candidates: `sum / weight` is the same number that the list of all derivations
would give, computed without listing them. Scores and costs are given for each
edge; those of a derivation are the sums over its edges. So a cost must be a sum
over edges. Equations with two digits: Neubig and Watanabe, "Optimization for
Statistical Machine Translation: A Survey"; with a dot: Gimpel (2012).

All functions may be jitted and differentiated in scores and costs. Memory is
linear in the edges.

Likelihoods, ramps, hinges and perceptrons need no more of a space than its sums
and maxima. Given their oracles, they take any `Space` in place of packed
forests, with scores in the shape that the space defines.

E: edges, padding included. B: sentences, padding included.
"""

import dataclasses
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmt.hypergraph import device_layout, inside_outside
from jaxmt.hypergraph.device_layout import LayoutSizes, Levels
from jaxmt.hypergraph.semirings import EXPECTATION, LOG, MAX

_FORMS = (1, 2, 3)


class Space(Protocol):
  """Sets of derivations, one of each sentence."""

  def log_sums(self, scores: Array) -> Array:
    """Returns the log of the summed exp scores, -inf without any, `[B]`."""
    ...

  def maxima(self, scores: Array) -> Array:
    """Returns the best scores, -inf without any derivation, `[B]`."""
    ...


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PackedForests:
  """Forests on the device.

  Attributes:
    levels: the layout for passes.
    sentence: sentence of each edge, B in padding, int32 `[E]`.
  """

  levels: Levels
  sentence: Array | np.ndarray

  def pad(self, values: Array) -> Array:
    """Returns values of the forests' edges with padding after them, `[E]`.

    Gradients pass through: values may come from any differentiable function.
    """
    rest = len(self.sentence) - len(values)
    return jnp.pad(
      jnp.asarray(values), [(0, rest), *[(0, 0)] * (values.ndim - 1)]
    )

  def log_sums(self, scores: Array) -> Array:
    """See `Space`."""
    return inside_outside.total(self.levels, scores, LOG)

  def maxima(self, scores: Array) -> Array:
    """See `Space`."""
    return inside_outside.total(self.levels, scores, MAX).score


def pack(
  forest, *, tile: int = 1024, sizes: LayoutSizes | None = None
) -> PackedForests:
  """Lays forests out for the losses.

  Args:
    forest: a `hypergraph.forest.Forest`.
    tile: edges of one step of a pass.
    sizes: sizes to pad to; those needed, rounded up to few values, if None.
      `sizes.edges` is E and `sizes.sentences` is B.
  """
  if sizes is None:
    needed = device_layout.needed_sizes(forest, tile=tile)
    sizes = device_layout.bucketed(needed)
  cuts = forest.edge_offsets[forest.node_offsets]
  sentence = np.full(sizes.edges, sizes.sentences, np.int32)
  sentence[: cuts[-1]] = np.repeat(np.arange(len(forest)), np.diff(cuts))
  return PackedForests(
    levels=device_layout.lay_out(forest, tile=tile, sizes=sizes),
    sentence=sentence,
  )


# --- sums, maxima and means over derivations --------------------------------


def _log_sums(packed, scores):
  """`(log sum exp, whether the sentence has a derivation)`, `[B]` each."""
  sums = packed.log_sums(scores)
  some = sums > -jnp.inf
  return jnp.where(some, sums, 0.0), some


def _maxima(packed, scores):
  """`(best score, whether the sentence has a derivation)`, `[B]` each."""
  best = packed.maxima(scores)
  some = best > -jnp.inf
  return jnp.where(some, best, 0.0), some


def _total(values, some):
  return jnp.sum(jnp.where(some, values, 0.0)), jnp.sum(some).astype(
    values.dtype
  )


def _by_sentence(packed, values):
  """Sums of edge values over the edges of each sentence, `[B, ...]`."""
  count = packed.levels.root.shape[0]
  return jax.ops.segment_sum(values, packed.sentence, count)


@jax.custom_vjp
def expectations(packed: PackedForests, scores: Array, values: Array) -> Array:
  """Returns the expected sum of edge values, `[B, V]`.

  Under `p(d) ~ exp(score(d))`. The gradient in the score of an edge is the
  covariance of the edge and the values, from one pass of the expectation
  semiring (Li and Eisner 2009): no tile's work is kept.

  Args:
    packed: the forests.
    scores: of edges, `[E]`.
    values: of edges, `[E, V]`.
  """
  shares = inside_outside.marginals(packed.levels, scores)
  return _by_sentence(packed, shares[:, None] * values)


def _expectations_forward(packed, scores, values):
  return expectations(packed, scores, values), (packed, scores, values)


def _expectations_backward(saved, slopes):
  packed, scores, values = saved
  # In padding the sentence is B: no slope.
  slopes = jnp.pad(slopes, ((0, 1), (0, 0)))[packed.sentence]
  value = jnp.sum(values * slopes, axis=-1, keepdims=True)
  both = inside_outside.passes(packed.levels, (scores, value), EXPECTATION)
  total = both.total.log_p
  total = jnp.where(total > -jnp.inf, total, 0.0)
  pad = lambda x: jnp.append(x, jnp.zeros((1,), x.dtype))[packed.sentence]
  shares = jnp.exp(both.through.log_p - pad(total))
  lead = both.through.mean[:, 0] - pad(both.total.mean[:, 0])
  return None, shares * lead, shares[:, None] * slopes


expectations.defvjp(_expectations_forward, _expectations_backward)


def best_edges(packed: PackedForests, scores: Array) -> Array:
  """Returns how often the best derivation of its sentence uses each edge.

  `[E]`, without a gradient. Of equal derivations it takes the first edges.
  """
  summed = lambda x: jnp.sum(_maxima(packed, x)[0])
  return jax.lax.stop_gradient(jax.grad(summed)(scores))


def cheapest(
  packed: PackedForests, costs: Array, *, tolerance: float = 1e-5
) -> Array:
  """Returns the edges of the derivations of least cost: the oracles.

  Every derivation that consists of such edges has the least cost of its
  sentence (to within `tolerance` for each of its edges), and no other has.

  Returns:
    bool `[E]`.
  """
  both = inside_outside.passes(packed.levels, -costs, MAX)
  best = jnp.append(both.total.score, jnp.inf)[packed.sentence]
  return both.through.score >= best - tolerance


def _oracle_scores(packed, scores, costs, oracles):
  if oracles is None:
    if not isinstance(packed, PackedForests):
      raise ValueError("a space that is no forest needs oracles")
    oracles = cheapest(packed, jax.lax.stop_gradient(costs))
  return jnp.where(oracles, scores, -jnp.inf)


# --- losses of the log-linear distribution ----------------------------------


def softmax(
  packed: Space,
  scores: Array,
  costs: Array,
  *,
  oracles: Array | None = None,
) -> tuple[Array, Array]:
  """Returns the negative log-likelihood of the oracle derivations (Eq 20).

  The latent CRF's loss (Eq 3.14) with the oracle set for the reference, which
  need not be in the forest.

  Args:
    packed: the forests.
    scores: of edges, `[E]`.
    costs: of edges, used only to find oracles, `[E]`.
    oracles: edges of the derivations that count as right, bool `[E]`; those of
      least cost (`cheapest`) when None. Sentences without one are left out.

  Returns:
    `(sum, number of sentences)`.
  """
  return _likelihood(packed, scores, costs, oracles, scores)


def softmax_margin(
  packed: Space,
  scores: Array,
  costs: Array,
  *,
  oracles: Array | None = None,
) -> tuple[Array, Array]:
  """Returns `LSE(score + cost) - LSE over oracles` (Eq 3.16); see `softmax`."""
  return _likelihood(packed, scores, costs, oracles, scores + costs)


def _likelihood(packed, scores, costs, oracles, upper):
  right, some = _log_sums(
    packed, _oracle_scores(packed, scores, costs, oracles)
  )
  every, _ = _log_sums(packed, upper)
  return _total(every - right, some)


def risk(
  packed: PackedForests,
  scores: Array,
  costs: Array,
  *,
  scale: float | Array = 1.0,
) -> tuple[Array, Array]:
  """Returns the expected cost (Eq 22-24, 2.16); see `softmax`.

  With costs that are linear in n-gram counts it is linear BLEU (Eq 46-52;
  Tromble et al. 2008).
  """
  mean = expectations(packed, scale * scores, costs[:, None])[:, 0]
  return _total(mean, _alive(packed))


def _alive(packed):
  """Which sentences have a derivation, bool `[B]`."""
  ones = jnp.ones(packed.sentence.shape)
  return _by_sentence(packed, ones) > 0


def entropy(
  packed: PackedForests, scores: Array, *, scale: float | Array = 1.0
) -> tuple[Array, Array]:
  """Returns the entropy of derivations in nats, summed (Eq 44)."""
  values = scale * scores
  sums, some = _log_sums(packed, values)
  mean = expectations(packed, values, values[:, None])[:, 0]
  return _total(sums - mean, some)


def annealed_risk(
  packed: PackedForests,
  scores: Array,
  costs: Array,
  *,
  temperature: float | Array,
  scale: float | Array = 1.0,
) -> tuple[Array, Array]:
  """Returns `risk - temperature * entropy` (Eq 45); see `softmax`."""
  loss, sentences = risk(packed, scores, costs, scale=scale)
  spread, _ = entropy(packed, scores, scale=scale)
  return loss - temperature * spread, sentences


def expected_statistics(
  packed: PackedForests,
  scores: Array,
  statistics: Array,
  *,
  scale: float | Array = 1.0,
) -> tuple[Array, Array]:
  """Returns the corpus statistics expected under `p` (Eq 53).

  `expected_bleu.smooth_bleu` of them is xBLEU.

  Args:
    packed: the forests.
    scores: of edges, `[E]`.
    statistics: what each edge adds to the statistics, `[E, S]`.
    scale: gamma of Eq 22.

  Returns:
    `(sums [S], number of sentences)`; both add up over shards.
  """
  sums = jnp.sum(expectations(packed, scale * scores, statistics), axis=0)
  return sums, jnp.sum(_alive(packed)).astype(sums.dtype)


# --- ramps and margins ------------------------------------------------------


def _difference(packed, scores, costs, *, form, soft_upper, soft_lower):
  if form not in _FORMS:
    raise ValueError(f"form must be 1, 2 or 3, not {form}")
  upper = scores + costs if form in (1, 3) else scores
  lower = scores - costs if form in (2, 3) else scores
  high, some = (_log_sums if soft_upper else _maxima)(packed, upper)
  low, _ = (_log_sums if soft_lower else _maxima)(packed, lower)
  return _total(high - low, some)


def ramp(
  packed: Space, scores: Array, costs: Array, *, form: int
) -> tuple[Array, Array]:
  """Returns ramp loss 1, 2 or 3 (Eq 3.1-3.3); see `jaxmt.losses.ramp`.

  Args:
    packed: the forests.
    scores: of edges, `[E]`.
    costs: of edges, already times their multiplier, `[E]`.
    form: 1, 2 or 3.

  Returns:
    `(sum, number of sentences)`.
  """
  return _difference(
    packed, scores, costs, form=form, soft_upper=False, soft_lower=False
  )


def soft_ramp(
  packed: Space, scores: Array, costs: Array, *, form: int
) -> tuple[Array, Array]:
  """Returns soft ramp loss 1, 2 or 3 (Eq 3.4-3.6); see `ramp`."""
  return _difference(
    packed, scores, costs, form=form, soft_upper=True, soft_lower=True
  )


def hybrid_ramp(
  packed: Space,
  scores: Array,
  costs: Array,
  *,
  form: int,
  soft_upper: bool,
) -> tuple[Array, Array]:
  """Returns a ramp loss with one hard and one soft side; see `ramp`."""
  return _difference(
    packed,
    scores,
    costs,
    form=form,
    soft_upper=soft_upper,
    soft_lower=not soft_upper,
  )


def structured_hinge(
  packed: Space,
  scores: Array,
  costs: Array,
  *,
  oracles: Array | None = None,
) -> tuple[Array, Array]:
  """Returns `max(s + cost) - max over oracles of s` (Eq 3.12)."""
  right, some = _maxima(packed, _oracle_scores(packed, scores, costs, oracles))
  return _total(_maxima(packed, scores + costs)[0] - right, some)


def structured_perceptron(
  packed: Space,
  scores: Array,
  costs: Array,
  *,
  oracles: Array | None = None,
) -> tuple[Array, Array]:
  """Returns `max s - max over oracles of s` (Eq 3.8, 3.9)."""
  right, some = _maxima(packed, _oracle_scores(packed, scores, costs, oracles))
  return _total(_maxima(packed, scores)[0] - right, some)


def hope_and_fear(
  packed: PackedForests, scores: Array, costs: Array
) -> tuple[Array, Array]:
  """Returns the edges of `argmax(s - cost)`, `argmax(s + cost)` (Eq 35-36).

  Each is how often the derivation uses an edge, `[E]`.
  """
  return best_edges(packed, scores - costs), best_edges(packed, scores + costs)


def loss_augmented_hinge(
  packed: PackedForests, scores: Array, costs: Array
) -> tuple[Array, Array]:
  """Returns the hinge of hope against fear (Eq 30 on 35-37).

  The fear's `s + cost` is the largest, so the hinge is never below 0.
  """
  hope = best_edges(packed, scores - costs)
  fear, some = _maxima(packed, scores + costs)
  return _total(fear - _by_sentence(packed, hope * (scores + costs)), some)
