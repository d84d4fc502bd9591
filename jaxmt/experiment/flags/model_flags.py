"""Flags that name a model's files and say how to search with it.

    from jaxmt.decode import model_flags
    flags.adopt_module_key_flags(model_flags)

Every program that decodes with a grammar of files shares them. The module
loads fast, so that `--help` and bad flags need no numerical library.
"""

from typing import Any

from absl import flags

from jaxmt.features.weights import DIALECTS

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
KIND = flags.DEFINE_enum(
  "kind",
  "scfg",
  ["scfg", "phrase", "btg"],
  "rules of a grammar; a phrase table; a phrase table in a bracketing grammar",
)
REORDERING = flags.DEFINE_string(
  "reordering",
  "",
  "--kind=phrase: reordering model in Moses' format; --kind=btg: folder of"
  " extract.py --kind=btg, if not --grammar itself",
)
DISTORTION = flags.DEFINE_integer(
  "distortion",
  None,
  "distortion limit of --kind=phrase, -1 for none; that of a moses.ini, or 6",
  lower_bound=-1,
)
ORIENTATION = flags.DEFINE_enum(
  "orientation",
  "word",
  ["word", "phrase", "hierarchical"],
  "what orientations the reordering model was extracted with",
)
MODELS = flags.DEFINE_list(
  "models",
  [],
  "folders of embed.py with trained features of rules in sentences; comma-"
  "separated",
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
BINARIZER = flags.DEFINE_enum(
  "binarizer",
  None,
  ["left-heavy", "left", "right"],
  "how to make trees binary: left-heavy is --binarize; left and right are"
  " Travatar's, which a travatar.ini sets",
)
THREADS = flags.DEFINE_integer(
  "threads",
  0,
  "batches or sentences at a time; 0: one for each core",
  lower_bound=0,
)


def binarizer() -> str:
  """Returns how the flags make trees binary, "" if they do not."""
  return BINARIZER.value or ("left-heavy" if BINARIZE.value else "")


def load_model(
  lm: Any = None, *, table: Any = None, grammar: str = "", **options: Any
) -> Any:
  """Returns the model of the files that the flags name, of any kind.

  Args:
    lm: the language model; that of --lm if None.
    table: the rules; those of `grammar` if None.
    grammar: path of the grammar; that of --grammar if empty.
    **options: of `loading.make_model`: weights, targets, lines.

  Raises:
    InputError: if a file is malformed, or does not go with --kind.
  """
  from jaxmt.decode import loading
  from jaxmt.features import phrase_order

  dialect, kind = DIALECT.value, KIND.value
  grammar = grammar or GRAMMAR.value
  if table is None:
    table = loading.read_table(grammar, dialect=dialect)
  maxent = None
  if kind == "btg":
    maxent = loading.read_maxent(grammar, REORDERING.value, dialect=dialect)
  elif REORDERING.value:
    table = loading.with_reordering(
      table, REORDERING.value, kind=kind, dialect=dialect
    )
  limit = DISTORTION.value
  return loading.make_model(
    table,
    LM.value if lm is None else lm,
    dialect=dialect,
    span=SPAN.value,
    kind=kind,
    distortion=phrase_order.DEFAULT_LIMIT if limit is None else limit,
    orientation=ORIENTATION.value,
    maxent=maxent,
    trained=loading.read_trained(
      grammar, MODELS.value, table=table, dialect=dialect
    ),
    **options,
  )


def load_translator(weights: str, **options: Any) -> Any:
  """Returns a translator of the files that the flags name, of any kind.

  Args:
    weights: path of the weights.
    **options: more of `loading.load_files`: lines, span, on_bad.

  Raises:
    InputError: if a file is malformed, or does not go with --kind.
  """
  from jaxmt.decode import loading

  return loading.load_files(
    GRAMMAR.value,
    lm=LM.value,
    weights=weights,
    dialect=DIALECT.value,
    kind=KIND.value,
    reordering=REORDERING.value,
    distortion=DISTORTION.value,
    orientation=ORIENTATION.value,
    folders=MODELS.value,
    **options,
  )


def _empty_lm() -> Any:
  """Returns a language model without words."""
  import numpy as np

  from jaxmt.lm import tables
  from jaxmt.lm.ngram_model import Level, NgramModel

  words = ("<unk>", "<s>", "</s>")
  zeros = np.zeros(len(words), np.int32)
  level = Level(
    context=zeros,
    word=np.arange(len(words), dtype=np.int32),
    suffix=zeros,
    probability=zeros.astype(np.float32),
    backoff=zeros.astype(np.float32),
  )
  return tables.build_tables(NgramModel(words=words, levels=(level,)))


def load_forced_model(weights_path: str) -> Any:
  """Returns the model that forced decoding of the flags' files uses.

  Without a language model its words have no probabilities; without weights the
  probabilities of a jaxmt grammar weigh 1 and everything else 0.

  Raises:
    InputError: if a file is malformed, or does not go with --kind.
  """
  from jaxmt.decode import loading
  from jaxmt.decode import model as models
  from jaxmt.grammar import estimate, formats, lexical, native
  from jaxmt.grammar.match.matching import MatchConfig
  from jaxmt.lm import arpa_read
  from jaxmt.lm import tables as lm_tables

  dialect = DIALECT.value
  if dialect == "jaxmt":
    table = native.read(GRAMMAR.value)
    weights = dict.fromkeys((*estimate.THETA, *lexical.NAMES), 1.0)
  else:
    table = formats.read_all(GRAMMAR.value.split(","), dialect)
    weights = {}
  if weights_path:
    weights = loading.read_weights(weights_path)
  lm = _empty_lm()
  if LM.value:
    lm = lm_tables.build_tables(arpa_read.read_arpa(LM.value))
  if KIND.value != "scfg":
    return load_model(lm, table=table, weights=weights, targets=20)
  return models.make_model(
    table,
    lm,
    weights=weights,
    units=models.DIALECTS[dialect],
    limits=MatchConfig(
      span=SPAN.value,
      pass_through="all" if dialect == "cdec" else "unknown",
    ),
  )
