r"""A recursive recurrent network of binary derivations (Liu et al. 2014).

A node of a derivation has a representation s and the usual features x of what
it covers, scaled. Leaves are phrase pairs, whose s is looked up; a parent is

    s = htanh(W [x_l; s_l; x_r; s_r]),  htanh(a) = min(1, max(-1, a)),
    y = v_s . s + lambda . x,

where l and r are the parts in target order. The paper learns the weights of x
in y as well; here they are those of the log-linear model.

Training has three parts: an auto-encoder of W's columns of s, a hinge of
single spans, and a likelihood of good candidates in a beam. The last two
replay the derivations of candidates, so that gradients reach W, v_s and the
phrase pairs.

P: phrase pairs, of which number 0 stands for all rare ones. D: numbers of s. X:
features. N: nodes. L: lists of candidates.
"""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

NOTHING = -1


def join(
  encoder: Array, left: tuple[Array, Array], right: tuple[Array, Array]
) -> Array:
  """Returns s of parents, `[..., D]`.

  Args:
    encoder: W transposed, `[2 (X + D), D]`.
    left: x `[..., X]` and s `[..., D]` of the parts that are said first.
    right: likewise of the others.
  """
  return nn.hard_tanh(jnp.concatenate([*left, *right], -1) @ encoder)


class RecursiveNet(nn.Module):
  """Representations and scores of the nodes of derivations.

  Attributes:
    pairs: P.
    size: D.
    inputs: X.
  """

  pairs: int
  size: int
  inputs: int

  def setup(self):
    """Makes the parameters."""
    start, small_normal = (
      nn.initializers.lecun_normal(),
      nn.initializers.normal(0.1),
    )
    rows = 2 * (self.inputs + self.size)
    self.leaves = self.param("leaves", small_normal, (self.pairs, self.size))
    self.encoder = self.param("encoder", start, (rows, self.size))
    self.output = self.param("output", small_normal, (self.size,))

  def __call__(self, pair: Array, parts: Array, x: Array, *, height: int):
    """Returns v_s . s of all nodes, `[N]`.

    Args:
      pair: phrase pair of leaves, `NOTHING` for others, int32 `[N]`.
      parts: nodes of the left and the right part, `NOTHING` for leaves; a node
        with one part is that part, int32 `[N, 2]`.
      x: scaled features, `[N, X]`.
      height: of the highest node, leaves having 0.
    """
    known = self.leaves[jnp.maximum(pair, 0)]
    leaf = jnp.where((pair >= 0)[:, None], nn.hard_tanh(known), 0.0)
    one, two = jnp.maximum(parts[:, 0], 0), jnp.maximum(parts[:, 1], 0)
    inner, single = parts[:, 0] >= 0, parts[:, 1] < 0

    # Each pass makes nodes right that are one higher.
    def rise(s, _):
      both = join(self.encoder, (x[one], s[one]), (x[two], s[two]))
      above = jnp.where(single[:, None], s[one], both)
      return jnp.where(inner[:, None], above, leaf), None

    s, _ = jax.lax.scan(rise, leaf, None, length=height)
    return s @ self.output


# --- losses -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class NeighbourLoss:
  """Auto-encoding of neighbours: rows are pairs of phrase pairs, `[B, 2]`.

  Parameters are those of the network and `decoder`, `[D, 2 D]`, which is
  dropped after training.
  """

  inputs: int

  def __call__(self, parameters, constants, rows, key):
    """See `fitting.Loss`."""
    del constants, key
    leaves = parameters["net"]["params"]["leaves"]
    encoder = parameters["net"]["params"]["encoder"]
    size = leaves.shape[1]
    s = jax.lax.stop_gradient(nn.hard_tanh(leaves[rows]))
    blank = jnp.zeros((len(rows), self.inputs))
    parent = join(encoder, (blank, s[:, 0]), (blank, s[:, 1]))
    again = parent @ parameters["decoder"]
    whole = s.reshape(len(rows), 2 * size)
    return 0.5 * ((again - whole) ** 2).sum(), jnp.float32(len(rows))


@dataclasses.dataclass(frozen=True)
class ConfidenceLoss:
  """A hinge of phrase pairs that were used against others of one source side.

  Rows are `{"good", "bad": phrase pairs, "lead": by how much the good one's
  log-linear score is larger}`; parameters `{"leaves": [P, D], "output": [D]}`.
  """

  def __call__(self, parameters, constants, rows, key):
    """See `fitting.Loss`."""
    del constants, key
    score = lambda pair: (
      nn.hard_tanh(parameters["leaves"][pair]) @ parameters["output"]
    )
    lead = rows["lead"] + score(rows["good"]) - score(rows["bad"])
    return jax.nn.relu(1.0 - lead).sum(), jnp.float32(len(lead))


def hinge(y: Array, good: Array, real: Array) -> Array:
  """Returns max(0, 1 - y_good + y_bad) of lists, `[L]`.

  The best good and the best other candidate count; lists without either have 0.

  Args:
    y: scores, `[L, K]`.
    good: which candidates are good, bool `[L, K]`.
    real: which are candidates at all, bool `[L, K]`.
  """
  best = jnp.where(good & real, y, -jnp.inf).max(-1)
  other = jnp.where(~good & real, y, -jnp.inf).max(-1)
  both = jnp.isfinite(best) & jnp.isfinite(other)
  lead = jnp.where(both, best, 0.0) - jnp.where(both, other, 0.0)
  return jnp.where(both, jax.nn.relu(1.0 - lead), 0.0)


def likelihood(y: Array, good: Array, real: Array) -> Array:
  """Returns -ln of the share of good candidates in lists, `[L]`.

  All good candidates of a list are among its candidates, so the loss is never
  negative. Lists without a good one have 0.
  """
  floor = jnp.where(real, y, -1e30)
  every = jax.nn.logsumexp(floor, axis=-1)
  some = jax.nn.logsumexp(jnp.where(good & real, y, -1e30), axis=-1)
  return jnp.where((good & real).any(-1), every - some, 0.0)


LOSSES = {"local": hinge, "global": likelihood}
