"""Losses: pure functions of `scores, costs, mask` returning `(sum, weight)`.

The last axis of every array is the candidates of one sentence (K), all axes
before it are sentences. Scores are natural-log model scores, costs are
sentence-level errors (lower is better), the mask says which candidates exist.
`sum / weight` is the loss of the survey's formula; both parts add up over
shards, so divide once, after the last sum. `forest_losses` has the same losses
over all derivations of packed forests.
"""

from jaxmt import lazy

_FUNCTIONS = {
  "likelihood": ("softmax", "softmax_margin", "risk", "entropy"),
  "margin": ("zero_one", "hinge", "structured_hinge", "relative_margin"),
  "ramp": ("soft_ramp", "hybrid_ramp"),
  "ranking": ("cross_entropy_ranking", "mean_squared_error"),
}
_MODULES = (*_FUNCTIONS, "expected_bleu", "forest_losses", "registry")

__all__, __getattr__, __dir__ = lazy.names_of(
  __name__,
  {
    **{name: (f"{__name__}.{name}", "") for name in _MODULES},
    **{
      name: (f"{__name__}.{module}", name)
      for module, names in _FUNCTIONS.items()
      for name in names
    },
  },
)
