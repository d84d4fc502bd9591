"""Explains what training θ did in a finished experiment.

    python launch/explain.py --workdir=runs/quick --system=augmented-forest
    python launch/explain.py ... --sentences=1,5,9 --output=explain.html

For each sentence: a derivation of the reference (or of the nearest string), and
the rank of each of its parts among the hypotheses of its span: "before", with
the baseline's rule probabilities and weights; "new rules", with the trained
probabilities and the baseline's weights; and "after", with the weights tuned
for them too. Of several epochs the last counts. Parts beyond the beam width,
or that the search did not come to, are lost in decoding. Then how often that
happens: to the derivations that were best before, and to those that each model
itself likes best, since another may have taken their place. Then which rules
gained and lost probability, and how many search errors there are: compared with
a search of ten times the candidates, and on request with exact search, which
few sentences of a large grammar are short enough for.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
from typing import Any, TypeVar

import numpy as np
from absl import flags

from jaxmt.decode import model as models
from jaxmt.errors import InputError
from jaxmt.experiment import finished_run
from jaxmt.experiment.finished_run import FinishedRun
from jaxmt.experiment.record import Record
from jaxmt.experiment.stages import system
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import SearchStageConfig, Theta, Tuned
from jaxmt.report import page, text_tables
from jaxmt.runtime import parallel, progress
from jaxmt.text import files
from jaxmt.train import explain, reference_derivations
from jaxmt.train import theta_features as theta_lib

_WORKDIR = flags.DEFINE_string("workdir", None, "workdir of launch/train.py")
_STORE = flags.DEFINE_string(
  "store", None, "folder of its artefacts, if not in the workdir"
)
_SYSTEM = flags.DEFINE_string("system", "augmented-forest", "trained system")
_PART = flags.DEFINE_enum(
  "part", "test", ["tune", "test"], "part of the corpus"
)
_SENTENCES = flags.DEFINE_list(
  "sentences", [], "numbers of sentences to show, from 1"
)
_NUMBER = flags.DEFINE_integer(
  "number", 100, "sentences in the summary", lower_bound=1
)
_BEAM = flags.DEFINE_integer(
  "beam", 0, "beam width of decoding; 0 for the run's own", lower_bound=0
)
_WIDE = flags.DEFINE_integer(
  "wide",
  100,
  "beam width of the ranking search; at least --beam + 70",
  lower_bound=1,
)
_POP = flags.DEFINE_integer(
  "pop", 250, "least number of candidates of that search", lower_bound=1
)
_EXACT = flags.DEFINE_integer(
  "exact_words",
  0,
  "search sentences up to this length exactly; 0 for none",
  lower_bound=0,
)
_RULES = flags.DEFINE_integer(
  "rules", 10, "rules to list as gaining and losing most", lower_bound=0
)
_OUTPUT = flags.DEFINE_string("output", None, "HTML page")

_EXTRA_RANKS = 70  # a training beam of 100 minus a beam of 30
R = TypeVar("R", bound=Record)
_BEFORE, _AFTER = "before", "after"
_NAMES = (_BEFORE, "new rules", _AFTER)


def _search(run: FinishedRun) -> SearchStageConfig:
  """How the run decodes, with the width that is asked for."""
  search = run.search
  beam = _BEAM.value or search.beam
  return dataclasses.replace(search, beam=beam, pop=max(beam, search.pop))


def _read(run: FinishedRun, stage: str, kind: type[R]) -> R:
  """Returns the record that a stage of the run has written."""
  progress.say(f"reading {stage}")
  return run.record(stage, kind)


def _rows(size: int) -> np.ndarray:
  """The sentences to look at: those asked for first, then the first ones."""
  try:
    shown = [int(number) - 1 for number in _SENTENCES.value]
  except ValueError as error:
    raise InputError(f"--sentences: {error}") from error
  if any(not 0 <= row < size for row in shown):
    raise InputError(f"--sentences: not between 1 and {size}")
  rest = [row for row in range(size) if row not in shown]
  return np.array((shown + rest)[: max(_NUMBER.value, len(shown))], np.int64)


def main(argv: list[str]) -> None:
  """Reads a run, explains, prints and writes."""
  del argv
  program.check_paths(outputs=("output",), inputs=("workdir", "store"))
  run = finished_run.read(program.given(_WORKDIR), _STORE.value)
  last = run.last_epoch(finished_run.find_system(run, _SYSTEM.value))
  search = _search(run)
  parallel.initialize()
  corpus = _read(run, run.corpus, Corpus)
  grammar = _read(run, "grammar", Grammar)
  if grammar.kind == "phrase":
    raise InputError(
      "ranks are of the spans of charts, which a phrase table has not"
    )
  lm = _read(run, "lm", LanguageModel)
  theta = _read(run, f"mix-{last}", Theta)
  old = _read(run, "tune-primary", Tuned)
  new = _read(run, f"tune-{last}", Tuned)
  parts = ((None, old), (theta, old), (theta, new))
  part = corpus.part(_PART.value)
  rows = _rows(len(part.source))
  references = [part.references[row][0] for row in rows]
  translators, sources = {}, {}
  for name, (theta, tuned) in zip(_NAMES, parts, strict=True):
    translators[name], spans = system.part_model(
      search,
      _PART.value,
      corpus=corpus,
      grammar=grammar,
      lm=lm,
      weights=tuned.weights,
      theta=theta,
    )
    source = models.make_source(translators[name], part.source, spans=spans)
    sources[name] = models.select_source(source, rows)
  # The search must be wide enough to rank parts that the beam just loses.
  width = max(_WIDE.value, search.beam + _EXTRA_RANKS)
  pop = max(_POP.value, search.pop, 5 * width // 2)
  wide = dataclasses.replace(search, beam=width, pop=pop)
  config = system.decode_config(wide, translators[_BEFORE])
  progress.say("looking for the references")
  reference = {
    name: reference_derivations.reference_like(
      translators[name], sources[name], references, config=config
    )
    for name in _NAMES
  }
  progress.say("ranking their parts")
  rank = lambda name, of: explain.ranks(
    translators[name], sources[name], reference[of].derivations, config=config
  )
  seen = {name: rank(name, _BEFORE) for name in _NAMES}
  ranks = {name: rank(name, name) for name in _NAMES[1:]}
  totals = explain.summary(reference[_BEFORE], seen, beam=search.beam)
  for name, one in ranks.items():
    totals += explain.summary(
      reference[name], {f"{name}, its own": one}, beam=search.beam
    )
  _publish(
    search,
    rows,
    references,
    reference[_BEFORE],
    seen,
    totals,
    translators,
    sources,
  )


def _publish(
  search, rows, references, reference, seen, totals, translators, sources
) -> None:
  sections: list[tuple[str, str, list[dict[str, Any]]]] = []
  for number in range(len(_SENTENCES.value) or min(3, len(rows))):
    shown = explain.story(
      translators[_BEFORE],
      sources[_BEFORE],
      number,
      reference.derivations,
      seen,
      beam=search.beam,
    )
    note = "its derivation"
    if not reference.exact[number]:
      edits = reference.distance[number]
      note = f"the nearest derivation, {edits:.0f} edits away"
    text = f"reference: {references[number]} ({note})"
    sections.append((f"Sentence {rows[number] + 1}", text, shown))
  sections.append(
    (
      f"Ranks at beam {search.beam}",
      f"over {len(rows)} sentences",
      totals,
    )
  )
  theta = [
    theta_lib.theta_features(translators[name]) for name in (_BEFORE, _AFTER)
  ]
  moved = explain.moved_rules(
    translators[_BEFORE].table, *theta, number=_RULES.value
  )
  sections.append(
    ("Rules that gained and lost", "P(rule | source side)", moved)
  )
  sections += _search_errors(search, translators, sources)
  for title, text, table in sections:
    print(f"{title}: {text}\n\n{text_tables.text(table)}\n")
  if _OUTPUT.value:
    parts = [
      page.section(title, page.paragraph(text), text_tables.as_html(table))
      for title, text, table in sections
    ]
    title = f"What {_SYSTEM.value} changed"
    files.write_text(_OUTPUT.value, page.page(title, parts))


def _search_errors(search: SearchStageConfig, translators, sources):
  """Titles, notes and tables of one or two comparisons."""
  sizes = sorted({(10, 60), (search.beam, search.pop)})
  wide = (10 * search.beam, 10 * search.pop)
  progress.say("searching with ten times the candidates")
  table = explain.search_errors(translators, sources, sizes=sizes, wide=wide)
  note = f"at least, by a search of beam {wide[0]} and {wide[1]} candidates"
  sections = [("Search errors", note, table)]
  if _EXACT.value:
    progress.say("searching short sentences exactly")
    short = np.flatnonzero(sources[_BEFORE].ids.lengths <= _EXACT.value)[:50]
    some = {n: models.select_source(sources[n], short) for n in _NAMES}
    table = explain.search_errors(translators, some, sizes=sizes)
    note = f"sentences of up to {_EXACT.value} words that it can search"
    sections.append(("Against exact search", note, table))
  return sections


if __name__ == "__main__":
  program.run(main)
