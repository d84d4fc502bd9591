"""The arrays of the n-gram automaton, and scoring text with them on the host.

States are contexts: a state is an n-gram that some longer n-gram continues, or
one that has a back-off weight; state 0 is the empty context. After a word the
automaton is in the longest suffix that is a state, so two histories are in the
same state exactly if KenLM's right states are equal.

Words have numbers from 1: `<unk>`, `<s>`, `</s>`, then the others by falling
unigram probability. A state's number is its offset in one table (see
`double_array`): slot `state + word` holds that arc, slot `state` itself the
back-off. Columns of a slot, 12 bytes in all:

    check   the state that owns the slot, or -1
    follow  arc: the next state, with two flags (below); back-off: the state
            of the longest proper suffix
    score   back-off: B(state), the sum of ln back-off weights from here down
            to state 0; arc: ln p(word | state) - B(state)

An unseen word costs the back-offs from the state to the one, s, whose arc is
taken: B(state) - B(s). With B(s) taken off the arc's score beforehand,

    ln p(word | state) = B(state) + score[s + word].

Flags of an arc's `follow`: LEFT, the n-gram is the suffix of a longer one, so
that words before it could change the score; WHOLE, the next state is the
n-gram itself. Joining two strings needs them.
"""

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.lm import double_array, suffix_closure
from jaxmt.lm import ngram_model as model_lib
from jaxmt.lm.ngram_model import NgramModel
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets

ROOT = 0  # the state without context
NO_WORD, UNK_WORD, BOS_WORD, EOS_WORD = 0, 1, 2, 3
LEFT, WHOLE = 1 << 30, -(1 << 31)
STATE_MASK = (1 << 30) - 1
MISSING_UNKNOWN = -100.0  # log10 p(<unk>) where the model has none, as KenLM
_LN10 = np.log(10.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tables:
  """The automaton's arrays, T slots.

  Attributes:
    check: int32 `[T]`.
    follow: int32 `[T]`.
    score: float32 `[T]`.
    length: order of the n-gram (arc) or words of the context (back-off), uint8
      `[T]`; only for reports.
    begin: the state after `<s>`.
    order: length of the longest n-grams, N.
    words: word of each id from `UNK_WORD` on; `words[0]` is id 1.
    ngrams: number of n-grams that the table holds.
  """

  check: np.ndarray
  follow: np.ndarray
  score: np.ndarray
  length: np.ndarray
  begin: int
  order: int
  words: tuple[str, ...]
  ngrams: int

  @functools.cached_property
  def index(self) -> Mapping[str, int]:
    """The id of each word."""
    return {word: number for number, word in enumerate(self.words, start=1)}

  @property
  def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(check, follow, score)`, as host kernels take them."""
    return self.check, self.follow, self.score

  @property
  def bytes_per_ngram(self) -> float:
    """Device memory over number of n-grams."""
    return sum(array.nbytes for array in self.columns) / self.ngrams


def word_map(tables: Tables, words: Sequence[str]) -> np.ndarray:
  """Returns the automaton's id of each word, `UNK_WORD` if unknown; int32."""
  find = tables.index.get
  return np.array([find(word, UNK_WORD) for word in words], np.int32)


@njit
def find_arc(table, state, word):
  """Returns the state, among `state` and its back-offs, whose arc `word` takes.

  Args:
    table: the columns `(check, follow, score)` of `Tables`.
    state: language model state.
    word: language model word id.
  """
  check, follow, _ = table
  while state != 0 and (
    state + word >= len(check) or check[state + word] != state
  ):
    state = follow[state]
  return state


@njit
def advance(table, state, word):
  """Reads one word: `(ln p, next state)`, as `automaton.step`."""
  taken = find_arc(table, state, word)
  gain = table[2][state] + table[2][taken + word]
  return gain, table[1][taken + word] & STATE_MASK


def validate(tables: Tables) -> None:
  """Checks arrays that come from a file: kernels trust them.

  Every state's back-offs lead to the root, where every word has an arc; no
  number leads out of the table.

  Raises:
    InputError: naming the first array that is wrong.
  """
  kinds = {"check": np.int32, "follow": np.int32, "score": np.float32}
  size = len(tables.check)
  for name, kind in {**kinds, "length": np.uint8}.items():
    array = getattr(tables, name)
    if array.dtype != kind or array.shape != (size,):
      raise InputError(f"is {array.dtype} {array.shape}", path=name)
  count = len(tables.words)
  if not EOS_WORD <= count < size or len(set(tables.words)) != count:
    raise InputError(f"{count} words, in a table of {size}", path="words")
  if not 1 <= tables.order <= model_lib.MAX_ORDER:
    raise InputError(f"order {tables.order}", path="facts")
  check, slots = tables.check, np.arange(size)
  if check.min() < -1 or check.max() >= size or check[-1] != -1:
    raise InputError("a slot belongs to no state of the table", path="check")
  if check[: count + 1].any():
    raise InputError("the root lacks a word", path="check")
  is_state = check == slots
  owned = check >= 0
  if not is_state[check[owned]].all():
    raise InputError("a slot belongs to what is no state", path="check")
  next_state = np.where(is_state, tables.follow, tables.follow & STATE_MASK)
  if next_state[owned].min() < 0 or next_state[owned].max() >= size:
    raise InputError("leads out of the table", path="follow")
  if not is_state[next_state[owned]].all():
    raise InputError("leads to what is no state", path="follow")
  longer = is_state & (slots != ROOT)
  length = tables.length.astype(np.int64)
  if length[ROOT] or length[is_state].max() >= tables.order:
    raise InputError("a context of another length", path="length")
  if (length[next_state[longer]] >= length[longer]).any():
    raise InputError("a back-off is no shorter context", path="follow")
  if next_state[ROOT] != ROOT or not np.isfinite(tables.score).all():
    raise InputError("a score is no finite number", path="score")
  if not 0 <= tables.begin < size or not is_state[tables.begin]:
    raise InputError("starts in what is no state", path="facts")


def build_tables(model: NgramModel) -> Tables:
  """Builds the automaton's arrays.

  Raises:
    ValueError: if the model has no `<s>` or `</s>`, or needs 2**30 slots.
  """
  model = suffix_closure.close(_with_unknown(model))
  ids = _word_ids(model)
  is_state = _states(model)
  firsts = np.cumsum([0] + [int(flags.sum()) for flags in is_state])
  rows = [  # number of the state among all states but the root, or -1
    np.where(flags, np.cumsum(flags) - 1 + first, -1)
    for flags, first in zip(is_state, firsts[:-1], strict=True)
  ]
  targets, links = _targets(model, rows)
  backoff = np.concatenate(
    [np.zeros(0, np.float32)]
    + [
      level.backoff[f]
      for level, f in zip(model.levels[:-1], is_state, strict=True)
    ]
  )
  total = _totals(backoff.astype(np.float64) * _LN10, links, firsts)
  offsets, size = _place(model, rows, ids, int(firsts[-1]))

  check = np.full(size + 1, -1, np.int32)  # the last slot stays empty
  follow = np.zeros(size + 1, np.int32)
  score = np.zeros(size + 1, np.float32)
  length = np.zeros(size + 1, np.uint8)
  check[ROOT] = ROOT
  # Row -1, the last of these, is the root.
  offset = np.append(offsets, np.int32(ROOT))
  total = np.append(total, 0.0)
  check[offsets] = offsets
  follow[offsets] = offset[links]
  score[offsets] = total[:-1]
  length[offsets] = np.repeat(np.arange(1, len(firsts)), np.diff(firsts))
  for k, level in enumerate(model.levels):
    row = rows[k - 1][level.context] if k else np.full(len(level), -1)
    slot = offset[row] + ids[level.word]
    check[slot] = offset[row]
    follow[slot] = offset[targets[k]] | _flags(model, is_state, k)
    score[slot] = level.probability.astype(np.float64) * _LN10 - total[row]
    length[slot] = k + 1
  order = np.argsort(ids)
  begin = follow[BOS_WORD] & STATE_MASK
  return Tables(
    check=check,
    follow=follow,
    score=score,
    length=length,
    begin=int(begin),
    order=model.order,
    words=tuple(model.words[word] for word in order.tolist()),
    ngrams=sum(model.counts),
  )


def _with_unknown(model: NgramModel) -> NgramModel:
  """Adds `<unk>` at its customary probability if the model has none."""
  for marker in (model_lib.BEGIN, model_lib.END):
    if marker not in model.words:
      raise ValueError(f"the model has no {marker}")
  if model_lib.UNKNOWN in model.words:
    return model
  if "<UNK>" in model.words:
    words = list(model.words)
    words[words.index("<UNK>")] = model_lib.UNKNOWN
    return dataclasses.replace(model, words=tuple(words))
  level = model_lib.append(
    model.levels[0],
    context=np.zeros(1, np.int32),
    word=np.full(1, len(model.words), np.int32),
    suffix=np.zeros(1, np.int32),
    probability=np.full(1, MISSING_UNKNOWN, np.float32),
    backoff=np.zeros(1, np.float32),
  )
  return NgramModel(
    words=(*model.words, model_lib.UNKNOWN), levels=(level, *model.levels[1:])
  )


def _word_ids(model: NgramModel) -> np.ndarray:
  """Numbers the words from 1, specials first, then the likeliest; int32."""
  key = -model.levels[0].probability.astype(np.float64)
  specials = (model_lib.UNKNOWN, model_lib.BEGIN, model_lib.END)
  for place, special in enumerate(specials):
    key[model.words.index(special)] = place - 1000.0
  ids = np.empty(len(key), np.int32)
  ids[np.argsort(key, kind="stable")] = np.arange(1, len(key) + 1)
  return ids


def _states(model: NgramModel) -> list[np.ndarray]:
  """Which n-grams are states, bool `[n]` per order below the highest."""
  result = []
  for level, longer in itertools.pairwise(model.levels):
    flags = level.backoff != 0
    flags[longer.context] = True
    result.append(flags)
  return result


def _targets(
  model: NgramModel, rows: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray]:
  """Returns the longest suffix state of each n-gram, and of each state.

  Returns:
    `(targets, links)`: per order, for each n-gram the row of the longest
    suffix of it, itself included, that is a state; and for each row that of
    the longest proper suffix. -1 is the root.
  """
  targets, links = [], [np.zeros(0, np.int64)]
  for k, level in enumerate(model.levels):
    if k == 0:
      below = np.full(len(level), -1)
    else:
      below = targets[-1][level.suffix]
    if k == model.order - 1:
      targets.append(below)
    else:
      targets.append(np.where(rows[k] >= 0, rows[k], below))
      links.append(below[rows[k] >= 0])
  return targets, np.concatenate(links)


def _totals(
  backoff: np.ndarray, links: np.ndarray, firsts: np.ndarray
) -> np.ndarray:
  """Returns B of each state, float64; shorter states come first."""
  total = np.append(backoff, 0.0)
  for first, last in itertools.pairwise(firsts):
    total[first:last] += total[links[first:last]]
  return total[:-1]


def _place(
  model: NgramModel, rows: Sequence[np.ndarray], ids: np.ndarray, states: int
) -> tuple[np.ndarray, int]:
  """Gives every state an offset; returns them and the table's size."""
  longer = model.levels[1:]
  nothing = np.zeros(0, np.int32)
  row = np.concatenate(
    [nothing, *(rows[k][level.context] for k, level in enumerate(longer))]
  )
  column = np.concatenate([nothing, *(ids[level.word] for level in longer)])
  widths = np.bincount(row, minlength=states)
  starts = row_offsets(widths)
  offsets, size = double_array.place_rows(
    starts,
    column[np.argsort(row, kind="stable")],
    np.argsort(-widths, kind="stable"),
    len(ids) + 1,
  )
  if size > STATE_MASK:
    raise ValueError(f"the model needs {size} slots; the most is {STATE_MASK}")
  return offsets.astype(np.int32), int(size)


def _flags(
  model: NgramModel, is_state: Sequence[np.ndarray], k: int
) -> np.ndarray:
  """The flags of order k + 1, int32 `[n]`."""
  flags = np.zeros(len(model.levels[k]), np.int32)
  if k < model.order - 1:
    flags[model.levels[k + 1].suffix] |= np.int32(LEFT)
    flags |= np.where(is_state[k], np.int32(WHOLE), np.int32(0))
  return flags


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextScores:
  """Scores of a text, sentence by sentence; each ends with `</s>`.

  Attributes:
    words: ids, `</s>` included, int32.
    log10: log10 p of each of them given the ones before, float32 rows.
    length: how long an n-gram the model knew for each, uint8 `[T]`.
  """

  words: Ragged
  log10: Ragged
  length: np.ndarray

  @property
  def totals(self) -> np.ndarray:
    """log10 p of each sentence, float64 `[N]`."""
    return _row_sums(self.log10.flat.astype(np.float64), self.log10.offsets)

  @property
  def unknown(self) -> np.ndarray:
    """The number of unknown words of each sentence, int64 `[N]`."""
    flags = self.words.flat == UNK_WORD
    return _row_sums(flags, self.words.offsets).astype(np.int64)


def _row_sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
  """Sums of rows; every row has at least one item."""
  if len(offsets) == 1:
    return np.zeros(0)
  return np.add.reduceat(values.astype(np.float64), offsets[:-1])


def perplexities(scores: TextScores) -> tuple[float, float]:
  """Returns the perplexity with and without the unknown words' share.

  Both count `</s>` as a word. Without any (known) word, it is nan.
  """
  unknown = scores.words.flat == UNK_WORD
  log10 = scores.log10.flat.astype(np.float64)
  known = len(log10) - int(unknown.sum())
  everything = np.sum(log10) / len(log10) if len(log10) else np.nan
  without = np.sum(log10[~unknown]) / known if known else np.nan
  return float(10.0**-everything), float(10.0**-without)


def score_text(tables: Tables, sentences: Ragged) -> TextScores:
  """Scores sentences of word ids (see `tables.word_map`) without markers."""
  offsets = sentences.offsets + np.arange(len(sentences) + 1)
  words, scores, length = _score(
    tables.check,
    tables.follow,
    tables.score,
    tables.length,
    tables.begin,
    sentences.flat.astype(np.int32),
    sentences.offsets.astype(np.int64),
  )
  return TextScores(
    words=Ragged(flat=words, offsets=offsets),
    log10=Ragged(
      flat=(scores / np.log(10.0)).astype(np.float32), offsets=offsets
    ),
    length=length,
  )


@njit
def _score(check, follow, score, length, begin, flat, offsets):
  """Walks the automaton over each sentence and `</s>`."""
  size = len(flat) + len(offsets) - 1
  words = np.empty(size, np.int32)
  scores = np.empty(size, np.float64)
  lengths = np.empty(size, np.uint8)
  at = 0
  for row in range(len(offsets) - 1):
    state = begin
    for item in range(offsets[row], offsets[row + 1] + 1):
      word = EOS_WORD if item == offsets[row + 1] else flat[item]
      total = np.float64(score[state])
      slot = state + word
      while slot >= len(check) or check[slot] != state:
        state = follow[state]
        slot = state + word
      words[at] = word
      scores[at] = total + score[slot]
      lengths[at] = length[slot]
      at += 1
      state = follow[slot] & STATE_MASK
  return words, scores, lengths
