"""Feeds damaged files to every reader; run with NUMBA_BOUNDSCHECK=1.

    python fuzz.py COUNT SEED [READER ...]

A reader may return, or raise `InputError` with one line; anything else is a
finding. Inputs are mutations of a corpus of valid files, to which every input
is added that ends in a new way (another message, or acceptance): the pool
moves towards what is nearly right. Prints one JSON line: inputs, how many were
accepted and how many endings were seen for each reader, and the findings.
"""

import json
import os
import pathlib
import random
import re
import sys
import tempfile
import zlib

import numpy as np

from jaxmt.decode import forest_files
from jaxmt.errors import InputError
from jaxmt.features import weights
from jaxmt.grammar import formats, native, validation
from jaxmt.lm import arpa_read
from jaxmt.lm import tables as lm_tables
from jaxmt.text import bitext, files, links, trees, vocabulary
from jaxmt.tune.formats import kbest_files, mert_data

_ARPA = """\\data\\
ngram 1=4
ngram 2=2
ngram 3=1

\\1-grams:
-1\t<s>\t-0.5
-0.5\t</s>
-0.7\ta\t-0.25
-2\t<unk>

\\2-grams:
-0.25\t<s> a\t-0.125
-0.5\ta a

\\3-grams:
-0.125\t<s> a a

\\end\\
"""
_FOREST = {
  "format": "jaxmt forest",
  "version": 1,
  "features": ["f"],
  "weights": {"f": 1.0},
  "labels": ["X"],
}
_SENTENCE = {
  "sentence": 0,
  "edges": [1, 1],
  "begin": [0, 0],
  "end": [1, 1],
  "label": [0, 0],
  "rank": [0, 0],
  "rule": [0, 1],
  "score": [0.5, 1.0],
  "lm": [0.0, 0.0],
  "matched": [0, 0],
  "mismatched": [0, 0],
  "tails": [[], [0]],
  "target": [["a"], [-1, "b"]],
  "features": [[1.0], [2.0]],
}
_MOSES_GRAPH = """# target ||| features ||| source-covered
2 2
1
a ||| f=1 ||| 1
1
[0] b ||| f=2 g=1 ||| 2
"""


def _table(path, dialect):
  """Reads a table; what was read keeps every promise."""
  validation.validate(formats.read(path, dialect))


def _moses_forest(path):
  with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "0").write_bytes(pathlib.Path(path).read_bytes())
    forest_files.read(folder)


def _native(path):
  """Reads a table whose files were changed behind matching checksums."""
  with tempfile.TemporaryDirectory() as folder:
    data = pathlib.Path(path).read_bytes()
    entries = {}
    for part in data.split(b"\0FILE\0")[1:]:
      name, _, content = part.partition(b"\0")
      name = re.sub(r"[^a-z_.]", "", name.decode("latin-1"))[:40] or "x"
      if name.strip("."):
        pathlib.Path(folder, name).write_bytes(content)
        crc = zlib.crc32(content)
        entries[name] = {"bytes": len(content), "crc32": crc}
    manifest = {**native.META, "files": entries}
    pathlib.Path(folder, "manifest.json").write_text(json.dumps(manifest))
    native.read(folder)


def _native_seed():
  from tests.grammar import validation_test

  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "t")
    native.write(path, validation_test.sample())
    names = sorted(set(os.listdir(path)) - {"manifest.json"})
    return b"".join(
      b"\0FILE\0%s\0%s" % (name.encode(), pathlib.Path(path, name).read_bytes())
      for name in names
    )


def _read_lines(function):
  return lambda path: function(files.read_lines(path), path=path)


def _text(path):
  lines = bitext.read_parallel([path, path])[0]
  words = vocabulary.build([lines])
  vocabulary.decode(words, vocabulary.encode(words, lines))


def _trees(path):
  lines = files.read_lines(path)
  found = trees.parse_trees(lines, path=path)
  assert len(trees.format_trees(found)) == len(lines)


READERS = {
  "text": (_text, ["a b c\n\nd  e\n", "的 中文\u3000x\x85\n"]),
  "links": (_read_lines(links.parse_links), ["0-0 1-2\n\n3-1 0-5\n"]),
  "trees": (_trees, ["(S (NP (N a) (N b)) (V c))\n()\n( (S (A -LRB-)) )\n"]),
  "weights": (
    _read_lines(weights.parse_weights),
    ["a 1\nb= 2 3\n# c\n[x]\nd = 4e-1\n"],
  ),
  "kbest": (
    lambda path: kbest_files.parse_kbest(files.read_bytes(path), path=path),
    [
      "0 ||| a b ||| f=1 g=2e1 ||| -1\n1 ||| c ||| f= 1 2 ||| 0\n",
      "0 ||| a ||| -1 ||| f=1 g=2\n",
    ],
  ),
  "mert": (
    _read_lines(mert_data.parse_features),
    ["FEATURES_TXT_BEGIN_0 0 1 2 a b\n1 2\nFEATURES_TXT_END_0\n"],
  ),
  "arpa": (
    lambda path: lm_tables.build_tables(arpa_read.read_arpa(path)),
    [_ARPA],
  ),
  "cdec": (
    lambda path: _table(path, "cdec"),
    [
      "[X] ||| a [X,1] b ||| [X,1] c ||| p=0.5 q=1 ||| 0-1 2-1\n",
      "[S] ||| [S,1] [X,2] ||| [1] [2] ||| Glue=1\n",
      "(X (A a) (NP (B b) [NN])) ||| [1] c ||| p=1 ||| 0-1\n",
    ],
  ),
  "moses": (
    lambda path: _table(path, "moses"),
    [
      "a [X][X] [X] ||| [X][X] b [X] ||| 0.5 0.25 ||| 1-0 ||| 3 2 1\n",
      "a b ||| c ||| 0.5 0.1 ||| 0-0 ||| 1 1 1 ||| s 1 t -0.5\n",
      "<s> [X] ||| <s> [S] ||| 1 ||| ||| 0\n",
    ],
  ),
  "joshua": (
    lambda path: _table(path, "joshua"),
    ["[X] ||| a [X,1] ||| [X,1] b ||| 0.5 p=1 ||| 0-1\n"],
  ),
  "travatar": (
    lambda path: _table(path, "travatar"),
    [
      's ( np ( "a" ) x0:vp ) ||| x0:vp "b" @ s ||| p=1 ||| 1 1 1 ||| 0-1\n',
      '"a" x0:X @ X ||| x0:X "b" @ X ||| p=0.5 ||| 3 3 3 ||| 0-1\n',
    ],
  ),
  "forest": (
    forest_files.read,
    [json.dumps(_FOREST) + "\n" + json.dumps(_SENTENCE) + "\n"],
  ),
  "moses_forest": (_moses_forest, [_MOSES_GRAPH]),
  "native": (_native, []),
}

_TOKENS = [
  b" ",
  b"\n",
  b"\n\n",
  b"\xc2\x85",
  b"9" * 30,
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


def fuzz(name: str, count: int, seed: int) -> dict:
  """Feeds `count` inputs to a reader."""
  reader, texts = READERS[name]
  pool = [text.encode() for text in texts] or [_native_seed()]
  rng = random.Random(f"{seed} {name}")
  seen, accepted, findings = set(), 0, []
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "input")
    for number, data in enumerate(pool):
      pathlib.Path(path).write_bytes(data)
      if ending(reader, path) != ("", True):
        raise RuntimeError(f"{name}: bad seed {number}: {ending(reader, path)}")
    for _ in range(count):
      data = mutate(rng.choice(pool), rng, pool)
      pathlib.Path(path).write_bytes(data)
      how, right = ending(reader, path)
      accepted += how == ""
      if not right and len(findings) < 5:
        findings.append({"reader": name, "how": how, "input": repr(data)})
      if how not in seen or (how == "" and rng.random() < 0.05):
        seen.add(how)
        if len(pool) < 500 and len(data) < 4000:
          pool.append(data)
  return {
    "inputs": count,
    "accepted": accepted,
    "endings": len(seen),
    "findings": findings,
  }


if __name__ == "__main__":
  np.seterr(all="ignore")
  names = sys.argv[3:] or list(READERS)
  found = {n: fuzz(n, int(sys.argv[1]), int(sys.argv[2])) for n in names}
  print(json.dumps(found))
