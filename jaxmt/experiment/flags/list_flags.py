"""Flags of the candidates that tuning decodes, and the decoder they make."""

from absl import flags

from jaxmt.errors import InputError
from jaxmt.experiment.flags import model_flags, search_flags
from jaxmt.metrics import encoded_text
from jaxmt.runtime import program
from jaxmt.text import files
from jaxmt.tune import domains, methods

NBEST = flags.DEFINE_integer(
  "nbest_size", 100, "candidates per sentence and round", lower_bound=1
)
UNIQUE = flags.DEFINE_bool(
  "unique",
  True,
  "no string twice in a list: exact for hard ramps; losses that sum over"
  " derivations, as soft ramps and risk, see all of them with --nounique, but"
  " such lists must be longer to hold as many strings",
)
CANDIDATES = flags.DEFINE_list(
  "candidates",
  ["kbest"],
  "in the loop, where candidates come from: kbest, sampled (drawn from the"
  " forest), oracle (the forest's best linear BLEU), forced (derivations of the"
  " references), hope, fear (of augmented searches); several, comma-separated",
)
STAGES = flags.DEFINE_integer(
  "stages",
  0,
  "search-aware tuning: learn from lists of N partial translations of each"
  " sentence, too",
  lower_bound=0,
)
DOMAINS = flags.DEFINE_string(
  "domains",
  "",
  "file with the domain of each sentence: every feature gets a further weight"
  " for each domain, which translate.py --domain uses",
)
TEMPLATES = flags.DEFINE_list(
  "templates",
  [],
  "sparse features: rule, count, shape, pairs, edges, bins; and, re-ranking"
  " lists, unigrams, bigrams, trigrams, all-pairs, rule-bigrams; and, in a"
  " second pass over phrase lattices, frequent (see --events_text)",
)
EVENTS = flags.DEFINE_string(
  "events_text",
  "",
  "target text whose most frequent n-grams and triggers, with the word pairs of"
  " the phrase table, are the template 'frequent'",
)
# What the result of tuning depends on; texts count by their content.
SETTINGS = (
  NBEST,
  UNIQUE,
  CANDIDATES,
  STAGES,
  DOMAINS,
  TEMPLATES,
)


def read_domains(sentences: int) -> list[str]:
  """Returns the domain of each sentence."""
  labels = files.read_lines(DOMAINS.value)
  domains.check(labels, sentences, DOMAINS.value)
  return labels


def make_decode(
  model,
  lines: list[str],
  method: methods.Method,
  expected: encoded_text.ReferenceLines,
  *,
  path: str,
  seed: int,
):
  """Returns the decoder of the tuning loop (`kbest_decoder.make_decode`).

  Args:
    model: the rules.
    lines: N source sentences.
    method: says whether it sees lists or forests.
    expected: their references.
    path: where the lines come from.
    seed: of candidates that are drawn.
  """
  from jaxmt.decode import loading
  from jaxmt.experiment.stages import system
  from jaxmt.runtime import parallel
  from jaxmt.train.violation import stage_lists
  from jaxmt.tune import kbest_decoder, list_sources

  several = search_flags.DEVICES.value > 1
  settings = system.SearchStageConfig(
    beam=search_flags.BEAM.value,
    pop=search_flags.POP.value,
    backend=search_flags.BACKEND.value,
    threads=model_flags.THREADS.value or (1 if several else 0),
  )
  spans = None
  if model_flags.TREES.value:
    spans = loading.read_spans(
      model_flags.TREES.value,
      model,
      lines,
      lines_path=path,
      binarize=model_flags.binarizer(),
    )
  decode = kbest_decoder.make_decode(
    model,
    lines,
    kbest_decoder.ListOptions(
      size=NBEST.value,
      unique=UNIQUE.value,
      templates=TEMPLATES.value,
      density=methods.forest_density(method),
      sources=list_sources.Sources(
        names=tuple(CANDIDATES.value), references=expected, seed=seed
      ),
      stages=STAGES.value,
      stage_lists=stage_lists.of_decoder(STAGES.value, NBEST.value),
      events=_events(model),
    ),
    config=system.decode_config(settings, model),
    spans=spans,
    mesh=parallel.make_mesh(search_flags.DEVICES.value) if several else None,
  )
  if not DOMAINS.value:
    return decode
  return domains.split(decode, read_domains(len(lines)))


def _events(model) -> tuple[str, ...]:
  """The names of the frequent events, if the templates ask for them."""
  from jaxmt.features import frequent_events

  if frequent_events.NAME not in TEMPLATES.value:
    return ()
  return frequent_events.choose(
    model.table,
    files.read_lines(program.given(EVENTS)),
    frequent_events.EventSizes(),
  )


def check(method: methods.Method, path: str) -> None:
  """Refuses candidates and domains that cannot be, before loading.

  Args:
    method: says whether it sees lists or forests.
    path: of the source sentences.
  """
  from jaxmt.tune import list_sources

  list_sources.check(CANDIDATES.value)
  if DOMAINS.value:
    if STAGES.value or methods.forest_density(method) is not None:
      raise InputError("--domains goes with neither --stages nor forests")
    read_domains(len(files.read_lines(path)))
