"""Latent Dirichlet allocation of documents that have both languages' words.

The baseline of Cui et al. (2014) takes topics of rules from LDA (Xiao et al.
2012). A document d draws shares of L topics from a Dirichlet distribution, a
topic a distribution of words from another, and every word its topic. Documents
of a bitext are one bag of source and target words, so both sides of a rule have
topics of the same kind. Inference is variational Bayes (Blei, Ng & Jordan 2003;
Hoffman, Blei & Bach 2010), all documents at once: with n the counts,

    gamma_dk = alpha + sum_w n_dw phi_dwk
    lambda_kw = eta + sum_d n_dw phi_dwk
    phi_dwk ~ exp(E ln theta_dk + E ln beta_kw).

Each update raises the bound on the likelihood or leaves it.

M: documents. V: words. L: topics.
"""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import digamma, gammaln

from jaxmt.errors import InputError
from jaxmt.models.topic_vectors import DocumentIndex, word_counts

_INNER = 5  # updates of gamma for each of lambda


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixtureOptions:
  """What is learned.

  Attributes:
    size: L.
    alpha: of the documents' Dirichlet distribution; 0: 1 / L.
    eta: of the topics'.
    rounds: updates of all topics.
    seed: of the start.
  """

  size: int = 30
  alpha: float = 0.0
  eta: float = 0.01
  rounds: int = 50
  seed: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mixtures:
  """Topics of documents.

  Attributes:
    shares: mean of each document's shares, float32 `[M, L]`.
    words: lambda, float32 `[L, V]`.
    bounds: bound on ln p of all words after each round.
  """

  shares: np.ndarray
  words: np.ndarray
  bounds: tuple[float, ...]


def check_options(options: MixtureOptions) -> None:
  """Raises `InputError` for settings that make no sense."""
  for name in ("size", "rounds"):
    if getattr(options, name) < 1:
      raise InputError(f"option '{name}' must be at least 1")
  if not 0 <= options.alpha < float("inf") or not 0 < options.eta < 1e6:
    raise InputError("options 'alpha' and 'eta' are out of range")


def joint_counts(
  indices: tuple[DocumentIndex, DocumentIndex],
  documents: tuple[Sequence[str], Sequence[str]],
) -> np.ndarray:
  """Returns how often each document has each word, float32 `[M, V]`.

  Source words stand before target words.

  Raises:
    InputError: if the sides have different numbers of documents.
  """
  if len(documents[0]) != len(documents[1]):
    raise InputError(
      "topics of both languages need the same documents in both:"
      f" {len(documents[0])} are not {len(documents[1])}"
    )
  return np.concatenate(
    [
      np.asarray(word_counts(index.words, side).todense())
      for index, side in zip(indices, documents, strict=True)
    ],
    axis=1,
  )


def fit(counts: np.ndarray, options: MixtureOptions) -> Mixtures:
  """Returns the topics of documents with these counts, `[M, V]`."""
  check_options(options)
  alpha = options.alpha or 1.0 / options.size
  rng = np.random.default_rng([options.seed, 29])
  shape = (options.size, counts.shape[1])
  words = jnp.asarray(rng.gamma(100.0, 0.01, shape), jnp.float32)
  gamma = jnp.ones((len(counts), options.size), jnp.float32)
  given = jnp.asarray(counts, jnp.float32)
  bounds = []
  for _ in range(options.rounds):
    gamma, words, bound = update(
      gamma, words, given, alpha=alpha, eta=options.eta
    )
    bounds.append(float(bound))
  gamma = np.asarray(gamma)
  return Mixtures(
    shares=(gamma / gamma.sum(1, keepdims=True)).astype(np.float32),
    words=np.asarray(words),
    bounds=tuple(bounds),
  )


def _expected_logs(parameters: Array) -> Array:
  """E ln of draws from Dirichlet distributions, `[N, K]`."""
  return digamma(parameters) - digamma(parameters.sum(-1, keepdims=True))


@functools.partial(jax.jit, static_argnames=("alpha", "eta"))
def update(
  gamma: Array, words: Array, counts: Array, *, alpha: float, eta: float
) -> tuple[Array, Array, Array]:
  """Returns gamma `[M, L]` and lambda `[L, V]` after a round, and the bound.

  Args:
    gamma: of the documents.
    words: lambda of the topics.
    counts: `[M, V]`.
    alpha: of the documents' prior.
    eta: of the topics' prior.
  """
  topic = jnp.exp(_expected_logs(words))
  # What phi is divided by, and each word's count over it.
  ratio = lambda share, topic: counts / jnp.maximum(share @ topic, 1e-30)

  def step(_, gamma):
    share = jnp.exp(_expected_logs(gamma))
    return alpha + share * (ratio(share, topic) @ topic.T)

  gamma = jax.lax.fori_loop(0, _INNER, step, gamma)
  share = jnp.exp(_expected_logs(gamma))
  words = eta + topic * (share.T @ ratio(share, topic))
  return gamma, words, bound(gamma, words, counts, alpha=alpha, eta=eta)


def bound(
  gamma: Array, words: Array, counts: Array, *, alpha: float, eta: float
) -> Array:
  """Returns the bound on ln p of the words, phi being the best there is."""
  share, topic = _expected_logs(gamma), _expected_logs(words)
  likely = jnp.log(jnp.maximum(jnp.exp(share) @ jnp.exp(topic), 1e-30))
  total = (counts * likely).sum()
  for parameters, logs, prior in ((gamma, share, alpha), (words, topic, eta)):
    size = parameters.shape[1]
    total += ((prior - parameters) * logs + gammaln(parameters)).sum()
    total -= gammaln(parameters.sum(-1)).sum()
    total += len(parameters) * (gammaln(size * prior) - size * gammaln(prior))
  return total


def sentence_shares(near: np.ndarray, shares: np.ndarray) -> np.ndarray:
  """Returns the mean shares of the documents of sentences, `[S, L]`.

  They are 0 for sentences without any document.

  Args:
    near: documents, -1 for none, int32 `[S, N]`.
    shares: of the documents, `[M, L]`.
  """
  is_document = near >= 0
  chosen = np.where(is_document[..., None], shares[np.maximum(near, 0)], 0.0)
  counts = np.maximum(is_document.sum(1, keepdims=True), 1)
  return (chosen.sum(1) / counts).astype(np.float32)
