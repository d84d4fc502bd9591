"""Training of a recursive recurrent network (Liu et al. 2014, section 4).

`recursive_start` gives the network to begin with. Then follow rounds: the text
is decoded with the network, and Adam steps on the lists of `recursive_lists`,
first in *local* rounds, then in *global* ones. The weights of the usual
features stay as they are; tuning can change them afterwards.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from jaxmt.decode import decoding, derivation, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.model import Model
from jaxmt.errors import InputError
from jaxmt.features.maxent_reordering import MaxEntReordering
from jaxmt.features.recursive_scores import (
  NAME,
  RecursiveModel,
  RecursiveScore,
)
from jaxmt.models import recursive_recurrent
from jaxmt.models.recursive_recurrent import RecursiveNet
from jaxmt.models.word_vectors import WordVectors
from jaxmt.text import ragged
from jaxmt.train import recursive_lists, recursive_start
from jaxmt.train.recursive_lists import CandidateTrees
from jaxmt.train.recursive_start import RecursiveOptions
from jaxmt.train.scorer_training import TrainingText, text_bleu

ARRAYS = ("leaves", "encoder", "output")  # what is learned


def with_network(
  model: Model, network: RecursiveModel, weight: float = 1.0
) -> Model:
  """Returns a model with this network among its features, and no other."""
  extra = [
    (feature, parameters)
    for feature, parameters in zip(
      model.features[2:], model.parameters[2:], strict=True
    )
    if not isinstance(feature, RecursiveScore)
  ]
  reordering = next(
    (
      parameters
      for one, parameters in extra
      if isinstance(one, MaxEntReordering)
    ),
    None,
  )
  return models.make_model(
    model.table,
    model.lm,
    weights={**model.weights, NAME: weight},
    units=model.units,
    limits=model.limits,
    features=[*extra, network.stateful(model.table, model.lm, reordering)],
    local=model.local,
  )


def search(model: Model, lines, *, config: DecodeConfig) -> list[Any]:
  """Returns the parts of a decoded text."""
  source = models.make_source(model, list(lines))
  return [
    part
    for batch in decoding.decode(model, source, config=config)
    for part in batch
  ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedNetwork:
  """What training ends with.

  Attributes:
    network: that of the round of best BLEU.
    history: of each round its BLEU, number of lists and early updates, loss.
    reached: sentences that forced decoding reached.
  """

  network: RecursiveModel
  history: tuple[dict[str, Any], ...]
  reached: int


def train(
  model: Model,
  training: TrainingText,
  options: RecursiveOptions,
  *,
  config: DecodeConfig,
  development: TrainingText | None = None,
  vectors: tuple[tuple[WordVectors, ...], tuple[WordVectors, ...]] = ((), ()),
  store: Any = None,
  on_round: Callable[[Mapping[str, Any]], None] = lambda record: None,
) -> TrainedNetwork:
  """Trains a network for a bracketing grammar.

  Args:
    model: rules, language model, tuned weights, which stay as they are.
    training: sentences with references; the first ones are forced.
    options: see `RecursiveOptions`.
    config: how to decode, with forests.
    development: what rounds are judged by; the training text if None.
    vectors: see `start_model`.
    store: of finished epochs and rounds (`checkpoint.Partial`).
    on_round: called with the record of each decoding.

  Raises:
    InputError: for bad settings, or if no reference is reached.
  """
  recursive_start.check_options(options)
  forced = recursive_start.force_text(model, training, threads=config.threads)
  if not forced.reached:
    raise InputError("forced decoding reaches none of the references")
  network = recursive_start.start_model(
    model, forced, options, vectors=vectors, store=store
  )
  kinds = ["local"] * options.local + ["global"] * options.global_
  first, network, best, history = _restore(store, network, len(kinds))
  judged = development or training
  for number in range(first, len(kinds) + 1):
    scored = with_network(model, network)
    parts = search(scored, training.lines, config=config)
    if development is None:
      candidates = parts
    else:
      candidates = search(scored, development.lines, config=config)
    record: dict[str, Any] = {
      "round": number,
      "bleu": text_bleu(_translations(scored, candidates), judged.references),
    }
    if all(record["bleu"] > one["bleu"] for one in history):
      best = network
    if number < len(kinds):
      trees = recursive_lists.collect(
        scored, parts, forced.known, kinds[number]
      )
      record |= {
        "kind": kinds[number],
        "lists": len(trees.candidates),
        "early": int(sum(trees.early)),
      }
      network, record["loss"] = improve(
        network, trees, kinds[number], options, number
      )
    history.append(record)
    on_round(record)
    if store is not None and number < len(kinds):
      _save(store, number + 1, network, best, history)
  return TrainedNetwork(
    network=best, history=tuple(history), reached=forced.reached
  )


def _translations(model: Model, parts) -> list[str]:
  """The best translation of each sentence, in the order of the text."""
  lines: dict[int, str] = {}
  for part in parts:
    best = part.best()
    words = derivation.read_off(model, best).words
    spelled = translation_forest.spell(model, part.source, words)
    lines |= dict(zip(part.rows.tolist(), spelled, strict=True))
  return [lines[row] for row in sorted(lines)]


# --- gradient steps ---------------------------------------------------------


def list_loss(
  parameters: Any,
  rows: Mapping[str, Array],
  *,
  net: RecursiveNet,
  kind: str,
  height: int,
) -> tuple[Array, Array]:
  """Returns the sum of a loss over lists, and their number.

  Args:
    parameters: of the network.
    rows: nodes (`pair`, `parts`, `x`, `base`), and lists `[L, K]` of them:
      `candidates`, `good`, `real`.
    net: the network.
    kind: a key of `recursive_recurrent.LOSSES`.
    height: of the highest node.
  """
  scores: Any = net.apply(
    parameters, rows["pair"], rows["parts"], rows["x"], height=height
  )
  y = (rows["base"] + scores)[rows["candidates"]]
  real = rows["real"]
  values = recursive_recurrent.LOSSES[kind](y, rows["good"], real)
  return values.sum(), real.any(-1).sum().astype(jnp.float32)


def batch_rows(trees: CandidateTrees, lists: np.ndarray) -> dict[str, Any]:
  """Returns the arrays of some lists, with only the nodes that they need.

  Sizes are rounded up, so that few shapes are compiled.
  """
  chosen = [trees.candidates[row] for row in lists.tolist()]
  needed = np.unique(np.concatenate(chosen))
  while True:
    below = trees.parts[needed]
    every = np.unique(np.concatenate([needed, below[below >= 0]]))
    if len(every) == len(needed):
      break
    needed = every
  place = np.full(len(trees.pair), -1, np.int32)
  place[needed] = np.arange(len(needed), dtype=np.int32)
  parts = trees.parts[needed]
  width = ragged.bucket(max(map(len, chosen)))
  size = ragged.bucket(max(len(chosen), 8))
  candidates = np.zeros((size, width), np.int32)
  good = np.zeros((size, width), bool)
  real = np.zeros((size, width), bool)
  for row, one in enumerate(lists.tolist()):
    count = len(trees.candidates[one])
    candidates[row, :count] = place[trees.candidates[one]]
    good[row, :count] = trees.good[one]
    real[row, :count] = True
  room = ragged.bucket(max(len(needed), 64)) - len(needed)
  pad = lambda array, fill: np.pad(
    array, [(0, room), *[(0, 0)] * (array.ndim - 1)], constant_values=fill
  )
  return {
    "pair": pad(trees.pair[needed], recursive_recurrent.NOTHING),
    "parts": pad(
      np.where(parts >= 0, place[np.maximum(parts, 0)], -1),
      recursive_recurrent.NOTHING,
    ),
    "x": pad(trees.x[needed], 0),
    "base": pad(trees.base[needed], 0),
    "candidates": candidates,
    "good": good,
    "real": real,
  }


def _optimizer(options: RecursiveOptions) -> optax.GradientTransformation:
  return optax.chain(
    optax.add_decayed_weights(options.l2), optax.adam(options.rate)
  )


@functools.partial(
  jax.jit, static_argnames=("net", "kind", "height", "options")
)
def _step(parameters, state, rows, *, net, kind, height, options):
  """One step of Adam: `(parameters, state, mean loss before it)`."""
  value = functools.partial(list_loss, net=net, kind=kind, height=height)
  (total, weight), slopes = jax.value_and_grad(value, has_aux=True)(
    parameters, rows
  )
  weight = jnp.maximum(weight, 1.0)
  slopes = jax.tree.map(lambda leaf: leaf / weight, slopes)
  updates, state = _optimizer(options).update(slopes, state, parameters)
  return optax.apply_updates(parameters, updates), state, total / weight


def improve(
  network: RecursiveModel,
  trees: CandidateTrees,
  kind: str,
  options: RecursiveOptions,
  number: int,
) -> tuple[RecursiveModel, float]:
  """Returns the network after gradient steps on lists, and the mean loss.

  Raises:
    InputError: if the loss is not finite.
  """
  if not trees.candidates:
    return network, 0.0
  net = RecursiveNet(
    pairs=len(network.leaves),
    size=len(network.output),
    inputs=len(network.scale),
  )
  parameters: Any = {
    "params": {name: jnp.asarray(getattr(network, name)) for name in ARRAYS}
  }
  height = ragged.bucket(max(int(trees.height.max(initial=0)), 1))
  state = _optimizer(options).init(parameters)
  rng = np.random.default_rng([options.seed, number])
  levels = [0.0]
  for _ in range(options.passes):
    levels = []
    order = rng.permutation(len(trees.candidates))
    for start in range(0, len(order), options.batch):
      rows = batch_rows(trees, order[start : start + options.batch])
      parameters, state, level = _step(
        parameters,
        state,
        rows,
        net=net,
        kind=kind,
        height=height,
        options=options,
      )
      levels.append(float(level))
    if not np.isfinite(levels).all():
      raise InputError("the loss is not finite: lower the rate")
  arrays = {name: np.asarray(parameters["params"][name]) for name in ARRAYS}
  arrays["leaves"] = np.clip(arrays["leaves"], -1.0, 1.0)
  return _with_arrays(network, arrays), float(np.mean(levels))


def _with_arrays(
  network: RecursiveModel, arrays: Mapping[str, np.ndarray]
) -> RecursiveModel:
  return dataclasses.replace(
    network,
    leaves=arrays["leaves"],
    encoder=arrays["encoder"],
    output=arrays["output"],
  )


# --- rounds in a store ------------------------------------------------------


def _save(store, number: int, network, best, history) -> None:
  values: dict[str, Any] = {
    "history": np.frombuffer(json.dumps(history).encode(), np.uint8)
  }
  for name, one in (("now", network), ("best", best)):
    values |= {f"{name}-{part}": getattr(one, part) for part in ARRAYS}
  store.put(f"round{number}", values)
  store.drop(f"round{number - 1}")


def _restore(store, network: RecursiveModel, rounds: int):
  """Round, network, best one and history: the last stored, or the first."""
  for number in range(rounds, 0, -1) if store is not None else ():
    values = store.get(f"round{number}")
    if values is None:
      continue
    now, best = (
      _with_arrays(
        network,
        {part: np.array(values[f"{name}-{part}"]) for part in ARRAYS},
      )
      for name in ("now", "best")
    )
    return number, now, best, json.loads(bytes(values["history"]))
  return 0, network, network, []
