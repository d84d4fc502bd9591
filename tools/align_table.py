r"""Alignment quality of all aligners on hand-aligned pairs, as a table.

    python tools/align_table.py --source=S --target=T \
        --train_gold=PREFIX --test_gold=PREFIX [--systems=hmm,w,hp,...]

Trains the simpler aligners on the bitext with the hand-aligned pairs of both
prefixes (PREFIX.SRC, PREFIX.en, PREFIX.align; their links are not looked at),
the others on the links of --train_gold, and scores the pairs of --test_gold. A
system is the name of a simpler aligner, with the way to combine its directions
if it is not --symmetrize (hmm:intersect), "neural", or KIND[:METHOD[:PRUNER]]
of ITG, such as hp, hp:mert, w:softmax:tic-tac-toe; "+" after it takes all links
whose posterior is above what is best on --train_gold, "*3" before that runs up
to three rounds of EMD.
--swap also learns on the links of --test_gold and scores the pairs of
--train_gold, and gives the scores of both parts together, as those of aligners
that learn from no links are.
--pruning_beams=10,20 adds a second table: the pruning error rate of each pruner
and the upper bound of F that it leaves word pairs (W) and rules (HP), on
--test_gold with these numbers of target spans for each source span.
--links=DIR keeps the links of the scored pairs for `launch/align.py
--evaluate`, and of the bitext for the systems of --bitext_links (without
--swap), for `configs/ablations/alignment_links.py`.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
import json
import os
import time

import numpy as np
from absl import flags

from jaxmt.align import em, gold_report, named_aligners, symmetrize
from jaxmt.align.itg import evidence as evidence_lib
from jaxmt.align.itg import itg_model, pruning, word_pieces
from jaxmt.align.neural.neural_hmm import NeuralConfig
from jaxmt.errors import InputError
from jaxmt.models.fitting import FitOptions
from jaxmt.report import text_tables
from jaxmt.runtime import parallel, progress
from jaxmt.text import bitext, files, ragged
from jaxmt.text import links as links_lib
from jaxmt.text.ragged import Ragged
from jaxmt.train import itg_training, supervised_alignment

_SOURCE = flags.DEFINE_string("source", "", "source side of the bitext")
_TARGET = flags.DEFINE_string("target", "", "target side")
_TRAIN = flags.DEFINE_string("train_gold", "", "prefix of pairs to train on")
_TEST = flags.DEFINE_string("test_gold", "", "prefix of pairs to score")
_SYSTEMS = flags.DEFINE_list(
  "systems",
  ["hmm", "diagonal", "w", "p", "h", "hp", "hp+", "hp:mert"],
  "what to compare",
)
_METHOD = flags.DEFINE_enum(
  "symmetrize",
  "grow-diag-final-and",
  symmetrize.METHODS,
  "of the simpler aligners",
)
_DICTIONARY = flags.DEFINE_string(
  "dictionary", "", "source words with translations: WORD TAB A/B C/..."
)
_SWAP = flags.DEFINE_bool("swap", False, "score both parts, each by the other")
_LINKS = flags.DEFINE_string("links", "", "folder for links, see above")
_BITEXT_LINKS = flags.DEFINE_list(
  "bitext_links", [], "systems whose links of the bitext are kept"
)
_BEAM = flags.DEFINE_integer("beam", 10, "target spans for each source span")
_PRUNING = flags.DEFINE_list(
  "pruning_beams", [], "beams of a table of all pruners, see above"
)
_EPOCHS = flags.DEFINE_integer("epochs", 5, "of the neural aligner's network")
_SEED = flags.DEFINE_integer("seed", 0, "of random starts")
_JSON = flags.DEFINE_bool("json", False, "print the rows as JSON")


def main(argv: list[str]) -> None:
  """Trains all systems and prints their scores."""
  del argv
  program.required(
    source=_SOURCE.value,
    target=_TARGET.value,
    train_gold=_TRAIN.value,
    test_gold=_TEST.value,
  )
  for name in _SYSTEMS.value:
    _check(name)
  if _BITEXT_LINKS.value and (_SWAP.value or not _LINKS.value):
    raise InputError("--bitext_links needs --links, and not --swap")
  if any(not beam.isdigit() or int(beam) < 1 for beam in _PRUNING.value):
    raise InputError(f"--pruning_beams: '{','.join(_PRUNING.value)}'")
  beams = [int(beam) for beam in _PRUNING.value]
  entries = []
  if _DICTIONARY.value:
    entries = word_pieces.read_dictionary(_DICTIONARY.value)
  lines = bitext.read_parallel([_SOURCE.value, _TARGET.value])
  test = supervised_alignment.read_gold(_TEST.value)
  text = supervised_alignment.encode(
    test.source + lines[0],
    test.target + lines[1],
    supervised_alignment.read_gold(_TRAIN.value),
  )
  parallel.initialize()
  learnt = evidence_lib.learn(
    text.source,
    text.target,
    source_words=text.source_words,
    target_words=text.target_words,
    dictionary=entries,
    symmetrization=_METHOD.value,
  )
  progress.say(f"simpler aligners of {len(text.source):,} pairs learnt")
  gold = itg_training.Gold(
    lines=np.arange(len(test.source)), sure=test.sure, possible=test.possible
  )
  own = np.arange(len(test.source), len(test.source) + len(lines[0]))
  rows, trained = [], {}
  for name in _SYSTEMS.value:
    rows.append(_row(name, text, learnt, gold, own, trained))
    progress.say(json.dumps(rows[-1]))
  print(json.dumps(rows) if _JSON.value else text_tables.text(rows))
  if beams:
    pruned = _pruning_rows(text, learnt, gold, beams)
    print(json.dumps(pruned) if _JSON.value else text_tables.text(pruned))


def _row(name: str, text, learnt, gold, bitext_lines, trained) -> dict:
  """Scores one system and keeps its links."""
  start = time.process_time()
  lines = gold.lines
  keep = name in _BITEXT_LINKS.value
  wanted = np.append(lines, bitext_lines) if keep else lines
  linked, more = _links(name, text, learnt, gold, wanted, trained)
  links, sure, possible = ragged.select(linked, lines), gold.sure, gold.possible
  if _SWAP.value and not _is_unsupervised(name):
    other = dataclasses.replace(text, gold=gold)
    lines = text.gold.lines
    turned, others = _links(name, other, learnt, text.gold, lines, trained)
    more = {key: [value, others[key]] for key, value in more.items()}
  else:
    turned = linked
  if _SWAP.value:
    join = lambda one, two: ragged.concatenate([one, two])
    links = join(links, ragged.select(turned, text.gold.lines))
    sure = join(sure, text.gold.sure)
    possible = join(possible, text.gold.possible)
  found = gold_report.evaluate(links, sure, possible)
  if _LINKS.value:
    stem = os.path.join(_LINKS.value, name.replace(":", "-").replace("*", "-"))
    files.write_lines(f"{stem}.links", links_lib.format_links(links))
    if keep:
      files.write_lines(
        f"{stem}.bitext.links",
        links_lib.format_links(ragged.select(linked, bitext_lines)),
      )
  scores = {key: found[key] for key in ("precision", "recall", "f1", "aer")}
  return {
    "system": name,
    **scores,
    "aer_margin": found["aer_margin"],
    **more,
    "cpu_s": round(time.process_time() - start, 1),
  }


def _pruning_rows(text, learnt, gold, beams) -> list[dict]:
  """Errors of all pruners, by beam; DPDI is trained for its beam."""
  empty = itg_model.collect_rules(learnt, text.source, text.target, "w")
  full = itg_model.collect_rules(
    learnt, text.source, text.target, "hp", blocks=True
  )
  rows = []
  for name in pruning.PRUNERS:
    for beam in beams:
      start = time.process_time()
      config = itg_training.ItgConfig(pruner=name, beam=beam)
      trained = itg_training.train_pruner(
        learnt, text.source, text.target, text.gold, config, seed=_SEED.value
      )
      row: dict = {"pruner": name, "beam": beam}
      for kind, table in (("w", empty), ("hp", full)):
        aligner = itg_model.ItgModel(
          evidence=learnt,
          pruner=trained,
          rules=table,
          weights=itg_model.start_weights(),
        )
        errors = itg_training.pruning_errors(
          aligner, text.source, text.target, gold
        )
        row["per"] = round(errors["per"], 4)
        row[f"{kind}_f_bound"] = round(errors["f_bound"], 4)
      rows.append(row | {"cpu_s": round(time.process_time() - start, 1)})
      progress.say(json.dumps(rows[-1]))
  return rows


def _is_unsupervised(name: str) -> bool:
  """Whether a system learns from no hand-aligned pairs."""
  return name == "neural" or name.partition(":")[0] in named_aligners.names()


def _check(name: str) -> None:
  """Refuses a system that does not exist."""
  method = name.partition(":")[2]
  if name == "neural":
    return
  if not _is_unsupervised(name):
    _itg_config(name)
  elif method and method not in symmetrize.METHODS:
    raise InputError(f"--systems: '{name}': unknown method '{method}'")


def _itg_config(name: str) -> tuple[itg_training.ItgConfig, int, str]:
  """Reads KIND[:METHOD[:PRUNER]][*ROUNDS][+]."""
  decoder = "posterior" if name.endswith("+") else "viterbi"
  name, _, rounds = name.removesuffix("+").partition("*")
  parts = name.split(":")
  if len(parts) > 3 or not (rounds or "0").isdigit():
    raise InputError(f"--systems: '{name}' is no system")
  kind, method, pruner = [*parts, "", ""][:3]
  config = itg_training.ItgConfig(
    beam=_BEAM.value,
    kind=kind,
    method=method or "softmax",
    pruner=pruner or "dpdi",
  )
  return config, int(rounds or "0"), decoder


def _links(
  name: str, text, learnt, gold, lines, trained
) -> tuple[Ragged, dict]:
  """Links of some lines by one system; others may have links, too.

  Args:
    name: the system.
    text: its `gold` is what weights are learnt on.
    learnt: evidence.
    gold: what pruning errors are counted on.
    lines: which lines.
    trained: ITG aligners by config and first hand-aligned line; grows.
  """
  first, _, method = name.partition(":")
  if name == "hmm":
    return learnt.links, {}
  if name == "neural":
    config = NeuralConfig(
      seed=_SEED.value,
      fit=FitOptions(epochs=_EPOCHS.value, batch=512, rate=0.003),
    )
    return supervised_alignment.align_neural(
      text.source,
      text.target,
      learnt.links,
      config,
      symmetrization=_METHOD.value,
      report=progress.say,
    ), {}
  if first in named_aligners.names():
    found = em.align(
      text.source, text.target, named_aligners.default_config(first)
    )
    return symmetrize.symmetrize(
      found.links["forward"],
      found.links["backward"],
      method=method or _METHOD.value,
    ), {}
  return _itg_links(name, text, learnt, gold, lines, trained)


def _itg_links(
  name: str, text, learnt, gold, lines, trained
) -> tuple[Ragged, dict]:
  """Links by an ITG aligner, and errors of its pruner."""
  config, rounds, decoder = _itg_config(name)
  options = {"seed": _SEED.value, "report": progress.say}
  more: dict[str, float] = {}
  key = (config, int(text.gold.lines[0]))
  if rounds:
    aligner, links, history = supervised_alignment.semi_supervised(
      learnt, text, config, rounds=rounds, decoder=decoder, **options
    )
    more["rounds"] = len(history)
  else:
    if key not in trained:
      trained[key] = itg_training.train(
        learnt, text.source, text.target, text.gold, config, **options
      )
    aligner = trained[key]
    threshold = supervised_alignment.learnt_threshold(
      aligner, text, text.gold, config, decoder
    )
    links = itg_model.align(
      aligner,
      text.source,
      text.target,
      lines=lines,
      decoder=decoder,
      threshold=threshold,
    )
    if decoder == "posterior":
      more["threshold"] = round(threshold, 3)
  errors = itg_training.pruning_errors(aligner, text.source, text.target, gold)
  more |= {
    "per": round(errors["per"], 4),
    "f_bound": round(errors["f_bound"], 4),
  }
  return links, more


if __name__ == "__main__":
  program.run(main)
