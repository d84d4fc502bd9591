r"""Alignment quality of all aligners on hand-aligned pairs, as a table.

    python tools/align_table.py --source=S --target=T \
        --train_gold=PREFIX --test_gold=PREFIX [--systems=hmm,w,hp,...]

Trains the simpler aligners on the bitext with the hand-aligned pairs of both
prefixes (PREFIX.SRC, PREFIX.en, PREFIX.align; their links are not looked at),
the others on the links of --train_gold, and scores the pairs of --test_gold. A
system is

  NAME[:HOW]: a simpler aligner; HOW its directions are combined, if not as
    --symmetrize says (hmm:intersect);
  KIND[:METHOD[:PRUNER]][*N][+]: ITG, such as hp, hp:mert,
    w:softmax:tic-tac-toe; "*N" is for up to N rounds of EMD, "+" for all links
    whose posterior is above what is best on --train_gold;
  neural[:SETTING=VALUE...]: teacher=SYSTEM (hmm if not given), vectors=1 for
    --source_vectors and --target_vectors, objective=hinge or softmax, and
    numbers for epochs, start, window, size, embedding_epochs, fine_tune (0 or
    1), vocabulary and jump_pairs.

--swap also learns on the links of --test_gold and scores the pairs of
--train_gold, and gives the scores of both parts together, as those of aligners
that learn from no links are.
--pruning_beams=10,20 adds a second table: the pruning error rate of each pruner
and the upper bound of F that it leaves word pairs (W) and rules (HP), on
--test_gold with these numbers of target spans for each source span.
--frequencies=1,10,100 adds a table of precision and recall by how often the
rarer word of a link occurs in the text.
--links=DIR keeps the links of the scored pairs for `launch/align.py
--evaluate`, and of the bitext for the systems of --bitext_links (without
--swap), for `configs/ablations/alignment_links.py`.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
import json
import os
import time
from typing import Any

import numpy as np
from absl import flags

from jaxmt.align import em, gold_report, named_aligners, symmetrize
from jaxmt.align.itg import evidence as evidence_lib
from jaxmt.align.itg import itg_model, pruning, word_pieces
from jaxmt.align.neural.neural_hmm import NeuralConfig
from jaxmt.errors import InputError
from jaxmt.metrics import link_accuracy
from jaxmt.models import fitting, vector_files
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
_SOURCE_VECTORS = flags.DEFINE_string(
  "source_vectors", "", "of neural systems with vectors=1"
)
_TARGET_VECTORS = flags.DEFINE_string("target_vectors", "", "likewise")
_FREQUENCIES = flags.DEFINE_list(
  "frequencies", [], "bounds of classes of frequency, see above"
)
_SEED = flags.DEFINE_integer("seed", 0, "of random starts")
_JSON = flags.DEFINE_bool("json", False, "print the rows as JSON")
# What "neural:NAME=VALUE" may set of a `NeuralConfig`, but for its epochs.
_NEURAL = {
  "objective": str,
  "start": float,
  "window": int,
  "size": int,
  "embedding_epochs": int,
  "fine_tune": int,
  "vocabulary": int,
  "jump_pairs": int,
}


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
  if any(not bound.isdigit() for bound in _FREQUENCIES.value):
    raise InputError(f"--frequencies: '{','.join(_FREQUENCIES.value)}'")
  if _LINKS.value:
    files.make_folder(_LINKS.value)
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
  rows, rare, trained = [], [], {}
  for name in _SYSTEMS.value:
    row, classes = _row(name, text, learnt, gold, own, trained)
    rows.append(row)
    rare += classes
    progress.say(json.dumps(row))
  tables = [rows]
  if rare:
    tables.append(rare)
  if beams:
    tables.append(_pruning_rows(text, learnt, gold, beams))
  for table in tables:
    print(json.dumps(table) if _JSON.value else text_tables.text(table))


def _row(
  name: str, text, learnt, gold, bitext_lines, trained
) -> tuple[dict, list[dict]]:
  """Scores one system and keeps its links; its rows by frequency, too."""
  start = time.process_time()
  lines = gold.lines
  keep = name in _BITEXT_LINKS.value
  wanted = np.arange(len(text.source)) if keep else lines
  linked, more = _links(name, text, learnt, gold, wanted, trained)
  links, sure, possible = ragged.select(linked, lines), gold.sure, gold.possible
  if _SWAP.value and not _is_unsupervised(name):
    other = dataclasses.replace(text, gold=gold)
    lines = text.gold.lines
    turned, others = _links(name, other, learnt, text.gold, lines, trained)
    more = {key: [value, others[key]] for key, value in more.items()}
  else:
    turned = linked
  scored = lines if not _SWAP.value else np.append(gold.lines, text.gold.lines)
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
  row = {
    "system": name,
    **scores,
    "aer_margin": found["aer_margin"],
    **more,
    "cpu_s": round(time.process_time() - start, 1),
  }
  classes = _classes(text, scored, links, sure, possible)
  return row, [{"system": name, **one} for one in classes]


def _classes(text, lines, predicted, sure, possible) -> list[dict]:
  """Precision and recall by how often the rarer word of a link occurs."""
  if not _FREQUENCIES.value:
    return []
  frequencies = []
  for side in (text.source, text.target):
    counts = np.bincount(side.flat)
    rows = ragged.select(side, lines)
    frequencies.append(dataclasses.replace(rows, flat=counts[rows.flat]))
  return link_accuracy.by_frequency(
    predicted,
    sure,
    possible,
    (frequencies[0], frequencies[1]),
    sorted(map(int, _FREQUENCIES.value)),
  )


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
  if _is_neural(name):
    return _is_unsupervised(_neural_options(name)["teacher"])
  return name.partition(":")[0] in named_aligners.names()


def _is_neural(name: str) -> bool:
  return name.partition(":")[0] == "neural"


def _neural_options(name: str) -> dict[str, str]:
  """Reads neural[:NAME=VALUE...]."""
  options = {"teacher": "hmm", "vectors": "0", "epochs": "5"}
  for part in filter(None, name.split(":")[1:]):
    key, _, value = part.partition("=")
    if key not in (*options, *_NEURAL):
      raise InputError(f"--systems: '{name}': no setting '{key}'")
    options[key] = value
  return options


def _check(name: str) -> None:
  """Refuses a system that does not exist."""
  method = name.partition(":")[2]
  if _is_neural(name):
    options = _neural_options(name)
    _check(options["teacher"])
    _neural_config(options)
    if options["vectors"] != "0":
      program.required(
        source_vectors=_SOURCE_VECTORS.value,
        target_vectors=_TARGET_VECTORS.value,
      )
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
    trained: ITG aligners by config and first hand-aligned line, and links of
      all lines; grows.
  """
  first, _, method = name.partition(":")
  if name == "hmm":
    return learnt.links, {}
  if _is_neural(name):
    return _neural_links(name, text, learnt, gold, trained), {}
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


def _neural_config(options: dict[str, str]) -> NeuralConfig:
  """What to train, see `_neural_options`."""
  try:
    own: dict[str, Any] = {
      key: read(options[key]) for key, read in _NEURAL.items() if key in options
    }
    fit = FitOptions(epochs=int(options["epochs"]), batch=512, rate=0.003)
    fitting.check_options(fit)
    return NeuralConfig(seed=_SEED.value, fit=fit, **own)
  except ValueError as error:
    raise InputError(f"--systems: {error}") from error


def _neural_links(name: str, text, learnt, gold, trained) -> Ragged:
  """Links of all lines by a neural aligner and its teacher."""
  options = _neural_options(name)
  every = np.arange(len(text.source))
  taught, _ = _links(options["teacher"], text, learnt, gold, every, trained)
  vectors = [None, None]
  if options["vectors"] != "0":
    vectors = [
      supervised_alignment.vectors_of(words, vector_files.read(path))
      for words, path in (
        (text.source_words, _SOURCE_VECTORS.value),
        (text.target_words, _TARGET_VECTORS.value),
      )
    ]
  return supervised_alignment.align_neural(
    text.source,
    text.target,
    taught,
    _neural_config(options),
    symmetrization=_METHOD.value,
    vectors=(vectors[0], vectors[1]),
    report=progress.say,
  )


def _itg_links(
  name: str, text, learnt, gold, lines, trained
) -> tuple[Ragged, dict]:
  """Links by an ITG aligner, and errors of its pruner."""
  config, rounds, decoder = _itg_config(name)
  options = {"seed": _SEED.value, "report": progress.say}
  more: dict[str, Any] = {}
  key = (config, int(text.gold.lines[0]))
  every = len(lines) == len(text.source)
  if every and (name, key) in trained:
    return trained[name, key]
  if rounds:
    aligner, links, history = supervised_alignment.semi_supervised(
      learnt, text, config, rounds=rounds, decoder=decoder, **options
    )
    more["heldout_f1"] = [record["heldout_f1"] for record in history]
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
  if every:  # a student may ask again
    trained[name, key] = links, more
  return links, more


if __name__ == "__main__":
  program.run(main)
