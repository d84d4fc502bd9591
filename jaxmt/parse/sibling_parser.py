"""Supervised projective parsing with pairs of siblings, learnt online.

    parser = train(treebank, SiblingConfig())
    heads = parse(parser, treebank)

A tree's score sums its arcs and its pairs of neighbouring siblings: dependents
of one head on one side, the first one with none (McDonald and Pereira 2006).
Features are those of `arc_features`, and words and tags of both siblings and
their head; their weights stand in one table at the hash of template and values.
The likelihood of the right trees is learnt by Adagrad, one step for each part
of a sentence, and trees of least risk are returned; or margins are, by passive-
aggressive updates: the tree that is best by score plus number of wrong heads is
moved below the right one, by the smallest change of the weights but at most
`aggressiveness` (Crammer et al. 2006). The parser has the mean of the weights
after each sentence.

Everything runs in the kernels of `sibling_kernel` and `sibling_posteriors`,
sentence by sentence.
"""

import dataclasses
import itertools
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from jaxmt.parse import arc_parser, sibling_kernel, sibling_posteriors
from jaxmt.text import treebank
from jaxmt.text.ragged import Ragged
from jaxmt.text.treebank import Treebank

_AFFIX = 3  # characters
_CELLS = 1 << 24  # arcs whose posteriors are in memory
LOSSES = ("likelihood", "margin")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SiblingConfig:
  """How a parser learns.

  Attributes:
    loss: "likelihood" or "margin".
    epochs: passes over the treebank.
    rate: step of Adagrad.
    decay: of weights, relative to their slopes.
    aggressiveness: largest step of an update.
    bits: the table has `2^bits` weights.
    seed: of the order of sentences.
  """

  loss: str = "likelihood"
  epochs: int = 10
  rate: float = 0.05
  decay: float = 0.001
  aggressiveness: float = 0.05
  bits: int = 22
  seed: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class SiblingParser:
  """A learnt parser.

  Attributes:
    loss: what it learnt by; with "likelihood" it returns trees of least risk.
    weights: float32 `[2^bits]`.
  """

  loss: str

  weights: np.ndarray


def token_columns(bank: Treebank) -> np.ndarray:
  """Returns what features see of each of T tokens, uint64 `[5, T]`.

  Rows are words, words in lower case, suffixes, prefixes and tags; all as
  hashes of their texts.
  """
  crc = lambda texts: np.array(
    [zlib.crc32(text.encode()) for text in texts], np.uint64
  )
  flat = bank.words.flat
  lower = [form.lower() for form in bank.forms]
  return np.stack(
    [
      crc(bank.forms)[flat],
      crc(lower)[flat],
      crc([form[-_AFFIX:] for form in lower])[flat],
      crc([form[:_AFFIX] for form in lower])[flat],
      crc(bank.tag_names)[bank.tags],
    ]
  )


def train(
  bank: Treebank,
  config: SiblingConfig,
  *,
  report: Callable[[int, float], None] = lambda epoch, errors: None,
) -> SiblingParser:
  """Learns a parser.

  Args:
    bank: sentences with trees; others are left out. Trees that are not
      projective are learnt as the nearest ones that are.
    config: settings.
    report: called with the number of each epoch, and the mean loss of a
      sentence or the share of wrong heads in the trees it learnt from.

  Raises:
    ValueError: if there are no trees, or no such loss.
  """
  if config.loss not in LOSSES:
    raise ValueError(f"no loss '{config.loss}'; there are: {', '.join(LOSSES)}")
  bank = treebank.select(bank, bank.has_trees & (bank.lengths > 0))
  if not len(bank):
    raise ValueError("no sentence has a tree")
  heads = arc_parser.projective_heads(bank)
  columns = token_columns(bank)
  weights = np.zeros(1 << config.bits, np.float32)
  # What the mean lacks: every change times the number of steps before it.
  late = np.zeros(1 << config.bits, np.float64)
  squares = np.zeros_like(weights)  # of Adagrad
  rng = np.random.default_rng(config.seed)
  steps = 0
  for epoch in range(1, config.epochs + 1):
    order = rng.permutation(len(bank))
    given = (columns, bank.words.offsets, heads.flat, order)
    if config.loss == "margin":
      wrong = sibling_kernel.learn(
        *given, weights, late, steps, config.aggressiveness
      )
      report(epoch, wrong / len(heads.flat))
    else:
      loss = sibling_posteriors.learn(
        *(*given, weights, squares, late, steps, config.rate, config.decay)
      )
      report(epoch, loss / len(order))
    steps += len(order)
  mean = weights - late / steps
  return SiblingParser(loss=config.loss, weights=mean.astype(np.float32))


def parse(parser: SiblingParser, bank: Treebank) -> Ragged:
  """Returns heads of the trees of least risk, or of the best ones.

  Args:
    parser: a parser.
    bank: words and tags; heads are not looked at.

  Returns:
    Heads, -1 is the root; int32 rows.
  """
  if parser.loss != "margin":
    return parse_together([parser], bank)
  flat = sibling_kernel.parse(
    token_columns(bank), bank.words.offsets, parser.weights
  )
  return Ragged(flat=flat, offsets=bank.words.offsets)


def parse_together(parsers: Sequence[SiblingParser], bank: Treebank) -> Ragged:
  """Returns heads of the trees of least risk under the mean of posteriors.

  Args:
    parsers: learnt by likelihood, from different seeds or treebanks.
    bank: words and tags; heads are not looked at.

  Returns:
    Heads, -1 is the root; int32 rows.

  Raises:
    ValueError: for a parser that was learnt otherwise.
  """
  if any(parser.loss == "margin" for parser in parsers):
    raise ValueError("parsers learnt by margins have no posteriors")
  columns, offsets = token_columns(bank), bank.words.offsets
  cells = bank.lengths * (bank.lengths + 1)
  flat = np.full(offsets[-1], -1, np.int32)
  # Parts of the sentences, so that their tables fit into the memory.
  cuts = np.unique(np.cumsum(cells) // _CELLS, return_index=True)[1].tolist()
  for low, high in itertools.pairwise([*cuts, len(bank)]):
    first, stop = offsets[low], offsets[high]
    part = (columns[:, first:stop], offsets[low : high + 1] - first)
    sums = np.zeros(int(cells[low:high].sum()))
    whole = np.ones(high - low, bool)
    for parser in parsers:
      sibling_posteriors.add_arcs(*part, parser.weights, sums, whole)
    heads = sibling_posteriors.least_risk_trees(sums, part[1])
    if not whole.all():  # sums too small for a number: the best trees
      best = sibling_kernel.parse(*part, parsers[0].weights)
      heads = np.where(np.repeat(whole, bank.lengths[low:high]), heads, best)
    flat[first:stop] = heads
  return Ragged(flat=flat, offsets=offsets)
