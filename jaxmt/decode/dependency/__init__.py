"""Dependency trees over the phrases of translation lattices."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  *("configurations", "lattice", "lattice_best", "lattice_chart"),
  *("lattice_forest", "phrase_lattices", "phrase_trees", "probabilities"),
  *("oracle", "tree_translator", "word_lattices"),
)
