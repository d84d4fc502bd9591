"""Compiled reading and writing of bracketed trees; see `jaxmt.text.trees`."""

import numpy as np

from jaxmt.text import scan
from jaxmt.text.kernels import njit

OPEN, CLOSE, SPACE = ord("("), ord(")"), ord(" ")

STRAY_CLOSE, UNCLOSED, BARE_WORD, TRAILING = 1, 2, 3, 4
NO_LABEL, HOLLOW, CROWDED, MIXED = 5, 6, 7, 8
CAUSES = {
  STRAY_CLOSE: "closing bracket without an opening one",
  UNCLOSED: "unbalanced: the line ends inside a bracket",
  BARE_WORD: "word '{}' outside the brackets",
  TRAILING: "text after the tree: '{}'",
  NO_LABEL: "bracket without a label inside a tree",
  HOLLOW: "bracket '{}' holds nothing",
  CROWDED: "word '{}' beside another word or bracket",
  MIXED: "bracket '{}' beside a word",
}

# A node's size while its bracket is open: what it holds so far.
_NOTHING, _WORD, _NODES = 0, 1, 2


@njit
def parse(data, number_of_lines, room):
  """Reads newline-ended lines of one tree each.

  Args:
    data: bytes, uint8 `[B]`.
    number_of_lines: N.
    room: how many opening brackets there are.

  Returns:
    `(labels int64 [2, M], size int32 [M], words int64 [2, W], offsets int64
    [N + 1], error, place, end)`: spans of the labels of all nodes in preorder,
    nodes per subtree, spans of the words, nodes per line. A non-zero `error`
    is about the bytes `[place, end)`.
  """
  labels = np.empty((2, room), np.int64)
  words = np.empty((2, room), np.int64)
  size = np.zeros(room, np.int32)
  stack = np.empty(room, np.int64)
  offsets = np.zeros(number_of_lines + 1, np.int64)
  position = nodes = leaves = 0
  for line in range(number_of_lines):
    position, end, nodes, leaves, error = _parse_line(
      data, position, nodes, leaves, labels, size, words, stack
    )
    if error:
      return labels, size, words, offsets, error, position, end
    offsets[line + 1] = nodes
  size = size[:nodes].copy()
  return labels[:, :nodes], size, words[:, :leaves], offsets, 0, 0, 0


@njit
def _parse_line(data, position, nodes, leaves, labels, size, words, stack):
  """Reads one line with a stack of open nodes; -1 is a bracket with no label.

  Returns:
    `(position, end, nodes, leaves, error)`, with `position` in the next line
    or, if there is an error, with the bytes `[position, end)` at fault.
  """
  depth = 0
  closed = False  # whether a bracket has been closed: outside, all is over
  while data[position] != scan.NEWLINE:
    byte = data[position]
    top = stack[depth - 1] if depth else np.int64(-1)
    end = position + 1
    if byte == OPEN:
      start = _skip_space(data, position + 1)
      end = _token_end(data, start)
      error = _open_error(size, top, closed, end > start)
      if error:
        return position, end, nodes, leaves, error
      if end > start:
        if top >= 0:
          size[top] = _NODES
        labels[0, nodes] = start
        labels[1, nodes] = end
        stack[depth] = nodes
        nodes += 1
      else:
        stack[depth] = -1
      depth += 1
    elif byte == CLOSE:
      if not depth:
        return position, end, nodes, leaves, STRAY_CLOSE
      if top >= 0:
        if size[top] == _NOTHING:
          return labels[0, top], labels[1, top], nodes, leaves, HOLLOW
        size[top] = nodes - top
      closed = True
      depth -= 1
    elif not scan.is_space(byte):
      end = _token_end(data, position)
      error = _word_error(size, top, closed)
      if error:
        return position, end, nodes, leaves, error
      size[top] = _WORD
      words[0, leaves] = position
      words[1, leaves] = end
      leaves += 1
    position = end
  error = UNCLOSED if depth else 0
  return position if error else position + 1, position, nodes, leaves, error


@njit
def _open_error(size, top, closed, has_label):
  if top < 0:
    return TRAILING if closed else 0
  if not has_label:
    return NO_LABEL
  return MIXED if size[top] == _WORD else 0


@njit
def _word_error(size, top, closed):
  if top < 0:
    return TRAILING if closed else BARE_WORD
  return 0 if size[top] == _NOTHING else CROWDED


@njit
def _skip_space(data, position):
  while data[position] != scan.NEWLINE and scan.is_space(data[position]):
    position += 1
  return position


@njit
def _token_end(data, position):
  while not (
    scan.is_space(data[position])
    or data[position] == OPEN
    or data[position] == CLOSE
  ):
    position += 1
  return position


@njit
def spell(data, strings, offsets, label, size, word):
  r"""Writes trees as newline-ended lines; those without nodes as `()`.

  Args:
    data: the bytes of all labels and words, uint8 `[B]`.
    strings: string i is `data[strings[i] : strings[i + 1]]`.
    offsets: nodes per line, `[N + 1]`.
    label: string of each node's label, `[M]`.
    size: nodes per subtree, `[M]`.
    word: string of each leaf, `[W]`.
  """
  room = 3 * (len(offsets) - 1) + 3 * len(label) + len(word)
  for node in range(len(label)):
    room += strings[label[node] + 1] - strings[label[node]]
  for leaf in range(len(word)):
    room += strings[word[leaf] + 1] - strings[word[leaf]]
  out = np.empty(room, np.uint8)
  ends = np.empty(len(label) + 1, np.int64)  # where the open subtrees end
  position = leaf = depth = 0
  for row in range(len(offsets) - 1):
    if offsets[row] == offsets[row + 1]:
      out[position] = OPEN
      out[position + 1] = CLOSE
      position += 2
    for node in range(offsets[row], offsets[row + 1]):
      if depth:
        out[position] = SPACE
        position += 1
      out[position] = OPEN
      position = _copy(out, position + 1, data, strings, label[node])
      ends[depth] = node + size[node]
      depth += 1
      if size[node] == 1:
        out[position] = SPACE
        position = _copy(out, position + 1, data, strings, word[leaf])
        leaf += 1
      while depth and ends[depth - 1] == node + 1:
        out[position] = CLOSE
        position += 1
        depth -= 1
    out[position] = scan.NEWLINE
    position += 1
  return out[:position]


@njit
def _copy(out, position, data, strings, number):
  for byte in range(strings[number], strings[number + 1]):
    out[position] = data[byte]
    position += 1
  return position
