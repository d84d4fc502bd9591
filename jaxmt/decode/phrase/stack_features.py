"""Added features and extra scores in the search over stacks.

To a stateful feature a phrase is a rule that says its child and then the
phrase: the child of the first phrase is `<s>`, the goal says its child and
`</s>`. So features written for charts need not know of stacks. What `<s>` alone
scores is the same for all derivations and counts nothing.

An augmented search carries accumulators as a further state; see
`jaxmt.decode.chart.accumulators`. The share of a sentence that a hypothesis
covers is that of its stack.

B: sentences. M: candidates. K: beam. S: columns of a state. R: local rules.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.decode.chart import accumulators, feature_states, reference_inputs
from jaxmt.decode.chart.accumulators import (
  AccumulatorState,
  Augmentation,
  Goal,
)
from jaxmt.decode.chart.search import TIE, Scalar
from jaxmt.decode.model import Model, Source, rule_column, start_states
from jaxmt.features.stateful import StatefulFeature, StringFeature
from jaxmt.text.ragged import bucket

Array = jax.Array | np.ndarray
Fields = dict[str, jax.Array]  # of hypotheses or candidates, by name


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class AddedRules:
  """What added features and an augmentation know of some rules.

  Attributes:
    parameters: of each feature, on the device.
    inputs: `RuleInputs.arrays` of each, of the local rules, leaves `[R, ...]`.
    goal: the same of the goal, leaves `[...]`.
    start: states after `<s>`, int32 `[S]` each.
    runs: accumulators of phrases against references, int32 `[., columns]`, or
      None without an augmentation.
    numbers: the augmentation's parameters.
    arity: children that features may see.
  """

  parameters: tuple[Any, ...]
  inputs: tuple[Any, ...]
  goal: tuple[Any, ...]
  start: tuple[Array, ...]
  runs: Array | None
  numbers: tuple[Scalar, ...]
  arity: int = dataclasses.field(metadata={"static": True})


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseReferences:
  """What an augmentation knows of B sentences.

  Attributes:
    row: row of each option in `AddedRules.runs`, int32 `[B, spans, options]`.
    length: words of each reference, at least 1, float32 `[B]`.
  """

  row: Array
  length: Array


@dataclasses.dataclass(frozen=True, kw_only=True)
class AddedFeatures:
  """The added features in the search of one sentence, while it is traced.

  Attributes:
    features: the features.
    weights: of each, one per name.
    rules: their inputs.
    augmentation: or None.
    reference: of the sentence, with an augmentation.
    words: of the sentence.
  """

  features: tuple[StatefulFeature, ...]
  weights: tuple[tuple[Scalar, ...], ...]
  rules: AddedRules
  augmentation: Augmentation | None
  reference: PhraseReferences | None
  words: jax.Array

  @property
  def by_both(self) -> bool:
    """Whether stacks are pruned by model and extra score."""
    return self.augmentation is not None and (
      self.augmentation.prune == "augmented"
    )

  def start(self, rows: int, beam: int, first: tuple[int, int]) -> Fields:
    """Returns stacks with the states of the empty hypothesis at `first`."""
    out = {}
    for number, state in enumerate(self.rules.start):
      empty = jnp.zeros((rows, beam, len(state)), jnp.int32)
      out[f"added{number}"] = empty.at[first].set(state)
    if self.rules.runs is not None:
      columns = self.rules.runs.shape[1]
      out["gathered"] = jnp.zeros((rows, beam, columns), jnp.int32)
      out["extra"] = jnp.zeros((rows, beam), jnp.float32)
    return out

  def extend(
    self,
    old: Fields,
    rule: jax.Array,
    option: tuple[jax.Array, jax.Array],
    stack: jax.Array,
  ) -> tuple[jax.Array, Fields]:
    """Returns what M phrases add to the score, and their states.

    Args:
      old: fields of the hypotheses before them.
      rule: local rules, int32 `[M]`.
      option: their spans and places among the options, int32 `[M]` each.
      stack: words that are covered then.
    """
    gain, new = jnp.zeros(rule.shape, jnp.float32), {}
    for number in range(len(self.features)):
      pick = lambda leaf: feature_states.get(leaf, rule)
      inputs = jax.tree.map(pick, self.rules.inputs[number])
      name = f"added{number}"
      new[name], value = self._apply(number, old[name], inputs)
      gain += value
    if self.rules.runs is not None and self.reference is not None:
      run = self.rules.runs[self.reference.row[option]]
      joined = accumulators.join(
        accumulators.unpack(old["gathered"]), accumulators.unpack(run)
      )
      new["gathered"] = accumulators.pack(joined)
      new["extra"] = self._extra(new["gathered"], stack)
    return gain, new

  def finish(self, stacks: Fields, place: jax.Array) -> jax.Array:
    """Returns what the end of the sentence adds to a stack, `[K]`."""
    beam = stacks["score"].shape[1]
    wide = lambda leaf: jnp.broadcast_to(leaf, (beam, *jnp.shape(leaf)))
    total = jnp.zeros(beam, jnp.float32)
    for number in range(len(self.features)):
      state = stacks[f"added{number}"][place]
      goal = jax.tree.map(wide, self.rules.goal[number])
      total += self._apply(number, state, goal)[1]
    return total

  def keys(self, new: Fields) -> list[jax.Array]:
    """Returns columns that tell hypotheses apart, beside the usual ones."""
    features, states = list(self.features), []
    for number in range(len(features)):
      states.append(new[f"added{number}"])
    if self.augmentation is not None:
      distinct = self.augmentation.state == "accumulators"
      columns = new["gathered"].shape[1]
      features.append(AccumulatorState(columns=columns, distinct=distinct))
      states.append(new["gathered"])
    if not any(feature.key for feature in features):
      return []
    hashed = feature_states.keys(features, tuple(states))
    return [hashed[..., 0], hashed[..., 1]]

  def lose(
    self,
    hypotheses: Fields,
    candidates: Fields,
    totals: jax.Array,
    head: jax.Array,
    stack: jax.Array,
  ) -> tuple[Fields, Fields]:
    """Adds losses by rank to hypotheses, and to candidates that of their head.

    Args:
      hypotheses: of a stack, `[K, ...]`.
      candidates: `[M, ...]`.
      totals: what decoding sorts the hypotheses by: model score and future
        cost, `[K]`.
      head: hypothesis of each candidate, or less than 0, int32 `[M]`.
      stack: which stack.
    """
    hook = self.augmentation
    if hook is None or hook.rank_loss is None:
      return hypotheses, candidates
    better = totals[None, :] > totals[:, None] + TIE
    rank = jnp.sum(better, axis=1, dtype=jnp.int32)
    loss = hook.rank_loss(rank, self.rules.numbers)
    lost = []
    for fields, own in (
      (hypotheses, loss),
      (candidates, loss[jnp.maximum(head, 0)]),
    ):
      gathered = accumulators.add_loss(fields["gathered"], own)
      extra = self._extra(gathered, stack)
      lost.append(fields | {"gathered": gathered, "extra": extra})
    return lost[0], lost[1]

  def _apply(self, number, state, inputs):
    """States and weighted values of phrases after hypotheses."""
    feature, parameters = self.features[number], self.rules.parameters[number]
    if isinstance(feature, StringFeature):
      joined, values = feature.join(
        parameters, feature.unpack(state), feature.unpack(inputs[..., 0, :])
      )
      new = feature.pack(joined)
    else:
      tails = jnp.zeros(
        (len(state), self.rules.arity, feature.columns), jnp.int32
      )
      new, values = feature.apply(parameters, inputs, tails.at[:, 0].set(state))
    return new, feature_states.weighted(self.weights[number], values)

  def _extra(self, gathered, stack):
    """Extra scores of accumulators in a stack."""
    if self.augmentation is None or self.reference is None:
      raise ValueError("an augmentation and references go together")
    share = stack.astype(jnp.float32) / jnp.maximum(self.words, 1)
    length = jnp.asarray(self.reference.length)
    goal = Goal(length=length, share=share)
    return self.augmentation.extra(
      accumulators.unpack(gathered), goal, self.rules.numbers
    )


def added_rules(
  model: Model,
  source: Source,
  used: np.ndarray,
  *,
  rows: int,
  parameters: tuple[Any, ...],
  augmentation: Augmentation | None = None,
  runs: np.ndarray | None = None,
) -> AddedRules:
  """Returns what added features know of local rules.

  Args:
    model: the model.
    source: its sentences.
    used: applied rule of each local one from 1 on, rising.
    rows: R.
    parameters: of `model.device_parameters`.
    augmentation: extra scores.
    runs: of `phrase_runs`, with an augmentation.
  """
  first = len(model.features) - len(model.extra)
  read = lambda columns: tuple(one.arrays for one in columns.inputs[first:])

  def local(leaf):
    out = np.zeros((rows, *leaf.shape[1:]), leaf.dtype)
    out[1 : 1 + len(used)] = leaf
    return out

  numbers = () if augmentation is None else augmentation.parameters
  return AddedRules(
    parameters=tuple(parameters[first:]),
    inputs=jax.tree.map(local, rule_column(model, source, used, read)),
    goal=jax.tree.map(lambda leaf: leaf[-1], read(model.columns)),
    start=start_states(model),
    runs=runs,
    numbers=tuple(np.float32(number) for number in numbers),
    arity=model.arity,
  )


def phrase_runs(
  model: Model,
  source: Source,
  rule: np.ndarray,
  references: Sequence[str],
  *,
  sentences: int,
) -> tuple[np.ndarray, PhraseReferences]:
  """Returns accumulators of the options of sentences against references.

  Args:
    model: the model.
    source: B sentences.
    rule: their options, -1 for none, int32 `[B, spans, options]`.
    references: a line of each.
    sentences: how many sentences the search is given; the rest is empty.
  """
  encoded = reference_inputs.encode(model, source, references)
  sentence, span, place = np.nonzero(rule >= 0)
  rules, local = np.unique(rule[sentence, span, place], return_inverse=True)
  pairs, number = np.unique(
    sentence * len(rules) + local.reshape(-1), return_inverse=True
  )
  owner, own = np.divmod(pairs, max(len(rules), 1))
  runs = reference_inputs.runs_of_rules(
    model,
    source,
    rules,
    (owner.astype(np.int32), own.astype(np.int32)),
    encoded,
    lanes=reference_inputs.lanes_of(encoded.lengths),
    arity=0,
  )[:, 0]
  padded = np.zeros((bucket(len(runs) + 1), runs.shape[1]), np.int32)
  padded[1 : 1 + len(runs)] = runs
  row = np.zeros((sentences, *rule.shape[1:]), np.int32)
  row[sentence, span, place] = 1 + number.reshape(-1)
  length = np.ones(sentences, np.float32)
  length[: len(rule)] = np.maximum(encoded.lengths, 1)
  return padded, PhraseReferences(row=row, length=length)
