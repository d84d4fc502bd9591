"""Feeds damaged files to every reader of `readers.py`.

    NUMBA_BOUNDSCHECK=1 python -m tests.faults.fuzz COUNT SEED [READER ...]
    python -m tests.faults.fuzz guided COUNT SEED FOLDER [READER ...]

A reader may return, or raise `InputError` with one line; anything else is a
finding, and so are more than `_SECONDS` of processor time for one input, and
more than `_MEMORY` bytes for all of them.

The first form mutates valid files; every input that ends in a new way (another
message, or acceptance) is added to those: the pool moves towards what is nearly
right. FUZZ_CORPUS names a folder of the second form to start from.

The second form is guided by coverage and needs the package atheris. Kernels run
as Python (NUMBA_DISABLE_JIT), so that their branches count too, but nothing is
searched with tables, which would take too long. Inputs that
reach something new are kept in FOLDER/READER, for the first form to try with
the compiled kernels.

Prints one JSON line: inputs, how many were accepted and how many endings were
seen for each reader, the slowest input's seconds, and the findings.
"""

import contextlib
import json
import math
import os
import pathlib
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

if sys.argv[1:2] == ["one"]:  # in a process of `guided`: before the readers
  import atheris

  instrumented = atheris.instrument_imports(include=["jaxmt"])
else:
  instrumented = contextlib.nullcontext()
with instrumented:
  from jaxmt.errors import InputError
  from tests import util
  from tests.faults import readers, structured

_TOKENS = [
  b" ",
  b"\t",
  b"\n",
  b"\n\n",
  b"\xc2\x85",
  b"9" * 30,
  b"9" * 5000,
  *b"||| \t ( ) [ ] = - , 0 -1 1 e E . nan inf 1e999 \xff \xc2 \x00".split(),
  *b"[X,1] [X,9] [1] [9] [X][X] (X x0:X <s> </s>".split(),
  *b"-2147483649 2147483648 99999999999".split(),
]


_STRUCTURED = 0.8  # of the inputs whose structure is known
_ACCEPTED = 0.5  # of the inputs are changes of accepted ones
_SECONDS = 5.0
_MEMORY = 3 << 30

# Written over whole elements of arrays, which keep their size.
_BINARY = [
  struct.pack(f"<{kind}", value)
  for kind, values in {
    "h": (-1, 0, 1, -(2**15), 2**15 - 1),
    "i": (-1, 0, 1, 2, 7, -(2**31), 2**31 - 1, 2**20),
    "q": (-1, 0, 1, 2, 7, -(2**63), 2**63 - 1, 2**31, 2**20),
    "f": (-1.0, 0.0, 0.5, 1.0, 1e30, math.nan, math.inf, -math.inf),
  }.items()
  for value in values
]
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")
_NUMBERS = b"-1 -0 0 1 2 3 0.5 1e-3 65535 65536 -2.5 1e38 0007".split()


def _replace_number(out: bytearray, place: int, rng: random.Random) -> None:
  """Writes another number in place of the first one from `place` on."""
  number = _NUMBER.search(out, place)
  if number:
    out[number.start() : number.end()] = rng.choice(_NUMBERS)


def _change_line(out: bytearray, place: int, rng: random.Random) -> None:
  """Takes out, doubles or moves the line at `place`."""
  start = out.rfind(b"\n", 0, place) + 1
  end = out.find(b"\n", place) + 1 or len(out)
  line = out[start:end]
  what = rng.randrange(3)
  if what != 1:
    del out[start:end]
  if what:
    other = out.rfind(b"\n", 0, rng.randrange(len(out) + 1)) + 1
    out[other:other] = line


def mutate(data: bytes, rng: random.Random, pool: list[bytes]) -> bytes:
  """Changes bytes, spans, tokens, numbers or lines in one to six places."""
  out = bytearray(data)
  for _ in range(rng.choice((1, 1, 2, 3, 6))):
    place = rng.randrange(len(out) + 1)
    length = rng.choice((1, 1, 2, 4, 9, 40))
    what = rng.randrange(12)
    if what == 0 and place < len(out):
      out[place] ^= 1 << rng.randrange(8)
    elif what == 1:
      del out[place : place + length]
    elif what in (2, 3):
      out[place:place] = rng.choice(_TOKENS)
    elif what == 4:
      out[place : place + length] = rng.choice(_TOKENS)
    elif what == 5:
      out[place:place] = out[place : place + length]
    elif what == 6:
      other = rng.choice(pool)
      start = rng.randrange(len(other) + 1)
      out[place : place + length] = other[start : start + length]
    elif what in (7, 8):
      _replace_number(out, place, rng)
    elif what == 9:
      _change_line(out, place, rng)
    elif what == 10:
      value = rng.choice(_BINARY)
      if place + len(value) <= len(out):
        out[place : place + len(value)] = value
    else:
      del out[place:]
  return bytes(out)


def _mutated(data: bytes, rng: random.Random, pool: list[bytes]) -> bytes:
  """Changes values where the input's structure is known, mostly, or bytes."""
  changed = None
  if rng.random() < _STRUCTURED:
    changed = structured.mutate(data, rng, pool)
  return mutate(data, rng, pool) if changed is None else changed


def ending(reader, path: str) -> tuple[str, bool]:
  """How a reader ends, in words without numbers; and whether that is right."""
  try:
    reader(path)
    return "", True
  except InputError as error:
    text = str(error)
    return re.sub(r"[0-9]+|'.*'", "#", error.cause), "\n" not in text
  except Exception as error:
    return f"{type(error).__name__}: {error}"[:300], False


def _first_pool(name: str) -> list[bytes]:
  """Valid inputs, and those that guided fuzzing has kept."""
  pool = readers.seeds(name)
  folder = os.environ.get("FUZZ_CORPUS")
  if folder and os.path.isdir(f"{folder}/{name}"):
    kept = sorted(pathlib.Path(folder, name).iterdir())
    pool += [path.read_bytes() for path in kept]
  return pool


def fuzz(name: str, count: int, seed: int) -> dict:
  """Feeds `count` inputs to a reader, those of the first pool first."""
  reader = readers.READERS[name][0]
  pool = _first_pool(name)
  valid, rng = len(readers.seeds(name)), random.Random(f"{seed} {name}")
  longest = max(4000, *(2 * len(data) for data in pool))
  seen, accepted, findings, slowest = set(), 0, [], 0.0
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "input")
    for number, data in enumerate(pool[:valid]):
      pathlib.Path(path).write_bytes(data)
      if ending(reader, path) != ("", True):
        raise RuntimeError(f"{name}: bad seed {number}: {ending(reader, path)}")
    given, good = pool[valid:], pool[:valid]
    for number in range(count):
      data = rng.choice(good if rng.random() < _ACCEPTED else pool)
      data = _mutated(data, rng, pool)
      if number < len(given):
        data = given[number]
      pathlib.Path(path).write_bytes(data)
      start = time.process_time()
      how, right = ending(reader, path)
      seconds = time.process_time() - start
      if number and seconds > _SECONDS:  # again: kernels may be compiled
        start = time.process_time()
        ending(reader, path)
        seconds = time.process_time() - start
      if number:  # the first one may compile
        slowest = max(slowest, seconds)
      if number and seconds > _SECONDS:
        how, right = f"took {seconds:.0f} s", False
      accepted += how == ""
      if not right and len(findings) < 5:
        findings.append({"reader": name, "how": how, "input": repr(data)})
      if how not in seen or (how == "" and rng.random() < 0.05):
        seen.add(how)
        if len(pool) < 2000 and len(data) < longest:
          pool.append(data)
          good += [data] if how == "" else []
  return {
    "inputs": count,
    "accepted": accepted,
    "endings": len(seen),
    "slowest": round(slowest, 3),
    "findings": findings,
  }


def guided(name: str, count: int, seed: int, base: str) -> dict:
  """Feeds `count` inputs to a reader, led by what they cover."""
  folder = pathlib.Path(base, name)
  folder.mkdir(parents=True, exist_ok=True)
  facts = pathlib.Path(base, f"{name}.json")
  facts.unlink(missing_ok=True)
  longest = max(3000, *(2 * len(data) for data in readers.seeds(name)))
  done = subprocess.run(
    [
      *(sys.executable, "-m", "tests.faults.fuzz", "one", name, str(facts)),
      *(f"-runs={count}", f"-seed={seed + 1}", f"-max_len={longest}"),
      *("-timeout=30", "-rss_limit_mb=2500", "-verbosity=0", str(folder)),
    ],
    env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    capture_output=True,
    text=True,
  )
  if not facts.is_file():
    raise RuntimeError(done.stderr[-3000:])
  found = json.loads(facts.read_text())
  if done.returncode:  # a crash, an endless loop, too much memory
    how = " ".join(done.stderr.split())[-400:]
    found["findings"].append({"reader": name, "how": how, "input": ""})
  return found


def _fuzz_one(name: str, facts: str, flags: list[str]) -> None:
  """Runs atheris in this process, which it ends."""
  reader = readers.READERS[name][0]
  folder = pathlib.Path(flags[-1])
  for number, data in enumerate(readers.seeds(name)):
    (folder / f"seed{number}").write_bytes(data)
  path = tempfile.mkdtemp() + "/input"
  seen: set[str] = set()
  found = {"inputs": 0, "accepted": 0, "endings": 0, "findings": []}

  def one(data: bytes) -> None:
    pathlib.Path(path).write_bytes(data)
    how, right = ending(reader, path)
    found["inputs"] += 1
    found["accepted"] += how == ""
    new = how not in seen
    seen.add(how)
    found["endings"] = len(seen)
    if not right and new and len(found["findings"]) < 20:
      found["findings"].append(
        {"reader": name, "how": how, "input": repr(data)}
      )
    if new or found["inputs"] % 500 == 0:
      pathlib.Path(facts).write_text(json.dumps(found))

  def change(data: bytes, longest: int, seed: int) -> bytes:
    rng = random.Random(seed)
    changed = None
    if rng.random() < _STRUCTURED:
      changed = structured.mutate(data, rng, [data])
    if changed is None or len(changed) > longest:
      changed = atheris.Mutate(data, longest)
    return changed

  atheris.Setup([sys.argv[0], *flags], one, custom_mutator=change)
  atheris.Fuzz()


def main(arguments: list[str]) -> None:
  """Runs one of the forms."""
  tempfile.tempdir = util.fast_folder()
  np.seterr(all="ignore")
  warnings.simplefilter("ignore")
  if arguments[0] == "one":
    _fuzz_one(arguments[1], arguments[2], arguments[3:])
  elif arguments[0] == "guided":
    count, seed, base = int(arguments[1]), int(arguments[2]), arguments[3]
    names = arguments[4:] or list(readers.READERS)
    print(json.dumps({n: guided(n, count, seed, base) for n in names}))
  else:
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    count, seed = int(arguments[0]), int(arguments[1])
    names = arguments[2:] or list(readers.READERS)
    print(json.dumps({name: fuzz(name, count, seed) for name in names}))


if __name__ == "__main__":
  main(sys.argv[1:])
