"""Feeds damaged files to every reader of `readers.py`.

    NUMBA_BOUNDSCHECK=1 python -m tests.faults.fuzz COUNT SEED [READER ...]
    python -m tests.faults.fuzz guided COUNT SEED FOLDER [READER ...]

A reader may return, or raise `InputError` with one line; anything else is a
finding.

The first form mutates valid files; every input that ends in a new way (another
message, or acceptance) is added to those: the pool moves towards what is nearly
right. FUZZ_CORPUS names a folder of the second form to start from.

The second form is guided by coverage and needs the package atheris. Kernels run
as Python (NUMBA_DISABLE_JIT), so that their branches count too; inputs that
reach something new are kept in FOLDER/READER, for the first form to try with
the compiled kernels.

Prints one JSON line: inputs, how many were accepted and how many endings were
seen for each reader, and the findings.
"""

import contextlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np

if sys.argv[1:2] == ["one"]:  # in a process of `guided`: before the readers
  import atheris

  instrumented = atheris.instrument_imports(include=["jaxmt"])
else:
  instrumented = contextlib.nullcontext()
with instrumented:
  from jaxmt.errors import InputError
  from tests.faults import readers

_TOKENS = [
  b" ",
  b"\n",
  b"\n\n",
  b"\xc2\x85",
  b"9" * 30,
  b"9" * 5000,
  *b"||| \t ( ) [ ] = - , 0 -1 1 e E . nan inf 1e999 \xff \xc2 \x00".split(),
  *b"[X,1] [X,9] [1] [9] [X][X] (X x0:X <s> </s>".split(),
  *b"-2147483649 2147483648 99999999999".split(),
]


def mutate(data: bytes, rng: random.Random, pool: list[bytes]) -> bytes:
  """Changes bytes, spans, tokens or lines in one to six places."""
  out = bytearray(data)
  for _ in range(rng.choice((1, 1, 2, 3, 6))):
    place = rng.randrange(len(out) + 1)
    length = rng.choice((1, 1, 2, 4, 9, 40))
    what = rng.randrange(8)
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
    else:
      del out[place:]
  return bytes(out)


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
  seen, accepted, findings = set(), 0, []
  with tempfile.TemporaryDirectory(dir=_scratch()) as folder:
    path = os.path.join(folder, "input")
    for number, data in enumerate(pool[:valid]):
      pathlib.Path(path).write_bytes(data)
      if ending(reader, path) != ("", True):
        raise RuntimeError(f"{name}: bad seed {number}: {ending(reader, path)}")
    given = pool[valid:]
    for number in range(count):
      data = mutate(rng.choice(pool), rng, pool)
      if number < len(given):
        data = given[number]
      pathlib.Path(path).write_bytes(data)
      how, right = ending(reader, path)
      accepted += how == ""
      if not right and len(findings) < 5:
        findings.append({"reader": name, "how": how, "input": repr(data)})
      if how not in seen or (how == "" and rng.random() < 0.05):
        seen.add(how)
        if len(pool) < 2000 and len(data) < 4000:
          pool.append(data)
  return {
    "inputs": count,
    "accepted": accepted,
    "endings": len(seen),
    "findings": findings,
  }


def _scratch() -> str | None:
  """Memory that looks like a disk, if there is any."""
  return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def guided(name: str, count: int, seed: int, base: str) -> dict:
  """Feeds `count` inputs to a reader, led by what they cover."""
  folder = pathlib.Path(base, name)
  folder.mkdir(parents=True, exist_ok=True)
  facts = pathlib.Path(base, f"{name}.json")
  facts.unlink(missing_ok=True)
  done = subprocess.run(
    [
      *(sys.executable, "-m", "tests.faults.fuzz", "one", name, str(facts)),
      *(f"-runs={count}", f"-seed={seed + 1}", "-max_len=3000"),
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
  path = tempfile.mkdtemp(dir=_scratch()) + "/input"
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

  atheris.Setup([sys.argv[0], *flags], one)
  atheris.Fuzz()


def main(arguments: list[str]) -> None:
  """Runs one of the forms."""
  np.seterr(all="ignore")
  warnings.simplefilter("ignore")
  if arguments[0] == "one":
    _fuzz_one(arguments[1], arguments[2], arguments[3:])
  elif arguments[0] == "guided":
    count, seed, base = int(arguments[1]), int(arguments[2]), arguments[3]
    names = arguments[4:] or list(readers.READERS)
    print(json.dumps({n: guided(n, count, seed, base) for n in names}))
  else:
    count, seed = int(arguments[0]), int(arguments[1])
    names = arguments[2:] or list(readers.READERS)
    print(json.dumps({name: fuzz(name, count, seed) for name in names}))


if __name__ == "__main__":
  main(sys.argv[1:])
