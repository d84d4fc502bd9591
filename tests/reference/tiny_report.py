"""A finished experiment of a few words, with text that pages must survive.

Two systems with the grammar of `tiny_training` translate sentences that hold
markup, quotes, right-to-left and Chinese words, 400 words, and nothing.
"""

import dataclasses
import functools

import numpy as np

from jaxmt.experiment import experiment, experiment_report, report_page
from jaxmt.experiment.outcome import Outcome, SystemArtefacts
from jaxmt.experiment.pipeline import Artefact
from jaxmt.experiment.stages import decode, evaluate
from jaxmt.experiment.stages import inspect as inspect_stage
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus, Description, Translations
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import SearchStageConfig, Theta, Tuned
from jaxmt.grammar import estimate
from jaxmt.grammar import table as tables
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from tests.reference import tiny_training

SCRIPT = "<script>window.hurt=1</script>"
IMAGE = "<img/src=x/onerror=window.hurt=2>"
QUOTES = "\"'`&amp;</title></div>"
RIGHT_TO_LEFT = "בית שלום \u202eمرحبا"
SOURCES = (
  "das kleine haus ist alt",
  "alt ist das haus",
  f"das {SCRIPT} haus",
  f"{IMAGE} ist {QUOTES}",
  f"das haus {RIGHT_TO_LEFT}",
  "他 昨天 买 了 书 。 haus",
  "",
  " ".join(["das kleine haus ist"] * 100),
  "ein altes kleines haus",
  "ist das ein kleines haus",
)
REFERENCES = (
  "the small house is old",
  "the house is old",
  f"the {SCRIPT} house",
  f"{QUOTES} is {IMAGE}",
  f"the house {RIGHT_TO_LEFT}",
  "he bought a book",
  "",
  " ".join(["the small house is"] * 100),
  "an old little house",
  "is that a small house",
)
SEARCH = SearchStageConfig(beam=6, pop=24, span=10, threads=1)
OTHER = {"LanguageModel": 0.2, "WordPenalty": -1.5, "glue": 0.4}


TREE = (
  "(IP (NP (DT das) (ADJP (JJ kleine)) (NN haus)) (VP (VC ist) (ADJP (JJ"
  " alt))))"
)


def corpus(*, trees: bool = False) -> Corpus:
  source, target, links = zip(*tiny_training.PAIRS, strict=True)
  return Corpus(
    train_source=list(source),
    train_target=list(target),
    train_links=list(links),
    tune_source=list(source),
    tune_references=[[line] for line in target],
    test_source=list(SOURCES),
    test_references=[[line] for line in REFERENCES],
    test_trees=[TREE, *["()"] * (len(SOURCES) - 1)] if trees else None,
  )


def phrase_table() -> Grammar:
  """The phrase pairs among the rules."""
  table = tiny_training.extracted().table
  phrases = (table.kind == tables.Kind.HIERO) & (tables.arity(table) == 0)
  table = tables.select(table, phrases)
  return Grammar(
    table=table,
    kind="phrase",
    orientation="word",
    metrics={"rules": len(table)},
  )


def artefact(value) -> Artefact:
  return Artefact(
    key="k",
    values=value.to_values(),
    seconds=1.5,
    reused=False,
    megabytes=123.0,
    kind=type(value),
  )


def inspected(config, text, grammar, lm, scores, tuned, theta, done):
  """What the stage makes of two systems."""
  values = {}
  for name in tuned:
    values[f"tuned-{name}"] = tuned[name].to_values()
    values[f"decode-{name}"] = done[name].to_values()
  if theta is not None:
    values["theta-augmented-forest"] = theta.to_values()
    values["learned-augmented-forest"] = {
      "counts": np.round(2 * COUNT_UNIT * grammar.table.counts)
    }
  return inspect_stage.inspect(
    inspect_stage.InspectionConfig(inspect=config.inspect, search=SEARCH),
    corpus=text,
    grammar=grammar,
    lm=lm,
    scores=scores,
    **values,
  )


@functools.cache
def outcome(*, phrases: bool = False) -> Outcome:
  """The experiment; the second system has other weights and probabilities.

  Args:
    phrases: with a phrase table, the same probabilities, and one source tree.
  """
  text = corpus(trees=phrases)
  table = tiny_training.extracted().table
  grammar = Grammar(table=table, metrics={"rules": len(table)})
  lm = LanguageModel(
    tables=tiny_training.language_model(), arpa=[], metrics={"ngrams": 1}
  )
  before = np.stack([tables.feature(table, n) for n in estimate.THETA], axis=1)
  moved = np.where(np.arange(len(before))[:, None] % 3 == 0, before - 1, before)
  theta = Theta(theta=moved.astype(np.float32))
  second = "augmented-forest"
  if phrases:
    grammar, theta, second = phrase_table(), None, "retuned"
  history = [
    {"round": n, "score": 0.3 + n / 10, "length_ratio": 1.0, "pool": 10,
     "weights": {"LanguageModel": n / 5, "glue": -0.1}}
    for n in range(3)
  ]  # fmt: skip
  weights = {"primary": {}, second: OTHER}
  tuned = {
    name: Tuned(
      weights=tiny_training.WEIGHTS | own,
      history=history,
      metrics={"rounds": 2},
    )
    for name, own in weights.items()
  }
  done, systems = {}, {}
  for name, own in tuned.items():
    part = decode.translate_part(
      SEARCH,
      "test",
      corpus=text,
      grammar=grammar,
      lm=lm,
      tuned=own,
      theta=theta if name != "primary" else None,
    )
    done[name] = Translations(
      tune_hypothesis=[""] * len(text.tune_source),
      test_hypothesis=part.lines,
      test_nodes=decode.derivation_rows.to_array(part.derivations),
      test_node_offsets=part.derivations.offsets,
      test_node_scores=part.derivations.score,
      metrics={},
    )
    systems[name] = SystemArtefacts(
      learned=None,
      theta=artefact(theta) if theta and name != "primary" else None,
      tune=artefact(own),
      decode=artefact(done[name]),
    )
  config = experiment.freeze(experiment.defaults())
  kind = "phrase" if phrases else "hiero"
  config = dataclasses.replace(
    config,
    grammar=dataclasses.replace(config.grammar, kind=kind),
    search=SEARCH,
    systems=tuple(tuned),
    inspect=inspect_stage.InspectConfig(words=30, beams=(), nbest=8),
  )
  scores = {
    part: evaluate.evaluate(
      dataclasses.replace(config.evaluate, part=part), corpus=text, **done
    )
    for part in ("tune", "test")
  }
  return Outcome(
    config=config,
    corpus=artefact(text),
    described=artefact(Description(rows=[{"part": "test", "sentences": 10}])),
    links=artefact(Links(links=text.train_links)),
    lm=artefact(lm),
    grammar=artefact(grammar),
    systems=systems,
    translations={name: one.decode for name, one in systems.items()},
    scores={name: artefact(one) for name, one in scores.items()},
    inspection=artefact(
      inspected(config, text, grammar, lm, scores["test"], tuned, theta, done)
    ),
  )


@functools.cache
def page(*, phrases: bool = False) -> str:
  """The report of it."""
  made = outcome(phrases=phrases)
  return report_page.make_page("D", made, experiment_report.comparison(made))


def lines() -> list[list[str]]:
  """The translations of both systems."""
  return [one.value.test_hypothesis for one in outcome().translations.values()]
