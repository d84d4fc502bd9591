"""LearnModel, figure 6: epochs of θ and weights, and the final mixture.

    learned = learn_model.learn(model, bitext, config, tune=tune, epochs=1)

Each of T epochs trains θ with the weights of the last (`baselines.train`, so
by any method) and then the weights with the new θ. `tune` is a function from
a model to weights; `make_tune` makes one of any tuner in `jaxmt.tune`. At the
end, the new θ is mixed with the first one (equation 12) and weights are tuned
once more.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.model import Model
from jaxmt.grammar import estimate
from jaxmt.grammar import table as tables
from jaxmt.metrics import text
from jaxmt.text.ragged import Ragged
from jaxmt.train import baselines, learn_theta
from jaxmt.train.config import ThetaConfig
from jaxmt.train.learn_theta import Place
from jaxmt.train.shard_counting import Bitext
from jaxmt.tune import kbest_decoder as tune_decoding
from jaxmt.tune import loop
from jaxmt.tune.loop import LoopConfig
from jaxmt.tune.methods import Method

# A model -> (weights, what was noted on the way).
Tune = Callable[[Model], tuple[dict[str, float], list[dict[str, Any]]]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnedModel:
  """What LearnModel gives.

  Attributes:
    theta: natural logs, float32 `[R, 5]`.
    weights: tuned for it.
    history: for each epoch, and for the mixture, a record with "theta" and
      "tune", the histories of the two.
  """

  theta: np.ndarray
  weights: Mapping[str, float]
  history: tuple[dict[str, Any], ...]


def make_tune(
  lines: Sequence[str],
  references: text.ReferenceLines,
  method: Method,
  *,
  decode: DecodeConfig,
  config: LoopConfig,
  seed: int,
  size: int = 100,
  spans: Ragged | None = None,
) -> Tune:
  """Returns LearnWeights: a tuner with our decoder in its loop.

  Args:
    lines: the tuning set.
    references: of each of its sentences.
    method: from `jaxmt.tune.methods`.
    decode: how to decode.
    config: how long to go on.
    seed: of everything random.
    size: k of the k-best lists.
    spans: constituents, for tree-to-string rules.
  """

  def tune(model: Model):
    run = tune_decoding.make_decode(
      model, lines, config=decode, size=size, spans=spans
    )
    begun = loop.begin(model.weights)
    state = loop.run(run, references, method, begun, config, seed)
    return dict(state.best_weights), list(state.history)

  return tune


def learn(
  model: Model,
  bitext: Bitext,
  config: ThetaConfig,
  *,
  tune: Tune,
  epochs: int = 1,
  interpolation: float = 0.5,
  place: Place | None = None,
) -> LearnedModel:
  """Learns θ and weights.

  Args:
    model: rules with θ(0), and w(0).
    bitext: the training text.
    config: how θ is trained.
    tune: learns weights, see `make_tune`.
    epochs: T.
    interpolation: b, the share of θ(0) in the end; 0 leaves the new θ alone.
    place: where θ is trained.

  Raises:
    ValueError: for no epoch at all, or b outside 0..1.
  """
  if epochs < 1:
    raise ValueError("at least 1 epoch")
  first = theta_features(model)
  history: list[dict[str, Any]] = []
  theta, before = first, None
  for epoch in range(epochs):
    learned = baselines.train(
      model,
      bitext,
      config,
      place=place,
      before=before,
      keep_own=config.leave_one_out == "counts" and epoch + 1 < epochs,
    )
    theta, before = learned.theta, learn_theta.before_of(learned)
    weights, notes = tune(learn_theta.with_theta(model, theta))
    model = learn_theta.with_theta(models.with_weights(model, weights), theta)
    history.append({"theta": list(learned.history), "tune": notes})
  if interpolation:
    theta = estimate.interpolate(
      first.astype(np.float64),
      theta.astype(np.float64),
      weight=interpolation,
    ).astype(np.float32)
    weights, notes = tune(learn_theta.with_theta(model, theta))
    model = models.with_weights(model, weights)
    history.append({"theta": [], "tune": notes})
  return LearnedModel(
    theta=theta, weights=dict(model.weights), history=tuple(history)
  )


def theta_features(model: Model) -> np.ndarray:
  """Returns the θ that a model's rules have, float32 `[R, 5]`."""
  columns = [tables.feature(model.table, name) for name in estimate.THETA]
  return np.stack(columns, axis=1)
