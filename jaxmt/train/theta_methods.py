"""The methods that estimate θ, by name, and those users register.

Loss-augmented training is the paper's own. Section IV-B compares it with seven
others:

1. primary: relative frequency of all extracted rules, each occurrence one;
2. forced: from the best derivations that reach the reference exactly, one pass
   (leave-one-out keeps sentences from using rules only they have);
3. SEARN (Daumé 2006): two sets of parameters, of the forced derivations and of
   those that the beam search finds, interpolated;
4. best-BLEU: from the derivation of the best sentence BLEU in the n-best list
   (Liang et al. 2006, "local updating");
5.-7. likelihood: Viterbi, n-best and forest training on D(s, t), the
   derivations that reach the reference, in several iterations.
"""

import dataclasses
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxmt.decode.chart import augmentations
from jaxmt.decode.chart.accumulators import Augmentation
from jaxmt.decode.forced import forced as force
from jaxmt.decode.model import Model, Source, select_source
from jaxmt.grammar import estimate
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.hypergraph.forest import Forest
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.train import counts as counts_lib
from jaxmt.train import (
  edge_selection,
  learn_theta,
  leave_one_out,
  shard_counting,
)
from jaxmt.train import theta_config as config_lib
from jaxmt.train.edge_selection import Selection
from jaxmt.train.shard_counting import (
  Counted,
  CountingWork,
  Shard,
  TrainingBitext,
)
from jaxmt.train.theta_config import ThetaConfig
from jaxmt.train.theta_features import theta_of, with_theta
from jaxmt.train.theta_method import ThetaMethod
from jaxmt.train.training import Learned, PreviousEpoch, RunOptions


def train(
  model: Model,
  bitext: TrainingBitext,
  config: ThetaConfig,
  *,
  options: RunOptions | None = None,
  previous: PreviousEpoch | None = None,
) -> Learned:
  """Estimates θ by the method that `config` names.

  Args:
    model: rules with counts of extraction, features and tuned weights.
    bitext: the training text.
    config: the method and its settings.
    options: how to run it.
    previous: counts of the epoch before, as in `learn_theta.learn`; ignored by
      SEARN, which starts from forced derivations in every epoch.
  """
  check(config, provenance=bitext.provenance is not None)
  options = options or RunOptions()
  if options.groups is None:
    groups = estimate.group_rules(model.table)
    options = dataclasses.replace(options, groups=groups)
  method = find(config.method)
  return method.train(
    method, model, bitext, config, options=options, previous=previous
  )


def check(config: ThetaConfig, *, provenance: bool) -> None:
  """Raises `ValueError` for bad settings, or such as need provenance."""
  method = find(config.method)
  config_lib.check(config)
  config = method.resolve(config)
  if provenance or not method.needs_text:
    return
  for name, needing in (
    ("fallback", ("extraction", "scaled")),
    ("leave_one_out", ("singletons", *config_lib.OWN_COUNTS)),
  ):
    if getattr(config, name) in needing:
      raise ValueError(
        f"{name} {getattr(config, name)!r} needs the rules' provenance"
      )


def _primary(
  method, model: Model, bitext, config: ThetaConfig, *, options, previous
) -> Learned:
  """Estimates θ by relative frequency of the extracted rules."""
  del method, bitext, previous
  units = np.asarray(model.table.counts) * COUNT_UNIT
  counts = np.rint(units).astype(np.int64)
  theta = theta_of(counts, options.groups, config)
  return Learned(theta=theta.astype(np.float32), counts=counts, history=())


def iterate(
  method, model, bitext, config: ThetaConfig, *, options, previous
) -> Learned:
  """Runs `config.iterations` iterations."""
  return learn_theta.learn(
    model, bitext, config, method=method, options=options, previous=previous
  )


def iterate_once(
  method, model, bitext, config: ThetaConfig, *, options, previous
) -> Learned:
  """Runs one iteration on the best derivations."""
  return learn_theta.learn(
    model,
    bitext,
    dataclasses.replace(config, counts="viterbi", iterations=1),
    method=method,
    options=options,
    previous=previous,
    name="forced",
  )


def _searn(
  method, model, bitext, config: ThetaConfig, *, options, previous
) -> Learned:
  """Mixes θ of the forced derivations with θ of what the search finds.

  The search runs with the current mixture; each new θ of what it finds is
  mixed with the forced one, which stays. Own counts cannot be taken out of a
  mixture. Where they are to be left out, a sentence does without the rules that
  only it has.
  """
  del previous
  options = dataclasses.replace(options, keep_own=False)
  forced = iterate_once(
    find("forced"), model, bitext, config, options=options, previous=None
  )
  mixed = lambda theta: estimate.interpolate(
    theta, forced.theta.astype(np.float64), weight=config.searn_weight
  )
  left_out = config.leave_one_out
  learned = learn_theta.learn(
    with_theta(model, forced.theta),
    bitext,
    dataclasses.replace(
      config,
      counts="viterbi",
      leave_one_out="none" if left_out == "none" else "singletons",
    ),
    method=method,
    options=options,
    mix=mixed,
    name="seen",
  )
  return dataclasses.replace(
    learned, history=(*forced.history, *learned.history)
  )


def _one_pass(config: ThetaConfig) -> int:
  del config
  return 1


def _forced_and_iterations(config: ThetaConfig) -> int:
  return 1 + config.iterations


def select_all(
  model: Model,
  source: Source,
  forest: Forest,
  references: Ragged,
  config: ThetaConfig,
) -> Selection:
  """Selects from all derivations of a forest, whatever the reference."""
  del references
  return edge_selection.select_all(model, source, forest, config)


def loss_augmentation(config: ThetaConfig) -> Augmentation | None:
  """Returns the losses that the search adds; None if both weigh nothing."""
  if not config.alpha1 and not config.alpha2:
    return None
  known = config.goodness in augmentations.GOODNESS
  return augmentations.loss_augmented(
    beam_weight=config.alpha1,
    goodness_weight=config.alpha2,
    beam=config.k,
    margin=config.margin,
    cost=config.cost,
    goodness=config.goodness if known else "bleu",
    state=config.state,
  )


def count_forced(
  shard: Shard,
  *,
  work: CountingWork,
  parameters: tuple[Any, ...] | None = None,
  mesh: Mesh | None = None,
) -> Counted:
  """Counts the derivations that reach the references of a shard.

  Where own counts are left out, a sentence does without the rules that only it
  has, and may then not reach its reference; not if their probability is by
  length.

  Args:
    shard: which sentences.
    work: everything else.
    parameters: unused; keeps the signature of `count_shard`.
    mesh: unused.
  """
  del parameters, mesh
  rules = force.make_rules(work.model)
  provenance, alone = work.bitext.provenance, None
  excludes = work.held is not None and work.held.kind != "lengths"
  if excludes and provenance is not None:
    alone = force.own_rules(provenance)
  counted, start = [], 0
  for rows in shard.batches:
    own = None
    if shard.own is not None:
      own = counts_lib.rows(shard.own, start, start + len(rows))
      start += len(rows)
    excluded = None if alone is None else ragged.select(alone, rows)
    counted.append(_force(work, rows, own, rules, excluded))
  return shard_counting.gather(counted, per_sentence=work.per_sentence)


def _force(work: CountingWork, rows, own, rules, excluded) -> Counted:
  """Forces the references of a batch and counts what is selected."""
  source = select_source(work.bitext.source, rows)
  reached = force.force(
    work.model,
    source,
    [work.bitext.lines[row] for row in rows.tolist()],
    rules=rules,
    excluded=excluded,
  )
  forest = reached.forest
  held_out = work.held
  if (
    own is not None
    and held_out is not None
    and held_out.kind in config_lib.OWN_COUNTS
  ):
    forest = leave_one_out.hold_out_forest(forest, own, held_out, rows)
  references = ragged.select(work.bitext.references, rows)
  chosen = work.method.select(
    work.model, source, forest, references, work.config
  )
  return shard_counting.count(work, rows, forest, chosen)


_METHODS = {
  method.name: method
  for method in (
    ThetaMethod(
      name="primary",
      select=select_all,
      count=shard_counting.count_shard,
      train=_primary,
      needs_text=False,
    ),
    ThetaMethod(
      name="forced",
      select=select_all,
      count=count_forced,
      train=iterate_once,
      passes=_one_pass,
    ),
    ThetaMethod(
      name="searn",
      select=select_all,
      count=shard_counting.count_shard,
      train=_searn,
      passes=_forced_and_iterations,
    ),
    ThetaMethod(
      name="best-bleu",
      select=edge_selection.best_bleu,
      count=shard_counting.count_shard,
      train=iterate,
    ),
    ThetaMethod(
      name="likelihood", select=select_all, count=count_forced, train=iterate
    ),
    ThetaMethod(
      name="loss-augmented",
      search=loss_augmentation,
      select=edge_selection.select,
      count=shard_counting.count_shard,
      train=iterate,
      fallback="scaled",
    ),
  )
}


def register(method: ThetaMethod) -> None:
  """Makes a method known by its name to configs and to `train`.

  Raises:
    ValueError: if the name is taken.
  """
  if method.name in _METHODS:
    raise ValueError(f"method '{method.name}' exists already")
  _METHODS[method.name] = method


def names() -> tuple[str, ...]:
  """Returns the names of all methods."""
  return tuple(_METHODS)


def find(name: str) -> ThetaMethod:
  """Returns the method of a name.

  Raises:
    ValueError: if there is none.
  """
  if name not in _METHODS:
    raise ValueError(f"method {name!r} is none of {', '.join(_METHODS)}")
  return _METHODS[name]
