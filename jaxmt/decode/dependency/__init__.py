"""Dependency trees over the phrases of translation lattices."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  *("configurations", "lattice", "lattice_chart", "lattice_forest"),
  *("phrase_lattices", "phrase_trees"),
)
