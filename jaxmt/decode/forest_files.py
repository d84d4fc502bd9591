r"""Forest files: JSON lines, npz, and Moses' hypergraph text.

*JSON lines* (any name but the next ones; `.gz` is compressed). The first line
describes the rest:

    {"format": "jaxmt forest", "version": 1, "features": ["LanguageModel", ...],
     "weights": {"LanguageModel": 1.0, ...}, "labels": ["X", ...]}

Every other line is the forest of one sentence. Nodes stand tails first, the
root is the last; there are none if the sentence has no derivation:

    {"sentence": 0,             from 0
     "begin": [0, 1, 0, 0],     per node: its first source word,
     "end": [1, 2, 2, 2],       one past its last,
     "label": [0, 0, 1, 1],     its label,
     "rank": [0, 0, 0, 0],      its rank in its cell,
     "edges": [1, 2, 1, 1],     how many edges it has; they follow in this order
     "tails": [[], ...],        per edge: tail nodes, numbered in the sentence
     "target": [["the"], ...],  target words; -1 is the first tail, -2 the next
     "rule": [17, ...],         rule of the grammar it was made with
     "score": [-0.5, ...],      what it adds to the model score,
     "lm": [...],               to ln p of the words,
     "matched": [...],          to the count of labels in place,
     "mismatched": [...],       and of others
     "features": [[...], ...]}  its feature values

*npz* (`.npz`): the same columns for all sentences as arrays: those of `Forest`
under its names, `sentence`, `target` with `target_offsets`, `features`, and the
first line above with `"words"` in it as UTF-8 bytes, `header`. No pickles.

*Moses* (a name ending in `/`): a folder with a file `0.gz`, `1.gz`, ... for
each sentence and the file `weights`; see `moses_hypergraph`.
"""

import io
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from jaxmt.decode import moses_hypergraph, portable_forest
from jaxmt.decode.portable_forest import SpelledForest
from jaxmt.decode.translation_forest import RuleUses, Spans
from jaxmt.errors import InputError
from jaxmt.features import weights as weight_files
from jaxmt.hypergraph import Forest
from jaxmt.hypergraph.archive import to_arrays
from jaxmt.hypergraph.forest import check
from jaxmt.text import array_folder, files
from jaxmt.text.ragged import Ragged

FORMATS = ("jsonl", "npz", "moses")
_MARK, _VERSION = "jaxmt forest", 1
_NODE_COLUMNS = ("begin", "end", "label", "rank")
_EDGE_COLUMNS = ("rule", "score", "lm", "matched", "mismatched")
_COLUMNS = (*_NODE_COLUMNS, *_EDGE_COLUMNS)
_FLOATS = ("score", "lm")
_STRUCTURE = ("node_offsets", "edge_offsets", "tails")
# What JSON values of other shapes and types than ours end in.
_MALFORMED = (
  ValueError,
  TypeError,
  KeyError,
  IndexError,
  AttributeError,
  OverflowError,
  RecursionError,
)


def format_of(path: str) -> str:
  """Returns the format a path asks for."""
  if path.endswith("/"):
    return "moses"
  return "npz" if path.endswith(".npz") else "jsonl"


def write(
  path: str, forests: Iterable[SpelledForest], *, format: str | None = None
) -> None:
  """Writes forests.

  JSON lines and Moses' files are written as the forests come.

  Args:
    path: where to.
    forests: see `spelled_forest.spell`; all with the same features and labels.
    format: one of `FORMATS`; by the path if None.

  Raises:
    InputError: if there is nothing to write or it cannot be written.
  """
  kind = format or format_of(path)
  if kind not in FORMATS:
    raise ValueError(f"forest format '{kind}' is none of {FORMATS}")
  if kind == "npz":
    parts = list(forests)
    if not parts:
      raise InputError("no forests to write", path=path)
    with files.atomic_writer(path) as out:
      out.write(_pack(portable_forest.concatenate(parts)))
  elif kind == "moses":
    _write_moses(path, forests)
  else:
    with files.atomic_writer(path) as out:
      first: SpelledForest | None = None
      for part in forests:
        if first is None:
          first = part
          out.write(_line(_header(part)))
        for row in range(len(part)):
          out.write(_line(_sentence(_row(part, row))))
      if first is None:
        raise InputError("no forests to write", path=path)


def read(path: str) -> SpelledForest:
  """Reads forests, sentences by number.

  The format is told from the content. What Moses' files do not say (labels,
  where spans begin, ranks, rules) is 0.

  Raises:
    InputError: naming file and line, for anything that is no forest.
  """
  if files.is_folder(path):
    return _read_moses(path)
  data = files.read_bytes(path)
  if data[:2] == b"PK":
    return _unpack(data, path)
  return _parse(data, path)


def _row(part: SpelledForest, row: int) -> SpelledForest:
  return portable_forest.select(part, np.array([row]))


def _columns(forest: Forest) -> dict[str, np.ndarray]:
  """The arrays of forests by the names they have in files."""
  arrays = to_arrays(forest)
  return {name.rpartition("/")[2]: array for name, array in arrays.items()}


def _forest(
  *, node_offsets, edge_offsets, tails, columns, augmented=None
) -> Forest:
  """Returns the forest with the columns that `_columns` gives."""
  return Forest(
    node_offsets=node_offsets,
    edge_offsets=edge_offsets,
    tails=tails,
    score=columns["score"],
    nodes=Spans(**{name: columns[name] for name in _NODE_COLUMNS}),
    edges=RuleUses(
      augmented=augmented,
      **{name: columns[name] for name in _EDGE_COLUMNS if name != "score"},
    ),
  )


# --- JSON lines ---------------------------------------------------------------


def _line(value: Mapping[str, Any]) -> bytes:
  text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
  return text.encode("utf-8") + b"\n"


def _header(spelled: SpelledForest) -> dict[str, Any]:
  return {
    "format": _MARK,
    "version": _VERSION,
    "features": list(spelled.names),
    "weights": dict(spelled.weights),
    "labels": list(spelled.labels),
  }


def _sentence(one: SpelledForest) -> dict[str, Any]:
  """The forest of one sentence as JSON."""
  forest, words = one.forest, one.words
  columns = _columns(forest)
  arity = (forest.tails >= 0).sum(1).tolist()
  cuts = one.target.offsets.tolist()
  spelled = [
    words[symbol] if symbol >= 0 else symbol
    for symbol in one.target.flat.tolist()
  ]
  return {
    "sentence": int(one.sentence[0]),
    **{name: columns[name].tolist() for name in _NODE_COLUMNS},
    "edges": np.diff(forest.edge_offsets).tolist(),
    "tails": [
      row[:size] for row, size in zip(forest.tails.tolist(), arity, strict=True)
    ],
    "target": [spelled[a:b] for a, b in itertools.pairwise(cuts)],
    **{name: columns[name].tolist() for name in _EDGE_COLUMNS},
    "features": one.features.tolist(),
  }


def _parse(data: bytes, path: str) -> SpelledForest:
  try:
    lines = files.split_lines(data.decode("utf-8"))
  except UnicodeDecodeError as error:
    line = data.count(b"\n", 0, error.start) + 1
    raise InputError("not UTF-8", path=path, line=line) from error
  header: dict[str, Any] | None = None
  parts = []
  for number, text in enumerate(lines, start=1):
    try:
      value = json.loads(text)
      if not isinstance(value, dict):
        raise ValueError("no JSON object")
      if header is None:
        header = _checked_header(value)
      else:
        parts.append(_one(value, header))
    except _MALFORMED as error:
      raise InputError(_cause(error), path=path, line=number) from error
  if header is None:
    raise InputError("no forests", path=path)
  return portable_forest.concatenate(parts) if parts else _nothing(header)


def _cause(error: Exception) -> str:
  if isinstance(error, json.JSONDecodeError):
    return f"bad JSON: {error.msg}"
  if isinstance(error, KeyError):
    return f"bad forest: no '{error.args[0]}'"
  return f"bad forest: {error}"


def _checked_header(value: dict[str, Any]) -> dict[str, Any]:
  if value.get("format") != _MARK:
    raise ValueError(f"the first line does not say '{_MARK}'")
  if value.get("version") != _VERSION:
    raise ValueError(f"version {value.get('version')} is not {_VERSION}")
  return {
    "names": tuple(map(str, value["features"])),
    "weights": {k: float(v) for k, v in value["weights"].items()},
    "labels": tuple(map(str, value["labels"])),
  }


def _nothing(header: Mapping[str, Any]) -> SpelledForest:
  empty = {name: [] for name in (*_COLUMNS, "edges", "tails", "target")}
  one = _one({**empty, "sentence": 0, "features": []}, header)
  return portable_forest.select(one, np.zeros(0, np.int64))


def _one(value: dict[str, Any], header: Mapping[str, Any]) -> SpelledForest:
  """Reads the forest of one sentence."""
  tails, target = value["tails"], value["target"]
  arity = max([len(row) for row in tails], default=0)
  columns = {
    name: np.array(value[name], np.float32 if name in _FLOATS else np.int32)
    for name in _COLUMNS
  }
  numbers: dict[str, int] = {}
  flat = [
    symbol
    if isinstance(symbol, int)
    else numbers.setdefault(str(symbol), len(numbers))
    for row in target
    for symbol in row
  ]
  # A number in place of a word can only be a tail.
  if any(isinstance(s, int) and s >= 0 for row in target for s in row):
    raise ValueError("a tail in 'target' is not negative")
  offsets = np.cumsum([0, *(len(row) for row in target)], dtype=np.int64)
  spelled = SpelledForest(
    forest=_forest(
      node_offsets=np.array([0, len(value["edges"])], np.int64),
      edge_offsets=np.cumsum([0, *value["edges"]], dtype=np.int64),
      tails=np.array(
        [row + [-1] * (arity - len(row)) for row in tails], np.int32
      ).reshape(len(tails), arity),
      columns=columns,
    ),
    sentence=np.array([value["sentence"]], np.int64),
    target=Ragged(flat=np.array(flat, np.int32), offsets=offsets),
    words=tuple(numbers),
    labels=header["labels"],
    features=np.array(value["features"], np.float64).reshape(
      len(tails), len(header["names"])
    ),
    names=header["names"],
    weights=header["weights"],
  )
  _check(spelled)
  return spelled


def _check_types(spelled: SpelledForest) -> None:
  """Raises `ValueError` for arrays that kernels cannot read."""
  target, columns = spelled.target, _columns(spelled.forest)
  arrays: dict[str, tuple[np.ndarray, type, int]] = {
    "sentence": (spelled.sentence, np.int64, 1),
    "target": (target.flat, np.int32, 1),
    "target_offsets": (target.offsets, np.int64, 1),
    "features": (spelled.features, np.float64, 2),
    "node_offsets": (columns["node_offsets"], np.int64, 1),
    "edge_offsets": (columns["edge_offsets"], np.int64, 1),
    "tails": (columns["tails"], np.int32, 2),
  }
  for name in _COLUMNS:
    kind = np.float32 if name in _FLOATS else np.int32
    arrays[name] = (columns[name], kind, 1)
  for name, (array, kind, ndim) in arrays.items():
    if array.dtype != kind or array.ndim != ndim:
      raise ValueError(f"'{name}' is {array.dtype} with {array.ndim} axes")
  ends = target.offsets
  if not len(ends) or ends[0] != 0 or (np.diff(ends) < 0).any():
    raise ValueError("'target_offsets' do not rise from 0")
  if ends[-1] != len(target.flat):
    raise ValueError("'target_offsets' do not end with 'target'")
  if spelled.features.shape[1] != len(spelled.names):
    raise ValueError("'features' has other names")
  label = columns["label"]
  if (label < 0).any() or (label >= len(spelled.labels)).any():
    raise ValueError("a label is none of 'labels'")


def _check(spelled: SpelledForest) -> None:
  """Checks that sizes fit and tails stand before heads.

  Raises:
    ValueError: if not.
  """
  forest = spelled.forest
  _check_types(spelled)
  check(forest)
  edges = forest.num_edges
  if len(spelled.target) != edges or len(spelled.features) != edges:
    raise ValueError("'target' or 'features' of other edges")
  arity = (forest.tails >= 0).sum(1)
  row = np.repeat(np.arange(edges), spelled.target.lengths)
  flat = spelled.target.flat
  if np.any(-1 - flat >= arity[row]) or np.any(flat >= len(spelled.words)):
    raise ValueError("a symbol in 'target' is none of its tails or words")
  if not (
    np.isfinite(spelled.features).all() and np.isfinite(forest.score).all()
  ):
    raise ValueError("a score or feature is no finite number")


# --- npz ----------------------------------------------------------------------


def _pack(spelled: SpelledForest) -> bytes:
  header = {**_header(spelled), "words": list(spelled.words)}
  buffer = io.BytesIO()
  np.savez_compressed(
    buffer,
    allow_pickle=False,
    header=np.frombuffer(_line(header), np.uint8),
    sentence=spelled.sentence,
    target=spelled.target.flat,
    target_offsets=spelled.target.offsets,
    features=spelled.features,
    **_columns(spelled.forest),
  )
  return buffer.getvalue()


def _unpack(data: bytes, path: str) -> SpelledForest:
  arrays = array_folder.read_npz(path, data)
  try:
    value = json.loads(arrays["header"].tobytes())
    header = _checked_header(value)
    spelled = SpelledForest(
      forest=_forest(
        **{name: arrays[name] for name in _STRUCTURE},
        columns={name: arrays[name] for name in _COLUMNS},
        augmented=arrays.get("augmented"),
      ),
      sentence=arrays["sentence"],
      target=Ragged(flat=arrays["target"], offsets=arrays["target_offsets"]),
      words=tuple(map(str, value["words"])),
      features=arrays["features"],
      **header,
    )
    if len(spelled.sentence) != len(spelled.forest):
      raise ValueError("other sentences than forests")
    _check(spelled)
  except _MALFORMED as error:
    raise InputError(_cause(error), path=path) from error
  return spelled


# --- Moses --------------------------------------------------------------------


def _write_moses(path: str, forests: Iterable[SpelledForest]) -> None:
  folder = path.rstrip("/")
  files.make_folder(folder)
  empty = True
  for part in forests:
    if empty:
      lines = weight_files.format_weights(part.weights)
      files.write_lines(f"{folder}/weights", lines)
    empty = False
    for row in range(len(part)):
      lines = moses_hypergraph.format_lines(_row(part, row))
      files.write_lines(f"{folder}/{part.sentence[row]}.gz", lines)
  if empty:
    raise InputError("no forests to write", path=path)


def _read_moses(path: str) -> SpelledForest:
  folder = path.rstrip("/")
  names = {name.split(".")[0]: name for name in files.list_folder(folder)}
  numbers = sorted(
    int(stem) for stem in names if re.fullmatch("0|[1-9][0-9]{0,17}", stem)
  )
  if not numbers:
    raise InputError("no hypergraphs, which are named by numbers", path=path)
  weights: dict[str, float] = {}
  if "weights" in names:
    file = f"{folder}/{names['weights']}"
    weights = weight_files.parse_weights(files.read_lines(file), path=file)
  index: dict[str, int] = {name: place for place, name in enumerate(weights)}
  parts = []
  for number in numbers:
    file = f"{folder}/{names[str(number)]}"
    parts.append(
      moses_hypergraph.parse_lines(
        files.read_lines(file), sentence=number, index=index, path=file
      )
    )
  return moses_hypergraph.scored(parts, tuple(index), weights)
