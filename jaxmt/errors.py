"""The one exception that means: the user's input is wrong.

Programs print it as one line, `file:line: cause`, and exit with code 2 (see
`jaxmt.program`). Library code raises it for anything read from a file or a
flag; wrong arguments of a function are a plain `ValueError`.
"""

import traceback


class InputError(ValueError):
  """Bad input, with where it was found.

  Attributes:
    cause: what is wrong, one line.
    path: the file, or None when it is not about a file.
    line: 1-based line number, or None.
  """

  def __init__(
    self, cause: str, *, path: str | None = None, line: int | None = None
  ):
    self.cause = cause
    self.path = path
    self.line = line
    where = "" if path is None else str(path)
    if line is not None:
      where += f":{line}"
    super().__init__(f"{where}: {cause}" if where else cause)


def system_failure(error: OSError, path: str | None = None) -> InputError:
  """Says why a system call has failed, for `path` or the file it names."""
  cause = (error.strerror or str(error) or type(error).__name__).lower()
  path = error.filename if path is None else path
  if isinstance(path, bytes):
    path = path.decode("utf-8", "replace")
  return InputError(cause, path=path if isinstance(path, str) else None)


def failure(error: Exception, path: str) -> InputError:
  """Says what running a config file has raised, and where."""
  if isinstance(error, SyntaxError):
    return InputError(error.msg, path=error.filename, line=error.lineno)
  lines = lines_of(error, path)
  cause = f"{type(error).__name__}: {error}"
  return InputError(cause, path=path, line=lines[-1] if lines else None)


def lines_of(error: Exception, path: str) -> list[int | None]:
  """Lines of a file outside this package that the error came through."""
  package = __file__.rpartition("/")[0]
  frames = traceback.extract_tb(error.__traceback__)
  last = lambda name: name.rpartition("/")[2]
  return [
    frame.lineno
    for frame in frames
    if last(frame.filename) == last(path)
    and not frame.filename.startswith(package)
  ]
