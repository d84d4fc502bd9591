"""The contract of stateful features: what hypotheses remember, what it scores.

A *stateful* feature scores what no single rule knows: words on both sides of a
rule's border, labels of children, agreement. Search keeps a *state* for every
hypothesis and feature: a few int32 columns. To add a feature, inherit from
one of three classes and give the instance to `decode.model.make_model`:

- `StringFeature`: its state describes a target string, and `join` describes a
  concatenation. The language model is one.
- `SiteFeature`: its values are sums over a rule's children, each seen alone.
  Label match is one.
- `StatefulFeature`: anything else; `apply` sees a rule and all its children.

A feature is a frozen dataclass that holds names and sizes only, since search is
compiled once for each value of it. Arrays are its *parameters*, a tree that is
passed to every method. Beam search, exact search, forests and k-best lists
use the same methods, so a feature is written once.

The score of a derivation is `Σ weight · scale · value`, summed over the
feature's names and the derivation's rules.

N: rules. A: arity. S: state columns. F: names.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

Values = tuple[jax.Array, ...]  # F arrays, float32 [...]
NO_SLOT = -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleSides:
  """What a stateful feature can see of N rules.

  The rule that covers a sentence's first words begins with the word
  `vocabulary.BOS`. The goal is a rule too: child 0, then `vocabulary.EOS`.
  So sentence borders need no treatment of their own.

  Attributes:
    target: target sides, N rows: w >= 0 for `words[w]`, `-1 - k` for child k.
    words: spelling of the words; `vocabulary.SPECIALS` come first.
    source: source sides, N rows: w >= 0 for `source_words[w]`, less for a site.
    source_words: spelling of their words, likewise.
    label: left-hand sides, int32 `[N]`.
    site: labels of the children's sites in source order, -1 where any label is
      right or there is no site, int32 `[N, A]`.
    values: features of the rule table, float32 `[R, F]`; the first R of the N
      rules have some.
  """

  target: Ragged
  words: tuple[str, ...]
  source: Ragged
  source_words: tuple[str, ...]
  label: np.ndarray
  site: np.ndarray
  values: np.ndarray = dataclasses.field(
    default_factory=lambda: np.zeros((0, 0), np.float32)
  )

  def __len__(self) -> int:
    return len(self.target)

  @property
  def arity(self) -> int:
    """A."""
    return self.site.shape[1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleInputs:
  """What a feature has computed of N rules before the search.

  Attributes:
    arrays: a tree of arrays with first axis N; a `StringFeature` has its runs'
      states here, int32 `[N, A + 1, S]`.
    values: values of the rules alone, whatever their children are, float32
      `[N, F]`. They are added to those that `apply` or `join` return.
  """

  arrays: Any
  values: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleColumns:
  """What the search knows of N rules.

  Attributes:
    slots: what stands in each place of their target sides, see
      `target_slots`, int32 `[N, 2A + 1]`.
    inputs: what each stateful feature needs of them.
    score: static scores, values of stateful features for the rules alone
      included, float32 `[N]`.
    label: left-hand sides, int32 `[N]`.
    site: labels of the sites, -1 where any is right, int32 `[N, A]`.
  """

  slots: np.ndarray
  inputs: tuple[RuleInputs, ...]
  score: np.ndarray
  label: np.ndarray
  site: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class StatefulFeature:
  """A feature of a rule and the states of its children.

  Inherit as a frozen dataclass and give the fields their values. In `apply`,
  `[...]` stands for any number of axes over candidates.

  Attributes:
    names: names of its F values; weights are found by them.
    columns: S, the number of int32 columns of a state.
    scale: what weights are multiplied with: the unit of the values.
  """

  names: tuple[str, ...]
  columns: int
  scale: float = 1.0

  @property
  def key(self) -> tuple[int, ...]:
    """The columns that tell states apart; hypotheses equal in them merge."""
    return tuple(range(self.columns))

  @property
  def follows_from_strings(self) -> bool:
    """Whether source span and target string of a hypothesis tell its state.

    Then forced decoding, whose nodes are spans of both sides, can score it.
    """
    return False

  def rule_inputs(self, sides: RuleSides, parameters: Any) -> RuleInputs:
    """Returns what `apply` needs of rules; runs once, on the host."""
    raise NotImplementedError

  def to_device(self, parameters: Any) -> Any:
    """Returns the parameters as `apply` takes them, on the device."""
    return jax.tree.map(jnp.asarray, parameters)

  def to_host(self, parameters: Any) -> Any:
    """Returns the parameters as host kernels take them: arrays in tuples."""
    return parameters

  def apply(
    self, parameters: Any, rule: Any, tails: jax.Array
  ) -> tuple[jax.Array, Values]:
    """Returns the states of rule applications and the values they add.

    Args:
      parameters: of `to_device`.
      rule: `RuleInputs.arrays` of each application's rule; leaves `[..., n]`.
      tails: states of the children in source order, 0 where there is none,
        int32 `[..., A, S]`.

    Returns:
      `(states, values)`: int32 `[..., S]`, and F arrays `[...]`.
    """
    raise NotImplementedError


@dataclasses.dataclass(frozen=True, kw_only=True)
class StringFeature(StatefulFeature):
  """A feature of the target string: states are joined from left to right.

  A state of zeros is the empty string: `join(x, 0)` is x and adds nothing.
  `join` must be associative, since strings are put together in any order.
  """

  @property
  def follows_from_strings(self) -> bool:
    """Yes: the state describes the string."""
    return True

  def rule_inputs(self, sides: RuleSides, parameters: Any) -> RuleInputs:
    """Returns the states of the runs of words between the children.

    Calls `run_state` for every run; override it where that is too slow.
    """
    states = np.zeros((len(sides), sides.arity + 1, self.columns), np.int32)
    values = np.zeros((len(sides), len(self.names)), np.float32)
    for row in range(len(sides)):
      for place, run in enumerate(_runs(sides.target[row].tolist())):
        state, value = self.run_state(
          [sides.words[word] for word in run], parameters
        )
        states[row, place] = state
        values[row] += np.asarray(value, np.float32)
    return RuleInputs(arrays=states, values=values)

  def run_state(self, words: list[str], parameters: Any):
    """Returns the state and the F values of a run of words, on the host."""
    raise NotImplementedError

  def unpack(self, state: jax.Array) -> Any:
    """Reads states int32 `[..., S]` into the form that `join` takes."""
    return state

  def pack(self, state: Any) -> jax.Array:
    """Writes what `join` returns as int32 `[..., S]`."""
    return state

  def join(self, parameters: Any, left: Any, right: Any) -> tuple[Any, Values]:
    """Returns the unpacked state of `left right`, and what joining adds."""
    raise NotImplementedError


@dataclasses.dataclass(frozen=True, kw_only=True)
class SiteFeature(StatefulFeature):
  """A feature whose values are sums over children, each seen alone.

  Search knows its scores before it joins anything, and chooses by them.
  """

  def head_state(
    self, parameters: Any, rule: Any, tails: jax.Array
  ) -> jax.Array:
    """Returns the states of rule applications; see `apply`."""
    raise NotImplementedError

  def site_values(
    self, parameters: Any, rule: Any, part: int, tail: jax.Array
  ) -> Values:
    """Returns the values of child `part`, whose states are `[..., S]`."""
    raise NotImplementedError

  def apply(
    self, parameters: Any, rule: Any, tails: jax.Array
  ) -> tuple[jax.Array, Values]:
    """Returns the states and the sums of `site_values`."""
    parts = [
      self.site_values(parameters, rule, part, tails[..., part, :])
      for part in range(tails.shape[-2])
    ]
    values = tuple(
      functools.reduce(jnp.add, column) for column in zip(*parts, strict=True)
    )
    return self.head_state(parameters, rule, tails), values


def _runs(symbols: list[int]) -> list[list[int]]:
  """The runs of words between children."""
  out: list[list[int]] = []
  for place, symbol in enumerate(symbols):
    if symbol < 0:
      continue
    if not place or symbols[place - 1] < 0:
      out.append([])
    out[-1].append(symbol)
  return out


def target_slots(target: Ragged, arity: int) -> np.ndarray:
  """Returns what stands in each place of target sides, int32 `[N, 2A + 1]`.

  k < A for child k, A + r for the rule's r-th run of words, `NO_SLOT` after the
  end; nothing at all for rules of more than A children.
  """
  return _slots(
    np.ascontiguousarray(target.flat, np.int32),
    np.asarray(target.offsets, np.int64),
    arity,
  )


@njit
def _slots(flat, offsets, arity):
  size = len(offsets) - 1
  slots = np.full((size, 2 * arity + 1), NO_SLOT, np.int32)
  for rule in range(size):
    place, run = 0, -1
    for item in range(offsets[rule], offsets[rule + 1]):
      symbol = flat[item]
      if symbol < 0:
        if -1 - symbol >= arity:
          slots[rule] = NO_SLOT
          break
        slots[rule, place] = -1 - symbol
        place += 1
      elif item == offsets[rule] or flat[item - 1] < 0:
        run += 1
        slots[rule, place] = arity + run
        place += 1
  return slots


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelMatch(SiteFeature):
  """Counts children whose label is that of their site, and the others.

  The state of a hypothesis is its label. Sites of label -1 count nothing.
  """

  names: tuple[str, ...] = ("Match", "Mismatch")
  columns: int = 1

  def rule_inputs(self, sides: RuleSides, parameters: tuple) -> RuleInputs:
    """Returns the rules' labels `[N]` and those of their sites `[N, A]`."""
    del parameters
    return RuleInputs(
      arrays=(sides.label, sides.site),
      values=np.zeros((len(sides), 2), np.float32),
    )

  def head_state(self, parameters, rule, tails) -> jax.Array:
    """Returns the rule's label."""
    del parameters, tails
    label, _ = rule
    return label[..., None]

  def site_values(self, parameters, rule, part, tail) -> Values:
    """Returns `(1, 0)` for a match, `(0, 1)` for another label."""
    del parameters
    _, site = rule
    site_label = site[..., part]
    same = tail[..., 0] == site_label
    count = lambda flags: (flags & (site_label >= 0)).astype(jnp.float32)
    return count(same), count(~same)
