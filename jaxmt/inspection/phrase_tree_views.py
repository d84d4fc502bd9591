"""Views of dependency trees over phrases."""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxmt.decode.dependency.phrase_trees import PhraseTree
from jaxmt.report.views import DependencyView


def view(tree: PhraseTree, source: Sequence[str]) -> DependencyView:
  """Returns arcs over target phrases, each with its source phrase below.

  Args:
    tree: the translation.
    source: words of the source sentence.
  """
  return view_of(
    {
      "phrases": tree.phrases,
      "spans": tree.spans.tolist(),
      "heads": tree.heads.tolist(),
    },
    source,
  )


def view_of(tree: Mapping[str, Any], source: Sequence[str]) -> DependencyView:
  """Returns the same of phrases, source spans and heads by name."""
  return DependencyView(
    words=[phrase or "_" for phrase in tree["phrases"]],
    tags=[" ".join(source[begin:end]) for begin, end in tree["spans"]],
    trees=[("translation", list(tree["heads"]), [])],
  )
