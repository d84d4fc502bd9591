"""Every reader of files, with valid inputs to start fuzzing from.

Those of folders are in `folder_readers.py`. A reader takes a path. It may
return, or raise `InputError` with one line; anything else is a fault. What it
returns is used as far as kernels would.
"""

import io
import json
import os
import pathlib
import tempfile
import warnings
import zipfile
from collections.abc import Callable

import numpy as np

from jaxmt.align.cooccurrence import PairTable
from jaxmt.align.itg import word_pieces
from jaxmt.decode import forest_files
from jaxmt.decode.phrase import markup
from jaxmt.errors import InputError
from jaxmt.experiment import (
  induction_study,
  study,
)
from jaxmt.features import (
  weights,
)
from jaxmt.grammar import (
  formats,
  pair_quality,
  reordering,
  validation,
)
from jaxmt.grammar.extract import aligned_text
from jaxmt.hypergraph import archive
from jaxmt.lm import arpa_read
from jaxmt.lm import tables as lm_tables
from jaxmt.models import vector_files
from jaxmt.serving import requests
from jaxmt.text import (
  bitext,
  files,
  links,
  treebank,
  trees,
  vocabulary,
  word_clusters,
)
from jaxmt.train import supervised_alignment
from jaxmt.tune import domains
from jaxmt.tune.formats import kbest_files, mert_data
from tests.faults import folder_readers

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
_MOSES_INI = """[feature]
KENLM name=LM0 factor=0 path=lm.arpa order=3
[max-chart-span]
20
1000
[cube-pruning-pop-limit]
1000
[weight]
LM0= 0.5
TranslationModel0= 0.2 0.2 0.2 0.2
WordPenalty0= -1
"""
_RESULTS = {
  "systems": {"primary": {"bleu": 20.5}},
  "tune": {"primary": {"bleu": 21}},
  "measures": {"primary": {"seconds": 1.5}},
  "test_references": "ab12",
}


def _table(path: str, dialect: str) -> None:
  """Reads a table; what was read keeps every promise."""
  validation.validate(formats.read(path, dialect))


def _moses_forest(path: str) -> None:
  with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "0").write_bytes(pathlib.Path(path).read_bytes())
    forest_files.read(folder)


def _reordering(path: str) -> None:
  model = reordering.read(path)
  validation.validate(model)
  reordering.attach(model, model)


def _gold(path: str) -> None:
  links.parse_gold(files.read_lines(path), path=path)


def _travatar_ini(path: str) -> None:
  lines = files.read_lines(path)
  weights.travatar_binarizer(lines, path=path)
  weights.parse_weights(lines, path=path)


def _npz(**arrays) -> bytes:
  out = io.BytesIO()
  np.savez(out, **arrays)  # not packed: changes reach the arrays
  return out.getvalue()


def _in_zip(read: Callable[[str], object]) -> Callable[[str], None]:
  """Returns a reader of npz files whose checksums agree; of `_members`."""

  def reader(path: str) -> None:
    parts = pathlib.Path(path).read_bytes().split(folder_readers.FILE)[1:]
    place = f"{os.path.dirname(path)}/zipped"
    with (
      warnings.catch_warnings(action="ignore"),  # a name that comes twice
      zipfile.ZipFile(place, "w") as packed,
    ):
      for part in parts:
        name, _, content = part.partition(b"\0")
        packed.writestr(name.decode("latin-1")[:40] or "x", content)
    read(place)

  return reader


def _members(data: bytes) -> bytes:
  """The files in an npz file as one input."""
  with zipfile.ZipFile(io.BytesIO(data)) as packed:
    return b"".join(
      folder_readers.FILE + name.encode() + b"\0" + packed.read(name)
      for name in packed.namelist()
    )


def _forest_npz() -> bytes:
  with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/f"
    lines = (json.dumps(_FOREST), json.dumps(_SENTENCE))
    pathlib.Path(path).write_text("\n".join(lines))
    spelled = forest_files.read(path)
    forest_files.write(f"{folder}/f.npz", [spelled])
    with np.load(f"{folder}/f.npz") as arrays:
      return _npz(**dict(arrays))


def _statistics(path: str) -> None:
  study._read_statistics(path, _RESULTS)


def _request(path: str) -> None:
  """Reads the body of a request to the server."""
  body = pathlib.Path(path).read_bytes()
  name = "size" if b'"size"' in body else "nbest"
  try:
    requests.read(body, limits=requests.Limits(), size_name=name)
  except requests.BadRequest as error:
    assert 400 <= error.status < 500
    raise InputError(str(error)) from error


def _streamed(path: str) -> None:
  """Reads a file as text, links and trees of a corpus in shards."""
  words, _ = aligned_text.read_vocabulary(path)
  paths = aligned_text.Paths(source=path, target=path, links=path, trees=path)
  for _ in aligned_text.read_shards(
    paths,
    source_words=words,
    target_words=words,
    tokens=100,
    on_bad=lambda error: None,
  ):
    pass


def _dictionary(path: str) -> None:
  entries = word_pieces.read_dictionary(path)
  words = (["NULL", *dict(entries)], ["NULL", "a", "b"])
  table = PairTable(
    source=np.arange(1, 2),
    target=np.arange(1, 2),
    source_size=2,
    target_size=3,
  )
  stems = word_pieces.number_stems(words[1], 3)
  stop = np.zeros(3, np.bool_)
  if entries:
    word_pieces.dictionary_scores(entries, words, stems, stop, table)


def _gold_text(path: str) -> None:
  """Reads hand-aligned pairs; three parts of the input are their files."""
  parts = [*pathlib.Path(path).read_bytes().split(b"\0"), b"", b""]
  prefix = f"{os.path.dirname(path)}/gold"
  for suffix, part in zip(("de", "en", "align"), parts, strict=False):
    pathlib.Path(f"{prefix}.{suffix}").write_bytes(part)
  supervised_alignment.read_gold(prefix)


def _domains(path: str) -> None:
  labels = files.read_lines(path)
  domains.check(labels, len(labels), path)


def _read_lines(function):
  return lambda path: function(files.read_lines(path), path=path)


def _moses_ini(path: str) -> None:
  lines = files.read_lines(path)
  weights.parse_weights(lines, path=path)
  weights.moses_limits(lines)


def _text(path: str) -> None:
  lines = bitext.read_parallel([path, path])[0]
  words = vocabulary.build([lines])
  vocabulary.decode(words, vocabulary.encode(words, lines))


def _trees(path: str) -> None:
  lines = files.read_lines(path)
  found = trees.parse_trees(lines, path=path)
  assert len(trees.format_trees(found)) == len(lines)


def _treebank(path: str) -> None:
  treebank.without_punctuation(treebank.read_treebank(path))


_OFFSETS = {
  "node_offsets": np.array([0, 2], np.int64),
  "edge_offsets": np.array([0, 1, 2], np.int64),
  "tails": np.array([[-1], [0]], np.int32),
  "score": np.zeros(2, np.float32),
  "nodes": np.zeros(2),
}

# The reader, and inputs it accepts: text, bytes, or a function that makes one.
READERS: dict[str, tuple[Callable[[str], object], list]] = {
  "text": (_text, ["a b c\n\nd  e\n", "的 中文\u3000x\x85\n"]),
  "links": (_read_lines(links.parse_links), ["0-0 1-2\n\n3-1 0-5\n"]),
  "trees": (_trees, ["(S (NP (N a) (N b)) (V c))\n()\n( (S (A -LRB-)) )\n"]),
  "gold": (_gold, ["0-0 1?2\n\n3-1 0?5\n"]),
  "dictionary": (_dictionary, ["a\tb/c d\n世界\tworld/\n", "\ufeffa\t\n"]),
  "gold_text": (_gold_text, ["a b\nc\n\0d e\nf g\n\0000-0 1?1\n0-1\n"]),
  "streamed": (_streamed, ["0-0\n", "0-0 1-1\n\n(S (NP a) (V b))\n"]),
  "marks": (
    _read_lines(markup.parse),
    [
      "a <wall/> <zone> b c </zone>\nd\n",
      '<n translation="x y||z" prob="0.8||0.2">a b</n> c\n',
    ],
  ),
  "domains": (_domains, ["news\nlaw\nnews\n", "a\n中文\n"]),
  "pair_weights": (_read_lines(pair_quality.parse_weights), ["1\n0.5\n2e-3\n"]),
  "request": (
    _request,
    ['{"text": ["a b", "c"], "nbest": 5}', '{"text": "a", "size": 2}'],
  ),
  "induction": (
    induction_study._read,
    [
      json.dumps(
        {"settings": {}, **dict.fromkeys(induction_study._SCORES, 0.5)}
      )
    ],
  ),
  "treebank": (_treebank, [folder_readers.TREEBANK]),
  "vectors": (vector_files.read, ["2 3\na 1 2 3\nb -1 0.5 1e-3\n"]),
  "weights": (
    _read_lines(weights.parse_weights),
    ["a 1\nb= 2 3\n# c\n[x]\nd = 4e-1\n"],
  ),
  "moses_ini": (_moses_ini, [_MOSES_INI]),
  "travatar_ini": (
    _travatar_ini,
    ["[binarize]\nleft\n\n[weight_vals]\nlm=0.5\nword 0.1\n"],
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
  "mert_scores": (
    _read_lines(mert_data.parse_scores),
    ["SCORES_TXT_BEGIN_0 0 1 9 BLEU\n1 2 1 2 1 2 1 2 3\nSCORES_TXT_END_0\n"],
  ),
  "arpa": (
    lambda path: lm_tables.build_tables(arpa_read.read_arpa(path)),
    [folder_readers.ARPA],
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
  "phrases": (
    lambda path: _table(path, "moses-phrases"),
    ["a b ||| c ||| 0.5 0.1 0.2 0.3 ||| 0-0 1-0 ||| 1 1 1 ||| |||\n"],
  ),
  "reordering": (
    _reordering,
    ["a b ||| c ||| 0.5 0.25 0.25 0.6 0.2 0.2\nd ||| e ||| 1 1 1 1 1 1\n"],
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
  "forest_npz": (forest_files.read, [_forest_npz]),
  "forest_arrays": (
    _in_zip(forest_files.read),
    [lambda: _members(_forest_npz())],
  ),
  "archive": (archive.load, [lambda: _npz(**_OFFSETS)]),
  "archive_arrays": (
    _in_zip(archive.load),
    [lambda: _members(_npz(**_OFFSETS))],
  ),
  "moses_forest": (_moses_forest, [_MOSES_GRAPH]),
  "clusters": (_read_lines(word_clusters.read_lines), ["01\ta\t3\n1\tb\n"]),
  "results": (study._read_results, [json.dumps(_RESULTS)]),
  "statistics_arrays": (
    _in_zip(_statistics),
    [lambda: _members(_npz(**{"primary/bleu": np.zeros((2, 3))}))],
  ),
  "statistics": (
    _statistics,
    [lambda: _npz(**{"primary/bleu": np.zeros((2, 3))})],
  ),
  **folder_readers.READERS,
}


def seeds(name: str) -> list[bytes]:
  """The inputs to start from."""
  made = [one() if callable(one) else one for one in READERS[name][1]]
  return [one.encode() if isinstance(one, str) else one for one in made]
