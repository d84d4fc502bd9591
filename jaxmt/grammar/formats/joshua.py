"""Joshua's and Thrax's grammars.

    [X] ||| me llaman ||| call me ||| 1 ||| 0-1 1-0
    [NP] ||| la [NN,1] ||| the [NN,1] ||| 0.5 1.2 Lexical=0 ||| 0-0

Values without a name are costs: Joshua's reader turns their sign (and only
theirs) and calls them `tm_pt_0`, `tm_pt_1`, ... after the grammar's owner. So
does this one; writing turns it back. Glue has a file of its own, owner `glue`:

    [GOAL] ||| [GOAL,1] [X,2] ||| [GOAL,1] [X,2] ||| -1

Every phrase joined counts `tm_glue_0` = 1. A copied word has OOVPenalty = -100.
Tree fragments have no place here and are left out.
"""

import dataclasses
import re

import numpy as np

from jaxmt.grammar.formats import building, gluing, scanning, spelling
from jaxmt.grammar.formats.building import Block
from jaxmt.grammar.formats.cdec import left_label
from jaxmt.grammar.formats.dialect import Dialect, Whole, bare_columns
from jaxmt.grammar.formats.escapes import escape_label, escape_word, unescape
from jaxmt.grammar.table import Kind, RuleTable, S
from jaxmt.text.ragged import Ragged

BARE = "tm_pt_"
GLUE = "tm_glue_"
GOAL = "GOAL"
LEFT, SOURCE, TARGET, FEATURES, LINKS = range(5)

_SITE = re.compile(r"\[([^\[\]]+),([1-9][0-9]?)\]")


def _classify(token: str) -> tuple[str | None, str | None, int]:
  match = _SITE.fullmatch(token) if token[0] == "[" else None
  if match:
    return None, unescape(match[1]), int(match[2])
  return unescape(token), None, 0


def _with_goal(
  lhs: np.ndarray, source: Ragged, *, of: np.ndarray, old: int, new: int
) -> tuple[np.ndarray, Ragged]:
  """Changes a label of some rules (bool `[N]`): GOAL is our S in glue only."""
  flat = np.array(source.flat)
  rows = np.repeat(of, source.lengths)
  flat[rows & (flat == -1 - old)] = -1 - new
  lhs = np.where(of & (lhs == old), new, lhs).astype(np.int32)
  return lhs, Ragged(flat=flat, offsets=source.offsets)


def parse(data: np.ndarray) -> Block:
  """Reads a block of lines; see `dialect.Dialect`."""
  lines = scanning.scan_lines(data)
  names = building.make_names()
  fault = np.zeros(len(lines.fields), np.int8)
  bad = (lines.fields < 4) | (lines.fields > 5)
  building.add_fault(fault, np.flatnonzero(bad), building.FIELDS)

  def side(number: int, words: dict[str, int]) -> building.Side:
    tokens = scanning.take_field(lines, lines.field, number)
    return building.read_side(
      data, tokens, _classify, words=words, labels=names.labels
    )

  left = scanning.take_field(lines, lines.field, LEFT)
  every = np.ones(len(fault), np.bool_)
  lhs = building.read_left(
    data, left, left_label, names.labels, fault, needed=every
  )
  source, target = building.join_sides(
    side(SOURCE, names.source), side(TARGET, names.target), fault, strict=True
  )
  goal = names.labels.get(GOAL, -1)
  new_lhs, new_source = _with_goal(lhs, source, of=lhs == goal, old=goal, new=S)
  is_glue = gluing.kinds(new_lhs, new_source, target, ~every) == Kind.GLUE
  joined = is_glue | gluing.find_boundaries(new_lhs, new_source)
  joined &= lhs == goal
  lhs, source = _with_goal(lhs, source, of=joined, old=goal, new=S)
  kind = np.where(is_glue & joined, Kind.GLUE, Kind.HIERO)
  links = building.read_links(
    data,
    scanning.take_field(lines, lines.field, LINKS),
    source,
    target,
    fault,
  )
  feature_names, values, is_bare = building.read_features(
    data,
    scanning.take_field(lines, lines.field, FEATURES),
    fault,
    bare=lambda n: f"{BARE}{n}",
    bare_sign=-1.0,
  )
  feature_names, values = gluing.move_values(
    feature_names,
    values,
    is_bare,
    joined,
    lambda n: f"{GLUE}{n}",
  )
  return gluing.fold_boundaries(
    building.finish(
      names,
      fault=fault,
      line=lines.line,
      lhs=lhs,
      kind=kind,
      source=source,
      target=target,
      links=links,
      features=values,
      feature_names=feature_names,
    )
  )


def _site(label: str, index: int, is_target: bool) -> str:
  del is_target
  return f"[{escape_label(label)},{index}]"


def spell(table: RuleTable, whole: Whole) -> bytes:
  """Writes rules; see `dialect.Dialect`."""
  del whole
  lhs, source = _with_goal(
    table.lhs,
    table.source,
    of=table.kind == Kind.GLUE,
    old=S,
    new=len(table.labels),
  )
  table = dataclasses.replace(
    table, lhs=lhs, source=source, labels=(*table.labels, GOAL)
  )
  speller = spelling.make_speller(
    table, write_word=escape_word, write_site=_site
  )
  bar = spelling.constant_pieces(speller, "||| ", len(table))
  left = spelling.column_pieces(
    speller,
    table.lhs,
    lambda label: f"[{escape_label(table.labels[label])}] ",
  )
  names = list(table.feature_names)
  bare = bare_columns(names, BARE)
  order = bare + [n for n in range(len(names)) if n not in bare]
  values = table.features[:, order]
  values[:, : len(bare)] *= -1
  parts = [
    left,
    bar,
    spelling.source_pieces(speller, table),
    bar,
    spelling.target_pieces(speller, table),
    bar,
    spelling.feature_pieces(
      speller, ["" if n in bare else names[n] for n in order], values
    ),
    bar,
    spelling.link_pieces(speller, table.links),
  ]
  return spelling.spell_lines(speller, parts)


DIALECT = Dialect(
  parse=parse,
  spell=spell,
  first_glue={f"{GLUE}0": 1.0},
  later_glue={f"{GLUE}0": 1.0},
  copy={"OOVPenalty": -100.0},
  glue_lines=(
    "[GOAL] ||| <s> ||| <s> ||| 0",
    "[GOAL] ||| [GOAL,1] [X,2] ||| [GOAL,1] [X,2] ||| -1",
    "[GOAL] ||| [GOAL,1] </s> ||| [GOAL,1] </s> ||| 0",
  ),
)
