"""Word alignment: aligners, the EM engine, symmetrisation, scores, lexicons.

`align` learns and links with any registered `Aligner`; `register` adds one (the
contract and its shortest example are in `jaxmt.align.aligner`). Names load on
first use: who reads a lexicon does not load JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from jaxmt.align.aligner import (
    AlignConfig,
    Aligner,
    Grid,
    Parameters,
    Posteriors,
    Sizes,
    emissions,
  )
  from jaxmt.align.em import Alignment, align
  from jaxmt.align.lexical_table import LexicalTable
  from jaxmt.align.link_scores import LinkScores, score_links
  from jaxmt.align.model1 import independent_posteriors, independent_viterbi
  from jaxmt.align.named_aligners import default_config, find, names, register

__all__ = (
  "AlignConfig",
  "Aligner",
  "Alignment",
  "Grid",
  "LexicalTable",
  "LinkScores",
  "Parameters",
  "Posteriors",
  "Sizes",
  "align",
  "default_config",
  "emissions",
  "find",
  "independent_posteriors",
  "independent_viterbi",
  "names",
  "register",
  "score_links",
)

_MODULES = (
  "lexical_table",
  "link_scores",
  "aligner",
  "model1",
  "named_aligners",
  "em",
)


def __getattr__(name: str) -> Any:
  """Imports the module of a public name when the name is first used."""
  if name in __all__:
    for module in _MODULES:
      members = vars(importlib.import_module(f"{__name__}.{module}"))
      if name in members:
        return members[name]
  raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
