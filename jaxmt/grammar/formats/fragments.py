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
  size = number = 0
  for row in range(len(offsets) - 1):
    depth, trouble, ended = 0, False, False
    item = offsets[row]
    hollow = False  # whether the innermost node has nothing yet
    while item < offsets[row + 1] and not trouble:
      what = sort[item]
      if ended:
        trouble = True
      elif what == LABEL or what == OPENING:
        other = item + 1
        label = item if before else other
        if other == offsets[row + 1] or sort[other] != (
          OPENING if before else LABEL
        ):
          trouble = True
        elif not before and what == LABEL:
          trouble = True
        else:
          codes[size] = -2 - token[label]
          if depth == 0:
            root[row] = token[label]
          size += 1
          depth += 1
          hollow = True
          item += 1
      elif what == CLOSING:
        trouble = depth == 0 or hollow
        codes[size] = CLOSE
        size += 1
        depth -= 1
        ended = depth == 0
      elif depth == 0:
        trouble = True
      elif what == WORD:
        codes[size] = token[item]
        size += 1
        leaves[number] = item
        number += 1
        hollow = False
      else:
        codes[size] = -2 - token[item]
        codes[size + 1] = CLOSE
        size += 2
        leaves[number] = item
        number += 1
        hollow = False
      item += 1
    if (trouble or depth) and fault[row] == FINE:
      fault[row] = TREE
    new_offsets[row + 1] = size
  return codes[:size].copy(), new_offsets, root, leaves[:number].copy()


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
