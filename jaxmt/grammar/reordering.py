"""Lexicalised reordering models: how a phrase pair stands to its neighbours.

Tillmann 2004; Koehn et al. 2005 ("msd-bidirectional-fe"). For each phrase pair
six probabilities: its orientation towards the phrase before it on the target
side (backward) and towards the phrase after it (forward), each monotone, swap
or discontinuous. They are columns of the rule table, natural logs, of which a
derivation counts one of each three for every phrase; see `jaxmt.decode.phrase`.

Moses keeps them in a file of its own, a line for each phrase pair:

    das haus ||| the house ||| 0.6 0.2 0.2 0.8 0.1 0.1
"""

import dataclasses
import re
from collections.abc import Callable, Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar import estimate
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.table import RuleTable
from jaxmt.text import files

MONOTONE, SWAP, DISCONTINUOUS = range(3)
NAMES = tuple(
  f"reorder_{direction}_{orientation}"
  for direction in ("backward", "forward")
  for orientation in ("monotone", "swap", "discontinuous")
)
SMOOTHING = 0.5  # added to each count, as Moses does

_REST = re.compile(rb" \|\|\|[^|\n]*\|\|\|[^|\n]*$", re.MULTILINE)


def probabilities(counts: np.ndarray, *, smoothing: float = SMOOTHING):
  """Returns ln p(orientation | phrase pair) of both directions.

  p = (count + smoothing) / (sum of the three counts + 3 · smoothing).

  Args:
    counts: backward, then forward counts of the orientations, `[R, 6]`.
    smoothing: above 0.

  Returns:
    float32 `[R, 6]`.
  """
  both = np.asarray(counts, np.float64).reshape(-1, 2, 3) + smoothing
  return (
    np.log(both / both.sum(-1, keepdims=True)).reshape(-1, 6).astype(np.float32)
  )


def attach(
  table: RuleTable,
  model: RuleTable,
  *,
  names: Sequence[str] = NAMES,
) -> RuleTable:
  """Returns the table with the reordering columns of its phrase pairs.

  Args:
    table: R rules.
    model: phrase pairs with six features, of any vocabularies. A rule that is
      not among them gets zeros: its orientation does not count.
    names: names of the columns.
  """
  size = len(table)
  bare = lambda one: dataclasses.replace(
    one, features=np.zeros((len(one), 0), np.float32), feature_names=()
  )
  pair = estimate.group_rules(
    table_lib.concatenate([bare(table), bare(model)])
  ).pair
  place = np.full(int(pair.max(initial=-1)) + 1, -1, np.int64)
  place[pair[size:]] = np.arange(len(model))
  rows = place[pair[:size]]
  values = np.zeros((size, len(names)), np.float32)
  values[rows >= 0] = model.features[rows[rows >= 0]]
  return table_lib.with_features(table, names, values)


def detach(
  table: RuleTable, *, names: Sequence[str] = NAMES
) -> tuple[RuleTable, np.ndarray | None]:
  """Returns the table without its reordering columns, and the columns.

  Returns:
    `(table, values)`: float32 `[R, 6]`, or None if the table has none of the
    columns.

  Raises:
    InputError: if it has some of the columns but not all.
  """
  known = [name for name in names if name in table.feature_names]
  if not known:
    return table, None
  if len(known) < len(names):
    raise InputError(
      f"the phrase table has '{known[0]}' but not all of {names}"
    )
  columns = [table.feature_names.index(name) for name in names]
  rest = [n for n in range(len(table.feature_names)) if n not in columns]
  without = dataclasses.replace(
    table,
    features=np.ascontiguousarray(table.features[:, rest]),
    feature_names=tuple(table.feature_names[n] for n in rest),
  )
  return without, np.ascontiguousarray(table.features[:, columns])


def read(
  path: str, *, on_bad: Callable[[InputError], None] | None = None
) -> RuleTable:
  """Reads Moses' reordering table of six scores a line.

  Args:
    path: plain or gzipped.
    on_bad: called with a malformed line, which is then left out; None raises.

  Raises:
    InputError: naming file and line; or if there are not six scores a line.
  """
  from jaxmt.grammar import formats  # slow to load, seldom needed

  options = {} if on_bad is None else {"on_bad": on_bad}
  model = formats.read(path, "moses-phrases", glue=False, **options)
  if not len(model):
    raise InputError("no phrase pairs", path=path)
  if len(model.feature_names) != len(NAMES):
    raise InputError(
      f"{len(model.feature_names)} scores a line, not {len(NAMES)}: only"
      " msd-bidirectional-fe reordering is known",
      path=path,
    )
  return model


def write(table: RuleTable, path: str, *, names: Sequence[str] = NAMES) -> None:
  """Writes the reordering columns of phrase pairs in Moses' format.

  Raises:
    ValueError: if the table has none.
  """
  from jaxmt.grammar import formats  # slow to load, seldom needed

  _, values = detach(table, names=names)
  if values is None:
    raise ValueError("the table has no reordering columns")
  bare = dataclasses.replace(
    table,
    features=values,
    feature_names=tuple(names),
    links=table_lib.empty_rows(len(table), width=2),
    counts=np.zeros(len(table)),
  )
  with files.atomic_writer(path) as out:
    for block in formats.spell_blocks(bare, "moses-phrases"):
      out.write(_REST.sub(b"", block))
