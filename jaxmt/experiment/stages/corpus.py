"""The corpus of an experiment, embedded or from files; texts in and out."""

import dataclasses
from typing import Any

import numpy as np

from jaxmt.corpora import noise as noise_lib
from jaxmt.corpora import synthetic
from jaxmt.errors import InputError
from jaxmt.experiment.record import Record
from jaxmt.text import (
  bitext,
  files,
  links,
  ragged,
  references,
  trees,
  vocabulary,
)
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import Vocabulary

PARTS = ("tune", "test")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
  """The sentences of "train", "tune" or "test".

  Attributes:
    source: source lines.
    references: the references of each sentence.
    trees: PTB trees of the source, or None.
  """

  source: list[str]
  references: list[list[str]]
  trees: list[str] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corpus(Record):
  """A corpus in three parts; all text is tokenised.

  Attributes:
    train_source: source lines of the training pairs.
    train_target: their target lines.
    train_trees: PTB trees of the training source, or None.
    train_links: word links in Pharaoh format, or None.
    train_documents: which document each training pair is of, or None.
    tune_source: source lines for tuning.
    tune_references: the references of each sentence.
    tune_trees: trees of the tuning source, or None.
    test_source: source lines for evaluation.
    test_references: the references of each sentence.
    test_trees: trees of the test source, or None.
    lm_text: further target text for the language model, or None.
    lm_text_reverse: further source text, used if the corpus is reversed.
    metrics: how many training pairs there were, and were dropped.
  """

  train_source: list[str]
  train_target: list[str]
  train_trees: list[str] | None = None
  train_links: list[str] | None = None
  train_documents: list[str] | None = None
  tune_source: list[str] = dataclasses.field(default_factory=list)
  tune_references: list[list[str]] = dataclasses.field(default_factory=list)
  tune_trees: list[str] | None = None
  test_source: list[str] = dataclasses.field(default_factory=list)
  test_references: list[list[str]] = dataclasses.field(default_factory=list)
  test_trees: list[str] | None = None
  lm_text: list[str] | None = None
  lm_text_reverse: list[str] | None = None
  metrics: dict[str, Any] | None = None

  def part(self, name: str) -> Part:
    """Returns the sentences of "train", "tune" or "test"."""
    if name == "train":
      references = [[line] for line in self.train_target]
    else:
      references = getattr(self, f"{name}_references")
    return Part(
      source=getattr(self, f"{name}_source"),
      references=references,
      trees=getattr(self, f"{name}_trees"),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Translations(Record):
  """What a system makes of the tuning and the test part.

  Attributes:
    tune_hypothesis: target lines of the tuning part.
    test_hypothesis: target lines of the test part.
    tune_derivations: lines of `derivation_text.tree_lines`, or None.
    test_derivations: lines of `derivation_text.tree_lines`, or None.
    test_nodes: nodes of the derivations of the test part, cut into pieces as
      `stages.decode.cut` does, see `derivation_rows.to_array`; or None.
    test_node_offsets: which nodes belong to each piece, or None.
    test_node_scores: model score of each piece, or None.
    metrics: numbers about the decoding.
  """

  tune_hypothesis: list[str]
  test_hypothesis: list[str]
  tune_derivations: list[str] | None = None
  test_derivations: list[str] | None = None
  test_nodes: np.ndarray | None = None
  test_node_offsets: np.ndarray | None = None
  test_node_scores: np.ndarray | None = None
  metrics: dict[str, Any]

  def hypothesis(self, part: str) -> list[str]:
    """Returns the target lines of "tune" or "test"."""
    return getattr(self, f"{part}_hypothesis")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description(Record):
  """Sizes of a corpus.

  Attributes:
    rows: one dict for each part and side.
  """

  rows: list[dict[str, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingPairs:
  """The training pairs as ids, with their links.

  Attributes:
    source_words: the source vocabulary.
    target_words: the target vocabulary.
    source: source word ids, N rows.
    target: target word ids, N rows.
    links: pairs of positions (source, target), N rows.
  """

  source_words: Vocabulary
  target_words: Vocabulary
  source: Ragged
  target: Ragged
  links: Ragged


def encode_training(corpus: Corpus, link_lines: list[str]) -> TrainingPairs:
  """Returns the training part as ids; `link_lines` are its Pharaoh links."""
  source_words = vocabulary.build([corpus.train_source])
  target_words = vocabulary.build([corpus.train_target])
  source = vocabulary.encode(source_words, corpus.train_source)
  target = vocabulary.encode(target_words, corpus.train_target)
  parsed = links.parse_links(
    link_lines, source_lengths=source.lengths, target_lengths=target.lengths
  )
  return TrainingPairs(
    source_words=source_words,
    target_words=target_words,
    source=source,
    target=target,
    links=parsed,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FilesConfig:
  """Which files hold the corpus; plain or gzipped UTF-8.

  Attributes:
    train_source: training source text.
    train_target: training target text.
    train_trees: PTB trees of the training source, or "".
    train_links: word links in Pharaoh format, or "".
    train_documents: a name for each training pair, that of its document, or "".
    tune_source: tuning source text.
    tune_references: one file for each reference.
    tune_trees: trees of the tuning source, or "".
    test_source: test source text.
    test_references: one file for each reference.
    test_trees: trees of the test source, or "".
    max_length: longer training sentences are dropped (either side).
    max_ratio: training pairs whose lengths have a larger ratio are dropped.
    train_pairs: N: only the first N training pairs are used as such, and the
      first N lines of `train_links` and `train_trees`; 0 for all. The targets
      of the others are text for the language model.
    tune_sentences: N: only the first N tuning sentences are used; 0 for all.
    spread: take the N training pairs and tuning sentences at even distances
      from the whole files, not their first ones, for files in some order.
    noise: noise that some training pairs get, "kind:share" each, see
      `jaxmt.corpora.noise`.
    noise_seed: of which pairs these are; a negative one means the experiment's.
    lm_text: files of further target text for the language model.
  """

  train_source: str = ""
  train_target: str = ""
  train_trees: str = ""
  train_links: str = ""
  train_documents: str = ""
  tune_source: str = ""
  tune_references: tuple[str, ...] = ()
  tune_trees: str = ""
  test_source: str = ""
  test_references: tuple[str, ...] = ()
  test_trees: str = ""
  max_length: int = 80
  max_ratio: float = 9.0
  train_pairs: int = 0
  tune_sentences: int = 0
  spread: bool = False
  noise: tuple[str, ...] = ()
  noise_seed: int = -1
  lm_text: tuple[str, ...] = ()


def embedded(config: synthetic.SyntheticConfig) -> Corpus:
  """Generates the embedded corpus."""
  corpus = synthetic.generate(config)
  fields: dict[str, Any] = {}
  if config.monolingual:
    fields["lm_text"] = corpus.monolingual.references[0]
    fields["lm_text_reverse"] = corpus.monolingual.source
  for part in PARTS:
    split = getattr(corpus, part)
    fields[f"{part}_source"] = split.source
    fields[f"{part}_references"] = [
      list(row) for row in zip(*split.references, strict=True)
    ]
    fields[f"{part}_trees"] = split.trees
  return Corpus(
    train_source=corpus.train.source,
    train_target=corpus.train.references[0],
    train_trees=corpus.train.trees,
    train_links=corpus.train.links[0],
    **fields,
  )


def reverse(config: None, *, corpus: Corpus) -> Corpus:
  """Swaps the languages of a corpus: source becomes target.

  The first reference of tune and test becomes their source. Trees are of the
  old source, so they are left out.
  """
  del config
  fields: dict[str, Any] = {}
  if corpus.train_links is not None:
    parsed = links.parse_links(corpus.train_links)
    fields["train_links"] = [
      " ".join(f"{t}-{s}" for t, s in sorted(row[:, ::-1].tolist()))
      for row in (parsed[n] for n in range(len(parsed)))
    ]
  for name in PARTS:
    part = corpus.part(name)
    fields[f"{name}_source"] = [row[0] for row in part.references]
    fields[f"{name}_references"] = [[line] for line in part.source]
  return Corpus(
    train_source=corpus.train_target,
    train_target=corpus.train_source,
    train_documents=corpus.train_documents,
    lm_text=corpus.lm_text_reverse,
    **fields,
  )


def describe(config: None, *, corpus: Corpus) -> Description:
  """Counts sentences, words, types, lengths and unknown words."""
  del config
  known = {
    "source": set(vocabulary.intern(corpus.train_source)[1]),
    "target": set(vocabulary.intern(corpus.train_target)[1]),
  }
  rows = []
  for name in ("train", *PARTS):
    part = corpus.part(name)
    first = [row[0] for row in part.references]
    for side, lines in (("source", part.source), ("target", first)):
      ids, words = vocabulary.intern(lines)
      unknown = np.array([word not in known[side] for word in words], bool)
      total = len(ids.flat)
      share = float(unknown[ids.flat].mean()) if total else 0.0
      rows.append(
        {
          "part": name,
          "side": side,
          "sentences": len(lines),
          "words": total,
          "types": len(words),
          "mean length": round(total / max(len(lines), 1), 2),
          "max length": int(ids.lengths.max(initial=0)),
          "unknown %": round(100 * share, 2),
        }
      )
  return Description(rows=rows)


def check(config: FilesConfig) -> None:
  """Raises `ValueError` for noise that makes no sense."""
  noise_lib.parse(config.noise)
  if config.noise and (config.train_links or config.train_trees):
    raise ValueError(
      "given links and trees are not those of pairs with noise: leave out"
      " train_links and train_trees"
    )


def input_paths(config: FilesConfig) -> dict[str, str]:
  """Returns the files to read, by parameter of `from_files`.

  Raises:
    InputError: if the config does not name a required file.
  """
  paths = {}
  for field in dataclasses.fields(FilesConfig):
    value = getattr(config, field.name)
    if isinstance(value, tuple):
      if field.name == "noise":
        continue
      if not value and field.name != "lm_text":
        raise InputError(f"config key 'data.files.{field.name}' is empty")
      paths.update({f"{field.name}_{i}": v for i, v in enumerate(value)})
    elif isinstance(value, str) and value:
      paths[field.name] = value
    elif value == "" and field.name.endswith(("source", "target")):
      raise InputError(f"config key 'data.files.{field.name}' is empty")
  return paths


def from_files(config: FilesConfig, **paths: str) -> Corpus:
  """Reads, checks and filters a corpus; `paths` are those of `config`."""
  del paths  # the config names them; they are inputs so that content counts
  every_source, every_target = bitext.read_parallel(
    [config.train_source, config.train_target]
  )
  source, target = (
    _chosen(lines, config.train_pairs, config)
    for lines in (every_source, every_target)
  )
  pairs, report = bitext.filter_pairs(
    bitext.word_counts(source),
    bitext.word_counts(target),
    max_length=config.max_length,
    max_ratio=config.max_ratio,
  )
  fields: dict[str, Any] = {}
  if config.train_links:
    parsed = links.parse_links(
      _training_lines(config, config.train_links, len(every_source)),
      path=config.train_links,
      source_lengths=bitext.word_counts(source),
      target_lengths=bitext.word_counts(target),
    )
    fields["train_links"] = links.format_links(ragged.select(parsed, pairs))
  if config.train_trees:
    trees_of = _training_lines(config, config.train_trees, len(every_source))
    _check_trees(trees_of, config.train_trees, source, config.train_source)
    fields["train_trees"] = bitext.select_lines(trees_of, pairs)
  if config.train_documents:
    names = _training_lines(config, config.train_documents, len(every_source))
    bitext.check_line_count(
      len(names),
      path=config.train_documents,
      expected=len(source),
      expected_path=config.train_source,
    )
    fields["train_documents"] = bitext.select_lines(names, pairs)
  used = set(_places(len(every_target), config.train_pairs, config).tolist())
  more = [one for row, one in enumerate(every_target) if row not in used]
  for path in config.lm_text:
    more += files.read_lines(path)
  for part in PARTS:
    fields |= _read_part(config, part)
  train_source = bitext.select_lines(source, pairs)
  train_target = bitext.select_lines(target, pairs)
  metrics: dict[str, Any] = {"pairs": report.pairs, **report.dropped}
  if config.noise:
    noisy = noise_lib.add(
      train_source,
      train_target,
      noise_lib.parse(config.noise),
      seed=max(config.noise_seed, 0),
    )
    train_target = noisy.target
    counts = np.bincount(noisy.kind + 1, minlength=1 + len(noise_lib.KINDS))
    metrics |= dict(zip(noise_lib.KINDS, counts[1:].tolist(), strict=True))
  return Corpus(
    train_source=train_source,
    train_target=train_target,
    lm_text=more or None,
    metrics=metrics,
    **fields,
  )


def _read_part(config: FilesConfig, part: str) -> dict[str, Any]:
  """Reads "tune" or "test": fields of `Corpus`."""
  source_path = getattr(config, f"{part}_source")
  source = files.read_lines(source_path)
  fields: dict[str, Any] = {
    f"{part}_source": source,
    f"{part}_references": references.read_references(
      getattr(config, f"{part}_references"),
      expected=len(source),
      expected_path=source_path,
    ),
  }
  tree_path = getattr(config, f"{part}_trees")
  if tree_path:
    lines = files.read_lines(tree_path)
    _check_trees(lines, tree_path, source, source_path)
    fields[f"{part}_trees"] = lines
  if part == "tune" and config.tune_sentences:
    fields = {
      name: _chosen(value, config.tune_sentences, config)
      for name, value in fields.items()
    }
  return fields


def _places(size: int, number: int, config: FilesConfig) -> np.ndarray:
  """Which lines of a file of `size` lines are used; 0 stands for all."""
  if config.spread or not 0 < number < size:
    return spread_rows(size, number)
  return np.arange(number)


def spread_rows(size: int, number: int) -> np.ndarray:
  """Returns N of `size` rows at even distances; all for 0 or too many."""
  if not 0 < number < size:
    return np.arange(size)
  return np.arange(number) * size // number


def _chosen(lines: list, number: int, config: FilesConfig) -> list:
  return [lines[row] for row in _places(len(lines), number, config).tolist()]


def _training_lines(config: FilesConfig, path: str, size: int) -> list[str]:
  """The lines of links or trees of the training pairs that are used.

  A file may end after the pairs that are used, unless they are spread.
  """
  lines = files.read_lines(path)
  if not 0 < config.train_pairs < size:
    return lines
  rows = _places(size, config.train_pairs, config).tolist()
  return [lines[row] for row in rows if row < len(lines)]


def _check_trees(
  lines: list[str], path: str, source: list[str], source_path: str
) -> None:
  """Checks that each sentence has a tree whose leaves are its words."""
  trees.check_leaves(
    trees.parse_trees(lines, path=path),
    source,
    path=path,
    lines_path=source_path,
    unescape=True,
  )
