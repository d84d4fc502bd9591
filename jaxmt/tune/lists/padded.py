"""The pool as arrays for JAX: padded lists, a mask, and scores.

B: sentences. K: longest list. D: dense features. P: sparse features of a
candidate. S: statistics.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.features import sparse


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PaddedLists:
  """Candidates of all sentences, float32.

  Attributes:
    dense: `[B, K, D]`.
    ids: places of sparse features in the weight vector, int32 `[B, K, P]`.
    values: of the sparse features, 0 in padding, `[B, K, P]`.
    costs: sentence-level errors, `[B, K]`.
    statistics: of the metric, `[B, K, S]`.
    mask: which candidates exist, bool `[B, K]`.
  """

  dense: Array
  ids: Array
  values: Array
  costs: Array
  statistics: Array
  mask: Array


def pad(
  pool: CandidateLists,
  metric: str,
  costs: np.ndarray,
  *,
  multiple: int = 1,
  features: bool = True,
) -> PaddedLists:
  """Returns the pool padded to rectangles.

  Args:
    pool: with statistics of `metric`.
    metric: whose statistics to take.
    costs: of each candidate, `[N]`.
    multiple: B is padded with empty lists to a multiple of this (devices).
    features: whether to take the features, too; else D = P = 0.
  """
  sentences = -(-max(pool.sentences, 1) // multiple) * multiple
  lengths = np.diff(pool.offsets)
  mask = np.zeros((sentences, max(pool.width, 1)), bool)
  mask[: pool.sentences] = np.arange(mask.shape[1]) < lengths[:, None]
  dense = pool.dense if features else pool.dense[:, :0]
  thin = pool.sparse if features else sparse.empty(len(pool))
  ids, values = sparse.pad(thin)
  ids = np.where(values != 0, ids + pool.dense.shape[1], 0)

  def spread(rows: np.ndarray, dtype=np.float32) -> Array:
    out = np.zeros((*mask.shape, *rows.shape[1:]), dtype)
    out[mask] = rows
    return jnp.asarray(out)

  return PaddedLists(
    dense=spread(dense),
    ids=spread(ids, np.int32),
    values=spread(values),
    costs=spread(costs),
    statistics=spread(pool.statistics[metric]),
    mask=jnp.asarray(mask),
  )


def padded_scores(padded: PaddedLists, weights: Array) -> Array:
  """Returns the model scores, `[B, K]`, differentiable in `weights`."""
  width = padded.dense.shape[-1]
  total = padded.dense @ weights[:width]
  if padded.ids.shape[-1]:
    total += jnp.sum(padded.values * weights[padded.ids], axis=-1)
  return total
