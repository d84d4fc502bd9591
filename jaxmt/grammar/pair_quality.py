"""Quality of sentence pairs by a random walk over the phrase pairs they share.

Sentence pairs and the phrase pairs extracted from them are the two sides of a
graph. A sentence pair is good if its phrase pairs are, and a phrase pair if its
sentence pairs are (Cui et al. 2013, "Bilingual data cleaning for SMT using
graph-based random walk"). With `r` the TF-IDF weights of the edges, each
sentence's normalised to sum to 1,

    u_i <- (1 - d) + d sum_j r_ij / (sum_k r_kj) v_j
    v_j <- (1 - d) + d sum_i r_ij u_i

from u = v = 1, both with the values of the step before. The paper does not
print the inverse frequency: here it is log(1 + N / n_j) for a phrase pair of
n_j of N sentence pairs. Phrase pairs of a single sentence pair are left out
first: taken with them, the walk rewards sentence pairs that share nothing.

The qualities become weights of sentence pairs: their weighted counts give two
more translation probabilities of every rule, or the worst pairs are dropped.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar import estimate
from jaxmt.grammar import provenance as provenance_lib
from jaxmt.grammar.extract import extraction, phrases
from jaxmt.grammar.extract.shards import CountOptions
from jaxmt.grammar.provenance import Provenance
from jaxmt.grammar.table import RuleTable
from jaxmt.runtime.runner import Runner
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import Vocabulary

NAMES = tuple(f"weighted_{name}" for name in estimate.THETA[:2])
NORMALIZATIONS = ("none", "words")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WalkOptions:
  """How sentence pairs are scored.

  Attributes:
    phrase_length: most words of either side of a phrase pair.
    min_sentences: phrase pairs of fewer sentence pairs are left out.
    damping: d.
    tolerance: the walk ends when no value changes by more.
    max_steps: or after this many steps.
    normalize: "none" gives u as it is; "words" divides it by the number of
      words of both sides, since longer pairs have more phrases.
  """

  phrase_length: int = 7
  min_sentences: int = 2
  damping: float = 0.85
  tolerance: float = 1e-12
  max_steps: int = 1000
  normalize: str = "none"


def check_options(options: WalkOptions) -> None:
  """Raises `ValueError` for settings that make no sense."""
  if options.phrase_length < 1:
    raise ValueError("the length of phrases must be at least 1")
  if options.min_sentences < 1 or options.max_steps < 1:
    raise ValueError("min_sentences and max_steps must be at least 1")
  if not 0 <= options.damping < 1:
    raise ValueError("damping must be at least 0 and below 1")
  if not options.tolerance > 0:
    raise ValueError("tolerance must be above 0")
  if options.normalize not in NORMALIZATIONS:
    raise ValueError(
      f"normalize '{options.normalize}' is none of {', '.join(NORMALIZATIONS)}"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseGraph:
  """M edges between N sentence pairs and P phrase pairs, sentence by sentence.

  Attributes:
    sentence: of each edge, rising, int32 `[M]`.
    phrase: of each edge, int32 `[M]`.
    weight: r, sums to 1 over the edges of a sentence, float64 `[M]`.
    sentences: N.
    phrases: P.
  """

  sentence: np.ndarray
  phrase: np.ndarray
  weight: np.ndarray
  sentences: int
  phrases: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Walk:
  """What a random walk ended with.

  Attributes:
    sentences: u, float64 `[N]`.
    phrases: v, float64 `[P]`.
    steps: number of steps.
  """

  sentences: np.ndarray
  phrases: np.ndarray
  steps: int


def make_graph(provenance: Provenance, *, min_sentences: int) -> PhraseGraph:
  """Returns the graph of sentence pairs and the phrase pairs they gave."""
  number = len(provenance)
  used = np.bincount(provenance.rules.flat)
  shared = used >= min_sentences
  uses = shared[provenance.rules.flat]
  place = np.cumsum(shared) - 1
  phrase = place[provenance.rules.flat[uses]].astype(np.int32)
  sentence = np.repeat(np.arange(number), provenance.rules.lengths)[uses]
  inverse = np.log1p(number / np.maximum(used[shared], 1))
  weight = provenance.counts[uses] * inverse[phrase]
  totals = np.bincount(sentence, weight, minlength=number)
  return PhraseGraph(
    sentence=sentence.astype(np.int32),
    phrase=phrase,
    weight=weight / totals[sentence],
    sentences=number,
    phrases=int(shared.sum()),
  )


def random_walk(graph: PhraseGraph, options: WalkOptions) -> Walk:
  """Runs the walk to its fixed point, in double precision."""
  by_phrase = np.bincount(graph.phrase, graph.weight, minlength=graph.phrases)
  share = graph.weight / by_phrase[graph.phrase]
  with jax.enable_x64(True):  # single precision stalls near 5e-7
    sentences, phrases_, steps = _walk(
      jnp.asarray(graph.sentence),
      jnp.asarray(graph.phrase),
      jnp.asarray(graph.weight, jnp.float64),
      jnp.asarray(share, jnp.float64),
      (options.damping, options.tolerance, options.max_steps),
      sizes=(graph.sentences, graph.phrases),
    )
    return Walk(
      sentences=np.asarray(sentences),
      phrases=np.asarray(phrases_),
      steps=int(steps),
    )


@functools.partial(jax.jit, static_argnames=("sizes",))
def _walk(sentence, phrase, weight, share, settings, *, sizes):
  """The walk on the device: `(u, v, steps)`."""
  damping, tolerance, max_steps = settings

  def going(state):
    _, _, change, steps = state
    return (change > tolerance) & (steps < max_steps)

  def step(state):
    sentences, phrases_, _, steps = state
    to_sentences = jax.ops.segment_sum(
      share * phrases_[phrase], sentence, sizes[0], indices_are_sorted=True
    )
    to_phrases = jax.ops.segment_sum(
      weight * sentences[sentence], phrase, sizes[1]
    )
    new = (
      (1 - damping) + damping * to_sentences,
      (1 - damping) + damping * to_phrases,
    )
    change = jnp.maximum(
      jnp.abs(new[0] - sentences).max(initial=0.0),
      jnp.abs(new[1] - phrases_).max(initial=0.0),
    )
    return *new, change, steps + 1

  start = (
    jnp.ones(sizes[0], jnp.float64),
    jnp.ones(sizes[1], jnp.float64),
    jnp.asarray(jnp.inf, jnp.float64),
    jnp.asarray(0),
  )
  sentences, phrases_, _, steps = jax.lax.while_loop(going, step, start)
  return sentences, phrases_, steps


def pair_weights(
  source: Ragged,
  target: Ragged,
  links: Ragged,
  *,
  source_words: Vocabulary,
  target_words: Vocabulary,
  options: WalkOptions,
  runner: Runner,
) -> np.ndarray:
  """Returns a weight for every sentence pair; their mean is 1. float64 `[N]`.

  Args:
    source: word ids, N rows.
    target: word ids, N rows.
    links: (source, target) positions, N rows.
    source_words: of the source ids.
    target_words: of the target ids.
    options: see `WalkOptions`.
    runner: where phrase pairs are extracted.
  """
  check_options(options)
  limits = phrases.PhraseOptions(length=options.phrase_length).limits
  extracted = extraction.extract_hiero(
    source,
    target,
    links,
    source_words=source_words,
    target_words=target_words,
    options=limits,
    count=CountOptions(provenance=True),
    runner=runner,
  )
  assert extracted.provenance is not None
  graph = make_graph(extracted.provenance, min_sentences=options.min_sentences)
  weights = random_walk(graph, options).sentences
  if options.normalize == "words":
    weights = weights / np.maximum(source.lengths + target.lengths, 1)
  return weights / (weights.mean() if len(weights) else 1.0)


def best_pairs(weights: np.ndarray, keep: float) -> np.ndarray:
  """Returns which pairs are the best ones, of equal ones the first; `[N]`.

  Args:
    weights: of the pairs, `[N]`.
    keep: their share; at least one pair stays.
  """
  number = max(1, round(keep * len(weights)))
  best = np.zeros(len(weights), np.bool_)
  best[np.argsort(-weights, kind="stable")[:number]] = True
  return best


def parse_weights(lines: Sequence[str], *, path: str | None) -> np.ndarray:
  """Returns the weights of sentence pairs, one of each line, `[N]`.

  Args:
    lines: numbers, as `launch/clean.py` writes them.
    path: of the file, for errors.

  Raises:
    InputError: for a line that is no finite number, or a negative one.
  """
  weights = np.zeros(len(lines))
  for row, line in enumerate(lines):
    try:
      weights[row] = float(line)
    except ValueError:
      weights[row] = math.nan
    if not 0 <= weights[row] < math.inf:
      raise InputError(
        f"'{line}' is no weight: a finite number, not negative",
        path=path,
        line=row + 1,
      )
  return weights


def weighted_probabilities(
  table: RuleTable,
  provenance: Provenance,
  weights: np.ndarray,
  *,
  alpha: float = 0.0,
) -> np.ndarray:
  """Returns P(α|β) and P(β|α) of weighted counts, logs `[R, 2]`: `NAMES`.

  Args:
    table: R rules.
    provenance: of their N sentence pairs.
    weights: of the sentence pairs, `[N]`; all 1 gives what the table has.
    alpha: of add-alpha smoothing.
  """
  counts = provenance_lib.recount(provenance, weights, size=len(table))
  groups = estimate.group_rules(table)
  theta = estimate.relative_frequency(counts, groups, alpha=alpha)
  return theta[:, : len(NAMES)]
