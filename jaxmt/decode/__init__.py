"""Search: translation models, charts, forced decoding, derivations.

Called as a function, the package is `jaxmt.api.decode`.
"""

import sys

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  *("chart", "dependency", "forced", "phrase"),
  *("candidate_lists", "decoding", "derivation", "derivation_text"),
  *("forest_files", "loading", "model", "nbest", "translate", "translator"),
  "translation_forest",
)
sys.modules[__name__].__class__ = lazy.CallablePackage
