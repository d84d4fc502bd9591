"""Training and use of the neural HMM aligner; see `network`.

A teacher's links (of the HMM, the diagonal model or an ITG aligner) are the
training data. For each direction:

  1. embeddings: given ones, or, if asked for, by ranking windows of either
     side's text; else random;
  2. the network by a local hinge: the score of a link should be higher by 1
     than those of two wrong ones, with either word replaced by another of the
     same sentence pair, or by NULL, that it is not linked to; or, with
     `objective="softmax"`, by the likelihood of the teacher's links among all
     words of the other side and NULL, see `objectives`;
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

from jaxmt.align.neural import network, objectives, windowed_text
from jaxmt.align.neural.network import WindowNetwork
from jaxmt.align.neural.windowed_text import WindowedSide
from jaxmt.errors import InputError
from jaxmt.models import fitting, word_vectors
from jaxmt.models.fitting import FitOptions
from jaxmt.models.word_vectors import WordVectorOptions
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged, row_offsets

_CELLS = 1 << 17  # of a batch of grids
_PARTNERS = 4  # links of a word that negatives are checked against
_JUMP_LENGTH = 32  # words of sentences that jumps are learnt from
_GRID_LENGTH = 40  # words of a sentence that the softmax is learnt from
_LINKS = 16  # links of a sentence pair, to make batches of similar size
OBJECTIVES = ("hinge", "softmax")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeuralConfig:
  """What to train.

  Attributes:
    size: of embeddings.
    start: random embeddings begin uniform in plus or minus this.
    window: words on either side of a word.
    hidden: units of the hidden layers.
    vocabulary: most frequent words of a side; others are unknown.
    embedding_epochs: of ranking windows before; 0 starts at random.
    jump_pairs: sentence pairs that jump scores are learnt from, at most.
    fine_tune: whether the network learns with the jump scores, too.
    objective: of the network, one of `OBJECTIVES`.
    fit: of the network; its seed is `seed`. A batch is one of links; of the
      softmax it has a 16th as many sentence pairs.
    jump_fit: of the jump scores; its seed is `seed`.
    seed: of all that is random.
  """

  size: int = 20
  start: float = 0.1
  window: int = 5
  hidden: tuple[int, ...] = (120, 10)
  vocabulary: int = 100_000
  embedding_epochs: int = 0
  jump_pairs: int = 4000
  fine_tune: bool = False
  objective: str = "hinge"
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
    if not 0.0 < self.start < float("inf"):
      raise ValueError("start must be finite and above 0")
    if self.window < 0:
      raise ValueError("window must not be negative")
    if self.objective not in OBJECTIVES:
      raise ValueError(
        f"objective '{self.objective}' is none of {', '.join(OBJECTIVES)}"
      )


def _sides(
  generated: Ragged, given: Ragged, config: NeuralConfig
) -> tuple[WindowedSide, WindowedSide]:
  """Lays both sides out for windows."""
  options = {"vocabulary": config.vocabulary, "window": config.window}
  return (
    windowed_text.make_side(generated, **options),
    windowed_text.make_side(given, **options),
  )


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
  ours, theirs = _sides(generated, given, config)
  module = WindowNetwork(
    generated_words=ours.size,
    given_words=theirs.size,
    size=config.size,
    hidden=config.hidden,
    start=config.start,
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
  parameters = _train_network(
    module, parameters, constants, (ours, theirs), links, config, mesh, report
  )
  learnt = _train_jumps(
    module, parameters, constants, (ours, theirs), links, config, report
  )
  return Direction(
    module=module,
    parameters=learnt.get("network", parameters),
    jump=learnt["jump"],
    window=config.window,
  )


def _train_network(
  module, parameters, constants, sides, links, config, mesh, report
):
  """Learns the network from the teacher's links."""
  ours, theirs = sides
  rows, partners = _examples(ours, theirs, links)
  options = dataclasses.replace(config.fit, seed=config.seed)
  loss: Any = objectives.LocalHinge(module, config.window)
  if config.objective == "softmax":
    usable = np.flatnonzero(np.minimum(ours.lengths, theirs.lengths) > 0)
    rows = _pairs(ours, theirs, usable)
    longest = np.maximum(ours.lengths, theirs.lengths).max(initial=1)
    width = min(_GRID_LENGTH, ragged.bucket(int(longest)))
    loss = objectives.GridSoftmax(module, config.window, width)
    batch = max(1, options.batch // _LINKS)
    options = dataclasses.replace(options, batch=batch)
  for epoch in fitting.fit(
    loss,
    parameters,
    jax.tree.map(jnp.asarray, rows),
    options,
    constants={**constants, "partners": jnp.asarray(partners)},
    mesh=mesh,
  ):
    parameters = epoch.parameters
    report(f"network epoch {epoch.number}: loss {epoch.loss:.4f}")
  return parameters


def _pairs(
  ours: WindowedSide, theirs: WindowedSide, lines: np.ndarray
) -> dict[str, np.ndarray]:
  """Places and lengths of sentence pairs, int32 `[N]` each."""
  rows = {
    "generated": ours.starts[lines],
    "given": theirs.starts[lines],
    "generated_length": ours.lengths[lines],
    "given_length": theirs.lengths[lines],
  }
  return {name: value.astype(np.int32) for name, value in rows.items()}


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
  rows = _pairs(ours, theirs, chosen)
  rows["path"] = _paths(ours, links, chosen, _JUMP_LENGTH, config.seed)
  rows = jax.tree.map(jnp.asarray, rows)
  loss = objectives.SentenceHinge(module, config.window, _JUMP_LENGTH)
  options = dataclasses.replace(config.jump_fit, seed=config.seed)
  for epoch in fitting.fit(loss, start, rows, options, constants=constants):
    start = epoch.parameters
    report(f"jumps epoch {epoch.number}: hinge {epoch.loss:.4f}")
  return start


@functools.partial(jax.jit, static_argnames=("module", "width", "window"))
def _best_paths(
  module, parameters, jump, constants, rows, *, width: int, window: int
):
  links, null = objectives.grids(
    module, parameters, constants, rows, width, window
  )
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
  ours, theirs = _sides(generated, given, config)
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
      rows = _pairs(ours, theirs, padded)
      path = _best_paths(
        direction.module,
        direction.parameters,
        direction.jump,
        constants,
        jax.tree.map(jnp.asarray, rows),
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
