"""What a recursive recurrent network begins its training with.

Forced decoding of the text says which strings of spans are good, and which
phrase pairs are used. Each of the most frequent phrase pairs has a vector, one
more stands for the rest: the hidden layer of a network that scores phrase pairs
(`ConfidenceLoss`: what forced decoding used against other pairs of the same
source side; Liu et al. 2014, section 5.1), or sums of word vectors (section
6.2). W's columns of representations come from an auto-encoder of neighbours in
forced derivations (section 4.1). v_s is 0: the log-linear model.
"""

import collections
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode import translation_forest
from jaxmt.decode.forced import forced as force
from jaxmt.decode.model import Model
from jaxmt.errors import InputError
from jaxmt.features import recursive_scores
from jaxmt.features.recursive_scores import OWN, RARE, RecursiveModel
from jaxmt.grammar import table as tables
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.models import fitting, phrase_recurrence, recursive_recurrent
from jaxmt.models.fitting import FitOptions
from jaxmt.models.recursive_recurrent import RecursiveNet
from jaxmt.models.word_vectors import WordVectors
from jaxmt.text import ragged
from jaxmt.train import recursive_lists
from jaxmt.train.scorer_training import TrainingText

EMBEDDINGS = ("both", "sparse", "recurrent")
_LOG_SCALE = 30.0  # what translation scores are divided by
_SPREAD = 4.0  # features are divided by this many standard deviations


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecursiveOptions:
  """What is learned, and how.

  Attributes:
    embedding: parts of a phrase pair's vector, one of `EMBEDDINGS`.
    size: numbers of the sparse part, and units of the recurrent networks.
    pairs: phrase pairs with a vector of their own.
    confidence: fit of phrase pairs.
    recurrence: fit of the recurrent networks.
    neighbours: fit of the auto-encoder.
    local: rounds on beams of single spans.
    global_: rounds on beams that lost what is good.
    passes: over the lists of a round.
    batch: lists of a step.
    rate: of Adam.
    l2: strength of the pull of all parameters to 0.
    seed: of everything random.
  """

  embedding: str = "both"
  size: int = 20
  pairs: int = 200_000
  confidence: FitOptions = dataclasses.field(
    default_factory=lambda: FitOptions(epochs=5, batch=256, rate=0.01)
  )
  recurrence: FitOptions = dataclasses.field(
    default_factory=lambda: FitOptions(epochs=5, batch=128, rate=0.005)
  )
  neighbours: FitOptions = dataclasses.field(
    default_factory=lambda: FitOptions(epochs=3, batch=256, rate=0.003)
  )
  local: int = 1
  global_: int = 2
  passes: int = 3
  batch: int = 64
  rate: float = 0.003
  l2: float = 1e-4
  seed: int = 0


def check_options(options: RecursiveOptions) -> None:
  """Raises `InputError` for settings that make no sense."""
  if options.embedding not in EMBEDDINGS:
    raise InputError(
      f"option 'embedding': '{options.embedding}' is none of"
      f" {', '.join(EMBEDDINGS)}"
    )
  for name in ("size", "pairs", "passes", "batch"):
    if getattr(options, name) < 1:
      raise InputError(f"option '{name}' must be at least 1")
  if options.local < 0 or options.global_ < 0:
    raise InputError("rounds must not be negative")
  if not 0 < options.rate < float("inf"):
    raise InputError("option 'rate' must be finite and above 0")
  if not 0 <= options.l2 < float("inf") or options.seed < 0:
    raise InputError("options 'l2' and 'seed' must not be below 0")
  fitting.check_options(options.confidence)
  fitting.check_options(options.recurrence)
  fitting.check_options(options.neighbours)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForcedEvidence:
  """What forced decoding of the text says.

  Attributes:
    known: good strings of each sentence, by category and span.
    used: how often each rule stands in a best derivation, int64 `[R]`.
    neighbours: rules of neighbouring phrase pairs in target order, `[N, 2]`.
    reached: number of sentences with a derivation.
  """

  known: list[recursive_lists.Oracles]
  used: np.ndarray
  neighbours: np.ndarray
  reached: int


def force_text(
  model: Model, training: TrainingText, *, threads: int = 1
) -> ForcedEvidence:
  """Forces a text's first references with a model without a network."""
  lines = [next(filter(None, one), "") for one in training.references]
  source = models.make_source(model, list(training.lines))
  forced = force.force(
    model, source, lines, config=force.ForceConfig(threads=threads)
  )
  forest, size = forced.forest, len(model.table)
  best = translation_forest.kbest(model, source, forest, size=1)
  edges = best.edges.flat
  rules = forest.edges.rule
  used = rules[edges]
  known = used[used < size]
  # Joins of two phrase pairs: both tails have one edge in the derivation.
  chosen = {int(forest.heads[edge]): int(rules[edge]) for edge in edges}
  arity = tables.arity(model.table)
  neighbours = []
  for edge in edges.tolist():
    rule = int(rules[edge])
    tails = [
      chosen.get(int(tail), size) for tail in forest.tails[edge] if tail >= 0
    ]
    if rule >= size or len(tails) != 2 or max(tails) >= size:
      continue
    if arity[tails].any():
      continue
    symbols = model.table.target[rule].tolist()
    neighbours.append(tails[::-1] if symbols[0] == -2 else tails)
  return ForcedEvidence(
    known=recursive_lists.oracles(forced, lines),
    used=np.bincount(known, minlength=size),
    neighbours=np.array(neighbours, np.int64).reshape(-1, 2),
    reached=int(forced.reached.sum()),
  )


# --- what the network begins with -------------------------------------------


def start_model(
  model: Model,
  forced: ForcedEvidence,
  options: RecursiveOptions,
  *,
  vectors: tuple[tuple[WordVectors, ...], tuple[WordVectors, ...]] = ((), ()),
  store: Any = None,
) -> RecursiveModel:
  """Returns the network before its first round.

  Args:
    model: rules, weights, without a network.
    forced: of the text.
    options: see `RecursiveOptions`.
    vectors: of source and target words; the phrase pairs' are their sums side
      by side, instead of learned ones.
    store: of epochs, see `fitting.fit`.

  Raises:
    InputError: if the model has no phrase pair.
  """
  table = model.table
  rules = listed_rules(table, options.pairs)
  if not len(rules):
    raise InputError("the grammar has no phrase pair")
  texts = [_pair_text(table, rule) for rule in rules.tolist()]
  number = _numbers(table, rules)
  names = table.feature_names
  inputs = len(names) + OWN
  part = lambda name: None if store is None else fitting.StorePart(store, name)
  if any(vectors):
    leaves = _word_sums(table, rules, vectors)
  else:
    leaves = _pair_vectors(model, forced, rules, options, part)
  size = leaves.shape[1]
  net = RecursiveNet(pairs=len(leaves), size=size, inputs=inputs)
  key = jax.random.fold_in(jax.random.key(options.seed), 5)
  one = jnp.zeros(1, jnp.int32)
  start = net.init(
    key, one, jnp.zeros((1, 2), jnp.int32), jnp.zeros((1, inputs)), height=1
  )["params"]
  start = dict(start) | {"leaves": jnp.asarray(leaves)}
  encoder = _neighbour_encoder(
    start, number[forced.neighbours], inputs, options, part("neighbours")
  )
  return RecursiveModel(
    pairs=tuple(texts),
    names=names,
    scale=_scales(table, names),
    leaves=np.asarray(leaves, np.float32),
    encoder=np.asarray(encoder, np.float32),
    output=np.zeros(size, np.float32),
  )


def _numbers(table: RuleTable, rules: np.ndarray) -> np.ndarray:
  """The phrase pair of each rule, int32 `[R]`."""
  number = np.full(len(table), RARE, np.int32)
  number[rules] = 1 + np.arange(len(rules))
  return number


def _pair_vectors(model, forced, rules, options, part) -> np.ndarray:
  """The sparse and the recurrent part of phrase pairs, rare ones first."""
  columns = []
  if options.embedding != "recurrent":
    columns.append(
      _confident_leaves(
        model,
        forced,
        _numbers(model.table, rules),
        len(rules) + 1,
        options,
        part("confidence"),
      )
    )
  if options.embedding != "sparse":
    scores = translation_scores(model.table, rules, options, part)
    rare = scores.mean(0, keepdims=True) if len(scores) else np.zeros((1, 2))
    columns.append(np.concatenate([rare, scores]) / _LOG_SCALE)
  return np.concatenate(columns, axis=1).astype(np.float32)


def translation_scores(
  table: RuleTable, rules: np.ndarray, options: RecursiveOptions, part=None
) -> np.ndarray:
  """Returns T of phrase pairs in both directions, float32 `[P, 2]`.

  Args:
    table: the rules.
    rules: phrase pairs, which are learned from.
    options: see `RecursiveOptions`.
    part: gives stores of epochs by name.
  """
  sides = [
    ragged.pad(ragged.select(rows, rules))[0].astype(np.int32)
    for rows in (table.source, table.target)
  ]
  links = ragged.select(table.links, rules)
  row = np.repeat(np.arange(len(rules)), links.lengths)
  out = []
  for place, sizes in enumerate(
    (
      (len(table.source_words), len(table.target_words)),
      (len(table.target_words), len(table.source_words)),
    )
  ):
    given, words = sides[place], sides[1 - place]
    linked = np.zeros_like(words)
    # Of several links the one of the first word stands: it is written last.
    one, other = links.flat[::-1, place], links.flat[::-1, 1 - place]
    linked[row[::-1], other] = given[row[::-1], one]
    net = phrase_recurrence.PhraseRecurrence(
      given=sizes[0], words=sizes[1], size=options.size
    )
    fits = dataclasses.replace(options.recurrence, seed=options.seed)
    store = None if part is None else part(f"recurrence{place}")
    *_, parameters = phrase_recurrence.train(
      words, linked, net, fits, store=store
    )
    out.append(phrase_recurrence.scores(net, parameters, words, linked))
  return np.stack(out, axis=1)


def listed_rules(table: RuleTable, most: int) -> np.ndarray:
  """Returns the most frequent phrase pairs of a table, each once."""
  usable = (tables.arity(table) == 0) & (table.kind == Kind.HIERO)
  rules = np.flatnonzero(usable)
  rules = rules[np.argsort(-table.counts[rules], kind="stable")]
  texts = [_pair_text(table, rule) for rule in rules.tolist()]
  first = {}
  for rule, text in zip(rules.tolist(), texts, strict=True):
    first.setdefault(text, rule)
  return np.array(list(first.values())[:most], np.int64)


def _pair_text(table: RuleTable, rule: int) -> str:
  spell = lambda row, words: [words.words[symbol] for symbol in row]
  return recursive_scores.pair_text(
    spell(table.source[rule].tolist(), table.source_words),
    spell(table.target[rule].tolist(), table.target_words),
  )


def _scales(table: RuleTable, names: tuple[str, ...]) -> np.ndarray:
  """What features are divided by: sums of a few rules are then below 1."""
  columns = [table.feature_names.index(name) for name in names]
  spread = table.features[:, columns].std(0) if len(table) else np.ones(0)
  feature_scales = np.array([10.0, 30.0, 10.0])  # words, language model, order
  return np.concatenate(
    [np.maximum(_SPREAD * spread, 1.0), feature_scales]
  ).astype(np.float32)


def _word_sums(table: RuleTable, rules, vectors) -> np.ndarray:
  """Sums of the word vectors of phrase pairs, one row of zeros first."""
  columns = []
  for side, given in zip(("source", "target"), vectors, strict=True):
    rows, words = getattr(table, side), getattr(table, f"{side}_words").words
    for one in given:
      place = {word: row for row, word in enumerate(one.words)}
      of_word = np.zeros((len(words), one.vectors.shape[1]), np.float32)
      for number, word in enumerate(words):
        if word in place:
          of_word[number] = one.vectors[place[word]]
      picked = ragged.select(rows, rules)
      sums = np.zeros((len(rules), of_word.shape[1]), np.float32)
      row = np.repeat(np.arange(len(rules)), picked.lengths)
      np.add.at(sums, row, of_word[picked.flat])
      columns.append(sums)
  whole = np.concatenate(columns, axis=1)
  return np.concatenate([np.zeros((1, whole.shape[1]), np.float32), whole])


def _confident_leaves(model, forced, number, pairs, options, store):
  """Vectors of phrase pairs whose score tells those that were used."""
  table = model.table
  rng = np.random.default_rng([options.seed, 23])
  start = {
    "leaves": jnp.asarray(
      rng.normal(0, 0.1, (pairs, options.size)), jnp.float32
    ),
    "output": jnp.asarray(rng.normal(0, 0.1, options.size), jnp.float32),
  }
  leaf = (tables.arity(table) == 0) & (table.kind == Kind.HIERO)
  by_source = collections.defaultdict(list)
  for rule in np.flatnonzero(leaf).tolist():
    by_source[table.source[rule].tobytes()].append(rule)
  static = model.columns.score
  good, bad = [], []
  for rules in by_source.values():
    used = [rule for rule in rules if forced.used[rule]]
    other = [rule for rule in rules if not forced.used[rule]]
    for rule in used:
      for wrong in other[:10]:
        good.append(rule)
        bad.append(wrong)
  if good:
    rows = {
      "good": number[good],
      "bad": number[bad],
      "lead": (static[good] - static[bad]).astype(np.float32),
    }
    fits = dataclasses.replace(options.confidence, seed=options.seed)
    for epoch in fitting.fit(
      recursive_recurrent.ConfidenceLoss(), start, rows, fits, store=store
    ):
      start = epoch.parameters
  return np.asarray(start["leaves"])


def _neighbour_encoder(start, rows, inputs, options, store):
  """W after auto-encoding of neighbours."""
  size = start["output"].shape[0]
  key = jax.random.fold_in(jax.random.key(options.seed), 6)
  parameters = {
    "net": {"params": start},
    "decoder": 0.1 * jax.random.normal(key, (size, 2 * size)),
  }
  if len(rows):
    fits = dataclasses.replace(options.neighbours, seed=options.seed)
    for epoch in fitting.fit(
      recursive_recurrent.NeighbourLoss(inputs),
      parameters,
      rows.astype(np.int32),
      fits,
      store=store,
    ):
      parameters = epoch.parameters
  return parameters["net"]["params"]["encoder"]
