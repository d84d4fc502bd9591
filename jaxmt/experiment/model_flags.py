"""Flags that name a model's files and say how to search with it.

    from jaxmt.decode import model_flags
    flags.adopt_module_key_flags(model_flags)

Every program that decodes with a grammar of files shares them. The module
loads fast, so that `--help` and bad flags need no numerical library.
"""

from absl import flags

from jaxmt.features.units import DIALECTS

GRAMMAR = flags.DEFINE_string(
  "grammar", "", "rule table; other dialects: several files, comma-separated"
)
LM = flags.DEFINE_string("lm", "", "language model, ARPA")
DIALECT = flags.DEFINE_enum(
  "dialect",
  "jaxmt",
  list(DIALECTS),
  "format of the grammar and units of its features",
)
SPAN = flags.DEFINE_integer("span", 10, "longest Hiero span", lower_bound=1)
TREES = flags.DEFINE_string(
  "trees", "", "trees of the source text, for tree-to-string rules"
)
BINARIZE = flags.DEFINE_bool(
  "binarize",
  False,
  "make trees binary, left-heavy, as those of the grammar were",
)
THREADS = flags.DEFINE_integer(
  "threads", 0, "batches or sentences at a time; 0: one for each core"
)
