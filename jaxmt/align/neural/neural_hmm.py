"""Training and use of the neural HMM aligner; see `network`.

A teacher's links (of the HMM, the diagonal model or an ITG aligner) are the
training data. For each direction:

  1. embeddings: given ones, or, if asked for, by ranking windows of either
     side's text; else random;
  2. the network by a local hinge: the score of a link should be higher by 1
     than those of two wrong ones, with either word replaced by another of the
     same sentence pair, or by NULL, that it is not linked to;
  3. the 17 jump scores by a hinge of whole sentence pairs, max(0, 1 - s(gold) +
     s(best)), where the best path is not the gold one; with `fine_tune`, the
     network, too.

Of several links of a generated word one is drawn at random for its path. Both
directions are linked by Viterbi; `jaxmt.align.symmetrize` joins them.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from jaxmt.align.neural import network
from jaxmt.align.neural.network import WindowNetwork
from jaxmt.errors import InputError
from jaxmt.models import fitting, word_vectors
from jaxmt.models.fitting import FitOptions
from jaxmt.models.word_vectors import WordVectorOptions
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged, row_offsets

_CELLS = 1 << 17  # of a batch of grids
_PARTNERS = 4  # links of a word that negatives are checked against
_JUMP_LENGTH = 32  # words of sentences that jumps are learnt from


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeuralConfig:
  """What to train.

  Attributes:
    size: of embeddings.
    window: words on either side of a word.
    hidden: units of the hidden layers.
    vocabulary: most frequent words of a side; others are unknown.
    embedding_epochs: of ranking windows before; 0 starts at random.
    jump_pairs: sentence pairs that jump scores are learnt from, at most.
    fine_tune: whether the network learns with the jump scores, too.
    fit: of the network; its seed is `seed`.
    jump_fit: of the jump scores; its seed is `seed`.
    seed: of all that is random.
  """

  size: int = 20
  window: int = 5
  hidden: tuple[int, ...] = (120, 10)
  vocabulary: int = 100_000
  embedding_epochs: int = 0
  jump_pairs: int = 4000
  fine_tune: bool = False
  fit: FitOptions = dataclasses.field(
    default_factory=lambda: FitOptions(epochs=5, batch=512, rate=0.003)
  )
  jump_fit: FitOptions = dataclasses.field(
    default_factory=lambda: FitOptions(epochs=3, batch=32, rate=0.03)
  )
  seed: int = 0

  def __post_init__(self):
    if not self.hidden or min(self.hidden) < 1:
      raise ValueError(f"hidden cannot be {self.hidden}")
    for name in ("size", "vocabulary", "jump_pairs"):
      if getattr(self, name) < 1:
        raise ValueError(f"{name} must be at least 1")
    if self.window < 0:
      raise ValueError("window must not be negative")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowedSide:
  """One side of a bitext as windows see it.

  Ids: 0 is unknown, then words; the last three are the place before the first
  word, that after the last, and NULL.

  Attributes:
    ids: all sentences, `window` places before and after each; then NULL as
      often as a window is wide. int32.
    starts: place of each sentence's first word, int64 `[N]`.
    lengths: words, int64 `[N]`.
    null: the place of NULL.
    size: number of ids.
    number: id of each word of the text's own numbering, int32 `[V]`.
  """

  ids: np.ndarray
  starts: np.ndarray
  lengths: np.ndarray
  null: int
  size: int
  number: np.ndarray


def make_side(text: Ragged, config: NeuralConfig) -> WindowedSide:
  """Lays a side out for windows.

  Args:
    text: word ids, N rows.
    config: vocabulary and window.
  """
  counts = np.bincount(text.flat, minlength=1)
  frequent = np.argsort(-counts, kind="stable")[: config.vocabulary]
  frequent = np.sort(frequent[counts[frequent] > 0])
  number = np.zeros(len(counts), np.int32)
  number[frequent] = np.arange(1, len(frequent) + 1)
  before, after, null = np.arange(3) + len(frequent) + 1
  w = config.window
  starts = row_offsets(text.lengths + 2 * w)
  ids = np.full(starts[-1] + 2 * w + 1, null, np.int32)
  for place in range(w):
    ids[starts[:-1] + place] = before
    ids[starts[1:] - 1 - place] = after
  row = np.repeat(np.arange(len(text)), text.lengths)
  within = np.arange(len(text.flat)) - text.offsets[row]
  ids[starts[row] + w + within] = number[text.flat]
  return WindowedSide(
    ids=ids,
    starts=starts[:-1] + w,
    lengths=text.lengths,
    null=int(starts[-1] + w),
    size=len(frequent) + 4,
    number=number,
  )


def _windows(ids: Array, places: Array, window: int) -> Array:
  """Ids around places, `[..., 2 w + 1]`."""
  around = jnp.arange(-window, window + 1)
  return ids.at[places[..., None] + around].get(mode="clip")


# --- the local hinge ----------------------------------------------------------


def _examples(
  generated: WindowedSide, given: WindowedSide, links: Ragged
) -> tuple[dict[str, np.ndarray], np.ndarray]:
  """Positive pairs, and the links of each generated place.

  Returns:
    Rows of places and of sentence bounds; int32 `[places, 4]`, -1 for none.
  """
  row = np.repeat(np.arange(len(links)), links.lengths)
  flat = links.flat.reshape(-1, 2)
  ours = generated.starts[row] + flat[:, 0]
  theirs = given.starts[row] + flat[:, 1]
  partners = np.full((len(generated.ids), _PARTNERS), -1, np.int32)
  order = np.argsort(ours, kind="stable")
  first = np.searchsorted(ours[order], ours[order])
  rank = np.arange(len(order)) - first
  few = rank < _PARTNERS
  partners[ours[order][few], rank[few]] = theirs[order][few]
  # Words without links are linked to NULL.
  every = np.repeat(np.arange(len(links)), generated.lengths)
  within = np.arange(len(every)) - row_offsets(generated.lengths)[every]
  places = generated.starts[every] + within
  lone = partners[places, 0] < 0
  ours = np.concatenate([ours, places[lone]])
  theirs = np.concatenate([theirs, np.full(lone.sum(), given.null)])
  row = np.concatenate([row, every[lone]])
  rows = {
    "generated": ours,
    "given": theirs,
    "generated_start": generated.starts[row],
    "generated_length": generated.lengths[row],
    "given_start": given.starts[row],
    "given_length": given.lengths[row],
  }
  return {k: v.astype(np.int32) for k, v in rows.items()}, partners


@dataclasses.dataclass(frozen=True)
class LocalHinge:
  """max(0, 1 - t(link) + t(wrong link)), for two wrong links of each."""

  module: WindowNetwork
  window: int

  def __call__(self, parameters, constants, rows, key):
    """Returns the sum of hinges and their number; see `fitting`."""
    one, two = jax.random.split(key)
    draw = lambda key, start, length: (
      start
      + jnp.floor(jax.random.uniform(key, start.shape) * length).astype(
        jnp.int32
      )
    )
    partners, null = constants["partners"], constants["null"]
    # NULL is one of the words that may stand in for another.
    other = draw(one, rows["given_start"], rows["given_length"] + 1)
    past = other == rows["given_start"] + rows["given_length"]
    other = jnp.where(past, null, other)
    word = draw(two, rows["generated_start"], rows["generated_length"])

    def is_link(generated, given):
      own = partners[generated]
      return jnp.where(
        given == null, own[:, 0] < 0, (own == given[:, None]).any(-1)
      )

    def layer(method, side, one, two) -> Any:
      windows = _windows(constants[side], jnp.stack([one, two]), self.window)
      return self.module.apply(parameters, windows, method=method)

    # The first layer is a sum over the sides, so each word needs it once.
    ours = layer("generated", "generated", rows["generated"], word)
    theirs = layer("given", "given", rows["given"], other)
    first = jnp.stack([ours[0] + theirs[0], ours[0] + theirs[1]])
    first = jnp.concatenate([first, (ours[1] + theirs[0])[None]])
    scores: Any = self.module.apply(parameters, first, method="rest")
    total, number = 0.0, 0.0
    for wrong, score in (
      ((rows["generated"], other), scores[1]),
      ((word, rows["given"]), scores[2]),
    ):
      usable = ~is_link(*wrong)
      hinge = jax.nn.relu(1.0 - scores[0] + score)
      total += jnp.where(usable, hinge, 0.0).sum()
      number += usable.sum()
    return jnp.asarray(total), jnp.asarray(number, jnp.float32)


# --- the hinge of sentence pairs ----------------------------------------------


def _grids(module, parameters, constants, rows, width: int, window: int):
  """Scores of all links of sentence pairs, `([B, W, W], [B, W])`."""
  places = lambda start: start[:, None] + jnp.arange(width)
  found: Any = module.apply(
    parameters,
    _windows(constants["generated"], places(rows["generated"]), window),
    _windows(constants["given"], places(rows["given"]), window),
    _windows(constants["given"], constants["null"], window),
    method="grid",
  )
  return found


@dataclasses.dataclass(frozen=True)
class SentenceHinge:
  """max(0, 1 - s(gold) + s(best)) where the best path is not the gold one."""

  module: WindowNetwork
  window: int
  width: int

  def __call__(self, parameters, constants, rows, key):
    """Returns the sum of hinges and the number of sentence pairs."""
    del key
    weights = parameters.get("network", constants.get("network"))
    links, null = _grids(
      self.module, weights, constants, rows, self.width, self.window
    )
    jump, length = parameters["jump"], rows["generated_length"]
    best = jax.lax.stop_gradient(
      network.viterbi(links, null, jump, length, rows["given_length"])
    )
    gold = rows["path"]
    score = lambda path: network.path_scores(links, null, jump, path, length)
    wrong = (best != gold).any(-1)
    hinge = jax.nn.relu(1.0 - score(gold) + score(best))
    count = jnp.asarray(len(gold), jnp.float32)
    return jnp.where(wrong, hinge, 0.0).sum(), count


def _paths(
  generated: WindowedSide, links: Ragged, rows, width, seed
) -> np.ndarray:
  """One link at random of each generated word, -1 for none, `[N, W]`."""
  rng = np.random.default_rng(seed)
  out = np.full((len(rows), width), -1, np.int32)
  some = ragged.select(links, rows)
  row = np.repeat(np.arange(len(rows)), some.lengths)
  order = rng.permutation(len(row))  # of equal places the last one stays
  flat = some.flat.reshape(-1, 2)[order]
  out[row[order], flat[:, 0]] = flat[:, 1]
  return out


# --- a direction --------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Direction:
  """A trained direction.

  Attributes:
    module: the network.
    parameters: its parameters.
    jump: float32 `[17]`.
    window: words on either side.
  """

  module: WindowNetwork
  parameters: Any
  jump: Array
  window: int


def train_direction(
  generated: Ragged,
  given: Ragged,
  links: Ragged,
  config: NeuralConfig,
  *,
  vectors: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
  mesh: Mesh | None = None,
  report: Callable[[str], None] = lambda line: None,
) -> Direction:
  """Trains one direction.

  Args:
    generated: word ids, N rows.
    given: word ids, N rows.
    links: the teacher's pairs (generated, given), N rows.
    config: what to train.
    vectors: of the generated and the given word ids, float32 `[V, size]`, to
      begin with; rows of NaN begin at random, None is for no vectors.
    mesh: devices that take a part of each batch; None for one.
    report: takes lines about progress.
  """
  ours, theirs = make_side(generated, config), make_side(given, config)
  module = WindowNetwork(
    generated_words=ours.size,
    given_words=theirs.size,
    size=config.size,
    hidden=config.hidden,
  )
  constants = {
    "generated": jnp.asarray(ours.ids),
    "given": jnp.asarray(theirs.ids),
    "null": jnp.int32(theirs.null),
  }
  window = jnp.zeros((1, 2 * config.window + 1), jnp.int32)
  parameters: Any = module.init(jax.random.key(config.seed), window, window)
  for name, text, side, own in (
    ("generated_embedding", generated, ours, vectors[0]),
    ("given_embedding", given, theirs, vectors[1]),
  ):
    table = parameters["params"][name]["embedding"]
    if own is not None:
      table = _given_embeddings(own, side, table)
    elif config.embedding_epochs:
      table = _embeddings(text, side, table, config)
    parameters["params"][name]["embedding"] = table
  rows, partners = _examples(ours, theirs, links)
  local = LocalHinge(module, config.window)
  for epoch in fitting.fit(
    local,
    parameters,
    jax.tree.map(jnp.asarray, rows),
    dataclasses.replace(config.fit, seed=config.seed),
    constants={**constants, "partners": jnp.asarray(partners)},
    mesh=mesh,
  ):
    parameters = epoch.parameters
    report(f"network epoch {epoch.number}: hinge {epoch.loss:.4f}")
  learnt = _train_jumps(
    module, parameters, constants, (ours, theirs), links, config, report
  )
  return Direction(
    module=module,
    parameters=learnt.get("network", parameters),
    jump=learnt["jump"],
    window=config.window,
  )


def _embeddings(text, side: WindowedSide, table, config: NeuralConfig) -> Array:
  """Embeddings learnt by ranking windows; special ids keep their start."""
  ids = dataclasses.replace(text, flat=side.number[text.flat])
  words = tuple(str(number) for number in range(side.size - 3))
  options = WordVectorOptions(
    model="ranking",
    size=config.size,
    window=min(2, max(config.window, 1)),
    fit=FitOptions(epochs=config.embedding_epochs, seed=config.seed),
  )
  vectors = None
  for found, _ in word_vectors.train_vectors(ids, words, options):
    vectors = found.vectors
  return table.at[: len(words)].set(vectors)


def _given_embeddings(vectors: np.ndarray, side: WindowedSide, table) -> Array:
  """Given vectors in the numbering of a side; others keep their start."""
  known = np.flatnonzero(
    (side.number[: len(vectors)] > 0) & np.isfinite(vectors[:, 0])
  )
  return table.at[side.number[known]].set(vectors[known])


def _train_jumps(module, parameters, constants, sides, links, config, report):
  """Learns the jump scores, and the network with `fine_tune`."""
  ours, theirs = sides
  longest = np.maximum(ours.lengths, theirs.lengths)
  shortest = np.minimum(ours.lengths, theirs.lengths)
  usable = np.flatnonzero((longest <= _JUMP_LENGTH) & (shortest > 0))
  chosen = usable[: config.jump_pairs]
  start = {"jump": jnp.zeros(network.JUMPS)}
  if not len(chosen):
    return start
  if config.fine_tune:
    start["network"] = parameters
  else:
    constants = {**constants, "network": parameters}
  rows = {
    "generated": ours.starts[chosen],
    "given": theirs.starts[chosen],
    "generated_length": ours.lengths[chosen],
    "given_length": theirs.lengths[chosen],
    "path": _paths(ours, links, chosen, _JUMP_LENGTH, config.seed),
  }
  rows = {name: jnp.asarray(v, jnp.int32) for name, v in rows.items()}
  loss = SentenceHinge(module, config.window, _JUMP_LENGTH)
  options = dataclasses.replace(config.jump_fit, seed=config.seed)
  for epoch in fitting.fit(loss, start, rows, options, constants=constants):
    start = epoch.parameters
    report(f"jumps epoch {epoch.number}: hinge {epoch.loss:.4f}")
  return start


@functools.partial(jax.jit, static_argnames=("module", "width", "window"))
def _best_paths(
  module, parameters, jump, constants, rows, *, width: int, window: int
):
  links, null = _grids(module, parameters, constants, rows, width, window)
  return network.viterbi(
    links, null, jump, rows["generated_length"], rows["given_length"]
  )


def link(
  direction: Direction, generated: Ragged, given: Ragged, config: NeuralConfig
) -> Ragged:
  """Returns the best links (generated, given) of a bitext, N rows.

  Args:
    direction: trained on a text that has the same words.
    generated: word ids, N rows.
    given: word ids, N rows.
    config: as in training.
  """
  ours, theirs = make_side(generated, config), make_side(given, config)
  constants = {
    "generated": jnp.asarray(ours.ids),
    "given": jnp.asarray(theirs.ids),
    "null": jnp.int32(theirs.null),
  }
  longest = np.maximum(ours.lengths, theirs.lengths)
  usable = np.flatnonzero(np.minimum(ours.lengths, theirs.lengths) > 0)
  sizes = longest[usable].tolist()
  widths = np.array([ragged.bucket(max(8, size)) for size in sizes])
  points = [np.zeros((0, 3), np.int64)]
  for width in np.unique(widths).tolist():
    own = usable[widths == width]
    size = max(1, _CELLS // (width * width))
    for start in range(0, len(own), size):
      lines = own[start : start + size]
      padded = np.pad(lines, (0, size - len(lines)), mode="edge")
      rows = {
        "generated": ours.starts[padded],
        "given": theirs.starts[padded],
        "generated_length": ours.lengths[padded],
        "given_length": theirs.lengths[padded],
      }
      path = _best_paths(
        direction.module,
        direction.parameters,
        direction.jump,
        constants,
        {name: jnp.asarray(v, jnp.int32) for name, v in rows.items()},
        width=width,
        window=direction.window,
      )
      path = np.asarray(path)[: len(lines)]
      pair, place = np.nonzero(path >= 0)
      points.append(np.stack([lines[pair], place, path[pair, place]], axis=1))
  found = np.concatenate(points)
  found = found[np.lexsort(found.T[::-1])]
  return Ragged(
    flat=np.ascontiguousarray(found[:, 1:], np.int32),
    offsets=np.searchsorted(found[:, 0], np.arange(len(generated) + 1)),
  )


def align(
  source: Ragged,
  target: Ragged,
  teacher: Ragged,
  config: NeuralConfig,
  *,
  vectors: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
  mesh: Mesh | None = None,
  report: Callable[[str], None] = lambda line: None,
) -> dict[str, Ragged]:
  """Trains both directions on a teacher's links and links a bitext.

  Args:
    source: word ids, N rows.
    target: word ids, N rows.
    teacher: pairs (source, target), N rows.
    config: what to train.
    vectors: of source and target word ids, as in `train_direction`; they set
      the size of embeddings.
    mesh: devices; None for one.
    report: takes lines about progress.

  Returns:
    By direction, pairs (source, target), N rows, as `em.align` has them.
  """
  swapped = Ragged(
    flat=np.ascontiguousarray(teacher.flat[:, ::-1]), offsets=teacher.offsets
  )
  sizes = {own.shape[1] for own in vectors if own is not None}
  if len(sizes) > 1:
    raise InputError(f"word vectors of {sizes.pop()} and {sizes.pop()} numbers")
  config = dataclasses.replace(config, size=next(iter(sizes), config.size))
  out = {}
  for name, sides, links, given in (
    ("forward", (target, source), swapped, vectors[::-1]),
    ("backward", (source, target), teacher, vectors),
  ):
    say = lambda line, name=name: report(f"{name}: {line}")
    direction = train_direction(
      *sides, links, config, vectors=given, mesh=mesh, report=say
    )
    out[name] = link(direction, *sides, config)
  forward = out["forward"]
  flat = np.ascontiguousarray(forward.flat[:, ::-1])
  row = np.repeat(np.arange(len(forward)), forward.lengths)
  order = np.lexsort((flat[:, 1], flat[:, 0], row))
  out["forward"] = Ragged(flat=flat[order], offsets=forward.offsets)
  return out
