"""Trains a network that scores rules in sentences, through forests.

    decode with the network -> forests of all derivations -> gradient steps

and again. The score of an edge is that of the model plus that of the network,

    score(e) = w . f(e) + network(rule(e), sentence(e)),

the loss is any of `jaxmt.losses` that is defined on forests, and its gradient
reaches the network's parameters through the scores of the edges. Costs are
linear BLEU (`tune.forests.forest_data`). The network of the round that decodes
best is returned; the first round is the model without it.

To train a network of another kind in the same way, replace `rule_scores` here:
the inputs of an edge, and the function from parameters and inputs to scores.

E': edges of the decoder. P: pairs of a rule and a sentence.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from jaxmt.decode import model as models
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.model import Model
from jaxmt.errors import InputError
from jaxmt.features import rule_scores
from jaxmt.features.rule_scores import NAME, ScorerModel
from jaxmt.grammar.table import Kind
from jaxmt.losses import registry as losses
from jaxmt.metrics import encoded_text
from jaxmt.models.rule_scorer import RuleScorer
from jaxmt.text import ragged, vocabulary
from jaxmt.text.ragged import Ragged
from jaxmt.tune import kbest_decoder
from jaxmt.tune.forests import forest_data, forest_loss, forest_ngrams
from jaxmt.tune.forests.forest_data import ForestData
from jaxmt.tune.forests.forest_loss import ForestBatch
from jaxmt.tune.forests.forest_pool import ForestPool
from jaxmt.tune.pool import find_metric

ROUND = "round"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScorerOptions:
  """What is trained, and how.

  Attributes:
    loss: a name in `jaxmt.losses.registry`, defined on forests.
    size: numbers of a word's vector.
    hidden: units of the network.
    min_count: rarer words are unknown.
    rounds: decodings of the text, each followed by gradient steps.
    passes: over the forests of a round.
    batch: sentences of a step.
    rate: of Adam.
    l2: strength of the pull of all parameters to 0.
    density: edges of forests for each source word.
    seed: of everything random.
  """

  loss: str = "softmax"
  size: int = 16
  hidden: int = 32
  min_count: int = 2
  rounds: int = 3
  passes: int = 5
  batch: int = 16
  rate: float = 0.003
  l2: float = 1e-4
  density: float = 50.0
  seed: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingText:
  """Sentences to translate, with references.

  Attributes:
    lines: B tokenised source sentences.
    references: one or more translations of each.
    spans: constituents of the sentences, for tree-to-string rules, or None.
  """

  lines: Sequence[str]
  references: encoded_text.ReferenceLines
  spans: Ragged | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedScorer:
  """What training ends with.

  Attributes:
    scorer: the network of the best round.
    history: BLEU and loss of each round.
  """

  scorer: ScorerModel
  history: tuple[dict[str, Any], ...]


def check_options(options: ScorerOptions) -> None:
  """Raises `InputError` for settings that make no sense."""
  for name in ("size", "hidden", "min_count", "rounds", "passes", "batch"):
    if getattr(options, name) < 1:
      raise InputError(f"option '{name}' must be at least 1")
  for name in ("rate", "density"):
    if not 0 < getattr(options, name) < float("inf"):
      raise InputError(f"option '{name}' must be finite and above 0")
  if not 0 <= options.l2 < float("inf") or options.seed < 0:
    raise InputError("options 'l2' and 'seed' must not be below 0")
  if options.loss not in forest_losses():
    raise InputError(
      f"option 'loss': '{options.loss}' is none of {', '.join(forest_losses())}"
    )


def forest_losses() -> list[str]:
  """Returns the losses that can be minimised here."""
  return [
    name
    for name in losses.names()
    if losses.find(name).forest is not None and losses.find(name).finish is None
  ]


def start_model(model: Model, training: TrainingText, options: ScorerOptions):
  """Returns an untrained network with the words of rules and sentences."""
  count = max(options.min_count, 1)
  sides = {}
  for side in ("source", "target"):
    known = getattr(model.table, f"{side}_words")
    flat = getattr(model.table, side).flat
    seen = np.bincount(flat[flat >= 0], minlength=len(known.words))
    seen = np.flatnonzero(seen >= count)
    seen = seen[seen >= len(vocabulary.SPECIALS)]
    words = dict.fromkeys(known.words[word] for word in seen.tolist())
    if side == "source":
      frequent = vocabulary.build([list(training.lines)], min_count=count)
      words |= dict.fromkeys(frequent.words[len(vocabulary.SPECIALS) :])
    sides[side] = vocabulary.Vocabulary(words=(*vocabulary.SPECIALS, *words))
  module = RuleScorer(
    source_words=len(sides["source"]),
    target_words=len(sides["target"]),
    size=options.size,
    hidden=options.hidden,
  )
  ids = jnp.zeros((1, 1), jnp.int32)
  key = jax.random.key(options.seed)
  parameters = module.init(key, ids, ids, ids, jnp.zeros(1, jnp.int32))
  return ScorerModel(
    source_words=sides["source"],
    target_words=sides["target"],
    parameters=jax.tree.map(np.asarray, parameters),
  )


def train(
  model: Model,
  training: TrainingText,
  options: ScorerOptions,
  *,
  config: DecodeConfig,
  development: TrainingText | None = None,
  store: Any = None,
  on_round: Callable[[Mapping[str, Any]], None] = lambda record: None,
) -> TrainedScorer:
  """Trains a network for a model.

  Args:
    model: rules, language model and tuned weights, which stay as they are.
    training: what forests are made of.
    options: see `ScorerOptions`.
    config: how to decode.
    development: what rounds are judged by; the training text if None.
    store: of finished rounds (`checkpoint.Partial`), to resume from.
    on_round: called with the record of each decoding.

  Raises:
    InputError: for bad settings, or a loss that is not finite.
  """
  check_options(options)
  scorer = start_model(model, training, options)
  state = {"now": scorer, "best": scorer}
  first, state, history = _restore(store, state, options.rounds)
  weights = {**model.weights, NAME: 1.0}
  for number in range(first, options.rounds + 1):
    last = number == options.rounds
    lists = _decode(model, state["now"], weights, training, config, options)
    judged, on = lists, training
    if development is not None:
      on = development
      judged = _decode(model, state["now"], weights, on, config, options)
    record = {"round": number, "bleu": _bleu(judged, on.references)}
    if all(record["bleu"] > one["bleu"] for one in history):
      state["best"] = state["now"]
    if not last:
      pool = lists.forests.bind(training.references)
      state["now"], record["loss"] = _improve(
        model, state["now"], pool, training, options, number
      )
    history.append(record)
    on_round(record)
    if store is not None and not last:
      _save(store, number + 1, state, history)
  return TrainedScorer(scorer=state["best"], history=tuple(history))


def _decode(model, scorer, weights, text: TrainingText, config, options):
  """The best translations and forests of a text."""
  scored = dataclasses.replace(
    model, local=(*model.local, *scorer.features()), templates=None
  )
  decode = kbest_decoder.make_decode(
    models.with_templates(scored, None),
    text.lines,
    kbest_decoder.ListOptions(
      size=1,
      density=options.density,
    ),
    config=config,
    spans=text.spans,
  )
  return decode(weights, np.arange(len(text.lines)))


def _bleu(
  lists: CandidateLists, references: encoded_text.ReferenceLines
) -> float:
  """Corpus BLEU of the first candidate of each sentence."""
  _, first = np.unique(lists.sentence, return_index=True)
  lines = [""] * len(references)
  for row in first.tolist():
    lines[int(lists.sentence[row])] = lists.lines[row]
  return text_bleu(lines, references)


def text_bleu(
  lines: list[str], references: encoded_text.ReferenceLines
) -> float:
  """Returns the corpus BLEU of translations."""
  kind = find_metric("bleu")
  known = encoded_text.encode_references(references, unit=kind.unit)
  statistics = kind.statistics(
    kind.prepare(known.references),
    known.encode(lines),
    np.arange(len(references)),
  )
  return float(kind.corpus_score(statistics.sum(0, dtype=np.float64)))


# --- forests and their edges ------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class EdgeInputs:
  """What the network sees of the decoder's edges.

  Attributes:
    source: words of the rules of P pairs, int32 `[P, I]`.
    target: likewise, `[P, J]`.
    sentence: of each pair, int32 `[P]`.
    words: of the sentences, int32 `[B, K]`.
    pair: of each edge; -1 for edges that are not scored, `[E']`.
  """

  source: np.ndarray
  target: np.ndarray
  sentence: np.ndarray
  words: np.ndarray
  pair: np.ndarray


def edge_inputs(
  model: Model, scorer: ScorerModel, pool: ForestPool, lines: Sequence[str]
) -> EdgeInputs:
  """Returns what the network sees of the edges of forests.

  As in decoding, glue rules, copied words and the goal are not scored.
  """
  forest = pool.spelled.forest
  cuts = forest.edge_offsets[forest.node_offsets]
  sentence = np.repeat(np.arange(len(forest)), np.diff(cuts))
  rule = np.asarray(forest.edges.rule, np.int64)
  scored = (rule >= 0) & (rule < len(model.table))
  scored[scored] = model.table.kind[rule[scored]] != Kind.GLUE
  keys = sentence[scored] * (len(model.table) + 1) + rule[scored]
  pairs, place = np.unique(keys, return_inverse=True)
  row, used = np.divmod(pairs, len(model.table) + 1)
  source, target = rule_scores.rule_words(scorer, model.table, used)
  pair = np.full(len(rule), -1, np.int64)
  pair[scored] = place
  return EdgeInputs(
    source=source,
    target=target,
    sentence=row.astype(np.int32),
    words=rule_scores.sentence_words(
      scorer, [tuple(line.split()) for line in lines]
    ),
    pair=pair,
  )


def forest_inputs(
  model: Model,
  scorer: ScorerModel,
  pool: ForestPool,
  lines: Sequence[str],
) -> tuple[ForestData, EdgeInputs]:
  """Returns forests with costs, and what the network sees of their edges.

  The features of `ForestData` are the score of an edge without this network,
  and the number of its pair.
  """
  inputs = edge_inputs(model, scorer, pool, lines)
  spelled = pool.spelled
  every = spelled.features @ np.array(
    [spelled.weights[name] for name in spelled.names]
  )
  pair_scores = np.append(_pair_scores(scorer, inputs), 0.0)[inputs.pair]
  data = forest_data.linear_data(
    forest_ngrams.split(pool),
    np.stack([every - pair_scores, inputs.pair], axis=1),
    scores=every,
    references=pool.references,
  )
  return data, inputs


def _pair_scores(scorer: ScorerModel, inputs: EdgeInputs) -> np.ndarray:
  scores = scorer.module.apply(
    scorer.parameters,
    inputs.source,
    inputs.target,
    inputs.words,
    inputs.sentence,
  )
  return np.asarray(scores, np.float64)


# --- gradient steps ---------------------------------------------------------


def batch_loss(
  parameters: Any,
  batch: ForestBatch,
  inputs: Mapping[str, Array],
  costs: Array,
  *,
  module: RuleScorer,
  loss: str,
  scale: float,
  settings: tuple[tuple[str, float], ...],
) -> tuple[Array, Array]:
  """Returns `(sum, weight)` of the loss of a batch of forests.

  Args:
    parameters: of the network.
    batch: features are those of `forest_inputs`.
    inputs: the arrays of `EdgeInputs` but `pair`.
    costs: of BLEU's eight statistics.
    module: the network.
    loss: a name in the registry.
    scale: of all scores.
    settings: of the loss.
  """
  pair = jnp.asarray(batch.features)[:, 1].astype(jnp.int32)
  place = jnp.maximum(pair, 0)
  rule_scores: Any = module.apply(
    parameters,
    inputs["source"][place],
    inputs["target"][place],
    inputs["words"],
    inputs["sentence"][place],
  )
  scores = batch.features[:, 0] + jnp.where(pair >= 0, rule_scores, 0.0)
  function = losses.find(loss).forest
  assert function is not None  # `check_options` has seen to it
  return function(
    batch.packed,
    scale * scores[batch.origin],
    batch.statistics[:, :8] @ costs,
    **dict(settings),
  )


def _optimizer(options: ScorerOptions) -> optax.GradientTransformation:
  return optax.chain(
    optax.add_decayed_weights(options.l2), optax.adam(options.rate)
  )


@functools.partial(jax.jit, static_argnames=("module", "options", "scale"))
def _step(parameters, state, batch, *, inputs, costs, module, options, scale):
  """One step of Adam: `(parameters, state, mean loss before it)`."""
  value = functools.partial(
    batch_loss,
    module=module,
    loss=options.loss,
    scale=scale,
    settings=tuple(losses.find(options.loss).settings.items()),
  )
  (total, weight), slopes = jax.value_and_grad(value, has_aux=True)(
    parameters, batch, inputs, costs
  )
  weight = jnp.maximum(weight, 1.0)
  slopes = jax.tree.map(lambda leaf: leaf / weight, slopes)
  updates, state = _optimizer(options).update(slopes, state, parameters)
  return optax.apply_updates(parameters, updates), state, total / weight


def _rounded(rows: np.ndarray) -> np.ndarray:
  """Rows with rows of zeros after them, so that few shapes are compiled."""
  more = ragged.bucket(max(len(rows), 16)) - len(rows)
  return np.pad(rows, [(0, more), *[(0, 0)] * (rows.ndim - 1)])


def _improve(model, scorer, pool, training: TrainingText, options, number):
  """The network after gradient steps on forests, and the mean loss."""
  data, inputs = forest_inputs(model, scorer, pool, training.lines)
  groups = forest_loss.group_sentences(
    data, count=options.batch, seed=options.seed + number
  )
  batches = forest_loss.make_batches(data, groups)
  record = losses.find(options.loss)
  largest = max(map(abs, model.weights.values()), default=0.0)
  scale = record.start_scale / largest if record.start_scale and largest else 1
  step = functools.partial(
    _step,
    inputs={
      name: jnp.asarray(_rounded(getattr(inputs, name)))
      for name in ("source", "target", "sentence", "words")
    },
    costs=jnp.asarray(data.slopes * record.cost_scale, jnp.float32),
    module=scorer.module,
    options=options,
    scale=scale,
  )
  parameters = jax.tree.map(jnp.asarray, scorer.parameters)
  state = _optimizer(options).init(parameters)
  rng = np.random.default_rng([options.seed, number])
  levels = [0.0]
  for _ in range(options.passes):
    levels = []
    for place in rng.permutation(len(batches)).tolist():
      parameters, state, level = step(parameters, state, batches[place])
      levels.append(float(level))
    if not np.isfinite(levels).all():
      raise InputError("the loss is not finite: lower the rate")
  better = dataclasses.replace(
    scorer, parameters=jax.tree.map(np.asarray, parameters)
  )
  return better, float(np.mean(levels))


# --- rounds in a store ------------------------------------------------------


def _save(store, number: int, state, history) -> None:
  values = {"history": np.frombuffer(json.dumps(history).encode(), np.uint8)}
  for name, scorer in state.items():
    for place, leaf in enumerate(jax.tree.leaves(scorer.parameters)):
      values[f"{name}{place}"] = np.ravel(leaf)
  store.put(f"{ROUND}{number}", values)
  store.drop(f"{ROUND}{number - 1}")


def _restore(store, state, rounds: int):
  """`(round, networks, history)` of the last stored round, or the start."""
  for number in range(rounds, 0, -1) if store is not None else ():
    values = store.get(f"{ROUND}{number}")
    if values is None:
      continue
    restored = {}
    for name, scorer in state.items():
      leaves, structure = jax.tree.flatten(scorer.parameters)
      leaves = [
        np.asarray(values[f"{name}{place}"], leaf.dtype).reshape(leaf.shape)
        for place, leaf in enumerate(leaves)
      ]
      parameters = jax.tree.unflatten(structure, leaves)
      restored[name] = dataclasses.replace(scorer, parameters=parameters)
    return number, restored, json.loads(bytes(values["history"]))
  return 0, state, []
