"""Training of auto-encoders of phrase pairs (Zhang et al. 2014, section 3.3.3).

1. An auto-encoder of each language learns to rebuild its phrases.
2. In each round, both sides learn from the other's vectors as they were at the
   beginning of the round; wrong phrases are redrawn.
3. After each round the joint error of all pairs is computed, with wrong phrases
   that are always the same. If it has not fallen, the round before is the
   result; otherwise the next round begins, up to a number of rounds.

Some pairs are kept out, to tell how often a phrase is nearer to its translation
than to a random phrase.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxmt.errors import InputError
from jaxmt.models import fitting, phrase_autoencoder
from jaxmt.models.fitting import EpochStore, FitOptions, StorePart
from jaxmt.models.phrase_autoencoder import SIDES, PhraseEncoder, Pulls

_HELD_OUT = 20  # every pair of this many is kept out of training
_ERRORS = "errors"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhrasePairOptions:
  """What is learned, and how.

  Attributes:
    size: D, unless word vectors are given.
    alpha: weight of rebuilding against meaning.
    unit: scale vectors to length 1, so that they cannot shrink to be rebuilt.
    pulls: of the regulariser.
    rebuild: fit of step 1.
    tune: fit of steps 2 and 3; its epochs are the most rounds.
  """

  size: int = 50
  alpha: float = 0.15
  unit: bool = False
  pulls: Pulls = dataclasses.field(default_factory=Pulls)
  rebuild: FitOptions = dataclasses.field(
    default_factory=lambda: FitOptions(epochs=3, batch=128, rate=0.003)
  )
  tune: FitOptions = dataclasses.field(
    default_factory=lambda: FitOptions(epochs=25, batch=128, rate=0.003)
  )


def check_options(options: PhrasePairOptions) -> None:
  """Raises `InputError` for settings that make no sense."""
  if not 1 <= options.size <= 1 << 12:
    raise InputError("option 'size' must be from 1 to 4096")
  if not 0 <= options.alpha <= 1:
    raise InputError("option 'alpha' must be from 0 to 1")
  for name, value in dataclasses.asdict(options.pulls).items():
    if not 0 <= value < float("inf"):
      raise InputError(f"option '{name}' must not be negative")
  fitting.check_options(options.rebuild)
  fitting.check_options(options.tune)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
  """What a step of training ended with.

  Attributes:
    part: "source", "target": step 1; "pairs": a round.
    number: of the epoch or the round, from 1.
    error: mean loss of step 1; joint error of a round.
    parameters: of both sides, the best so far.
    ranked: share of held-out pairs that are nearer than wrong ones, in both
      directions; None in step 1 and without held-out pairs.
  """

  part: str
  number: int
  error: float
  parameters: dict[str, Any]
  ranked: float | None = None


def encoders(
  words: tuple[int, int], options: PhrasePairOptions
) -> tuple[PhraseEncoder, PhraseEncoder]:
  """Returns the modules of both sides, for vocabularies of these sizes."""
  source, target = (
    PhraseEncoder(words=size, size=options.size, unit=options.unit)
    for size in words
  )
  return source, target


def train(
  pairs: tuple[np.ndarray, np.ndarray],
  words: tuple[int, int],
  options: PhrasePairOptions,
  *,
  vectors: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
  mesh: Mesh | None = None,
  store: EpochStore | None = None,
) -> Iterator[Step]:
  """Yields the steps of training; the last one has the result.

  Args:
    pairs: ids of the phrases of both sides, int32 `[N, W]` each.
    words: sizes of both vocabularies.
    options: see `PhrasePairOptions`.
    vectors: of the words, to begin with, `[V, D]`; None: random ones.
    mesh: devices, see `fitting.fit`.
    store: of epochs, see `fitting.fit`.

  Raises:
    InputError: for bad settings, or if there is no pair.
  """
  check_options(options)
  if not len(pairs[0]):
    raise InputError("no phrase pair to learn from")
  modules = encoders(words, options)
  held_out = np.arange(len(pairs[0])) % _HELD_OUT == _HELD_OUT - 1
  learned: dict[str, Any] = {}
  for place, side in enumerate(SIDES):
    key = jax.random.fold_in(jax.random.key(options.tune.seed), place)
    learned[side] = modules[place].init(key, np.zeros((1, 2), np.int32))
    given = vectors[place]
    if given is not None:
      layers = learned[side]["params"] | {"vectors": jax.numpy.asarray(given)}
      learned[side] = {"params": layers}
    phrases = np.unique(pairs[place][~held_out], axis=0)
    for epoch in fitting.fit(
      phrase_autoencoder.RebuildingLoss(modules[place], options.pulls),
      learned[side],
      {"ids": phrases},
      options.rebuild,
      mesh=mesh,
      store=None if store is None else StorePart(store, side),
    ):
      learned[side] = epoch.parameters
      yield Step(
        part=side, number=epoch.number, error=epoch.loss, parameters=learned
      )
  yield from _rounds(
    learned,
    tuple(side[~held_out] for side in pairs),
    tuple(side[held_out] for side in pairs),
    modules,
    options,
    mesh=mesh,
    store=store,
  )


def _rounds(learned, pairs, held_out, modules, options, *, mesh, store):
  """Steps 2 and 3."""
  part = None if store is None else StorePart(store, "pairs")
  checked = None if part is None else part.get(_ERRORS)
  errors, best = [], learned
  if checked is not None:
    errors = checked[_ERRORS].tolist()
    best = _unpack(checked, learned)
  ranked = lambda p: rank_held_out(modules, p, held_out, options.tune.seed)
  for epoch in fitting.fit(
    phrase_autoencoder.BilingualLoss(modules, options.alpha, options.pulls),
    learned,
    _fixed_vectors(pairs, modules, options),
    options.tune,
    mesh=mesh,
    store=part,
  ):
    if epoch.number > len(errors):
      error = joint_error(modules, epoch.parameters, pairs, options)
      if not errors or error < errors[-1]:
        best = epoch.parameters
      errors.append(error)
      if part is not None:
        part.put(_ERRORS, {_ERRORS: np.array(errors), **_pack(best)})
    rose = len(errors) > 1 and errors[-1] >= errors[-2]
    yield Step(
      part="pairs",
      number=len(errors),
      error=errors[-1],
      parameters=best,
      ranked=ranked(best) if len(held_out[0]) else None,
    )
    if rose:
      return


def _pack(parameters) -> dict[str, np.ndarray]:
  leaves = jax.tree.leaves(parameters)
  return {f"leaf{place}": np.ravel(leaf) for place, leaf in enumerate(leaves)}


def _unpack(values, like):
  leaves, structure = jax.tree.flatten(like)
  arrays = [
    jax.numpy.asarray(values[f"leaf{place}"], leaf.dtype).reshape(leaf.shape)
    for place, leaf in enumerate(leaves)
  ]
  return jax.tree.unflatten(structure, arrays)


def _fixed_vectors(pairs, modules, options) -> Callable:
  """Makes the data of a round: ids, the other side's vectors, wrong ones."""

  def refresh(number: int, parameters):
    rng = np.random.default_rng([options.tune.seed, 11, number])
    data = dict(zip(SIDES, pairs, strict=True))
    for place, side in enumerate(SIDES):
      other = SIDES[1 - place]
      module, side_parameters = modules[1 - place], parameters[other]
      wrong = phrase_autoencoder.wrong_phrases(data[other], module.words, rng)
      for name, ids in (("fixed", data[other]), ("wrong", wrong)):
        data[f"{side}_{name}"] = phrase_autoencoder.encode(
          module, side_parameters, ids
        )[0]
    return data

  return refresh


def joint_error(modules, parameters, pairs, options) -> float:
  """Returns J without its regulariser: the mean of E(s|t) + E(t|s).

  Wrong phrases are the same in every call.
  """
  rng = np.random.default_rng([options.tune.seed, 13])
  encoded = [
    phrase_autoencoder.encode(module, parameters[side], ids)
    for module, side, ids in zip(modules, SIDES, pairs, strict=True)
  ]
  total = 0.0
  for place in range(2):
    other = SIDES[1 - place]
    module, ids = modules[1 - place], pairs[1 - place]
    wrong = phrase_autoencoder.wrong_phrases(ids, module.words, rng)
    bad = phrase_autoencoder.encode(module, parameters[other], wrong)[0]
    _, rebuild, image = encoded[place]
    margin = phrase_autoencoder.margin_error(
      *map(jax.numpy.asarray, (image, encoded[1 - place][0], bad))
    )
    both = options.alpha * rebuild + (1 - options.alpha) * np.asarray(margin)
    total += float(both.mean(dtype=np.float64))
  return total


def rank_held_out(modules, parameters, pairs, seed: int) -> float:
  """Returns how often a phrase's image is nearer to its translation.

  It is compared with the translation of another pair, in both directions.
  """
  size = len(pairs[0])
  if size < 2:
    return 0.0
  rng = np.random.default_rng([seed, 17])
  other = (np.arange(size) + rng.integers(1, size, size)) % size
  encoded = [
    phrase_autoencoder.encode(module, parameters[side], ids)
    for module, side, ids in zip(modules, SIDES, pairs, strict=True)
  ]
  wins = []
  for place in range(2):
    image, vectors = encoded[place][2], encoded[1 - place][0]
    good = ((image - vectors) ** 2).sum(-1)
    bad = ((image - vectors[other]) ** 2).sum(-1)
    differs = (pairs[1 - place] != pairs[1 - place][other]).any(-1)
    wins.append((good < bad)[differs])
  return float(np.concatenate(wins).mean()) if sum(map(len, wins)) else 0.0
