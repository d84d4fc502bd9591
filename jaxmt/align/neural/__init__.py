"""Neural HMM word alignment: a network of windows, jump scores, Viterbi."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "neural_hmm",
  "network",
)
