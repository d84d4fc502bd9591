"""jaxmt: syntactic machine translation and structured learning in JAX.

    model = jaxmt.load("runs/quickstart", system="primary")
    out = jaxmt.decode(model, ["他 昨天 买 了 书 。"], beam=30)
    out.text[0], out.derivations[0], out.forests[0]

Nothing is loaded before it is used, so that importing this package is fast and
changes nothing.
"""

from jaxmt import lazy

__version__ = "0.1.0"

_FUNCTIONS = (
  *("load", "load_files", "export", "with_weights", "translate", "kbest"),
  *(
    "force",
    "learn",
    "evaluate",
    "Translator",
    "Decoded",
    "KBestLists",
    "Forced",
  ),
  *("Derivation", "load_trees", "translate_trees"),
)
# `decode` and `tune` are packages that can be called.
_PACKAGES = (
  *("text", "corpora", "align", "lm", "grammar", "features", "hypergraph"),
  "models",
  *("decode", "metrics", "losses", "tune", "train", "experiment", "report"),
  *("inspection", "parse", "runtime", "api", "errors"),
)

__all__, __getattr__, __dir__ = lazy.names_of(
  __name__,
  {
    **{name: ("jaxmt.api", name) for name in _FUNCTIONS},
    **{name: (f"jaxmt.{name}", "") for name in _PACKAGES},
    "InputError": ("jaxmt.errors", "InputError"),
  },
)
