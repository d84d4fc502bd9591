"""The seven ways to estimate θ that loss-augmented training is compared with.

Section IV-B of the paper:

1. primary: relative frequency of all extracted rules, each occurrence one;
2. forced: from the best derivations that reach the reference exactly, one pass
   (leave-one-out keeps sentences from using rules only they have);
3. SEARN (Daumé 2006): two sets of parameters, of the forced derivations and of
   those the beam search really finds, interpolated;
4. best-BLEU: from the derivation of the best sentence BLEU in the n-best list
   (Liang et al. 2006, "local updating");
5.-7. likelihood: Viterbi, n-best and forest training on D(s, t), the
   derivations that reach the reference, in several iterations.

`train` also dispatches to loss-augmented training, so that a config's `method`
is all there is to choose.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxmt.decode.chart.search import SearchConfig
from jaxmt.decode.forced import forced as force
from jaxmt.decode.model import Model, select_source
from jaxmt.grammar import estimate
from jaxmt.grammar.estimate import Groups
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.lm.automaton import NgramAutomaton
from jaxmt.text import ragged
from jaxmt.train import config as config_lib
from jaxmt.train import counts as counts_lib
from jaxmt.train import (
  edge_selection,
  learn_theta,
  leave_one_out,
  shard_counting,
)
from jaxmt.train.checkpoint_store import Store
from jaxmt.train.config import ThetaConfig
from jaxmt.train.learn_theta import Before, Judge, Learned, Place
from jaxmt.train.shard_counting import Bitext, Counted, Guard, Shard, Work

Report = Callable[[dict[str, Any]], None]


def train(
  model: Model,
  bitext: Bitext,
  config: ThetaConfig,
  *,
  search: SearchConfig | None = None,
  store: Store | None = None,
  place: Place | None = None,
  on_iteration: Report = lambda record: None,
  judge: Judge = lambda theta: {},
  before: Before | None = None,
  keep_own: bool = False,
) -> Learned:
  """Estimates θ by any method.

  Args:
    model: rules with counts of extraction, features and tuned weights.
    bitext: the training text.
    config: `method` says how.
    search: sizes of the search, if not those of `decoding.search_config`.
    store: keeps what is done, see `learn_theta`.
    place: where to work.
    on_iteration: called with each iteration's record.
    judge: see `learn_theta.learn`.
    before: see `learn_theta.learn`, as the next; SEARN can do neither.
    keep_own: see above.
  """
  check_needs(config, provenance=bitext.provenance is not None)
  groups = estimate.group_rules(model.table)
  options: dict[str, Any] = {
    "groups": groups,
    "search": search,
    "store": store,
    "place": place,
    "on_iteration": on_iteration,
    "judge": judge,
  }
  if config.method == "primary":
    return primary(model, config, groups)
  if config.method != "searn":
    options |= {"before": before, "keep_own": keep_own}
  if config.method in ("loss-augmented", "best-bleu"):
    return learn_theta.learn(model, bitext, config, **options)
  if config.method == "likelihood":
    return learn_theta.learn(
      model, bitext, config, shard_function=count_forced, **options
    )
  once = dataclasses.replace(config, counts="viterbi", iterations=1)
  forced = learn_theta.learn(
    model, bitext, once, shard_function=count_forced, name="forced", **options
  )
  if config.method == "forced":
    return forced
  return _searn(model, bitext, config, forced, options)


def check_needs(config: ThetaConfig, *, provenance: bool) -> None:
  """Raises `ValueError` for bad settings, or such as need provenance."""
  config_lib.check(config)
  if provenance or config.method == "primary":
    return
  for name, least in (
    ("fallback", ("extraction", "scaled")),
    ("leave_one_out", ("counts", "singletons")),
  ):
    if getattr(config, name) in least:
      raise ValueError(
        f"{name} {getattr(config, name)!r} needs the rules' provenance"
      )


def primary(model: Model, config: ThetaConfig, groups: Groups) -> Learned:
  """Relative frequency of the extracted rules."""
  counts = np.rint(np.asarray(model.table.counts) * COUNT_UNIT).astype(np.int64)
  theta = learn_theta.theta_of(counts, groups, config)
  return Learned(theta=theta.astype(np.float32), counts=counts, history=())


def _searn(model, bitext, config, forced: Learned, options) -> Learned:
  """Mixes θ of the forced derivations with θ of what the search finds.

  The search runs with the current mixture; each new θ of what it finds is
  mixed with the forced one, which stays. Own counts cannot be taken out of a
  mixture, so where they are to be left out, it does without the rules that
  only the sentence has.
  """
  mixed = lambda theta: estimate.interpolate(
    theta, forced.theta.astype(np.float64), weight=config.searn_weight
  )
  left_out = config.leave_one_out
  seen = dataclasses.replace(
    config,
    counts="viterbi",
    leave_one_out="singletons" if left_out == "counts" else left_out,
  )
  learned = learn_theta.learn(
    learn_theta.with_theta(model, forced.theta),
    bitext,
    seen,
    mix=mixed,
    name="seen",
    **options,
  )
  return dataclasses.replace(
    learned, history=(*forced.history, *learned.history)
  )


def count_forced(
  shard: Shard,
  *,
  work: Work,
  lm: NgramAutomaton | None = None,
  mesh: Mesh | None = None,
  guard: Guard | None = None,
) -> Counted:
  """Counts the derivations that reach the references of a shard.

  Where own counts are left out, rules that only the sentence has are not there:
  a reference that nothing else reaches is not reached.

  Args:
    shard: which sentences.
    work: everything else.
    lm: not needed, as the next two: nothing runs on a device.
    mesh: see above.
    guard: see above.
  """
  del lm, mesh, guard
  rules = force.make_rules(work.model)
  provenance, alone = work.bitext.provenance, None
  if work.config.leave_one_out != "none" and provenance is not None:
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


def _force(work: Work, rows, own, rules, excluded) -> Counted:
  source = select_source(work.bitext.source, rows)
  found = force.force(
    work.model,
    source,
    [work.bitext.lines[row] for row in rows.tolist()],
    rules=rules,
    excluded=excluded,
  )
  forest = found.forest
  held = work.held
  if own is not None and held is not None and held.kind == "counts":
    forest = leave_one_out.hold_out_forest(forest, own, held, rows)
  chosen = edge_selection.select_all(work.model, source, forest, work.config)
  return shard_counting.count(work, rows, forest, chosen)
