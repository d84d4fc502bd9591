"""Search: translation models, charts, forced decoding, derivations.

Called as a function, the package is `jaxmt.api.decode`.
"""

import sys

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  *("chart", "forced", "derivation", "derivation_text", "translation_forest"),
  *("forest_files", "loading", "model", "nbest", "translate", "translator"),
)
sys.modules[__name__].__class__ = lazy.CallablePackage
