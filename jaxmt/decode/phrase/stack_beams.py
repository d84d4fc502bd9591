"""What a search over stacks is given and gives: sizes, weights, beams.

B: sentences. N: words. K: beam. M: candidates. R: local rules. W: words of
language model context.
"""

import dataclasses

import jax
import numpy as np

from jaxmt.decode.chart.search import Scalar

Array = jax.Array | np.ndarray


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class AugmentedScores:
  """Model scores plus extra scores; `NONE` for none.

  Attributes:
    hypotheses: float32 `[B, N + 1, K]`.
    candidates: with the loss by rank of the hypothesis each became or was
      merged into, float32 `[B, N + 1, M]`.
    final: of the hypotheses that cover the sentence, float32 `[B, K]`.
  """

  hypotheses: Array
  candidates: Array
  final: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseBeams:
  """Hypotheses and candidates of B sentences.

  Candidates stand best first, by augmented score if there is one. A hypothesis
  is the first candidate that has it as head.

  Attributes:
    score: model scores of the hypotheses, best total first, `NONE` for none,
      float32 `[B, N + 1, K]`.
    head: hypothesis each candidate became or was merged into, -1 if pruned,
      int32 `[B, N + 1, M]`.
    back: stack and rank of the hypothesis it extends, int32 `[B, N + 1, M, 2]`.
    option: its span times T plus its option, int32 `[B, N + 1, M]`.
    values: its score, and what the language model adds to the option's own
      value, float32 `[B, N + 1, M, 2]`.
    final: the same at the end of the sentence, for the hypotheses that cover
      it, float32 `[B, K, 2]`.
    augmented: of an augmented search, or None.
  """

  score: Array
  head: Array
  back: Array
  option: Array
  values: Array
  final: Array
  augmented: AugmentedScores | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalRules:
  """What the search knows of the rules of some sentences; row 0 is none.

  Attributes:
    runs: language model states of their targets, int32 `[R, W + 3]`.
    forward: scores of the forward orientations, float32 `[R, 3]`.
    classes: rules with equal forward logs share a number, int32 `[R]`.
    goal: language model state of `</s>`, int32 `[W + 3]`.
    goal_score: its own score.
  """

  runs: Array
  forward: Array
  classes: Array
  goal: Array
  goal_score: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class StackWeights:
  """Weights of ln p, of the distortion and of added features; threshold.

  Attributes:
    lm: weight of ln p.
    distortion: weight of the distortion.
    threshold: hypotheses this much below the best of their stack are dropped.
    added: for each added feature one weight per name, scale included.
  """

  lm: Array
  distortion: Array
  threshold: Array
  added: tuple[tuple[Scalar, ...], ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig:
  """Sizes of the search; static.

  Attributes:
    beam: K.
    pop: M.
    limit: the distortion limit.
    hierarchical: orientations are towards blocks.
  """

  beam: int
  pop: int
  limit: int
  hierarchical: bool = False
