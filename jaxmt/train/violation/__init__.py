"""Violation-fixing learning of weights on the bitext.

Zhao, Huang, Mi & Ittycheriah (2014), "Hierarchical MT training using
max-violation perceptron", is "the paper" in this package.
"""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "averaged_weights",
  "learn_config",
  "development",
  "differences",
  "forced_forests",
  "learner",
  "minibatch",
  "partial_derivations",
  "tallies",
  "updates",
)
