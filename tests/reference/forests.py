"""Forests of tiny random grammars, and everything in them by recursion."""

import dataclasses
import functools

import numpy as np

from jaxmt.decode.chart import beam_forest, decoder
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source
from jaxmt.hypergraph import Forest
from tests.reference import chart_cases as cases
from tests.reference import chart_enumeration as enumeration

# Few shapes, so that all cases share compiled searches.
CONFIG = SearchConfig(
  beam=24,
  pop=160,
  corners=48,
  taper=((48, 700),),
  widths=(48,),
  tile=8,
  forest=True,
  backend="device",
)
HOST = dataclasses.replace(CONFIG, backend="host")


def decoded(seed, *, order=3, arity=2, **options):
  """A random case with its forests: `(case, model, source, forests)`."""
  case = cases.random_case(
    seed, order=order, arity=arity, tree_rules=4 if arity > 2 else 0, **options
  )
  model, result = decode(case, arity=arity)
  return case, model, result.source, beam_forest.extract(model, result)


def decode(case, *, arity, copy="unknown", config=CONFIG):
  """Searches all sentences of a case as one batch: `(model, result)`."""
  model, source = cases.to_model(case, arity=arity, pass_through=copy)
  batch = [np.arange(len(source))]
  prepared = decoder.prepare(model, source, batch, config=config)
  beams = decoder.run_search(prepared, model, config=config)
  (result,) = decoder.results(batch, prepared, beams)
  return model, result


@dataclasses.dataclass(frozen=True, kw_only=True)
class Joint:
  """A decoded joint grammar.

  Attributes:
    case: the grammar and B sentences.
    copy: which words may be copied, "unknown" or "all".
    model: the grammar as a model.
    source: the sentences.
    best: the best derivations found.
    made: the forests.
    every: for each sentence its derivations as `chart_enumeration` lists them,
      each with its model score in front.
    wide: for each sentence how many of them use a rule of five sites.
  """

  case: cases.Case
  copy: str
  model: Model
  source: Source
  best: Derivations
  made: Forest
  every: list[list[tuple]]
  wide: list[int]


@functools.cache
def _enumerated_joint(seed, order):
  """`cases.joint_case`, all derivations, and how many have five sites."""
  copy = "all" if seed % 2 else "unknown"
  case = cases.joint_case(seed, order=order, copy=copy)
  rows = range(len(case.sentences))
  every = [enumerate_case(case, row, copy=copy) for row in rows]
  wide = [cases.widest(case, row, copy=copy) for row in rows]
  return copy, case, every, wide


@functools.cache
def joint(seed, *, order, config=CONFIG):
  """Decodes and enumerates `cases.joint_case`, once for all tests."""
  copy, case, every, wide = _enumerated_joint(seed, order)
  model, result = decode(case, arity=5, copy=copy, config=config)
  return Joint(
    case=case,
    copy=copy,
    model=model,
    source=result.source,
    best=result.best(),
    made=beam_forest.extract(model, result),
    every=every,
    wide=wide,
  )


def enumerate_case(case, row, *, copy="unknown"):
  """Every derivation of a sentence, its model score in front."""
  every = enumeration.derivations(
    case.rules,
    case.sentences[row],
    span=case.span,
    constituents=case.constituents[row],
    copy=copy,
  )
  score = lambda one: cases.total(case, one, enumeration.lm_score)
  return [(score(one), *one) for one in every]


def random_forest(
  seed, *, sentences=3, nodes=5, arity=2, fan=2, disjoint=False
):
  """Forests without grammar or words: nodes with up to `fan` edges each.

  Nodes and edges are annotated with their numbers. Some sentences have no
  derivation at all. If `disjoint`, no derivation uses a node twice, so that no
  two consist of the same edges.
  """
  rng = np.random.default_rng(seed)
  node_offsets, edge_offsets, tails = [0], [0], []
  for _ in range(sentences):
    first = node_offsets[-1]
    empty = nodes == 0 or rng.random() < 0.15
    size = 0 if empty else int(rng.integers(1, nodes + 1))
    under = {}
    for node in range(first, first + size):
      under[node] = {node}
      for _ in range(int(rng.integers(1, fan + 1))):
        count = int(rng.integers(0, arity + 1)) if node > first else 0
        drawn = rng.integers(first, max(node, first + 1), size=count).tolist()
        chosen, used = [], set()
        for tail in drawn:
          if not disjoint or not used & under[tail]:
            chosen.append(tail)
            used |= under[tail]
        under[node] |= used
        row = np.full(arity, -1, np.int32)
        row[: len(chosen)] = chosen
        tails.append(row)
      edge_offsets.append(len(tails))
    node_offsets.append(first + size)
  edges, total = len(tails), node_offsets[-1]
  return Forest(
    node_offsets=np.array(node_offsets, np.int64),
    edge_offsets=np.array(edge_offsets, np.int64),
    tails=np.array(tails, np.int32).reshape(edges, arity),
    score=rng.normal(size=edges).astype(np.float32),
    nodes=np.arange(total),
    edges={"number": np.arange(edges)},
  )


class TooMany(Exception):
  """There are more derivations than asked for."""


def derivations(made, row, *, limit=600):
  """Every derivation of a sentence as a preorder list of edges.

  Raises:
    TooMany: if there are more than `limit`.
  """
  low, high = made.node_offsets[row], made.node_offsets[row + 1]
  if low == high:
    return []
  below = {}
  for node in range(low, high):
    below[node] = []
    for edge in range(made.edge_offsets[node], made.edge_offsets[node + 1]):
      ways = [[edge]]
      for tail in made.tails[edge]:
        if tail >= 0:
          ways = [one + two for one in ways for two in below[tail]]
        if len(ways) > limit:
          raise TooMany
      below[node] += ways
    if len(below[node]) > limit:
      raise TooMany
  return below[high - 1]


def enumerated(made, *, limit=600):
  """The derivations of each sentence, None where there are too many."""
  out = []
  for row in range(len(made)):
    try:
      out.append(derivations(made, row, limit=limit))
    except TooMany:
      out.append(None)
  return out


def with_scores(made, scores):
  return dataclasses.replace(made, score=np.asarray(scores, np.float32))
