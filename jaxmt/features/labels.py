"""Label match as a stateful feature: soft syntactic constraints."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.features.base import RuleInputs, RuleSides, SiteFeature, Values


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
    wanted = site[..., part]
    same = tail[..., 0] == wanted
    count = lambda flags: (flags & (wanted >= 0)).astype(jnp.float32)
    return count(same), count(~same)
