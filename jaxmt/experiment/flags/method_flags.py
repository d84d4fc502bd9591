"""Flags of tuning methods: which one, its options, its shards and features."""

from absl import flags

from jaxmt.errors import InputError
from jaxmt.experiment.flags import search_flags
from jaxmt.runtime import program
from jaxmt.tune import feature_subset, methods, mixing

METHOD = flags.DEFINE_string(
  "method", None, f"none, or one of: {', '.join(methods.names())}"
)
SPACE = flags.DEFINE_enum(
  "space",
  methods.KBEST,
  methods.SPACES,
  "what the method sees of a sentence: the k-best list, or all derivations of"
  " the decoder's forest",
)
METRIC = flags.DEFINE_string(
  "metric", "bleu", "what to optimise; a sum of several: bleu:0.7,ter:0.3"
)
SEED = flags.DEFINE_integer(
  "seed", 0, "of everything random", lower_bound=0, upper_bound=2**32 - 1
)
OPTIONS = flags.DEFINE_multi_string("option", [], "name=value, repeatable")
RUNS = flags.DEFINE_integer(
  "runs",
  1,
  "tune with N seeds from --seed on; report mean and deviation",
  lower_bound=1,
)
BATCH = flags.DEFINE_integer(
  "batch_size",
  0,
  "online: update after N sentences; 0: after all",
  lower_bound=0,
)
MIN_COUNT = flags.DEFINE_integer(
  "min_count",
  0,
  "leave out sparse features that differ in lists of fewer sentences",
  lower_bound=0,
)
KEEP = flags.DEFINE_integer(
  "keep_features",
  0,
  "sparse features kept, those that differ in most sentences; 0: all",
  lower_bound=0,
)
SUMMARY = flags.DEFINE_bool(
  "summary",
  False,
  "fold the sparse features of each template, with the weights they have, into"
  " one sum that is tuned like a dense feature",
)
SHARDS = flags.DEFINE_integer(
  "shards",
  1,
  "tune on N parts of the sentences and mix their weights",
  lower_bound=1,
)
MIX_ROUNDS = flags.DEFINE_integer(
  "mix_rounds", 1, "how often to mix", lower_bound=1
)
MIX_KEEP = flags.DEFINE_integer(
  "mix_keep", 0, "sparse features kept when mixing; 0 keeps all", lower_bound=0
)
MIX_NORM = flags.DEFINE_integer(
  "mix_norm",
  2,
  "norm over shards that --mix_keep ranks features by: 1 or 2",
  lower_bound=1,
  upper_bound=2,
)
MIX_WEIGHTING = flags.DEFINE_enum(
  "mix_weighting",
  "uniform",
  ("uniform", "updates"),
  "what shards count for in a mixture: all the same, or the updates they made",
)
MIX_MEAN = flags.DEFINE_bool(
  "mix_mean", False, "take the mean of the mixtures of all rounds"
)
MIX_DELAY = flags.DEFINE_integer(
  "mix_delay",
  0,
  "asynchronous: shards of an online learner send their updates, which arrive"
  " up to N batches later; 0: shards are mixed when all are done",
  lower_bound=0,
)
MIX_BATCH = flags.DEFINE_integer(
  "mix_batch", 10, "asynchronous: sentences between two messages", lower_bound=1
)
# What the result of tuning depends on.
SETTINGS = (
  METHOD,
  SPACE,
  METRIC,
  SEED,
  OPTIONS,
  RUNS,
  BATCH,
  MIN_COUNT,
  KEEP,
  SUMMARY,
  SHARDS,
  MIX_ROUNDS,
  MIX_KEEP,
  MIX_NORM,
  MIX_WEIGHTING,
  MIX_MEAN,
  MIX_DELAY,
  MIX_BATCH,
)


def method() -> methods.Method:
  """Returns the method as the flags have it."""
  changes = {"metric": METRIC.value}
  for option in OPTIONS.value:
    name, equals, value = option.partition("=")
    if not equals:
      raise InputError(f"--option={option}: expected name=value")
    changes[name] = value
  chosen = methods.find(program.given(METHOD), space=SPACE.value)
  if chosen.on_devices:
    # Only gradient methods use JAX; the others start without it.
    from jaxmt.runtime import parallel

    parallel.initialize(devices=search_flags.DEVICES.value)
    changes["devices"] = str(search_flags.DEVICES.value)
  chosen = methods.configure(chosen, changes)
  whole = feature_subset.wrap(
    _mixed(chosen),
    metric=METRIC.value,
    min_count=MIN_COUNT.value,
    keep=KEEP.value,
    summary=SUMMARY.value,
  )
  if BATCH.value and whole is not chosen:
    raise InputError(
      "--batch_size does not go with --shards, --min_count, --keep_features or"
      " --summary"
    )
  return whole


def _mixed(chosen: methods.Method) -> methods.Method:
  """The method on shards, if there are several."""
  if SHARDS.value <= 1:
    return chosen
  return mixing.wrap(
    chosen,
    metric=METRIC.value,
    shards=SHARDS.value,
    rounds=MIX_ROUNDS.value,
    keep=MIX_KEEP.value,
    norm=MIX_NORM.value,
    weighting=MIX_WEIGHTING.value,
    mean=MIX_MEAN.value,
    delay=MIX_DELAY.value,
    batch=MIX_BATCH.value,
  )
