"""Learning to parse from tags alone: corpora, starts, models by name.

    parser = learn(treebank, InductionConfig(model="dmv", start="ccv2"))
    heads = parse(parser, treebank)

Punctuation is dropped before learning and parsing (its tokens hang on the word
before them in what `parse` returns), and only short sentences are learnt from.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from jaxmt.parse import concave, dmv
from jaxmt.parse.arc_parser import batches, put_rows
from jaxmt.parse.dmv import Dmv, TagBatch
from jaxmt.text import ragged, treebank
from jaxmt.text.ragged import Ragged
from jaxmt.text.treebank import Treebank

MODELS = ("dmv", "ccv1", "ccv2")
STARTS = ("harmonic", "uniform", "random", "ccv1", "ccv2")
_CELLS = 1 << 16  # arcs of a batch


@dataclasses.dataclass(frozen=True, kw_only=True)
class InductionConfig:
  """How tags are learnt from.

  Attributes:
    model: one of `MODELS`.
    start: of the DMV, one of `STARTS`.
    max_length: longest sentences, in words.
    iterations: of EM of the DMV.
    concave_iterations: of EM of CCV1 and CCV2.
    seed: of random starts.
    verbs: tags of verbs, for CCV2.
  """

  model: str = "dmv"
  start: str = "ccv2"
  max_length: int = 10
  iterations: int = 200
  concave_iterations: int = 100
  seed: int = 0
  verbs: frozenset[str] = concave.VERBS


@dataclasses.dataclass(frozen=True, kw_only=True)
class TagParser:
  """A parser of tags.

  Attributes:
    kind: "dmv", or "concave" for CCV1 and CCV2.
    model: its probabilities, of `num_tags(tag_names)` tags.
    tag_names: the tags it knows.
  """

  kind: str
  model: Dmv
  tag_names: tuple[str, ...]


def tag_batches(tags: Ragged, *, cells: int = _CELLS) -> TagBatch:
  """Returns the distinct sentences, in batches of one shape `[C, B, N]`."""
  padded, _ = ragged.pad(tags, fill=-1)
  distinct, counts = np.unique(padded, axis=0, return_counts=True)
  size = max(padded.shape[1], 1)
  width = max(1, min(len(distinct), cells // (size * size)))
  chunks = -(-len(distinct) // width)
  room = chunks * width - len(distinct)
  fill = lambda x: np.pad(x, ((0, room), *((0, 0),) * (x.ndim - 1)))
  lengths = (distinct >= 0).sum(1).astype(np.int32)
  shape = lambda x: fill(x).reshape(chunks, width, *x.shape[1:])
  return TagBatch(
    tags=shape(np.maximum(distinct, 0).astype(np.int32)),
    lengths=shape(lengths),
    weight=shape(counts.astype(np.float32)),
  )


def num_tags(names: Sequence[str]) -> int:
  """Returns T: one or more for tags that are not known, in few sizes."""
  return ragged.bucket(len(names) + 1)


def learn(
  bank: Treebank,
  config: InductionConfig,
  *,
  report: Callable[[int, float], None] = lambda iteration, value: None,
) -> tuple[TagParser, list[float]]:
  """Learns from the tags of a treebank.

  Args:
    bank: heads are not looked at.
    config: settings.
    report: called with the number and the log likelihood of each step of the
      model's EM.

  Returns:
    The parser, and the log likelihood before each step.

  Raises:
    ValueError: if no sentence is short enough, or for unknown names.
  """
  words, _ = treebank.without_punctuation(bank)
  rows = (words.lengths > 0) & (words.lengths <= config.max_length)
  words = treebank.select(words, rows)
  if not len(words):
    raise ValueError(f"no sentence of 1 to {config.max_length} words")
  used, tags = np.unique(words.tags, return_inverse=True)
  names = tuple(words.tag_names[tag] for tag in used)
  data = tag_batches(
    Ragged(flat=tags.astype(np.int32), offsets=words.words.offsets)
  )
  size = num_tags(names)
  if config.model != "dmv":
    model, history = _concave(config.model, names, data, config)
    return TagParser(kind="concave", model=model, tag_names=names), history
  start = start_of(config, names, data, size)
  model, history = dmv.fit(
    start, data, iterations=config.iterations, report=report
  )
  return TagParser(kind="dmv", model=model, tag_names=names), history


def start_of(config, names, data, size) -> Dmv:
  """Returns the DMV that EM starts from."""
  if config.start in ("ccv1", "ccv2"):
    return _concave(config.start, names, data, config)[0]
  if config.start == "harmonic":
    return dmv.harmonic(data, size)
  if config.start == "uniform":
    return dmv.uniform(size)
  if config.start == "random":
    return dmv.random(size, config.seed)
  raise ValueError(f"no start '{config.start}'; there are: {', '.join(STARTS)}")


def _concave(name, names, data, config):
  if name not in ("ccv1", "ccv2"):
    raise ValueError(f"no model '{name}'; there are: {', '.join(MODELS)}")
  verbs = np.zeros(num_tags(names), bool)
  if name == "ccv2":
    verbs[: len(names)] = [tag in config.verbs for tag in names]
  return concave.fit(
    data,
    tags=len(verbs),
    iterations=config.concave_iterations,
    verbs=verbs,
  )


def parse(parser: TagParser, bank: Treebank) -> Ragged:
  """Returns heads, -1 is the root; int32 rows.

  DMV: the trees of least risk. Concave models: the most probable trees. A
  sentence of punctuation alone is a chain.
  """
  words, tokens = treebank.without_punctuation(bank)
  known = {name: number for number, name in enumerate(parser.tag_names)}
  number = np.array(
    [known.get(name, len(known)) for name in bank.tag_names], np.int32
  )
  tags = Ragged(flat=number[words.tags], offsets=words.words.offsets)
  decode = dmv.least_risk_trees if parser.kind == "dmv" else concave.best_trees
  flat = np.full(len(tags.flat), -1, np.int32)
  for rows, size in batches(tags.lengths, cells=_CELLS):
    real = rows[rows >= 0]
    padded, _ = ragged.pad(ragged.select(tags, real), width=size)
    padded = np.pad(padded, ((0, len(rows) - len(real)), (0, 0)))
    lengths = np.where(rows >= 0, tags.lengths[rows], 0).astype(np.int32)
    heads = np.asarray(decode(parser.model, padded, lengths))
    put_rows(flat, tags.offsets, rows, heads)
  return Ragged(
    flat=_with_punctuation(bank, tokens, flat), offsets=bank.words.offsets
  )


def _with_punctuation(bank, tokens, heads):
  """Heads of all tokens: punctuation hangs on the word before it.

  At the start of a sentence it hangs on the first word; where there are no
  words, on the token before it.
  """
  total = len(bank.words.flat)
  row = np.repeat(np.arange(len(bank)), bank.lengths)
  base = bank.words.offsets[:-1][row]
  local = np.arange(total) - base
  is_word = np.zeros(total, bool)
  is_word[tokens] = True
  # The last word up to each token, or the first word of the sentence.
  before = np.maximum.accumulate(np.where(is_word, np.arange(total), -1))
  after = np.minimum.accumulate(
    np.where(is_word, np.arange(total), total)[::-1]
  )[::-1]
  end = bank.words.offsets[1:][row]
  near = np.where(before >= base, before, np.where(after < end, after, -1))
  out = np.where(near >= 0, near - base, local - 1).astype(np.int32)
  # Word numbers count words only: back to places of tokens.
  word_row = row[tokens]
  first = np.searchsorted(word_row, np.arange(len(bank)))
  head_token = tokens[first[word_row] + np.maximum(heads, 0)]
  out[tokens] = np.where(heads >= 0, head_token - base[tokens], -1)
  return out
