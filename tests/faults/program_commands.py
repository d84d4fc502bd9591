"""A small right command for each thing that a program in launch/ can do.

They build on each other: what one writes, the later ones read. A command writes
into the folder `out` of its working directory; when it has succeeded, all that
is moved to a folder of the command's name, where later ones find it.
"""

import dataclasses
import pathlib

from tests.faults import folder_readers

OUT = "out"  # where commands write


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
  """A command that succeeds.

  Attributes:
    program: of launch/, without its ending.
    name: of the command, and of the folder of what it writes.
    flags: by name.
    ends: whether it ends by itself.
  """

  program: str
  name: str
  flags: dict[str, str]
  ends: bool = True


_CORPUS = "corpus/c"
_SOURCE, _TARGET = f"{_CORPUS}/train.zh", f"{_CORPUS}/train.en"
_LINKS, _TREES = f"{_CORPUS}/train.links", f"{_CORPUS}/train.zh.tree"
_TEXT, _REFERENCE = f"{_CORPUS}/test.zh", f"{_CORPUS}/test.en.0"
_BITEXT = {"source": _SOURCE, "target": _TARGET}
_ALIGNED = {**_BITEXT, "links": _LINKS}
_LM, _WEIGHTS = "lm/lm.arpa", "weights"
_HIERO = {"grammar": "hiero/g", "lm": _LM, "beam": "3", "pop": "6"}
_PHRASES = {"grammar": "phrases/p", "lm": _LM, "weights": _WEIGHTS}
_TUNING = {"input": _TEXT, "references": _REFERENCE}
_LATTICES = {**_PHRASES, "beam": "5", "source_trees": "trees/source"}

TRAINING = """from configs import quickstart


def get_config(variant=""):
  config = quickstart.get_config("small")
  config.data.synthetic.update(
    train=40, tune=5, test=5, monolingual=30, max_length=8
  )
  config.align.model = "given"
  config.lm.order = 2
  config.grammar.hiero.max_words = 3
  config.grammar.trees.max_size = 2
  config.search.update(beam=4, pop=10, span=5)
  config.tune.update(rounds=1, nbest=5)
  config.theta.update(train_beam=8, train_pop=16, k=4, margin=3, iterations=1)
  config.evaluate.metrics = ("bleu",)
  return config
"""
STUDY = """BASE = "training.py"
NOTE = "One run."
BASELINE = "only"
ABLATIONS = {"only": {"systems": ()}}
SEEDS = (0,)
"""


def write_inputs(folder: pathlib.Path) -> None:
  """Writes what no program makes."""
  texts = {
    "training.py": TRAINING,
    "study.py": STUDY,
    "weights": "LanguageModel 0.5\nWordPenalty -0.3\nGlue -0.1\n",
    "bank": f"{folder_readers.TREEBANK}\n" * 4,
    "trees.brackets": "(S (NP (DT a) (NN dog)) (VP (VB sees)))\n" * 3,
    "fr-en/text.fr": "a b\nb c\nc a\na c b\n" * 4,
    "fr-en/text.en": "x y\ny z\nz x\nx z y\n" * 4,
    "fr-en/text.align": "0-0 1-1\n0-0 1-1\n0-0 1-1\n0-0 1-1 2-2\n" * 4,
    "languages/en.train.gz": f"{folder_readers.TREEBANK}\n" * 4,
    "languages/en.test.gz": f"{folder_readers.TREEBANK}\n" * 2,
  }
  for name, text in texts.items():
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _of(program: str, **commands: dict[str, str]) -> list[Command]:
  """Commands of one program, by name."""
  return [
    Command(
      program=program,
      name=name.replace("_", "-"),
      flags=flags,
      ends=program != "serve",
    )
    for name, flags in commands.items()
  ]


def _texts() -> list[Command]:
  """What begins with plain text."""
  corpus = {"train": "40", "tune": "6", "test": "6", "monolingual": "20"}
  links = {**_ALIGNED, "output": f"{OUT}/w"}
  return [
    *_of(
      "synthesize",
      corpus={"output": f"{OUT}/c", "max_length": "8", **corpus},
    ),
    *_of(
      "lm",
      lm={
        **{"text": _TARGET, "order": "2", "output": f"{OUT}/lm.arpa"},
        "discount_fallback": "true",
      },
      scores={"arpa": _LM, "score": _REFERENCE, "output": f"{OUT}/s"},
    ),
    *_of(
      "cluster",
      clusters={"text": _TARGET, "clusters": "4", "output": f"{OUT}/c"},
    ),
    *_of("clean", clean={**links, "keep": "0.9", "filtered": f"{OUT}/f"}),
    *_of(
      "align",
      align={
        **_BITEXT,
        **{"output": f"{OUT}/links", "lexicon": f"{OUT}/lexicon"},
        **{"iterations": "2", "devices": "1"},
      },
      align_with_trees={
        **{**_BITEXT, "output": f"{OUT}/links", "iterations": "1"},
        **{"symmetrize": "idsg", "trees_of": "source", "trees": _TREES},
      },
      align_itg={
        **{"source": "fr-en/text.fr", "target": "fr-en/text.en"},
        **{"model": "itg", "train_gold": "fr-en/text", "iterations": "1"},
        **{"beam": "3", "output": f"{OUT}/links", "workers": "1"},
      },
      align_neural={
        **{"source": "fr-en/text.fr", "target": "fr-en/text.en"},
        **{"output": f"{OUT}/links", "model": "neural"},
        **{"epochs": "1", "iterations": "1", "hidden": "4", "window": "1"},
      },
      compare_links={
        **{**_BITEXT, "evaluate": "align/links", "gold": _LINKS},
        **{"matrices": f"{OUT}/page.html", "json": "true"},
      },
    ),
  ]


def _parsers() -> list[Command]:
  """Taggers and dependency parsers."""
  bank = {"train": "bank", "output": f"{OUT}/m"}
  return [
    *_of(
      "tag",
      tagger={"model": "plain", **bank},
      tagger_features={"model": "features", "iterations": "2", **bank},
      tagger_concave={
        **{"model": "concave", "dictionary": "bank", "iterations": "2"},
        **bank,
      },
      tags={"load": "tagger/m", "text": _TARGET, "output": f"{OUT}/conllu"},
    ),
    *_of(
      "parse",
      parser={"epochs": "1", "bits": "10", **bank},
      parser_of_siblings={
        **{"model": "sibling", "epochs": "1", "bits": "10", **bank}
      },
      parser_of_tags={
        **{"model": "dmv", "iterations": "2", "concave_iterations": "2"},
        **bank,
      },
      parses={
        **{"load": "parser/m", "input": "bank", "evaluate": "true"},
        **{"output": f"{OUT}/conllu", "page": f"{OUT}/page.html"},
      },
      conversion={"trees": "trees.brackets", "output": f"{OUT}/conllu"},
      trees={
        **{"random": "true", "input": "tags/conllu"},
        **{"output": f"{OUT}/target"},
      },
    ),
    *_of(
      "induce",
      induction={
        **{"config": "configs/induction.py", "config.data": "languages"},
        **{"config.languages": "('en',)", "config.starts": "('ccv2',)"},
        **{"config.iterations": "2", "config.concave_iterations": "2"},
        **{"workdir": f"{OUT}/runs"},
      },
    ),
  ]


def _grammars() -> list[Command]:
  """Rules, and what is extracted beside them."""
  output = {**_ALIGNED, "output": f"{OUT}/g"}
  phrases = {"kind": "phrase", **_ALIGNED, "output": f"{OUT}/p"}
  return [
    *_of(
      "extract",
      hiero={**output, "provenance": "true", "max_words": "3"},
      hiero_filtered={
        **{**output, "format": "cdec", "glue": f"{OUT}/glue"},
        **{"filter": _TEXT, "pair_weights": "clean/w"},
      },
      tree_rules={**output, "kind": "t2s", "trees": _TREES, "tree_size": "2"},
      phrases={**phrases, "max_phrase": "3"},
      phrases_of_moses={
        **{**phrases, "format": "moses", "reordering": f"{OUT}/r"},
      },
      btg={**_ALIGNED, "output": f"{OUT}/b", "kind": "btg"},
    ),
    *_of(
      "extract_dependencies",
      dependencies={
        **{**_ALIGNED, "target_trees": "trees/target", "max_phrase": "2"},
        **{"clusters": "clusters/c", "grammar": "phrases/p"},
        **{"output": f"{OUT}/d"},
      },
    ),
  ]


def _decoding() -> list[Command]:
  """What decodes text with files."""
  translate = {**_HIERO, "input": _TEXT, "weights": _WEIGHTS}
  lattices = {**_LATTICES, "input": _TEXT, "source_trees": "source-trees/t"}
  return [
    *_of(
      "translate",
      translation={
        **{**translate, "output": f"{OUT}/h", "nbest": f"{OUT}/n"},
        **{"nbest_size": "5", "forest": f"{OUT}/f", "links": f"{OUT}/l"},
        **{"derivations": f"{OUT}/d", "scores": f"{OUT}/s"},
      },
      exact_translation={
        **{**translate, "output": f"{OUT}/h", "exact_steps": "2000"},
        **{"search_errors": f"{OUT}/e", "error_beams": "2"},
        **{"error_pops": "4"},
      },
      phrase_translation={
        **{**_PHRASES, "kind": "phrase", "input": _TEXT, "beam": "3"},
        **{"pop": "6", "output": f"{OUT}/h"},
      },
    ),
    *_of(
      "force",
      forced={
        **{"grammar": "hiero/g", "input": _SOURCE, "reference": _TARGET},
        **{"lm": _LM, "weights": _WEIGHTS, "output": f"{OUT}/d"},
        **{"report": "true", "leave_one_out": "true"},
      },
    ),
    *_of(
      "evaluate",
      scores_of_text={
        **{"hypothesis": "translation/h", "references": _REFERENCE},
        **{"baseline": "phrase-translation/h", "samples": "5"},
        **{"metrics": "bleu,ter", "sentence_scores": f"{OUT}/s"},
      },
    ),
    *_of(
      "tag",
      source_tags={
        "load": "tagger/m",
        "text": _TEXT,
        "output": f"{OUT}/conllu",
      },
    ),
    *_of(
      "parse",
      source_trees={
        **{"random": "true", "input": "source-tags/conllu"},
        **{"output": f"{OUT}/t"},
      },
    ),
    *_of(
      "translate_trees",
      translated_trees={
        **{**lattices, "output": f"{OUT}/h", "trees": f"{OUT}/t"},
        **{"page": f"{OUT}/page.html", "nbest": f"{OUT}/n"},
        **{"oracle": f"{OUT}/o", "references": _REFERENCE},
        **{"nbest_size": "3", "dependencies": "dependencies/d"},
        **{"clusters": "clusters/c"},
      },
    ),
  ]


def _learning() -> list[Command]:
  """What learns weights, vectors and networks."""
  lists = {"kbest": "translation/n", "references": _REFERENCE}
  loop = {**_HIERO, **_TUNING, "workdir": f"{OUT}/run", "output": f"{OUT}/w"}
  pairs = {**_BITEXT, "grammar": "hiero/g"}
  network = {"lm": _LM, "weights": _WEIGHTS, "output": f"{OUT}/m"}
  network |= {"beam": "3", "pop": "6", "rounds": "1", "epochs": "1"}
  lattices = {**_LATTICES, **_TUNING, "source_trees": "source-trees/t"}
  return [
    *_of(
      "tune",
      tuned_lists={
        **{**lists, "method": "mert", "weights": _WEIGHTS},
        **{"output": f"{OUT}/w", "history": f"{OUT}/h"},
        **{"export_features": f"{OUT}/f", "export_scores": f"{OUT}/s"},
        **{"option": "restarts=1"},
      },
      tuned_files={
        **{"method": "mert", "moses_features": "tuned-lists/f"},
        **{"moses_scores": "tuned-lists/s", "weights": _WEIGHTS},
        **{"output": f"{OUT}/w"},
      },
      tuned={
        **{**loop, "method": "mert", "weights": _WEIGHTS, "rounds": "1"},
        **{"nbest_size": "5", "option": "restarts=1"},
      },
    ),
    *_of(
      "rerank",
      reranked={
        **{**lists, "weights": _WEIGHTS, "output": f"{OUT}/h"},
        **{"apply": "translation/n", "apply_references": _REFERENCE},
      },
    ),
    *_of(
      "tune_search",
      tuned_search={
        **{**_HIERO, **_TUNING, "weights": _WEIGHTS, "cost": "candidates"},
        **{"evaluations": "2", "output": f"{OUT}/f"},
      },
    ),
    *_of(
      "tune_trees",
      tuned_trees={
        **{**lattices, "workdir": f"{OUT}/run", "output": f"{OUT}/w"},
        **{"rounds": "1", "nbest": "5", "method": "mert"},
        **{"option": "restarts=1"},
      },
    ),
    *_of(
      "learn",
      learned={
        **{**_HIERO, **_BITEXT, "weights": _WEIGHTS, "output": f"{OUT}/w"},
        **{"dev_source": _TEXT, "dev_references": _REFERENCE, "epochs": "1"},
        **{"workdir": f"{OUT}/run", "max_words": "5", "templates": "shape"},
      },
    ),
    *_of(
      "embed",
      source_vectors={
        **{"text": _SOURCE, "output": f"{OUT}/v", "size": "3"},
        **{"epochs": "1", "workdir": f"{OUT}/run"},
      },
      topics={
        **{**pairs, "model": "topics", "output": f"{OUT}/m", "size": "3"},
        **{"source_documents": _SOURCE, "target_documents": _TARGET},
        **{"epochs": "1", "tune_epochs": "1", "retrieve": "2"},
      },
      similarities={
        **{**pairs, "model": "brae", "output": f"{OUT}/m", "size": "3"},
        **{"epochs": "1", "rounds": "1", "weights": _WEIGHTS},
        **{"source_vectors": "source-vectors/v"},
      },
      scorer={
        **{**network, **_TUNING, "model": "scorer", "grammar": "hiero/g"},
        **{"size": "3", "dev_input": _TEXT, "dev_references": _REFERENCE},
      },
      recursive={
        **{**network, "model": "r2nn", "kind": "btg", "grammar": "btg/b"},
        **{"input": _SOURCE, "references": _TARGET, "size": "3"},
      },
    ),
  ]


def _runs() -> list[Command]:
  """Whole experiments, and what is done with finished ones."""
  run = {"workdir": "training/run"}
  return [
    *_of("train", training={"config": "training.py", "workdir": f"{OUT}/run"}),
    *_of(
      "sweep",
      study={
        **{"study": "study.py", "workdir": f"{OUT}/runs"},
        **{"entries": "only", "seeds": "0", "shard": "0/1"},
      },
    ),
    *_of("export", exported={**run, "output": f"{OUT}/e"}),
    *_of(
      "explain",
      explanation={
        **{**run, "output": f"{OUT}/page.html", "number": "2", "wide": "80"},
        **{"sentences": "1,2", "system": "augmented-forest"},
      },
    ),
    *_of("serve", served={"workdir": "exported/e", "warm_up": "false"}),
    *_of(
      "translate",
      translation_of_a_run={**run, "input": _TEXT, "output": f"{OUT}/h"},
    ),
  ]


COMMANDS: tuple[Command, ...] = (
  *_texts(),
  *_parsers(),
  *_grammars(),
  *_decoding(),
  *_learning(),
  *_runs(),
)
