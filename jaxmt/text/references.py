"""Several reference translations of the same sentences, a file each."""

from collections.abc import Sequence

from jaxmt.text import bitext


def read_references(
  paths: Sequence[str],
  *,
  expected: int | None = None,
  expected_path: str | None = None,
) -> list[list[str]]:
  """Reads reference files whose lines belong together.

  Args:
    paths: R files, plain or gzipped UTF-8, with the same number of lines.
    expected: how many lines they must have, if that is known already.
    expected_path: the file that number came from, for the error message.

  Returns:
    For each of N sentences its R references, in the order of `paths`. An
    empty line is a reference without words, not a missing one.

  Raises:
    InputError: naming the shorter file and the line where it ends.
  """
  if not paths:
    raise ValueError("no reference files")
  sides = bitext.read_parallel(paths)
  if expected is not None:
    bitext.check_line_count(
      len(sides[0]),
      path=paths[0],
      expected=expected,
      expected_path=expected_path,
    )
  return [list(row) for row in zip(*sides, strict=True)]


def streams(references: Sequence[Sequence[str]]) -> list[list[str]]:
  """Returns references per sentence as one list per reference file.

  Raises:
    ValueError: if sentences have different numbers of references.
  """
  return [list(column) for column in zip(*references, strict=True)]
