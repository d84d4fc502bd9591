r"""Rule tables of other toolkits: cdec, Moses, Joshua/Thrax, Travatar.

    table = formats.read("grammar.scfg.gz", "cdec")
    formats.write(table, "rule-table.gz", "moses")

**Units.** A table that was read has its features in the units in which that
toolkit's decoder multiplies them by its weights, under the names its weights
file uses, so that `score = Σ weight · feature` with weights tuned by the
toolkit, unchanged:

| dialect | in the file | in the table | names of values without one |
|---|---|---|---|
| cdec | any number, often -log10 p | as written | `PhraseModel_0`, ... |
| moses | probability | ln p, at least -100 | `TranslationModel0_0`, ... |
| joshua | cost; named: as is | bare ones negated | `tm_pt_0`, ... |
| travatar | ln p, named | as written | (bad line) |

Writing is the exact inverse. Tables of our own (natural logs, higher is
better) go through the same functions: Moses gets probabilities, the others the
logs under our names. What differs between decoders beyond the table (log10
language models, the size of a word penalty) is up to the decoding program.

**Glue** is not in these files: cdec has it built in, the others in a file of
its own (`glue_lines`). `read` adds the glue and pass-through rules the
toolkit's decoder would use, with their features (`Glue`, `PassThrough`, ...);
`write` leaves them out again.

**Words and labels** that look like markup are escaped: see `escapes`.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.formats import cdec, joshua, moses, travatar
from jaxmt.grammar.formats.building import Block
from jaxmt.grammar.formats.dialect import (
  Dialect,
  describe,
  describe_part,
  with_decoder_rules,
  without_decoder_rules,
)
from jaxmt.grammar.table import RuleTable
from jaxmt.text import files

__all__ = (
  "DIALECTS",
  "find",
  "glue_lines",
  "read",
  "read_all",
  "read_each",
  "spell_blocks",
  "to_lines",
  "write",
)

DIALECTS: dict[str, Dialect] = {
  "cdec": cdec.DIALECT,
  "moses": moses.DIALECT,
  "moses-phrases": moses.PHRASES,
  "joshua": joshua.DIALECT,
  "travatar": travatar.DIALECT,
}

# Columns of these names without any value are not written.
_DECODER_FEATURES = frozenset(
  name
  for spec in DIALECTS.values()
  for features in (spec.first_glue, spec.later_glue, spec.copy)
  for name in features
)

OnBad = Callable[[InputError], None]

_BLOCK = 1 << 26  # bytes read together
_RULES = 1 << 18  # rules written together


def _refuse(error: InputError) -> None:
  raise error


def find(dialect: str) -> Dialect:
  """Returns a dialect by name.

  Raises:
    ValueError: if there is none of this name.
  """
  if dialect not in DIALECTS:
    raise ValueError(f"dialect {dialect!r} is none of {', '.join(DIALECTS)}")
  return DIALECTS[dialect]


def read(
  path: str,
  dialect: str,
  *,
  glue: bool = True,
  on_bad: OnBad = _refuse,
) -> RuleTable:
  """Reads a table.

  Args:
    path: plain or gzipped, `-` for standard input.
    dialect: one of `DIALECTS`.
    glue: add the decoder's glue and pass-through rules, last.
    on_bad: called with what is wrong with a line: raises, or returns to have
      the line skipped.

  Raises:
    InputError: naming file and line.
  """
  return read_all([path], dialect, glue=glue, on_bad=on_bad)


def read_all(
  paths: Sequence[str],
  dialect: str,
  *,
  glue: bool = True,
  on_bad: OnBad = _refuse,
) -> RuleTable:
  """Reads several files (a table and its glue, say) as one table."""
  spec = find(dialect)
  tables = []
  for path in paths:
    first = 0
    for data, lines in _blocks(path):
      block = _parsed(spec, data, path)
      _report(block, first, path, on_bad)
      tables.append(block.table)
      first += lines
  if not tables:
    tables.append(spec.parse(np.zeros(0, np.uint8)).table)
  table = tables[0] if len(tables) == 1 else table_lib.concatenate(tables)
  return with_decoder_rules(spec, table) if glue else table


def read_each(
  paths: Sequence[str], dialect: str, *, on_bad: OnBad = _refuse
) -> tuple[RuleTable, np.ndarray]:
  """Reads per-sentence grammars.

  Returns:
    `(table, starts int64 [N + 1])`: one table, glue last; the rules of file n
    are `starts[n] : starts[n + 1]`.
  """
  spec = find(dialect)
  tables = [read(path, dialect, glue=False, on_bad=on_bad) for path in paths]
  starts = np.cumsum([0, *map(len, tables)])
  if not tables:
    tables = [spec.parse(np.zeros(0, np.uint8)).table]
  return with_decoder_rules(spec, table_lib.concatenate(tables)), starts


def _parsed(spec: Dialect, data: np.ndarray, path: str) -> Block:
  try:
    return spec.parse(data)
  except InputError as error:  # what is about no line
    raise InputError(error.cause, path=path) from error


def _report(block: Block, first: int, path: str, on_bad: OnBad) -> None:
  for line, cause in block.faults:
    on_bad(
      InputError(f"malformed rule: {cause}", path=path, line=first + line + 1)
    )


def _blocks(path: str) -> Iterator[tuple[np.ndarray, int]]:
  """Yields whole lines as bytes, and their number."""
  rest = b""
  first = 0
  for block in files.stream_blocks(path, size=_BLOCK):
    cut = block.rfind(b"\n") + 1
    text, rest = (
      (rest + block[:cut], block[cut:]) if cut else (b"", rest + block)
    )
    if text:
      yield _checked(text, first, path)
      first += text.count(b"\n")
  if rest:
    yield _checked(rest + b"\n", first, path)


def _checked(text: bytes, first: int, path: str) -> tuple[np.ndarray, int]:
  try:
    text.decode("utf-8")
  except UnicodeDecodeError as error:
    line = first + text.count(b"\n", 0, error.start) + 1
    bad = text[error.start]
    raise InputError(
      f"not UTF-8: byte 0x{bad:02x}", path=path, line=line
    ) from error
  return np.frombuffer(text, np.uint8), text.count(b"\n")


def write(table: RuleTable, path: str, dialect: str) -> None:
  """Writes a table atomically; a name ending in `.gz` is compressed."""
  with files.atomic_writer(path) as out:
    for text in _spelled(table, find(dialect)):
      out.write(text)


def spell_blocks(table: RuleTable, dialect: str) -> Iterator[bytes]:
  """Yields the bytes that `write` would write, many lines at a time."""
  yield from _spelled(table, find(dialect))


def to_lines(table: RuleTable, dialect: str) -> list[str]:
  """Returns the lines that `write` would write."""
  text = b"".join(_spelled(table, find(dialect)))
  return files.split_lines(text.decode("utf-8"))


def _spelled(table: RuleTable, spec: Dialect) -> Iterator[bytes]:
  """Yields the table's lines in blocks."""
  table = without_decoder_rules(spec, table, unused=_DECODER_FEATURES)
  whole = describe(table)
  blocks = (
    spec.spell(
      table_lib.slice_table(table, start, start + _RULES),
      describe_part(whole, start, start + _RULES),
    )
    for start in range(0, len(table), _RULES)
  )
  if not spec.ordered:
    yield from blocks
    return
  lines = [line for block in blocks for line in block.split(b"\n")[:-1]]
  yield b"".join([line + b"\n" for line in sorted(lines)])


def glue_lines(dialect: str) -> list[str]:
  """Returns the glue grammar file of a dialect; none if it is built in."""
  return list(find(dialect).glue_lines)
