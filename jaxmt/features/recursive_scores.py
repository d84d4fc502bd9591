"""A recursive recurrent network's score of derivations of bracketing grammars.

The network is `models.recursive_recurrent`. Its part of a node's score is
n = v_s . s. As a stateful feature, `RecursiveScore`, a rule adds n of the node
less n of the parts, so that a derivation's sum is n of its top; with the usual
features beside it that is y of Liu et al. (2014), equation 3. The state is all
that n of parents depends on: s, the features x so far, and what the language
model and the reordering model need to go on with x. Hypotheses that differ in
any of it do not merge: search keeps the beam's best by y without recombination,
and scores a cell's candidates as one batch.

x: the named features of the rules, words, ln p of the language model, that of
the reordering model; all divided by a scale. Glue joins like a straight rule.
What stands at sentence borders adds nothing. Phrase pairs that the model does
not know, copied words among them, share one representation.

N: rules. D: numbers of s. X: numbers of x. S: columns of a state.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmt.errors import InputError
from jaxmt.features import (
  language_model,
  maxent_reordering,
  sentence_models,
)
from jaxmt.features.language_model import LanguageModelFeature
from jaxmt.features.local_features import SentenceFeature
from jaxmt.features.maxent_reordering import MaxEntReordering, ReorderingModel
from jaxmt.features.stateful import (
  RuleInputs,
  RuleSides,
  StatefulFeature,
  Values,
)
from jaxmt.grammar import table as tables
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.lm.tables import Tables
from jaxmt.models import recursive_recurrent
from jaxmt.text import vocabulary
from jaxmt.text.ragged import row_offsets

NAME = sentence_models.RECURSIVE
RARE = 0  # the phrase pair that stands for all unknown ones
OWN = 3  # features beside those of the rules: words, language model, order
LEAF, STRAIGHT, INVERTED, PASS = 0, 1, 2, 3
_SEPARATOR = " ||| "


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecursiveModel:
  """A network with its phrase pairs, on the host.

  Attributes:
    pairs: source and target side of each phrase pair after the rare ones.
    names: features of rules that x has.
    scale: what x is divided by, float32 `[X]`.
    leaves: float32 `[1 + pairs, D]`.
    encoder: float32 `[2 (X + D), D]`.
    output: v_s, float32 `[D]`.
  """

  pairs: tuple[str, ...]
  names: tuple[str, ...]
  scale: np.ndarray
  leaves: np.ndarray
  encoder: np.ndarray
  output: np.ndarray

  def features(self) -> tuple[SentenceFeature, ...]:
    """Returns no feature of rules in sentences."""
    return ()

  def stateful(
    self, table: RuleTable, lm: Tables, reordering: ReorderingModel | None
  ) -> tuple[StatefulFeature, Any]:
    """Returns the feature with its parameters, as `make_model` takes them."""
    language_feature = LanguageModelFeature(
      columns=language_model.state_columns(lm.order)
    )
    order = None
    if reordering is not None:
      order = MaxEntReordering(sizes=reordering.sizes, bits=reordering.bits)
    size, inputs = len(self.output), len(self.scale)
    feature = RecursiveScore(
      columns=language_feature.columns + maxent_reordering.ENDS + size + inputs,
      size=size,
      inputs=inputs,
      lm=language_feature,
      order=order,
    )
    columns = tuple(table.feature_names.index(name) for name in self.names)
    return feature, Bound(
      model=self, columns=columns, lm=lm, reordering=reordering
    )

  def check(self, table: RuleTable, path: str | None = None) -> None:
    """Refuses a grammar with other features, or that is no bracketing grammar.

    Raises:
      InputError: saying why.
    """
    missing = [name for name in self.names if name not in table.feature_names]
    if missing:
      raise InputError(
        f"the network needs the rule feature '{missing[0]}', which the grammar"
        " lacks",
        path=path,
      )
    sites = tables.arity(table)
    words = table.source.lengths - sites
    if ((sites > 0) & (words > 0) & (table.kind != Kind.GLUE)).any():
      raise InputError(
        "the network is for bracketing grammars; the grammar has rules of words"
        " and gaps",
        path=path,
      )

  @functools.cached_property
  def _number(self) -> dict[str, int]:
    return {pair: number + 1 for number, pair in enumerate(self.pairs)}

  def pair_number(self, source: Sequence[str], target: Sequence[str]) -> int:
    """Returns the number of a phrase pair, `RARE` if it is unknown."""
    return self._number.get(pair_text(source, target), RARE)

  def to_values(self) -> dict[str, Any]:
    """Returns the model as named arrays and lists of strings."""
    return {
      "recursive_leaves": self.leaves,
      "recursive_encoder": self.encoder,
      "recursive_output": self.output,
      "recursive_scale": self.scale,
      "recursive_pairs": list(self.pairs),
      "recursive_features": list(self.names),
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bound:
  """A network with what its features need of a translation model.

  Attributes:
    model: the network.
    columns: features of the rule table that x has, in order.
    lm: the language model.
    reordering: the reordering model, or None.
  """

  model: RecursiveModel
  columns: tuple[int, ...]
  lm: Tables
  reordering: ReorderingModel | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecursiveScore(StatefulFeature):
  """What a rule adds to v_s . s.

  Attributes:
    size: D.
    inputs: X.
    lm: the language model as a feature.
    order: the reordering model as a feature, or None.
  """

  names: tuple[str, ...] = (NAME,)
  columns: int = 0
  size: int = 0
  inputs: int = 0
  lm: LanguageModelFeature
  order: MaxEntReordering | None = None

  def rule_inputs(self, sides: RuleSides, parameters: Bound) -> RuleInputs:
    """Returns kinds, states of phrase pairs and own features of rules."""
    model, size = parameters.model, len(sides)
    runs = self.lm.rule_inputs(sides, parameters.lm)
    ends = np.zeros((size, maxent_reordering.ENDS), np.int32)
    orders = np.zeros(size, np.int32)
    if self.order is not None and parameters.reordering is not None:
      ends, orders = self.order.rule_inputs(sides, parameters.reordering).arrays
    kind = _kinds(sides)
    x = np.zeros((size, self.inputs), np.float32)
    # The goal has no row in the table, hence no features.
    rows = min(len(sides.values), size)
    x[:rows, :-OWN] = sides.values[:rows][:, list(parameters.columns)]
    words = (sides.target.flat >= len(vocabulary.SPECIALS)) | (
      sides.target.flat == vocabulary.UNK
    )
    offsets = row_offsets(words)[sides.target.offsets]
    x[:, -3] = np.diff(offsets)
    x[:, -2] = np.where(kind == LEAF, runs.values[:, 0], 0.0)
    x = (x / model.scale).astype(np.float32)
    leaf = _leaf_numbers(model, sides, kind)
    s = np.clip(model.leaves[leaf], -1.0, 1.0).astype(np.float32)
    states = np.concatenate(
      [runs.arrays[:, 0], ends, s.view(np.int32), x.view(np.int32)], axis=1
    )
    alone = np.where(kind == LEAF, s @ model.output, 0.0)
    return RuleInputs(
      arrays=(kind, states.astype(np.int32), ends, orders, x),
      values=alone[:, None].astype(np.float32),
    )

  def to_device(self, parameters: Bound) -> Any:
    """Returns the network, the automaton and the reordering parameters."""
    model, order = parameters.model, ()
    if self.order is not None and parameters.reordering is not None:
      order = self.order.to_device(parameters.reordering)
    return {
      "encoder": jnp.asarray(model.encoder),
      "output": jnp.asarray(model.output),
      "scale": jnp.asarray(model.scale),
      "lm": self.lm.to_device(parameters.lm),
      "order": order,
    }

  def split(self, states) -> tuple[Any, Any, Any, Any]:
    """Returns the parts of states: language model, edges of blocks, s, x."""
    first = self.lm.columns
    second = first + maxent_reordering.ENDS
    third = second + self.size
    return (
      states[..., :first],
      states[..., first:second],
      states[..., second:third],
      states[..., third:],
    )

  def apply(self, parameters, rule, tails) -> tuple[jax.Array, Values]:
    """Returns the states, and by how much v_s . s grows."""
    kind, leaf, ends, orders, inputs = rule
    one, two = tails[..., 0, :], tails[..., 1, :]
    swap = (kind == INVERTED)[..., None]
    left, right = (
      self.split(jnp.where(swap, two, one)),
      self.split(jnp.where(swap, one, two)),
    )
    # What the language model and the reordering model say of the joint.
    joined, (lm_gain,) = self.lm.join(
      parameters["lm"], self.lm.unpack(left[0]), self.lm.unpack(right[0])
    )
    order_gain, edges = jnp.zeros_like(lm_gain), left[1]
    if self.order is not None:
      blocks = jnp.stack([self.split(one)[1], self.split(two)[1]], -2)
      edges, (order_gain,) = self.order.apply(
        parameters["order"], (ends, orders), blocks
      )
    real = lambda part: lax.bitcast_convert_type(part, jnp.float32)
    bits = lambda part: lax.bitcast_convert_type(part, jnp.int32)
    x = real(left[3]) + real(right[3]) + inputs
    gains = jnp.stack([lm_gain, order_gain], -1) / parameters["scale"][-2:]
    x = x.at[..., -2:].add(gains)
    s = recursive_recurrent.join(
      parameters["encoder"],
      (real(left[3]), real(left[2])),
      (real(right[3]), real(right[2])),
    )
    above = jnp.concatenate(
      [self.lm.pack(joined), edges, bits(s), bits(x)], axis=-1
    )
    score = lambda part: real(part) @ parameters["output"]
    gain = s @ parameters["output"] - score(left[2]) - score(right[2])
    joins = (kind == STRAIGHT) | (kind == INVERTED)
    states = jnp.where(
      (kind == LEAF)[..., None],
      leaf,
      jnp.where(joins[..., None], above, one),
    )
    return states, (jnp.where(joins, gain, 0.0),)


def pair_text(source: Sequence[str], target: Sequence[str]) -> str:
  """Returns how a phrase pair is written."""
  return " ".join(source) + _SEPARATOR + " ".join(target)


def _leaf_numbers(
  model: RecursiveModel, sides: RuleSides, kind: np.ndarray
) -> np.ndarray:
  """The phrase pair of each rule, `RARE` for joins, int32 `[N]`."""
  out = np.full(len(sides), RARE, np.int32)
  for rule in np.flatnonzero(kind == LEAF).tolist():
    out[rule] = model.pair_number(
      [sides.source_words[symbol] for symbol in sides.source[rule].tolist()],
      [sides.words[symbol] for symbol in sides.target[rule].tolist()],
    )
  return out


def _kinds(sides: RuleSides) -> np.ndarray:
  """Whether rules are phrase pairs, joins, or rules of one part, `[N]`."""
  source, target = sides.source, sides.target
  sites = np.diff(row_offsets(source.flat < 0)[source.offsets])
  kind = np.select([sites == 0, sites == 1], [LEAF, PASS], STRAIGHT)
  for rule in np.flatnonzero(sites == 2).tolist():
    symbols = target[rule]
    first = symbols[symbols < 0]
    if len(first) and first[0] == -2:
      kind[rule] = INVERTED
  return kind.astype(np.int32)


def to_lists() -> tuple[tuple[str, ...], tuple[str, ...]]:
  """Returns the names of the arrays and of the lists of strings."""
  arrays = ("leaves", "encoder", "output", "scale")
  return (
    tuple(f"recursive_{name}" for name in arrays),
    ("recursive_pairs", "recursive_features"),
  )


def from_values(
  values: Mapping[str, Any], *, path: str | None = None
) -> RecursiveModel:
  """Returns the model that `to_values` took apart.

  Raises:
    InputError: if shapes do not fit, or numbers are out of range.
  """
  pairs = tuple(values["recursive_pairs"])
  names = tuple(values["recursive_features"])
  for known, what in (
    (pairs, "recursive_pairs"),
    (names, "recursive_features"),
  ):
    if len(set(known)) < len(known):
      raise InputError(f"{what} names one twice", path=path)
  arrays = {
    name: np.asarray(values[f"recursive_{name}"])
    for name in ("leaves", "encoder", "output", "scale")
  }
  size, inputs = arrays["output"].size, len(names) + OWN
  shapes = {
    "leaves": (1 + len(pairs), size),
    "encoder": (2 * (inputs + size), size),
    "output": (size,),
    "scale": (inputs,),
  }
  for name, array in arrays.items():
    if array.dtype != np.float32 or array.shape != shapes[name]:
      raise InputError(f"recursive_{name} has a wrong type or shape", path=path)
    if not (np.isfinite(array) & (np.abs(array) < 1e6)).all():
      raise InputError(f"recursive_{name} holds no usable numbers", path=path)
  if not size or (arrays["scale"] < 1e-6).any():
    raise InputError(
      "recursive_scale has a value that is not above 0", path=path
    )
  return RecursiveModel(
    pairs=pairs,
    names=names,
    **{name: np.array(array) for name, array in arrays.items()},
  )
