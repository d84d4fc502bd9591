"""Tree fragments: from bracket tokens to the table's codes."""

import numpy as np

from jaxmt.grammar.formats.building import FINE, TREE
from jaxmt.grammar.table import CLOSE
from jaxmt.text.kernels import njit

# What a token of a fragment is.
OPENING, CLOSING, WORD, SITE, LABEL = range(5)
MARKS = {"(": OPENING, ")": CLOSING}


@njit
def read_fragments(token, sort, offsets, before, fault):
  """Turns bracket tokens into fragment codes.

  Args:
    token: word id or label id of each token, int32 `[T]`.
    sort: what each token is, int8 `[T]`.
    offsets: rows, int64 `[N + 1]`.
    before: whether labels stand before their bracket, not after.
    fault: extended in place.

  Returns:
    `(codes int32, offsets int64 [N + 1], root int32 [N], leaves int64)`: the
    label of each root (-1 for an empty row), and the tokens that are words or
    sites.
  """
  codes = np.empty(2 * len(token) + 1, np.int32)
  new_offsets = np.zeros(len(offsets), np.int64)
  root = np.full(len(offsets) - 1, -1, np.int32)
  leaves = np.empty(len(token), np.int64)
  size = number = np.int64(0)
  for row in range(len(offsets) - 1):
    tokens = (token, sort, offsets[row], offsets[row + 1])
    size, number, root[row], good = _read_row(
      tokens, before, codes, size, leaves, number
    )
    if not good and fault[row] == FINE:
      fault[row] = TREE
    new_offsets[row + 1] = size
  return codes[:size].copy(), new_offsets, root, leaves[:number].copy()


@njit
def _read_row(tokens, before, codes, size, leaves, number):
  """Reads one fragment, up to the first fault.

  Args:
    tokens: columns of all tokens, first token of the row, one past the last.
    before: see `read_fragments`.
    codes: filled from `size` on.
    size: number of codes so far.
    leaves: filled from `number` on.
    number: number of leaves so far.

  Returns:
    `(size, number, label of the root or -1, whether it is one whole tree)`.
  """
  token, sort, item, last = tokens
  root = np.int32(-1)
  depth, ended = 0, False
  hollow = False  # whether the innermost node has nothing yet
  while item < last:
    what = sort[item]
    if ended:  # something follows the root's bracket
      return size, number, root, False
    if what == LABEL or what == OPENING:
      # A node opens: a bracket and a label, in the order of the dialect.
      other = item + 1
      label = item if before else other
      if other == last or sort[other] != (OPENING if before else LABEL):
        return size, number, root, False
      if not before and what == LABEL:
        return size, number, root, False
      codes[size] = -2 - token[label]
      if depth == 0:
        root = token[label]
      size += 1
      depth += 1
      hollow = True
      item += 1
    elif what == CLOSING:
      # The innermost node closes; it must have something inside.
      trouble = depth == 0 or hollow
      codes[size] = CLOSE
      size += 1
      depth -= 1
      ended = depth == 0
      if trouble:
        return size, number, root, False
    elif depth == 0:  # a leaf outside of any bracket
      return size, number, root, False
    else:
      # A leaf: a word, or a site, which is a node without children.
      codes[size] = token[item] if what == WORD else -2 - token[item]
      size += 1
      if what != WORD:
        codes[size] = CLOSE
        size += 1
      leaves[number] = item
      number += 1
      hollow = False
    item += 1
  return size, number, root, depth == 0


@njit
def same_leaves(source, offsets, codes, code_offsets):
  """Whether the leaves of each fragment are the rule's source side."""
  same = np.zeros(len(offsets) - 1, np.bool_)
  for row in range(len(same)):
    item = offsets[row]
    fine = True
    for place in range(code_offsets[row], code_offsets[row + 1]):
      code = codes[place]
      if code == CLOSE:
        continue
      if code < CLOSE:
        if place + 1 == code_offsets[row + 1] or codes[place + 1] != CLOSE:
          continue
        code += 1  # a site's label, as the source side writes it
      if item == offsets[row + 1] or source[item] != code:
        fine = False
        break
      item += 1
    same[row] = fine and item == offsets[row + 1]
  return same
