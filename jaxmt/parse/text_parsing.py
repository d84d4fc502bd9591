"""Dependency trees of plain text, by what a treebank teaches.

    trees = parse(learn("supervised", bank), lines)

Words are tagged by a tagger of the treebank, then parsed: by a parser learnt
from its trees ("supervised": with pairs of siblings), by one learnt from its
tags alone ("unsupervised": DMV from CCV2), or by drawing projective trees
("random"), which needs no treebank.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jaxmt.errors import InputError
from jaxmt.parse import (
  induction,
  saved_parsers,
  sibling_parser,
  tagger,
  tree_forest,
)
from jaxmt.parse.induction import InductionConfig
from jaxmt.parse.sibling_parser import SiblingConfig
from jaxmt.text import treebank
from jaxmt.text.ragged import Ragged
from jaxmt.text.treebank import Treebank

KINDS = ("supervised", "unsupervised", "random")
_PARTS = {  # and what each may be
  "tagger": tagger.Tagger,
  "parser": (sibling_parser.SiblingParser, induction.TagParser),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextParser:
  """A tagger and a parser; None each where trees are drawn.

  Attributes:
    kind: one of `KINDS`.
    tagger: or None.
    parser: of trees or of tags, or None.
    seed: of drawn trees.
  """

  kind: str
  tagger: tagger.Tagger | None
  parser: sibling_parser.SiblingParser | induction.TagParser | None
  seed: int = 0


def learn(
  kind: str,
  bank: Treebank | None,
  *,
  trees: SiblingConfig | None = None,
  tags: InductionConfig | None = None,
  seed: int = 0,
) -> TextParser:
  """Returns a parser of plain text.

  Args:
    kind: one of `KINDS`.
    bank: what to learn from; not used for random trees.
    trees: how trees are learnt from.
    tags: how tags are learnt from.
    seed: of random trees.

  Raises:
    ValueError: for another kind, or without a treebank that fits.
  """
  if kind not in KINDS:
    raise ValueError(f"no parser '{kind}'; there are: {', '.join(KINDS)}")
  if kind == "random":
    return TextParser(kind=kind, tagger=None, parser=None, seed=seed)
  if bank is None:
    raise ValueError(f"a {kind} parser needs a treebank")
  parser = (
    sibling_parser.train(bank, trees or SiblingConfig())
    if kind == "supervised"
    else induction.learn(bank, tags or InductionConfig())[0]
  )
  return TextParser(kind=kind, tagger=tagger.count(bank), parser=parser)


def parse(found: TextParser, lines: Sequence[str]) -> Treebank:
  """Returns lines with words as tagged trees, in their order.

  Args:
    found: see `learn`.
    lines: tokenised; empty ones are left out.

  Raises:
    InputError: for a line that is too long to be parsed.
  """
  bank = treebank.from_lines([line for line in lines if line.split()])
  treebank.check_lengths(bank)
  if found.tagger is not None:
    bank = dataclasses.replace(
      bank,
      tags=tagger.tag(found.tagger, bank),
      tag_names=found.tagger.tag_names,
    )
  return dataclasses.replace(bank, heads=heads(found, bank).flat)


def heads(found: TextParser, bank: Treebank) -> Ragged:
  """Returns the heads of tagged sentences, -1 is the root."""
  if found.parser is None:
    return tree_forest.random_trees(bank.lengths, seed=found.seed)
  if isinstance(found.parser, sibling_parser.SiblingParser):
    return sibling_parser.parse(found.parser, bank)
  return induction.parse(found.parser, bank)


def to_values(found: TextParser) -> dict[str, Any]:
  """Returns it as named arrays, lists of strings and JSON values."""
  values: dict[str, Any] = {"kind": found.kind, "seed": found.seed}
  for part in _PARTS:
    if getattr(found, part) is not None:
      own = saved_parsers.to_values(getattr(found, part))
      values |= {f"{part}-{name}": value for name, value in own.items()}
  return values


def from_values(values: Mapping[str, Any], *, path: str = "") -> TextParser:
  """Returns the parser of `to_values`.

  Args:
    values: what it returned.
    path: where they were read, for error messages.

  Raises:
    InputError: naming a value that is missing, or does not fit.
  """
  kind, seed = values.get("kind"), values.get("seed")
  if kind not in KINDS or type(seed) is not int:
    raise InputError("not a parser of text", path=path or None)
  parts = dict.fromkeys(_PARTS)
  for part in _PARTS if kind != "random" else ():
    own = {
      name.removeprefix(f"{part}-"): value
      for name, value in values.items()
      if name.startswith(f"{part}-")
    }
    parts[part] = saved_parsers.from_values(own, path=path)
    if not isinstance(parts[part], _PARTS[part]):
      raise InputError(f"its {part} is none", path=path or None)
  return TextParser(kind=kind, seed=seed, **parts)
