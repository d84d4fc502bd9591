"""n-gram language models: estimation, ARPA files, the device automaton."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "arpa_read",
  "arpa_write",
  "automaton",
  "kneser_ney",
  "ngram_model",
  "tables",
)
