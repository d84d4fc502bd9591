"""A trained network's score of a rule in a sentence, as a feature.

The network is `jaxmt.models.rule_scorer`; `jaxmt.train.scorer_training` learns
its parameters through forests. In decoding it is a per-sentence feature of
rules like any other (`local_features.SentenceFeature`).
"""

import dataclasses
import functools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxmt.errors import InputError
from jaxmt.features.local_features import SentenceFeature
from jaxmt.grammar.table import RuleTable
from jaxmt.models.rule_scorer import PADDING, RuleScorer
from jaxmt.text import ragged, vocabulary
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import SPECIALS, UNK, Vocabulary

NAME = "RuleScore"
WIDTHS = (8, 12, 96)  # words of source sides, target sides and sentences
_CHUNK = 1 << 14  # rules computed together
# Where the network's arrays stand in the tree of its parameters.
_ARRAYS = {
  "scorer_source": ("source", "embedding"),
  "scorer_target": ("target", "embedding"),
  "scorer_context": ("context", "embedding"),
  "scorer_rule": ("of_rule", "kernel"),
  "scorer_bias": ("of_rule", "bias"),
  "scorer_sentence": ("of_sentence", "kernel"),
  "scorer_output": ("output", "kernel"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScorerModel:
  """A network with its words, on the host.

  Attributes:
    source_words: words of source sides and sentences; others are `UNK`.
    target_words: words of target sides.
    parameters: of the network.
  """

  source_words: Vocabulary
  target_words: Vocabulary
  parameters: Any

  @functools.cached_property
  def module(self) -> RuleScorer:
    """The network."""
    size, hidden = self.parameters["params"]["of_sentence"]["kernel"].shape
    return RuleScorer(
      source_words=len(self.source_words),
      target_words=len(self.target_words),
      size=size,
      hidden=hidden,
    )

  @functools.cached_property
  def double_parameters(self) -> Any:
    """The parameters in double precision, on the device."""
    with jax.enable_x64(True):
      return jax.tree.map(
        lambda leaf: jax.numpy.asarray(leaf, np.float64), self.parameters
      )

  @functools.cached_property
  def _latest(self) -> dict[str, Any]:
    return {"lock": threading.Lock()}

  def ids(self, side: str, words: Vocabulary) -> np.ndarray:
    """Returns the network's ids of a table's words, int32 `[V]`.

    Those of the latest vocabulary of a side are kept.
    """
    latest = self._latest.get(side)
    if latest is not None and latest[0] is words:
      return latest[1]
    find = getattr(self, f"{side}_words").index.get
    ids = np.array([find(word, UNK) for word in words.words], np.int32)
    ids[: len(SPECIALS)] = UNK
    self._latest[side] = (words, ids)
    return ids

  def features(self) -> tuple[SentenceFeature, ...]:
    """Returns the feature of this network."""
    return (SentenceFeature(name=NAME, values=self.values, batch=self.batch),)

  def values(
    self, table: RuleTable, rules: np.ndarray, sentence: tuple[str, ...]
  ) -> np.ndarray:
    """Returns the scores of rules in a sentence, float64 `[N]`."""
    return self.batch(table, rules, np.zeros(len(rules), np.int64), [sentence])

  def batch(
    self,
    table: RuleTable,
    rules: np.ndarray,
    rows: np.ndarray,
    sentences: Sequence[tuple[str, ...]],
  ) -> np.ndarray:
    """Returns the scores of pairs of a rule and a sentence, float64 `[N]`.

    Args:
      table: of the rules.
      rules: int64 `[N]`.
      rows: which sentence, int64 `[N]`.
      sentences: their words.
    """
    words = sentence_words(self, sentences)
    words = np.pad(words, [(0, ragged.bucket(len(words)) - len(words)), (0, 0)])
    given = _part(self, "sentence_part", words)
    layer = np.tanh(self._rule_parts(table, rules)[rules] + given[rows])
    output = self.parameters["params"]["output"]["kernel"]
    # Row by row: a matrix product may round rows by their place.
    return np.einsum("nh,h->n", layer, output[:, 0]).astype(np.float64)

  def _rule_parts(self, table: RuleTable, rules: np.ndarray) -> np.ndarray:
    """What rules give to the hidden layer, `[R, hidden]`, set for `rules`.

    It is computed once for each rule of the latest table.
    """
    with self._latest["lock"]:  # searches run in threads
      latest = self._latest.get("parts")
      if latest is None or latest[0] is not table:
        hidden = self.module.hidden
        parts = np.zeros((len(table), hidden), np.float32)
        latest = (table, parts, np.zeros(len(table), np.bool_))
        self._latest["parts"] = latest
      _, parts, known = latest
      missing = np.unique(rules[~known[rules]])
      for start in range(0, len(missing), _CHUNK):
        some = missing[start : start + _CHUNK]
        # Few sizes, so that little is compiled.
        padded = np.pad(
          some, (0, ragged.bucket(max(len(some), 64)) - len(some))
        )
        sides = rule_words(self, table, padded)
        parts[some] = _part(self, "rule_part", *sides)[: len(some)]
      known[missing] = True
    return parts

  def check(self, table: RuleTable, path: str | None = None) -> None:
    """Refuses a grammar of other languages.

    Raises:
      InputError: if the network knows no word of one side of the rules.
    """
    for side in ("source", "target"):
      known = getattr(self, f"{side}_words").index
      words = getattr(table, f"{side}_words").words[len(SPECIALS) :]
      if words and not any(word in known for word in words):
        raise InputError(
          f"the scorer knows no {side} word of the grammar", path=path
        )

  def to_values(self) -> dict[str, Any]:
    """Returns the model as named arrays and lists of strings."""
    values: dict[str, Any] = {
      name: np.asarray(self.parameters["params"][layer][kind], np.float32)
      for name, (layer, kind) in _ARRAYS.items()
    }
    values["scorer_source_words"] = vocabulary.to_lines(self.source_words)
    values["scorer_target_words"] = vocabulary.to_lines(self.target_words)
    return values


def _part(model: ScorerModel, method: str, *ids: np.ndarray) -> np.ndarray:
  """A part of the hidden layer, float32 `[N, hidden]`.

  It is computed in double precision, so that what is computed together does not
  change its bits.
  """
  with jax.enable_x64(True):
    layer = _apply(model.module, method, model.double_parameters, *ids)
    return np.asarray(layer, np.float32)


@functools.partial(jax.jit, static_argnames=("module", "method"))
def _apply(module, method, parameters, *ids):
  return module.apply(parameters, *ids, method=method)


def rule_words(
  model: ScorerModel, table: RuleTable, rules: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the network's ids of the words of both sides, int32 `[N, I]`."""
  source = model.ids("source", table.source_words)
  target = model.ids("target", table.target_words)
  return (
    _padded(ragged.select(table.source, rules), source, WIDTHS[0]),
    _padded(ragged.select(table.target, rules), target, WIDTHS[1]),
  )


def sentence_words(model: ScorerModel, sentences) -> np.ndarray:
  """Returns the network's ids of the words of sentences, int32 `[B, K]`."""
  find = model.source_words.index.get
  rows = ragged.from_rows(
    [[find(word, UNK) for word in one[: WIDTHS[2]]] for one in sentences]
  )
  return ragged.pad(rows, width=WIDTHS[2], fill=PADDING)[0].astype(np.int32)


def _padded(rows: Ragged, ids: np.ndarray, width: int) -> np.ndarray:
  """The first `width` words of rows, without sites."""
  words = rows.flat >= 0
  place = np.cumsum(words) - 1
  row = np.repeat(np.arange(len(rows)), rows.lengths)
  first = np.concatenate([[0], np.cumsum(words)])[rows.offsets[:-1]]
  column = place - first[row]
  chosen = words & (column < width)
  out = np.full((len(rows), width), PADDING, np.int32)
  out[row[chosen], column[chosen]] = ids[rows.flat[chosen]]
  return out


def from_values(
  values: Mapping[str, Any], *, path: str | None = None
) -> ScorerModel:
  """Returns the model that `to_values` took apart.

  Raises:
    InputError: if shapes do not fit, or a parameter is not a number.
  """
  words = {
    side: vocabulary.from_lines(list(values[f"scorer_{side}_words"]), path=path)
    for side in ("source", "target")
  }
  arrays = {name: np.asarray(values[name]) for name in _ARRAYS}
  if arrays["scorer_source"].ndim != 2 or arrays["scorer_bias"].ndim != 1:
    raise InputError(
      "scorer_source or scorer_bias has a wrong shape", path=path
    )
  size, hidden = arrays["scorer_source"].shape[1], len(arrays["scorer_bias"])
  shapes = {
    "scorer_source": (len(words["source"]), size),
    "scorer_target": (len(words["target"]), size),
    "scorer_context": (len(words["source"]), size),
    "scorer_rule": (2 * size, hidden),
    "scorer_bias": (hidden,),
    "scorer_sentence": (size, hidden),
    "scorer_output": (hidden, 1),
  }
  for name, array in arrays.items():
    if array.dtype != np.float32 or array.shape != shapes[name]:
      raise InputError(f"{name} has a wrong type or shape", path=path)
    if not np.isfinite(array).all() or np.abs(array).max(initial=0) > 1e6:
      raise InputError(f"{name} holds no usable numbers", path=path)
  layers: dict[str, dict[str, np.ndarray]] = {}
  for name, (layer, kind) in _ARRAYS.items():
    layers.setdefault(layer, {})[kind] = np.array(arrays[name])
  return ScorerModel(
    source_words=words["source"],
    target_words=words["target"],
    parameters={"params": layers},
  )


def to_lists() -> tuple[tuple[str, ...], tuple[str, ...]]:
  """Returns the names of the arrays and of the lists of strings."""
  return tuple(_ARRAYS), ("scorer_source_words", "scorer_target_words")
