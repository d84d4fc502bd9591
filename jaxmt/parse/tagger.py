"""Part-of-speech taggers: hidden Markov models.

    tagger = count(treebank)                         # supervised, plain
    tagger = fit(treebank, FeatureConfig())          # supervised, features
    tagger = fit(treebank, FeatureConfig(tags=40))   # from words alone
    tagger = fit(treebank, FeatureConfig(), start=tagger)  # the same, from here
    tags = tag(tagger, treebank)

The plain model has relative frequencies; rare words lend theirs to unknown
words of the same ending and shape. In the other model emissions are locally
normalised and log-linear, `e(w | t) ~ exp(θ_t · f(w))`, with features of the
word's form. The (marginal) log likelihood less an L2 penalty is maximised by
L-BFGS on its gradient (Berg-Kirkpatrick et al. 2010, "direct gradient").

V: words. M: features. K: tags.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from jaxmt.hypergraph.semirings import LOG
from jaxmt.parse import tag_sequences
from jaxmt.parse.arc_parser import batches, put_rows
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.text.treebank import Treebank

_RARE = 1  # words of at most this count lend their emissions
_SMOOTHING = 0.1
_LEAST_RATIO = -4.0  # log of a word's probability over 1 / V, in a start
_CELLS = 1 << 15


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tagger:
  """A hidden Markov model.

  Attributes:
    kind: "plain" or "features".
    tag_names: K names.
    features: M names.
    weights: of the features of a word given each tag, `[K, M]`; -inf is
      allowed.
    normalizer: what is subtracted from their sum, `[K]`.
    start: log probabilities of first tags, `[K]`.
    transition: log probabilities of tags after tags, `[K, K]`.
  """

  kind: str
  tag_names: tuple[str, ...]
  features: tuple[str, ...]
  weights: np.ndarray
  normalizer: np.ndarray
  start: np.ndarray
  transition: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeatureConfig:
  """How the model with features learns.

  Attributes:
    tags: number of tags to find without looking at the treebank's; 0 to learn
      from these.
    iterations: of L-BFGS at most.
    penalty: weights are normal with variance `1 / penalty`.
    seed: of the first weights without tags.
  """

  tags: int = 0
  iterations: int = 100
  penalty: float = 0.1
  seed: int = 0


def word_features(word: str) -> list[str]:
  """Returns the features of a word's form."""
  lower = word.lower()
  names = [f"w:{word}"]
  names += [f"{n}:{lower[-n:]}" for n in (1, 2, 3) if len(word) > n]
  names += [f"s:{shape}" for shape in _shapes(word)]
  return [*names, "any"]


def _shapes(word: str) -> list[str]:
  shapes = {
    "digit": any(sign.isdigit() for sign in word),
    "hyphen": "-" in word,
    "capital": word[:1].isupper(),
  }
  return [name for name, there in shapes.items() if there]


def _class_names(word: str) -> list[str]:
  """Classes of an unknown word, the finest first."""
  shape = "+".join(_shapes(word))
  ends = [word.lower()[-n:] for n in (3, 2, 1)]
  return [*(f"c:{end}:{shape}" for end in ends), f"c::{shape}", "c:"]


def _rows(words: Sequence[str], tagger_kind: str, index: dict[str, int]):
  """Feature numbers of words, padded with M; int32 `[V, J]`."""
  rows = []
  for word in words:
    if tagger_kind == "features":
      rows.append([index[f] for f in word_features(word) if f in index])
    else:
      names = [f"w:{word}", *_class_names(word)]
      known = [index[name] for name in names if name in index]
      rows.append(known[:1])
  width = max((len(row) for row in rows), default=1)
  table = np.full((len(rows), max(width, 1)), len(index), np.int32)
  for number, row in enumerate(rows):
    table[number, : len(row)] = row
  return table


# --- the plain model --------------------------------------------------------


def count(bank: Treebank) -> Tagger:
  """Returns the model of relative frequencies of a tagged treebank."""
  size = len(bank.tag_names)
  if not size:
    raise ValueError("no sentences")
  first, later = first_and_later(bank)
  pairs = np.zeros((size, size))
  np.add.at(pairs, (bank.tags[later - 1], bank.tags[later]), 1.0)
  emitted = np.zeros((size, len(bank.forms)))
  np.add.at(emitted, (bank.tags, bank.words.flat), 1.0)
  return of_counts(
    bank.tag_names,
    bank.forms,
    emitted=emitted,
    first=np.bincount(bank.tags[first], minlength=size).astype(float),
    pairs=pairs,
  )


def of_counts(
  tag_names: Sequence[str],
  forms: Sequence[str],
  *,
  emitted: np.ndarray,
  first: np.ndarray,
  pairs: np.ndarray,
) -> Tagger:
  """Returns the plain model with the relative frequencies of these counts.

  Args:
    tag_names: K names.
    forms: V words.
    emitted: counts of tags with words, `[K, V]`.
    first: of first tags, `[K]`.
    pairs: of tags after tags, `[K, K]`.
  """
  share = lambda x: np.log(
    (x + _SMOOTHING) / (x + _SMOOTHING).sum(-1, keepdims=True)
  ).astype(np.float32)
  totals = emitted.sum(1, keepdims=True)
  # Columns of classes: what rare words of that class have.
  rare = np.flatnonzero(emitted.sum(0) <= _RARE)
  names: dict[str, int] = {}
  columns = []
  for word in rare.tolist():
    for name in _class_names(forms[word]):
      if names.setdefault(name, len(names)) == len(columns):
        columns.append(np.zeros(len(tag_names)))
      columns[names[name]] += emitted[:, word]
  if not columns:
    names, columns = {"c:": 0}, [totals[:, 0]]
  classes = np.stack(columns, 1) + _SMOOTHING * totals / totals.sum()
  table = np.concatenate([emitted + 1e-6, classes], 1)
  return Tagger(
    kind="plain",
    tag_names=tuple(tag_names),
    features=(*(f"w:{form}" for form in forms), *names),
    weights=np.log(table / np.maximum(totals, 1.0)).astype(np.float32),
    normalizer=np.zeros(len(tag_names), np.float32),
    start=share(first),
    transition=share(pairs),
  )


def first_and_later(bank: Treebank) -> tuple[np.ndarray, np.ndarray]:
  """Returns the first tokens of sentences, and all others."""
  starts = bank.words.offsets[:-1][bank.lengths > 0]
  inside = np.ones(len(bank.words.flat), bool)
  inside[starts] = False
  return starts, np.flatnonzero(inside)


# --- the model with features ------------------------------------------------


def _distributions(values, rows):
  """Logs of start, transition, and emission `[K, V + 1]` from weights."""
  weights = jnp.pad(values["emit"], ((0, 0), (0, 1)))
  scores = weights[:, rows].sum(-1)
  log = functools.partial(jax.nn.log_softmax, axis=-1)
  return log(values["start"]), log(values["next"]), log(scores)


@jax.jit
def _likelihood(values, rows, words, tags, lengths):
  """Log likelihood of a batch: joint with tags, marginal if they are -1."""
  start, transition, emission = _distributions(values, rows)
  scores = jnp.moveaxis(emission[:, words], 0, -1)
  known = tags[..., None] >= 0
  right = jax.nn.one_hot(tags, len(start), dtype=bool)
  scores = jnp.where(known & ~right, -jnp.inf, scores)
  return jnp.sum(tag_sequences.total(start, transition, scores, lengths, LOG))


_slope = jax.jit(jax.value_and_grad(_likelihood))


def fit(
  bank: Treebank,
  config: FeatureConfig,
  *,
  start: Tagger | None = None,
  report: Callable[[int, float], None] = lambda iteration, value: None,
) -> Tagger:
  """Learns the model with features.

  Args:
    bank: words, and tags unless `config.tags` or `start` is given.
    config: settings.
    start: learns its tags further, from words alone.
    report: called with the number and the objective of each iteration.

  Raises:
    ValueError: without sentences, or with a start and a number of tags.
  """
  names, hidden = bank.tag_names, bool(config.tags or start)
  if start is not None:
    if config.tags:
      raise ValueError("a start has its own tags")
    names = start.tag_names
  elif config.tags:
    names = tuple(f"T{number}" for number in range(config.tags))
  if not len(bank.words.flat):
    raise ValueError("no sentences")
  index: dict[str, int] = {}
  for form in bank.forms:
    for name in word_features(form):
      index.setdefault(name, len(index))
  rows = _rows(bank.forms, "features", index)
  parts = [
    _padded(bank, part, size, hidden=hidden)
    for part, size in batches(bank.lengths, cells=_CELLS)
  ]
  shapes = {
    "emit": (len(names), len(index)),
    "next": (len(names), len(names)),
    "start": (len(names),),
  }
  rng = np.random.default_rng(config.seed)
  # Equal tags would stay equal: without tags, they start a little apart.
  spread = 0.01 if config.tags else 0.0
  begin = {k: spread * rng.normal(size=shape) for k, shape in shapes.items()}
  if start is not None:
    # The features of single words alone make its distributions, nearly.
    own = [index[f"w:{form}"] for form in bank.forms]
    ratio = _emission(start, bank) + np.log(len(bank.forms))
    begin["emit"][:, own] = np.maximum(ratio, _LEAST_RATIO)
    begin |= {"next": start.transition, "start": start.start}
  flat, unflatten = _flat(begin)

  def objective(vector):
    values = jax.tree.map(jnp.float32, unflatten(vector))
    value, slope = 0.0, np.zeros_like(vector)
    for words, tags, lengths in parts:
      own, slopes = _slope(values, rows, words, tags, lengths)
      value += float(own)
      slope += _flat(slopes)[0]
    value -= 0.5 * config.penalty * float(vector @ vector)
    return -value, -(slope - config.penalty * vector)

  steps = [0]

  def tell(intermediate_result):
    steps[0] += 1
    report(steps[0], -float(intermediate_result.fun))

  found = scipy.optimize.minimize(
    objective,
    flat,
    jac=True,
    method="L-BFGS-B",
    callback=tell,
    options={"maxiter": config.iterations},
  )
  values = unflatten(found.x)
  weights = np.pad(values["emit"], ((0, 0), (0, 1)))
  scores = weights[:, rows].sum(-1)
  log = lambda x: (x - np.logaddexp.reduce(x, -1, keepdims=True)).astype(
    np.float32
  )
  return Tagger(
    kind="features",
    tag_names=tuple(names),
    features=tuple(index),
    weights=values["emit"].astype(np.float32),
    normalizer=np.logaddexp.reduce(scores, -1).astype(np.float32),
    start=log(values["start"]),
    transition=log(values["next"]),
  )


def _flat(values):
  """One vector of arrays in the order of their names, and the way back."""
  names = sorted(values)
  arrays = [np.asarray(values[name], np.float64) for name in names]
  cuts = np.cumsum([array.size for array in arrays])[:-1]
  shapes = [array.shape for array in arrays]

  def back(vector):
    parts = np.split(vector, cuts)
    return {
      name: part.reshape(shape)
      for name, part, shape in zip(names, parts, shapes, strict=True)
    }

  return np.concatenate([array.ravel() for array in arrays]), back


def _padded(bank, part, size, *, hidden):
  """Words, tags (-1: hidden) and lengths of a batch."""
  real = part[part >= 0]
  room = ((0, len(part) - len(real)), (0, 0))
  pad = lambda flat, fill: np.pad(
    ragged.pad(
      ragged.select(Ragged(flat=flat, offsets=bank.words.offsets), real),
      width=size,
      fill=fill,
    )[0],
    room,
    constant_values=fill,
  )
  lengths = np.where(part >= 0, bank.lengths[part], 0).astype(np.int32)
  tags = np.full(len(bank.tags), -1, np.int32) if hidden else bank.tags
  return pad(bank.words.flat, 0), pad(tags, -1), lengths


# --- tagging ----------------------------------------------------------------


def _emission(tagger: Tagger, bank: Treebank) -> np.ndarray:
  """Log probabilities of the words of a treebank given tags, `[K, V]`."""
  index = {name: number for number, name in enumerate(tagger.features)}
  rows = _rows(bank.forms, tagger.kind, index)
  weights = np.pad(tagger.weights, ((0, 0), (0, 1)))
  return weights[:, rows].sum(-1) - tagger.normalizer[:, None]


def tag(tagger: Tagger, bank: Treebank) -> np.ndarray:
  """Returns the best tags of all tokens, numbers in `tagger.tag_names`."""
  emission = _emission(tagger, bank)
  flat = np.zeros(len(bank.words.flat), np.int32)
  for part, size in batches(bank.lengths, cells=_CELLS):
    words, _, lengths = _padded(bank, part, size, hidden=True)
    scores = np.moveaxis(emission[:, words], 0, -1)
    best = tag_sequences.best_tags(
      tagger.start, tagger.transition, scores, lengths
    )
    put_rows(flat, bank.words.offsets, part, np.asarray(best))
  return flat


def accuracy(tagger: Tagger, bank: Treebank, tags: np.ndarray) -> float:
  """Returns the share of right tags in percent.

  Tags that the tagger found by itself count as the treebank's tag that they
  most often stand for (many-to-one).
  """
  if not len(tags):
    return 0.0
  if set(tagger.tag_names) & set(bank.tag_names):
    gold = np.array(bank.tag_names)[bank.tags]
    return float(100 * np.mean(np.array(tagger.tag_names)[tags] == gold))
  table = np.zeros((len(tagger.tag_names), len(bank.tag_names)), np.int64)
  np.add.at(table, (tags, bank.tags), 1)
  return float(100 * table.max(1).sum() / len(tags))
