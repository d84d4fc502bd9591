"""Methods that learn weights from candidate lists."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "boosting",
  "envelope",
  "gradient",
  "lp_mert",
  "mert",
  "mert_directions",
  "minibatch_mira",
  "mira",
  "objective",
  "online",
  "owlqn",
  "pro",
  "proximal",
  "rampion",
  "rank_mert",
  "rerankers",
  "simplex",
  "stochastic",
  "swarm",
)
