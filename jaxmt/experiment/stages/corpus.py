"""The corpus of an experiment: embedded or from files.

A corpus artefact has, for the parts "train", "tune" and "test":
`{part}_source` (lines), `train_target` (lines), `{tune,test}_references` (for
each sentence its list of references), and where they exist `{part}_trees`,
`train_links`, and `lm_text` (lines of further target text).
"""

import dataclasses
from typing import Any

import numpy as np

from jaxmt.corpora import synthetic
from jaxmt.errors import InputError
from jaxmt.text import (
  bitext,
  files,
  links,
  ragged,
  references,
  trees,
  vocabulary,
)

PARTS = ("tune", "test")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FilesConfig:
  """Which files hold the corpus; plain or gzipped UTF-8.

  Attributes:
    train_source: training source text.
    train_target: training target text.
    train_trees: PTB trees of the training source, or "".
    train_links: word links in Pharaoh format, or "" to align ourselves.
    tune_source: tuning source text.
    tune_references: one file for each reference.
    tune_trees: trees of the tuning source, or "".
    test_source: test source text.
    test_references: one file for each reference.
    test_trees: trees of the test source, or "".
    max_length: longer training sentences are dropped (either side).
    max_ratio: training pairs with more different lengths are dropped.
    train_pairs: only the first so many training pairs are used as such, and of
      `train_links` and `train_trees` as many lines; 0 for all. The targets of
      the others are text for the language model.
    lm_text: files of further target text for the language model.
  """

  train_source: str = ""
  train_target: str = ""
  train_trees: str = ""
  train_links: str = ""
  tune_source: str = ""
  tune_references: tuple[str, ...] = ()
  tune_trees: str = ""
  test_source: str = ""
  test_references: tuple[str, ...] = ()
  test_trees: str = ""
  max_length: int = 80
  max_ratio: float = 9.0
  train_pairs: int = 0
  lm_text: tuple[str, ...] = ()


def embedded(config: synthetic.SyntheticConfig) -> dict[str, Any]:
  """Generates the embedded corpus."""
  corpus = synthetic.generate(config)
  made: dict[str, Any] = {
    "train_source": corpus.train.source,
    "train_target": corpus.train.references[0],
    "train_trees": corpus.train.trees,
    "train_links": corpus.train.links[0],
  }
  if config.monolingual:
    made["lm_text"] = corpus.monolingual.references[0]
    made["lm_text_reverse"] = corpus.monolingual.source
  for part in PARTS:
    split = getattr(corpus, part)
    made[f"{part}_source"] = split.source
    made[f"{part}_references"] = [
      list(row) for row in zip(*split.references, strict=True)
    ]
    made[f"{part}_trees"] = split.trees
  return made


def reverse(config: None, *, corpus: dict[str, Any]) -> dict[str, Any]:
  """Turns a corpus round: source becomes target.

  The first reference of tune and test becomes their source. Trees are of the
  old source, so they are left out.
  """
  del config
  made: dict[str, Any] = {
    "train_source": corpus["train_target"],
    "train_target": corpus["train_source"],
  }
  if "train_links" in corpus:
    parsed = links.parse_links(corpus["train_links"])
    turned = [
      " ".join(f"{t}-{s}" for t, s in sorted(row[:, ::-1].tolist()))
      for row in (parsed[n] for n in range(len(parsed)))
    ]
    made["train_links"] = turned
  if "lm_text_reverse" in corpus:
    made["lm_text"] = corpus["lm_text_reverse"]
  for part in PARTS:
    made[f"{part}_source"] = [row[0] for row in corpus[f"{part}_references"]]
    made[f"{part}_references"] = [[line] for line in corpus[f"{part}_source"]]
  return made


def describe(config: None, *, corpus: dict[str, Any]) -> dict[str, Any]:
  """Returns "rows": sentences, words, types, lengths and unknown words."""
  del config
  known = {
    "source": set(vocabulary.intern(corpus["train_source"])[1]),
    "target": set(vocabulary.intern(corpus["train_target"])[1]),
  }
  sides = [
    ("train", "source", corpus["train_source"]),
    ("train", "target", corpus["train_target"]),
  ]
  for part in PARTS:
    first = [row[0] for row in corpus[f"{part}_references"]]
    sides += [
      (part, "source", corpus[f"{part}_source"]),
      (part, "target", first),
    ]
  rows = []
  for part, side, lines in sides:
    ids, words = vocabulary.intern(lines)
    unknown = np.array([word not in known[side] for word in words], bool)
    total = len(ids.flat)
    rows.append(
      {
        "part": part,
        "side": side,
        "sentences": len(lines),
        "words": total,
        "types": len(words),
        "mean length": round(total / max(len(lines), 1), 2),
        "max length": int(ids.lengths.max(initial=0)),
        "unknown %": round(100 * float(unknown[ids.flat].mean()), 2)
        if total
        else 0.0,
      }
    )
  return {"rows": rows}


def input_paths(config: FilesConfig) -> dict[str, str]:
  """Returns the files to read, by parameter of `from_files`.

  Raises:
    InputError: if a needed file is not named.
  """
  paths = {}
  for field in dataclasses.fields(FilesConfig):
    value = getattr(config, field.name)
    if isinstance(value, tuple):
      if not value and field.name != "lm_text":
        raise InputError(f"config key 'data.files.{field.name}' is empty")
      paths.update({f"{field.name}_{i}": v for i, v in enumerate(value)})
    elif isinstance(value, str) and value:
      paths[field.name] = value
    elif value == "" and field.name.endswith(("source", "target")):
      raise InputError(f"config key 'data.files.{field.name}' is empty")
  return paths


def from_files(config: FilesConfig, **paths: str) -> dict[str, Any]:
  """Reads, checks and filters a corpus; `paths` are those of `config`."""
  del paths  # the config names them; they are inputs so that content counts
  every_source, every_target = bitext.read_parallel(
    [config.train_source, config.train_target]
  )
  source, target = _first(every_source, config), _first(every_target, config)
  kept, report = bitext.filter_pairs(
    bitext.word_counts(source),
    bitext.word_counts(target),
    max_length=config.max_length,
    max_ratio=config.max_ratio,
  )
  made: dict[str, Any] = {
    "train_source": bitext.select_lines(source, kept),
    "train_target": bitext.select_lines(target, kept),
    "metrics": {"pairs": report.pairs, **report.dropped},
  }
  if config.train_links:
    parsed = links.parse_links(
      _first(files.read_lines(config.train_links), config),
      path=config.train_links,
      source_lengths=bitext.word_counts(source),
      target_lengths=bitext.word_counts(target),
    )
    made["train_links"] = links.format_links(ragged.select(parsed, kept))
  if config.train_trees:
    trees_of = _first(files.read_lines(config.train_trees), config)
    _check_trees(trees_of, config.train_trees, source, config.train_source)
    made["train_trees"] = bitext.select_lines(trees_of, kept)
  more = every_target[len(target) :]
  for path in config.lm_text:
    more += files.read_lines(path)
  if more:
    made["lm_text"] = more
  for part in PARTS:
    source_path = getattr(config, f"{part}_source")
    source = files.read_lines(source_path)
    made[f"{part}_source"] = source
    made[f"{part}_references"] = references.read_references(
      getattr(config, f"{part}_references"),
      expected=len(source),
      expected_path=source_path,
    )
    tree_path = getattr(config, f"{part}_trees")
    if tree_path:
      lines = files.read_lines(tree_path)
      _check_trees(lines, tree_path, source, source_path)
      made[f"{part}_trees"] = lines
  return made


def _first(lines: list[str], config: FilesConfig) -> list[str]:
  return lines[: config.train_pairs] if config.train_pairs else lines


def _check_trees(
  lines: list[str], path: str, source: list[str], source_path: str
) -> None:
  """Checks that there is a tree for each sentence, with its words as leaves."""
  trees.check_leaves(
    trees.parse_trees(lines, path=path),
    source,
    path=path,
    lines_path=source_path,
    unescape=True,
  )
