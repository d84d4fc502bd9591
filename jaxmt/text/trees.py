r"""Phrase-structure trees in Penn Treebank brackets, one per line.

    (ROOT (IP (NP (NN 汤姆)) (VP (VV 来)) (PU 。)))

Every bracket has a label, and holds either one word (a preterminal) or other
brackets. Words and labels are kept byte for byte, `-LRB-` and the like too;
unary chains are kept. Around a tree, brackets without a label are allowed, as
in the Treebank's own `( (S ...) )`, and dropped. A line without any label (an
empty line, `()`, `(())`) is a failed parse: a tree of no nodes.

The trees of a corpus are arrays over all nodes, a sentence's nodes in
preorder. A node's subtree is then a run of `size` nodes, and a compiled kernel
walks the children of `node` without any further table:

    child = node + 1
    while child < node + size[node]:
      ...
      child += size[child]
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.text import bitext, brackets, ragged, scan, vocabulary
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

_ESCAPES = {
  "-LRB-": "(",
  "-RRB-": ")",
  "-LSB-": "[",
  "-RSB-": "]",
  "-LCB-": "{",
  "-RCB-": "}",
}
_ESCAPES |= {name.lower(): sign for name, sign in _ESCAPES.items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trees:
  """N trees with M nodes in all.

  Positions of nodes are within their sentence: node i of sentence n stands at
  `offsets[n] + i` of the columns, its root is node 0.

  Attributes:
    labels: the distinct labels, by id.
    vocabulary: the distinct leaf words, by id.
    offsets: sentence n's nodes are `offsets[n] : offsets[n + 1]`; `[N + 1]`.
    label: label id of each node, int32 `[M]`.
    size: nodes in each subtree, the node itself included, int32 `[M]`.
    parent: parent's position in the sentence, -1 for a root, int32 `[M]`.
    start: first word under each node, int32 `[M]`.
    end: one past the last word under each node, int32 `[M]`.
    words: word ids of each sentence's leaves, int32 rows.
  """

  labels: tuple[str, ...]
  vocabulary: tuple[str, ...]
  offsets: np.ndarray
  label: np.ndarray
  size: np.ndarray
  parent: np.ndarray
  start: np.ndarray
  end: np.ndarray
  words: Ragged

  def __len__(self) -> int:
    return len(self.offsets) - 1

  @property
  def is_preterminal(self) -> np.ndarray:
    """Which nodes hold a word, bool `[M]`."""
    return self.size == 1

  @property
  def failed(self) -> np.ndarray:
    """Which sentences have no tree, bool `[N]`."""
    return np.diff(self.offsets) == 0


def assemble(
  *,
  labels: Sequence[str],
  vocabulary: Sequence[str],
  offsets: np.ndarray,
  label: np.ndarray,
  size: np.ndarray,
  word: np.ndarray,
) -> Trees:
  """Makes `Trees` from labels and shape; the other columns follow from them.

  Args:
    labels: distinct labels.
    vocabulary: distinct words.
    offsets: int64 `[N + 1]`, see `Trees`.
    label: int32 `[M]`.
    size: int32 `[M]`.
    word: ids of all leaves in order, int32 `[W]`.
  """
  leaves = ragged.row_offsets(size == 1)
  node = np.arange(len(size))
  base = np.repeat(leaves[offsets[:-1]], np.diff(offsets))
  return Trees(
    labels=tuple(labels),
    vocabulary=tuple(vocabulary),
    offsets=offsets,
    label=label,
    size=size,
    parent=_parents(size, offsets),
    start=(leaves[node] - base).astype(np.int32),
    end=(leaves[node + size] - base).astype(np.int32),
    words=Ragged(flat=word, offsets=leaves[offsets]),
  )


@njit
def _parents(size, offsets):
  """Parents of preorder nodes within their sentence; -1 for roots."""
  parent = np.empty(len(size), np.int32)
  for row in range(len(offsets) - 1):
    above = np.int64(-1)
    base = offsets[row]
    for node in range(base, offsets[row + 1]):
      while above >= 0 and node >= base + above + size[base + above]:
        above = np.int64(parent[base + above])
      parent[node] = above
      above = np.int64(node - base)
  return parent


def parse_trees(lines: Sequence[str], *, path: str | None = None) -> Trees:
  """Reads bracketed trees.

  Args:
    lines: one tree per line.
    path: the file the lines came from, for error messages.

  Raises:
    InputError: naming file and line of the first line that is not a tree.
  """
  data = scan.join_lines(lines)
  room = np.count_nonzero(data == brackets.OPEN)
  nodes, size, words, offsets, error, place, end = brackets.parse(
    data, len(lines), room
  )
  if error:
    raw = data.tobytes()
    shown = raw[place:end].decode("utf-8")
    shown = shown if len(shown) <= 40 else shown[:40] + "..."
    line = raw.count(b"\n", 0, place) + 1
    cause = brackets.CAUSES[error].format(shown)
    raise InputError(cause, path=path, line=line)
  label, first = scan.intern_spans(data, nodes[0], nodes[1])
  labels = scan.strings(data, nodes[0][first], nodes[1][first])
  word, first = scan.intern_spans(data, words[0], words[1])
  return assemble(
    labels=labels,
    vocabulary=scan.strings(data, words[0][first], words[1][first]),
    offsets=offsets,
    label=label,
    size=size,
    word=word,
  )


def format_trees(trees: Trees) -> list[str]:
  """Returns each tree as a bracketed line; a failed parse as `()`."""
  if not len(trees):
    return []
  labels = [label.encode("utf-8") for label in trees.labels]
  words = [word.encode("utf-8") for word in trees.vocabulary]
  lengths = np.array([len(item) for item in labels + words], np.int64)
  text = brackets.spell(
    np.frombuffer(b"".join(labels + words), np.uint8),
    ragged.row_offsets(lengths),
    trees.offsets,
    trees.label,
    trees.size,
    trees.words.flat + np.int32(len(labels)),
  )
  return text.tobytes().decode("utf-8").split("\n")[:-1]


def children(trees: Trees) -> Ragged:
  """Returns each node's children in order, as positions in the sentence.

  The rows follow the columns of `trees`: row `offsets[n] + i` is node i of
  sentence n. Preterminals have none.
  """
  sentence = np.repeat(trees.offsets[:-1], np.diff(trees.offsets))
  inner = np.flatnonzero(trees.parent >= 0)
  above = trees.parent[inner] + sentence[inner]
  order = np.argsort(above, kind="stable")  # preorder keeps siblings in order
  counts = np.bincount(above, minlength=len(trees.size))
  return Ragged(
    flat=(inner - sentence[inner])[order].astype(np.int32),
    offsets=ragged.row_offsets(counts),
  )


def select(trees: Trees, rows: np.ndarray) -> Trees:
  """Returns the trees of the given sentences (indices or a boolean mask)."""
  nodes = ragged.select(
    Ragged(flat=np.arange(len(trees.size)), offsets=trees.offsets), rows
  )
  return Trees(
    labels=trees.labels,
    vocabulary=trees.vocabulary,
    offsets=nodes.offsets,
    label=trees.label[nodes.flat],
    size=trees.size[nodes.flat],
    parent=trees.parent[nodes.flat],
    start=trees.start[nodes.flat],
    end=trees.end[nodes.flat],
    words=ragged.select(trees.words, rows),
  )


def check_leaves(
  trees: Trees,
  lines: Sequence[str],
  *,
  path: str | None = None,
  lines_path: str | None = None,
  unescape: bool = False,
) -> None:
  r"""Checks that the trees' leaves are the words of the sentences.

  Failed parses are passed over.

  Args:
    trees: N trees.
    lines: N tokenised sentences.
    path: the file of the trees, for error messages.
    lines_path: the file of the sentences.
    unescape: whether `-LRB-` equals `(`, `-RSB-` equals `]`, `\/` equals `/`
      and so on, in whichever of the two they stand.

  Raises:
    InputError: naming file and line of the first tree that differs.
  """
  bitext.check_line_count(
    len(trees), path=path, expected=len(lines), expected_path=lines_path
  )
  ids, tokens = vocabulary.intern(lines)
  plain = _unescaped if unescape else str
  numbers: dict[str, int] = {}
  token_number, word_number = (
    np.array([numbers.setdefault(plain(w), len(numbers)) for w in words], int)
    for words in (tokens, trees.vocabulary)
  )
  parsed = np.flatnonzero(~trees.failed)
  sentence = ragged.select(ids, parsed)
  leaves = ragged.select(trees.words, parsed)
  uneven = np.flatnonzero(sentence.lengths != leaves.lengths)
  even = uneven[0] if len(uneven) else len(parsed)  # rows that can be compared
  upto = leaves.offsets[even]
  differs = np.flatnonzero(
    word_number[leaves.flat[:upto]] != token_number[sentence.flat[:upto]]
  )
  if len(differs):
    row = np.searchsorted(leaves.offsets, differs[0], side="right") - 1
    leaf = trees.vocabulary[leaves.flat[differs[0]]]
    token = tokens[sentence.flat[differs[0]]]
    place = differs[0] - leaves.offsets[row] + 1
    cause = f"leaf {place} is '{leaf}', the sentence has '{token}'"
  elif len(uneven):
    row = uneven[0]
    cause = (
      f"the tree has {leaves.lengths[row]} leaves, the sentence"
      f" {sentence.lengths[row]} words"
    )
  else:
    return
  raise InputError(cause, path=path, line=int(parsed[row]) + 1)


def rows_of(
  trees: Trees, lines: Sequence[str], *, path: str | None = None
) -> np.ndarray:
  """Returns the tree of each sentence of a file that some were dropped from.

  Args:
    trees: N trees in the order of the file; failed parses fit any sentence.
    lines: M tokenised sentences in the same order, M at most N.
    path: the file of the trees, for error messages.

  Returns:
    Numbers of trees, int64 `[M]`. `-LRB-` equals `(` and so on.

  Raises:
    InputError: naming the first sentence that no further tree is of.
  """
  words = [_unescaped(word) for word in trees.vocabulary]
  rows, row = np.zeros(len(lines), np.int64), 0
  for number, line in enumerate(lines):
    tokens = [_unescaped(word) for word in line.split()]
    while row < len(trees) and not trees.failed[row]:
      if [words[leaf] for leaf in trees.words[row]] == tokens:
        break
      row += 1
    if row == len(trees):
      cause = f"no tree of sentence {number + 1}, '{line}', in this order"
      raise InputError(cause, path=path)
    rows[number] = row
    row += 1
  return rows


def _unescaped(word: str) -> str:
  word = word.replace("\\/", "/").replace("\\*", "*")
  return _ESCAPES.get(word, word)
