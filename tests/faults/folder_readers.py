"""Readers of folders: rule tables, models, runs, and exported systems.

An input packs the files of a folder; they get a manifest that agrees with them,
as anybody could write one. See `readers.py`.
"""

import json
import pathlib
import re
import tempfile
import zlib
from collections.abc import Callable, Mapping

import numba
import numpy as np

from jaxmt import api
from jaxmt.decode import model as models
from jaxmt.decode.translator import Translator
from jaxmt.errors import InputError
from jaxmt.experiment import finished_run, saved_systems
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import Theta, Tuned
from jaxmt.features import maxent_reordering, sentence_models, topic_features
from jaxmt.grammar import dependency_table, estimate, native
from jaxmt.lm import arpa_read
from jaxmt.lm import tables as lm_tables
from jaxmt.parse import saved_parsers
from jaxmt.parse.dmv import Dmv
from jaxmt.parse.induction import TagParser, num_tags
from jaxmt.parse.sibling_parser import SiblingParser
from jaxmt.runtime import checkpoint
from jaxmt.text import array_folder, ragged, treebank, vocabulary
from tests.grammar import validation_test

ARPA = """\\data\\
ngram 1=4
ngram 2=2
ngram 3=1

\\1-grams:
-1\t<s>\t-0.5
-0.5\t</s>
-0.7\ta\t-0.25
-2\t<unk>

\\2-grams:
-0.25\t<s> a\t-0.125
-0.5\ta a

\\3-grams:
-0.125\t<s> a a

\\end\\
"""
TREEBANK = """# text = a dog
1-2\tadog\t_\t_\t_\t_\t_\t_\t_\t_
1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tdog\t_\tNOUN\t_\t_\t0\troot\t_\t_

the\tDET\t2\tdet
cat\tNOUN\t0\troot
"""
_SETTINGS = {
  "format": "jaxmt-system",
  "version": 1,
  "system": "primary",
  "grammar": "grammar",
  "lm": "lm.arpa.gz",
  "weights": "weights.txt",
  "dialect": "jaxmt",
  "span": 10,
  "targets": 20,
  "binarize": False,
  "beam": 30,
  "pop": 200,
  "batch_cells": 4096,
}
_RUN = {
  "config": {
    "search": {"beam": 4, "pop": 10},
    "data": {"reverse": False},
    "systems": ["primary"],
    "epochs": 1,
  }
}
FILE = b"\0FILE\0"  # before the name of each file in an input


def _unpack(packed: bytes, folder: str, meta: dict) -> None:
  """Writes one input as the files of a folder, with matching checksums."""
  entries = {}
  for part in packed.split(FILE)[1:]:
    name, _, content = part.partition(b"\0")
    name = re.sub(r"[^a-z_.]", "", name.decode("latin-1"))[:40] or "x"
    if name.strip(".") and name != array_folder.MANIFEST:
      pathlib.Path(folder, name).write_bytes(content)
      crc = zlib.crc32(content)
      entries[name] = {"bytes": len(content), "crc32": crc}
  manifest = json.dumps({**meta, "files": entries})
  pathlib.Path(folder, array_folder.MANIFEST).write_text(manifest)


def _packed(folder: str) -> bytes:
  """The files of a folder as one input."""
  return b"".join(
    FILE + b"%s\0%s" % (path.name.encode(), path.read_bytes())
    for path in sorted(pathlib.Path(folder).iterdir())
    if path.name != array_folder.MANIFEST
  )


def _folder_reader(meta: dict, read: Callable[[str], object]):
  def reader(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
      _unpack(pathlib.Path(path).read_bytes(), folder, meta)
      read(folder)

  return reader


def _folder_seed(write: Callable[[str], object]) -> Callable[[], bytes]:
  def seed() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
      write(f"{folder}/t")
      return _packed(f"{folder}/t")

  return seed


def _write_table(path: str) -> None:
  table, origin = validation_test.sample(), validation_test.ORIGIN
  native.write(path, table, provenance=origin)


def _grammar(folder: str) -> None:
  """Reads a table and where its rules are from; searches with it."""
  table = native.read(folder)
  weights = {"LanguageModel": 0.5, "WordPenalty": -0.1, "a": 0.01, "b": -0.01}
  model = models.make_model(table, _arpa_tables(), weights=weights)
  _translate(Translator(model=model))
  native.read_provenance(folder)


def _translate(translator: Translator) -> None:
  """Searches a sentence of the model's own words, without and with a tree."""
  if numba.config.DISABLE_JIT:  # pyrefly: ignore
    return  # kernels are Python
  words = vocabulary.to_lines(translator.model.table.source_words)
  known = [*words[len(vocabulary.SPECIALS) :][:4], "new"]
  if any(word.split() != [word] or set(word) & set("()") for word in known):
    return  # no text has such words
  leaves = "".join(f" (NP {word})" for word in known)
  for trees in (None, [f"(S{leaves})"]):
    out = api.decode(translator, [" ".join(known)], trees=trees, beam=3, pop=6)
    api.kbest(out, k=4)
    for derivation in out.derivations:
      assert derivation is None or str(derivation)


def _arpa_tables() -> lm_tables.Tables:
  with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/lm"
    pathlib.Path(path).write_text(ARPA)
    return lm_tables.build_tables(arpa_read.read_arpa(path))


def _write_automaton(path: str) -> None:
  record = LanguageModel(tables=_arpa_tables(), arpa=["x"], metrics={})
  checkpoint.write(pathlib.Path(path), record.to_values(), {})


def _automaton(folder: str) -> None:
  """Reads a language model of a run, and scores a text with it."""
  try:
    values, _ = checkpoint.read(pathlib.Path(folder))
  except checkpoint.Damaged as damage:
    raise InputError(str(damage)) from damage
  try:
    tables = LanguageModel.from_values(values).tables
  except InputError:
    raise
  except (KeyError, TypeError, ValueError, AttributeError):
    return  # as `finished_run.record` takes it
  size = len(tables.words)
  text = np.arange(1, size + 1, dtype=np.int32).repeat(2)
  rows = ragged.Ragged(flat=text, offsets=np.array([0, len(text)]))
  lm_tables.score_text(tables, rows)


def _write_parser(path: str) -> None:
  from jaxmt.parse.arc_parser import ArcParser

  arrays = {
    "hashed": np.zeros(256, np.float32),
    "between": np.zeros((2, 4, 4, 4), np.float32),
  }
  with array_folder.open_writer(path) as out:
    saved_parsers._write_arc(out, ArcParser(weights=arrays, tag_names=("A",)))


def _write_siblings(path: str) -> None:
  weights = np.zeros(1 << 10, np.float32)
  saved_parsers.save(path, SiblingParser(loss="margin", weights=weights))


def _write_dependencies(path: str) -> None:
  keys = np.array([3, 5, 9], np.uint64)
  kinds = np.array([0, 1, 1], np.int8)
  table = dependency_table.make_table(keys, np.array([-1.0, 0, -2]), kinds)
  dependency_table.save(path, table)


def _write_tag_parser(path: str) -> None:
  names = ("A", "B")
  size = num_tags(names)
  arrays = {
    "root": np.full(size, 0.25, np.float32),
    "child": np.full((2, size, size), 0.5, np.float32),
    "stop": np.full((2, size, 2), 0.5, np.float32),
  }
  parser = TagParser(kind="dmv", model=Dmv(**arrays), tag_names=names)
  saved_parsers.save(path, parser)


_TAG_META = {
  "format": saved_parsers.FORMAT,
  "version": saved_parsers.VERSION,
  "kind": "tagger",
}


def _write_tagger(path: str) -> None:
  from jaxmt.parse import tagger

  with tempfile.TemporaryDirectory() as folder:
    bank = pathlib.Path(folder, "bank")
    bank.write_text(TREEBANK)
    saved_parsers.save(path, tagger.count(treebank.read_treebank(str(bank))))


def _write_maxent(path: str) -> None:
  words = vocabulary.build([["a b"]])
  size = maxent_reordering.num_parameters((len(words), len(words)), 3)
  model = maxent_reordering.ReorderingModel(
    source_words=words,
    target_words=words,
    theta=np.zeros(size, np.float32),
    bits=3,
  )
  values = maxent_reordering.to_values(model)
  with array_folder.open_writer(path) as out:
    for name, value in values.items():
      if isinstance(value, np.ndarray):
        out.append(name, value)
      else:
        out.write_lines(name, value)


def _write_scorer(path: str) -> None:
  words = vocabulary.to_lines(vocabulary.build([["a b"]]))
  shapes = {"source": (6, 2), "target": (6, 2), "context": (6, 2)}
  shapes |= {"rule": (4, 3), "bias": (3,), "sentence": (2, 3), "output": (3, 1)}
  with array_folder.open_writer(path) as out:
    for name, shape in shapes.items():
      out.append(f"scorer_{name}", np.zeros(shape, np.float32))
    for side in ("source", "target"):
      out.write_lines(f"scorer_{side}_words", words)


def _write_topics(path: str) -> None:
  arrays = {
    "offsets": np.array([0, 1, 3]),
    "ids": np.array([4, 4, 5], np.int32),
    "weights": np.ones(3, np.float32),
    "idf": np.ones(6, np.float32),
    "encoder": np.ones((6, 2), np.float32),
    "bias": np.zeros(2, np.float32),
    "count": np.array([1], np.int32),
    "mixtures": np.zeros((0, 2), np.float32),
    "keys": np.array([1, 2, 3], np.uint64),
    "source": np.ones((3, 2), np.float32),
    "target": np.ones((3, 2), np.float32),
  }
  with array_folder.open_writer(path) as out:
    for name, array in arrays.items():
      out.append(f"topics_{name}", array)
    words = vocabulary.to_lines(vocabulary.build([["a b"]]))
    out.write_lines("topics_words", words)


def _write_similarities(path: str) -> None:
  shapes = {
    "vectors": (6, 2),
    "encoder": (4, 2),
    "encoder_bias": (2,),
    "decoder": (2, 4),
    "decoder_bias": (4,),
    "transform": (2, 2),
    "transform_bias": (2,),
  }
  words = vocabulary.to_lines(vocabulary.build([["a b"]]))
  with array_folder.open_writer(path) as out:
    for side in ("source", "target"):
      for name, shape in shapes.items():
        array = np.full(shape, 0.5, np.float32)
        out.append(f"similarity_{side}_{name}", array)
      out.write_lines(f"similarity_{side}_words", words)
    out.append("similarity_unit", np.zeros(1, np.int32))


def _write_recursive(path: str) -> None:
  shapes = {"leaves": (3, 2), "encoder": (12, 2), "output": (2,), "scale": (4,)}
  with array_folder.open_writer(path) as out:
    for name, shape in shapes.items():
      out.append(f"recursive_{name}", np.full(shape, 0.5, np.float32))
    out.write_lines("recursive_pairs", ["a ||| b", "c ||| d"])
    out.write_lines("recursive_features", ["rule_given_source"])


def _sentence_models(path: str) -> None:
  for model in sentence_models.read(path):
    if isinstance(model, topic_features.TopicModel):
      model.sentence_vectors([("a", "b", "c")])


def _manifest(path: str) -> None:
  with tempfile.TemporaryDirectory() as folder:
    data = pathlib.Path(path).read_bytes()
    pathlib.Path(folder, array_folder.MANIFEST).write_bytes(data)
    pathlib.Path(folder, "a.txt").write_text("b\n")
    for read in (saved_parsers.load, native.read):
      try:
        read(folder)
      except InputError:
        continue
    array_folder.open_folder(folder, verify=True).lines("a")


def _run_folder(name: str) -> Callable[[str], None]:
  """A reader of one file of a run's folder; the other one is right."""

  def reader(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
      right = {
        "run.json": json.dumps(_RUN),
        "metrics.jsonl": '{"stage": "lm", "key": "ab"}\n',
      }
      for file, text in right.items():
        pathlib.Path(folder, file).write_text(text)
      data = pathlib.Path(path).read_bytes()
      pathlib.Path(folder, name).write_bytes(data)
      run = finished_run.read(folder)
      finished_run.find_system(run, None)
      run.last_epoch(run.systems[-1])

  return reader


_STAGES = {
  "grammar": "grammar",
  "lm": "lm",
  "mix": "mix-augmented-forest",
  "tune": "tune-augmented-forest",
}


def _run(path: str) -> None:
  """Reads the trained system of a run; inputs are `_whole_run`'s."""
  config = {**_RUN["config"], "systems": ["augmented-forest"]}
  with tempfile.TemporaryDirectory() as folder:
    base = pathlib.Path(folder)
    (base / "run.json").write_text(json.dumps({"config": config}))
    names = {short: f"{stage}-0" for short, stage in _STAGES.items()}
    for name in names.values():
      (base / "artefacts" / name).mkdir(parents=True)
    (base / "metrics.jsonl").write_text(
      "".join(
        json.dumps({"stage": stage, "key": "0"}) + "\n"
        for stage in _STAGES.values()
      )
    )
    parts: dict[str, list[bytes]] = {short: [] for short in names}
    for part in pathlib.Path(path).read_bytes().split(FILE)[1:]:
      short, _, rest = part.partition(b".")
      parts.get(short.decode("latin-1"), []).append(rest)
    for short, name in names.items():
      packed = b"".join(FILE + part for part in parts[short])
      artefact = str(base / "artefacts" / name)
      _unpack(packed, artefact, {"meta": {}})
    run = finished_run.read(folder)
    _translate(finished_run.translator(run))


def _whole_run(kind: str) -> Callable[[], bytes]:
  """Returns what packs the artefacts of a run with a grammar of a kind."""

  def seed() -> bytes:
    table = validation_test.sample()
    words = table.source_words, table.target_words
    size = maxent_reordering.num_parameters(tuple(map(len, words)), 3)
    reordering = maxent_reordering.ReorderingModel(
      source_words=words[0],
      target_words=words[1],
      theta=np.zeros(size, np.float32),
      bits=3,
    )
    theta = np.full((len(table), len(estimate.THETA)), -1, np.float32)
    records = {
      "grammar": Grammar(
        table=table,
        provenance=validation_test.ORIGIN,
        kind=kind,
        reordering=reordering if kind == "btg" else None,
        metrics={},
      ),
      "lm": LanguageModel(tables=_arpa_tables(), arpa=["x"], metrics={}),
      "mix": Theta(theta=theta),
      "tune": Tuned(weights={"LanguageModel": 0.5}, metrics={}),
    }
    packed = b""
    with tempfile.TemporaryDirectory() as folder:
      for short, record in records.items():
        path = pathlib.Path(folder, short)
        checkpoint.write(path, record.to_values(), {})
        packed += _packed(str(path)).replace(
          FILE, FILE + b"%s." % short.encode()
        )
    return packed

  return seed


def _settings(path: str) -> None:
  """Reads an exported folder without its models."""
  with tempfile.TemporaryDirectory() as folder:
    data = pathlib.Path(path).read_bytes()
    pathlib.Path(folder, "settings.json").write_bytes(data)
    try:
      saved_systems.load(folder)
    except InputError as error:
      if "no such file" not in error.cause:  # the models are not there
        raise


_META = {
  "format": saved_parsers.FORMAT,
  "version": saved_parsers.VERSION,
  "kind": "arc",
}
READERS: Mapping[str, tuple[Callable[[str], object], list]] = {
  "native": (
    _folder_reader(native.META, _grammar),
    [_folder_seed(_write_table)],
  ),
  "automaton": (
    _folder_reader({"meta": {}}, _automaton),
    [_folder_seed(_write_automaton)],
  ),
  "parser": (
    _folder_reader(_META, saved_parsers.load),
    [_folder_seed(_write_parser)],
  ),
  "siblings": (
    _folder_reader({**_META, "kind": "sibling"}, saved_parsers.load),
    [_folder_seed(_write_siblings)],
  ),
  "dependencies": (
    _folder_reader(
      {"format": dependency_table.FORMAT, "version": dependency_table.VERSION},
      dependency_table.load,
    ),
    [_folder_seed(_write_dependencies)],
  ),
  "tag_parser": (
    _folder_reader({**_META, "kind": "tags"}, saved_parsers.load),
    [_folder_seed(_write_tag_parser)],
  ),
  "tagger": (
    _folder_reader(_TAG_META, saved_parsers.load),
    [_folder_seed(_write_tagger)],
  ),
  "maxent": (
    _folder_reader({}, maxent_reordering.read),
    [_folder_seed(_write_maxent)],
  ),
  "scorer": (
    _folder_reader({}, _sentence_models),
    [
      _folder_seed(_write_scorer),
      _folder_seed(_write_topics),
      _folder_seed(_write_similarities),
      _folder_seed(_write_recursive),
    ],
  ),
  "manifest": (
    _manifest,
    [
      json.dumps(
        {**meta, "files": {"a.txt": {"bytes": 2, "crc32": 4140298948}}}
      )
      for meta in (native.META, _META)
    ],
  ),
  "whole_run": (_run, [_whole_run(""), _whole_run("btg")]),
  "run": (_run_folder("run.json"), [json.dumps(_RUN)]),
  "metrics": (
    _run_folder("metrics.jsonl"),
    ['{"stage": "lm", "key": "ab"}\n{"stage": "x-y", "key": "0"}\n'],
  ),
  "settings": (_settings, [json.dumps(_SETTINGS)]),
}
