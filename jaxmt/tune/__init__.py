"""Learning weights: pools of candidates, MERT, PRO, MIRA, ramps, gradients.

Every method is `optimise(pool, weights, config, seed) -> (weights, history)`;
`jaxmt.tune.methods` has them by name and `jaxmt.tune.loop` the outer loop.
Called as a function, the package is `jaxmt.api.tune`.
"""

import sys

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  *("formats", "forests", "lists"),
  *("feature_subset", "kbest_decoder", "loop", "methods", "mixing", "pool"),
)
sys.modules[__name__].__class__ = lazy.CallablePackage
