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
--links=DIR keeps the links of the test pairs for `launch/align.py --evaluate`.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import json
import os
import time

import numpy as np
from absl import flags

from jaxmt.align import em, evaluation, registry, symmetrize
from jaxmt.align.itg import evidence as evidence_lib
from jaxmt.align.itg import model, word_pieces
from jaxmt.align.neural.aligner import NeuralConfig
from jaxmt.errors import InputError
from jaxmt.models.fitting import FitOptions
from jaxmt.report import tables
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
_LINKS = flags.DEFINE_string("links", "", "folder for links of the test pairs")
_BEAM = flags.DEFINE_integer("beam", 10, "target spans for each source span")
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
  rows = []
  for name in _SYSTEMS.value:
    start = time.process_time()
    links, more = _links(name, text, learnt, gold)
    links = ragged.select(links, gold.lines)
    found = evaluation.evaluate(links, gold.sure, gold.possible)
    if _LINKS.value:
      path = os.path.join(_LINKS.value, f"{name.replace(':', '-')}.links")
      files.write_lines(path, links_lib.format_links(links))
    scores = {key: found[key] for key in ("precision", "recall", "f1", "aer")}
    rows.append(
      {
        "system": name,
        **scores,
        "aer_margin": found["aer_margin"],
        **more,
        "cpu_s": round(time.process_time() - start, 1),
      }
    )
    progress.say(json.dumps(rows[-1]))
  print(json.dumps(rows) if _JSON.value else tables.text(rows))


def _check(name: str) -> None:
  """Refuses a system that does not exist."""
  first, _, method = name.partition(":")
  if name == "neural":
    return
  if first not in registry.names():
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


def _links(name: str, text, learnt, gold) -> tuple[Ragged, dict]:
  """Links of the test pairs by one system; others may have links, too."""
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
  if first in registry.names():
    found = em.align(text.source, text.target, registry.default_config(first))
    return symmetrize.symmetrize(
      found.links["forward"],
      found.links["backward"],
      method=method or _METHOD.value,
    ), {}
  return _itg_links(name, text, learnt, gold)


def _itg_links(name: str, text, learnt, gold) -> tuple[Ragged, dict]:
  """Links of the test pairs by an ITG aligner, and errors of its pruner."""
  config, rounds, decoder = _itg_config(name)
  options = {"seed": _SEED.value, "report": progress.say}
  more: dict[str, float] = {}
  if rounds:
    aligner, _, history = supervised_alignment.semi_supervised(
      learnt, text, config, rounds=rounds, **options
    )
    more["rounds"] = len(history)
  else:
    aligner = itg_training.train(
      learnt, text.source, text.target, text.gold, config, **options
    )
  errors = itg_training.pruning_errors(aligner, text.source, text.target, gold)
  threshold = supervised_alignment.learnt_threshold(
    aligner, text, text.gold, config, decoder
  )
  links = model.align(
    aligner,
    text.source,
    text.target,
    lines=gold.lines,
    decoder=decoder,
    threshold=threshold,
  )
  if decoder == "posterior":
    more["threshold"] = round(threshold, 3)
  more |= {
    "per": round(errors["per"], 4),
    "f_bound": round(errors["f_bound"], 4),
  }
  return links, more


if __name__ == "__main__":
  program.run(main)
