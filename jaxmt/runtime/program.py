"""What every program in `launch/` and `tools/` shares: flags, errors, exits.

    FLAGS = flags.FLAGS
    flags.DEFINE_string(...)

    def main(argv): ...

    if __name__ == "__main__":
      program.run(main)

Bad flags, bad input and failed system calls print one line on standard error
and exit with 2. Programs import this module before the others, which are slow
to load: Ctrl-C is then answered with one line from the start.
"""

import os
import signal
import sys


def _name() -> str:
  return os.path.basename(sys.argv[0])


def _stop_loading(number, frame) -> None:
  """Answers Ctrl-C outside `run`, while modules are loaded.

  Ends the process at once: there is nothing to clean up yet, and an exception
  in the middle of an import is lost or renamed by some of the libraries.
  """
  del number, frame
  try:
    os.write(2, os.fsencode(_name()) + b": interrupted\n")
  finally:
    os._exit(2)


def _loads_a_script() -> bool:
  """Whether Python runs a file, and leaves Ctrl-C to us.

  It does not where Ctrl-C is ignored, as in background jobs; a notebook and
  `python -m pytest` have their own answers.
  """
  main = sys.modules["__main__"]
  is_file = hasattr(main, "__file__") and main.__spec__ is None
  return is_file and (
    signal.getsignal(signal.SIGINT) is signal.default_int_handler
  )


if _loads_a_script():
  try:  # contextlib is not loaded yet
    signal.signal(signal.SIGINT, _stop_loading)
  except ValueError:  # not the main thread
    pass

# After the handler: loading these takes its time.
import contextlib  # noqa: E402
import re  # noqa: E402
import threading  # noqa: E402
from collections.abc import Callable, Iterator, Mapping, Sequence  # noqa: E402
from typing import TypeVar  # noqa: E402

from absl import app, flags, logging  # noqa: E402

from jaxmt import errors  # noqa: E402
from jaxmt.errors import InputError  # noqa: E402

_LARGEST = 2**62  # of whole numbers, which arrays have in 64 bits
_INFINITE = (float("inf"), float("-inf"))
Value = TypeVar("Value")


def _repeat_interrupt(unraisable) -> None:
  """Raises Ctrl-C again that came where Python drops all exceptions."""
  if issubclass(unraisable.exc_type, KeyboardInterrupt):
    again = (threading.main_thread().ident, signal.SIGINT)
    threading.Timer(0.05, signal.pthread_kill, again).start()
  else:
    sys.__unraisablehook__(unraisable)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
  """Ctrl-C raises `KeyboardInterrupt` inside, and ends the process after it."""
  before = signal.getsignal(signal.SIGINT)
  if before is not _stop_loading:
    yield
    return
  dropped = sys.unraisablehook
  sys.unraisablehook = _repeat_interrupt
  signal.signal(signal.SIGINT, signal.default_int_handler)
  try:
    yield
  finally:
    signal.signal(signal.SIGINT, before)
    sys.unraisablehook = dropped


def run(main: Callable[[list[str]], None]) -> None:
  """Parses flags, runs `main`, turns `InputError` into one line and exit 2."""
  _occupy_closed_streams()
  logging.use_absl_handler()
  logging.set_verbosity(logging.WARNING)  # libraries' news are not ours
  app.run(lambda argv: _guarded(main, argv), flags_parser=_parse_flags)


def _parse_flags(argv: Sequence[str]) -> list[str]:
  if any(arg in ("--help", "-help", "-h", "--h") for arg in argv[1:]):
    flags.FLAGS(list(argv[:1]), known_only=True)
    _guarded(lambda argv: print(_help_text(argv[0])), list(argv))
    sys.exit(0)
  try:
    rest = flags.FLAGS(list(argv))
  except Exception as error:
    _fail(_reason(error, argv))
  for name in flags.FLAGS:  # bounds let NaN pass: no comparison with it holds
    value = flags.FLAGS[name].value
    if isinstance(value, float) and value != value:
      _fail(f"--{name}: not a number")
    if value in _INFINITE and value != flags.FLAGS[name].default:
      _fail(f"--{name}: not a finite number")
    if isinstance(value, int) and abs(value) > _LARGEST:
      _fail(f"--{name}: too large")
  if len(rest) > 1 and not getattr(sys.modules["__main__"], "POSITIONAL", ""):
    _fail(f"unexpected argument '{rest[1]}' (flags look like --name=value)")
  return rest


def _reason(error: Exception, argv: Sequence[str]) -> str:
  """What is wrong with the flags, or with the config file they name."""
  named = re.search(r"(?:^|\0)--?config[=\0]([^:\0]*)", "\0".join(argv))
  if named and not isinstance(error, ValueError):
    path = named[1]
    if isinstance(error, SyntaxError) or errors.lines_of(error, path):
      return str(errors.failure(error, path))
  if isinstance(error, AttributeError | KeyError):  # from ml_collections
    return _unknown_config_key(error, argv)
  if isinstance(error, flags.Error | TypeError | ValueError | OSError):
    # ml_collections puts a whole traceback into the text.
    traceback = r"Error whilst parsing config file:.*\n\w+: "
    return re.sub(traceback, "", str(error), flags=re.DOTALL)
  raise error


def _unknown_config_key(error: Exception, argv: Sequence[str]) -> str:
  """Says which `--config.a.b` does not exist, and what does."""
  names = re.findall(r"'(\w+)'", str(error))
  suggestion = re.search(r'Did you mean "(\w+)"', str(error))
  name = names[0] if names else str(error)
  given = [a.split("=")[0] for a in argv if re.search(rf"\b{name}\b", a)]
  text = f"unknown config key '{given[0].lstrip('-') if given else name}'"
  return text + (f"; did you mean '{suggestion[1]}'?" if suggestion else "")


def _occupy_closed_streams() -> None:
  """Opens the null device in place of closed standard streams.

  Otherwise the next file that is opened takes their number, and whatever a
  library prints goes into it.
  """
  for number in range(3):
    try:
      os.fstat(number)
    except OSError:
      os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
  if sys.stderr is None:
    sys.stderr = open(os.devnull, "w")


def _guarded(main: Callable[[list[str]], None], argv: list[str]) -> None:
  try:
    with _interruptible():
      main(argv)
      if sys.stdout is not None:
        sys.stdout.flush()
  except InputError as error:
    _fail(str(error))
  except BrokenPipeError:  # the reader of our output has gone: not our error
    _drop_output()
    sys.exit(0)
  except OSError as error:
    _fail(str(errors.system_failure(error)))
  except MemoryError as error:
    _fail(f"out of memory: {error}")
  except KeyboardInterrupt:
    _fail("interrupted")


def _drop_output() -> None:
  """Forgets what waits to be printed: it cannot be."""
  os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(reason: str):
  """Prints one line and exits with 2."""
  print(f"{_name()}: {' '.join(reason.split())}", file=sys.stderr)
  try:
    if sys.stdout is not None:
      sys.stdout.flush()
  except OSError:
    _drop_output()
  sys.exit(2)


def _help_text(name: str) -> str:
  main = sys.modules["__main__"]
  text = (main.__doc__ or "").strip() + "\n\nFlags:\n"
  return text + flags.FLAGS.module_help(main).split("\n", 1)[-1]


def given(flag: flags.FlagHolder[Value | None]) -> Value:
  """Returns a flag's value; raises `InputError` if it was not given."""
  if flag.value in (None, "", []):
    raise InputError(f"--{flag.name} is required")
  return flag.value  # pyrefly: ignore


def required(**values: object) -> None:
  """Raises `InputError` naming the first flag that was not given."""
  for name, value in values.items():
    if value in (None, "", []):
      raise InputError(f"--{name} is required")


def check_paths(
  *,
  outputs: Sequence[str],
  inputs: Sequence[str] = (),
  folders: Sequence[str] = (),
  endings: Mapping[str, Sequence[str]] | None = None,
) -> None:
  """Refuses outputs that cannot be, before anything is done.

  Those are two outputs in one file, an output that is an input, and one in a
  folder that is not there or cannot be written to.

  Args:
    outputs: names of flags that say what is written.
    inputs: names of flags that say what is read, or lists of it.
    folders: names of flags of folders for state, which are made with those
      that they are in.
    endings: of flags that give the start of several names, what is added.

  Raises:
    InputError: naming the flags.
  """
  seen: dict[str, str] = {}
  for name in (*inputs, *folders, *outputs):
    value = flags.FLAGS[name].value or []
    values = value.split(",") if isinstance(value, str) else value
    more = (endings or {}).get(name, ("",))
    for path in (start + ending for start in values for ending in more):
      if path == "-" or _is_device(path):
        continue  # several may print there
      place = os.path.realpath(path)
      if place in seen and name not in inputs:
        raise InputError(
          f"--{seen[place]} and --{name} are the same", path=path
        )
      seen.setdefault(place, name)
      if name in outputs:
        _check_folder(place, name)


def _check_folder(place: str, name: str) -> None:
  """Raises if no file can be made at a place, which flag `name` gives."""
  folder = os.path.dirname(place)
  if not os.path.isdir(folder):
    raise InputError(f"--{name}: no such folder", path=folder)
  if not os.access(folder, os.W_OK | os.X_OK):
    raise InputError(f"--{name}: cannot be written to", path=folder)
  try:
    os.lstat(place)
  except FileNotFoundError:
    return
  except OSError as error:  # a name that no file can have
    raise errors.system_failure(error, place) from error


def _is_device(path: str) -> bool:
  regular = os.path.isfile(path) or os.path.isdir(path)
  return os.path.exists(path) and not regular
