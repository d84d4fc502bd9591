"""Host kernels of `sibling_parser`: features, second-order chart, updates.

With heads h, dependents c and siblings s, and complete spans CR and CL as in
`eisner`:

    S(s, c)  = max_m CR(s, m) + CL(m + 1, c)
    IR(h, c) = arc(h, c) + max(pair(h, -, c) + CL(h + 1, c),
                               max_s IR(h, s) + S(s, c) + pair(h, s, c))

and IL likewise. Time is O(n³) for a sentence of n words.
"""

import numpy as np

from jaxmt.text.kernels import GOLDEN, mixed, njit

_PRIME = np.uint64(0x9FB21C651E98DF25)
_OUTSIDE, _ROOT, _NONE = np.uint64(1), np.uint64(2), np.uint64(3)
# Columns of a token: word, lower case, suffix, prefix, tag, tags before and
# after, two before and after, words before and after.
_W, _L, _S, _X, _T, _P, _N, _Q, _M, _B, _A = range(11)
_COLUMNS = 11


def _templates():
  """(columns of the head, of the dependent) of each template, padded by -1."""
  letters = dict(zip("wlsxtpnqmba", range(_COLUMNS), strict=True))
  pairs = (
    "w- t- wt- -w -t -wt wt-wt t-wt wt-t w-w t-t t-s s-t s-s tn-pt pt-pt tn-tn"
    " pt-tn tn-t pt-t t-pt t-tn ptn-t t-ptn ptn-ptn pqt-t t-pqt tnm-t t-tnm"
    " l-l l-t t-l tx-t t-tx lt-s s-lt lt-ptn ptn-lt t-bt t-ta bt-t ta-t"
  ).split()
  sides = [pair.split("-") for pair in pairs]
  table = np.full((2, len(pairs), 3), -1, np.int64)
  for number, both in enumerate(sides):
    for side, names in enumerate(both):
      table[side, number, : len(names)] = [letters[name] for name in names]
  return table


_TEMPLATES = _templates()
_ARCS = _TEMPLATES.shape[1]
_PAIRS = 8  # templates of siblings
ROOM = 2 * _ARCS + 2 * _PAIRS  # indices of an arc, but for tags between


@njit
def _joined(key, part):
  return (key ^ part) * _PRIME + (part >> np.uint64(29)) + GOLDEN


@njit
def sentence_keys(columns, first, stop):
  """Returns keys of the parts of templates, uint64 `[2, n + 1, ARCS]`.

  The first ones are of heads (word h at h + 1, the root at 0), the others of
  dependents; and the columns of the words, `[n + 1, COLUMNS]`.
  """
  n = stop - first
  rows = np.full((n + 1, _COLUMNS), _OUTSIDE, np.uint64)
  for column in range(_COLUMNS):
    rows[0, column] = _ROOT
  for word in range(n):
    at = first + word
    for column in range(5):
      rows[word + 1, column] = columns[column, at]
    for step, tag in ((-1, _P), (1, _N), (-2, _Q), (2, _M)):
      if 0 <= word + step < n:
        rows[word + 1, tag] = columns[4, at + step]
    if word > 0:
      rows[word + 1, _B] = columns[1, at - 1]
    if word + 1 < n:
      rows[word + 1, _A] = columns[1, at + 1]
  keys = np.empty((2, n + 1, _ARCS), np.uint64)
  for side in range(2):
    for word in range(n + 1):
      for number in range(_ARCS):
        key = np.uint64(number + 1) * GOLDEN
        for place in range(3):
          column = _TEMPLATES[side, number, place]
          if column >= 0:
            key = _joined(key, rows[word, column])
        keys[side, word, number] = key
  return keys, rows


@njit
def _bucket(distance):
  for number, limit in enumerate((2, 3, 4, 5, 8, 12)):
    if distance < limit:
      return number
  return 6


@njit
def arc_rows(keys, rows, head, child, shift, out):
  """Sets the indices of an arc's weights; returns how many there are.

  Args:
    keys: of `sentence_keys`.
    rows: of `sentence_keys`.
    head: -1 is the root.
    child: the dependent.
    shift: 64 less the bits of the table.
    out: at least `ROOM` and the number of words.
  """
  right = np.uint64(head < child)
  far = 7 if head < 0 else _bucket(abs(child - head))
  distance = np.uint64(4 + 2 * far) + right
  size = 0
  for number in range(_ARCS):
    key = keys[0, head + 1, number] ^ (keys[1, child + 1, number] * _PRIME)
    out[size] = mixed(key + right) >> shift
    out[size + 1] = mixed(key + distance) >> shift
    size += 2
  # Tags between, each once.
  base = _joined(right + np.uint64(11), rows[head + 1, _T])
  base = _joined(base, rows[child + 1, _T])
  low, high = min(head, child), max(head, child)
  for word in range(low + 1, high):
    tag = rows[word + 1, _T]
    known = False
    for other in range(low + 1, word):
      known = known or rows[other + 1, _T] == tag
    if not known:
      out[size] = mixed(_joined(base, tag)) >> shift
      size += 1
  return size


@njit
def pair_rows(rows, head, sibling, child, shift, out):
  """Sets the indices of a pair of siblings; the first dependent's is -1."""
  right = np.uint64(head < child)
  tag, word = rows[child + 1, _T], rows[child + 1, _L]
  parent = rows[head + 1, _T]
  st = _NONE if sibling < 0 else rows[sibling + 1, _T]
  sl = _NONE if sibling < 0 else rows[sibling + 1, _L]
  far = 8 if sibling < 0 else _bucket(abs(child - sibling))
  distance = np.uint64(4 + 2 * far) + right
  size = 0
  for number in range(_PAIRS):
    key = np.uint64(1000 + number) * GOLDEN
    if number == 0:
      key = _joined(_joined(_joined(key, parent), st), tag)
    elif number == 1:
      key = _joined(_joined(key, st), tag)
    elif number == 2:
      key = _joined(_joined(key, sl), word)
    elif number == 3:
      key = _joined(_joined(key, sl), tag)
    elif number == 4:
      key = _joined(_joined(key, st), word)
    elif number == 5:
      key = _joined(_joined(_joined(key, rows[head + 1, _L]), st), tag)
    elif number == 6:
      key = _joined(_joined(_joined(key, parent), sl), tag)
    else:
      key = _joined(_joined(_joined(key, parent), st), word)
    out[size] = mixed(key + right) >> shift
    out[size + 1] = mixed(key + distance) >> shift
    size += 2
  return size


@njit
def _sum(weights, out, size):
  total = np.float32(0.0)
  for place in range(size):
    total += weights[out[place]]
  return total


@njit
def scores(keys, rows, n, weights, shift):
  """Returns scores of arcs `[n + 1, n]` and pairs `[n, n + 1, n]`.

  Pairs are by head, nearer sibling (its number + 1, 0 for none) and dependent.
  """
  out = np.empty(ROOM + n, np.int64)
  arcs = np.zeros((n + 1, n), np.float32)
  pairs = np.zeros((n, n + 1, n), np.float32)
  for child in range(n):
    for head in range(-1, n):
      if head == child:
        continue
      size = arc_rows(keys, rows, head, child, shift, out)
      arcs[head + 1, child] = _sum(weights, out, size)
      if head < 0:
        continue
      size = pair_rows(rows, head, -1, child, shift, out)
      pairs[head, 0, child] = _sum(weights, out, size)
      for sibling in range(min(head, child) + 1, max(head, child)):
        size = pair_rows(rows, head, sibling, child, shift, out)
        pairs[head, sibling + 1, child] = _sum(weights, out, size)
  return arcs, pairs


@njit
def best_tree(arcs, pairs, n, heads):
  """Writes the heads of the best tree and returns its score."""
  right, left = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
  open_right = np.zeros((n, n), np.float32)
  open_left = np.zeros((n, n), np.float32)
  between = np.zeros((n, n), np.float32)
  # Where each best value comes from.
  middle = np.zeros((n, n), np.int32)  # of S
  from_right = np.zeros((n, n), np.int32)
  from_left = np.zeros((n, n), np.int32)
  before_right = np.zeros((n, n), np.int32)  # nearer sibling of IR, or -1
  before_left = np.zeros((n, n), np.int32)
  for width in range(1, n):
    for i in range(n - width):
      j = i + width
      best, place = np.float32(-np.inf), i
      for m in range(i, j):
        value = right[i, m] + left[m + 1, j]
        if value > best:
          best, place = value, m
      between[i, j], middle[i, j] = best, place
      best, place = pairs[i, 0, j] + left[i + 1, j], -1
      for s in range(i + 1, j):
        value = open_right[i, s] + between[s, j] + pairs[i, s + 1, j]
        if value > best:
          best, place = value, s
      open_right[i, j] = best + arcs[i + 1, j]
      before_right[i, j] = place
      best, place = pairs[j, 0, i] + right[i, j - 1], -1
      for s in range(i + 1, j):
        value = between[i, s] + open_left[s, j] + pairs[j, s + 1, i]
        if value > best:
          best, place = value, s
      open_left[i, j] = best + arcs[j + 1, i]
      before_left[i, j] = place
      best, place = np.float32(-np.inf), j
      for k in range(i + 1, j + 1):
        value = open_right[i, k] + right[k, j]
        if value > best:
          best, place = value, k
      right[i, j], from_right[i, j] = best, place
      best, place = np.float32(-np.inf), i
      for k in range(i, j):
        value = left[i, k] + open_left[k, j]
        if value > best:
          best, place = value, k
      left[i, j], from_left[i, j] = best, place
  best, root = np.float32(-np.inf), 0
  for r in range(n):
    value = arcs[0, r] + left[0, r] + right[r, n - 1]
    if value > best:
      best, root = value, r
  heads[root] = -1
  _trace(
    middle, from_right, from_left, before_right, before_left, root, n, heads
  )
  return best


@njit
def _trace(
  middle, from_right, from_left, before_right, before_left, root, n, heads
):
  # Items to take apart: ends, and 0 CL, 1 CR, 2 IL, 3 IR, 4 S.
  todo = np.zeros((4 * n + 8, 3), np.int32)
  todo[0, 0], todo[0, 1], todo[0, 2] = 0, root, 0
  todo[1, 0], todo[1, 1], todo[1, 2] = root, n - 1, 1
  size = 2
  while size:
    size -= 1
    i, j, kind = int(todo[size, 0]), int(todo[size, 1]), todo[size, 2]
    if kind < 2 and i == j:
      continue
    # One part, or two of them.
    if kind == 0:
      k = int(from_left[i, j])
      size = _push(todo, size, i, k, 0)
      size = _push(todo, size, k, j, 2)
    elif kind == 1:
      k = int(from_right[i, j])
      size = _push(todo, size, i, k, 3)
      size = _push(todo, size, k, j, 1)
    elif kind == 4:
      k = int(middle[i, j])
      size = _push(todo, size, i, k, 1)
      size = _push(todo, size, k + 1, j, 0)
    elif kind == 3:
      heads[j] = i
      k = int(before_right[i, j])
      if k < 0:
        size = _push(todo, size, i + 1, j, 0)
      else:
        size = _push(todo, size, i, k, 3)
        size = _push(todo, size, k, j, 4)
    else:
      heads[i] = j
      k = int(before_left[i, j])
      if k < 0:
        size = _push(todo, size, i, j - 1, 1)
      else:
        size = _push(todo, size, i, k, 4)
        size = _push(todo, size, k, j, 2)


@njit
def _push(todo, size, i, j, kind):
  todo[size, 0], todo[size, 1], todo[size, 2] = i, j, kind
  return size + 1


@njit
def parse(columns, offsets, weights):
  """Returns the heads of all sentences, int32 `[T]`."""
  heads = np.full(offsets[-1], -1, np.int32)
  shift = shift_of(weights)
  for row in range(len(offsets) - 1):
    n = offsets[row + 1] - offsets[row]
    if n == 0:
      continue
    keys, rows = sentence_keys(columns, offsets[row], offsets[row + 1])
    arcs, pairs = scores(keys, rows, n, weights, shift)
    best_tree(arcs, pairs, n, heads[offsets[row] : offsets[row + 1]])
  return heads


@njit
def shift_of(weights):
  """Returns 64 less the logarithm of the number of weights."""
  bits = 0
  while 1 << bits < len(weights):
    bits += 1
  return np.uint64(64 - bits)


@njit
def _add_tree(keys, rows, heads, n, shift, sign, change, touched, size, out):
  """Adds the features of a tree to the changes; returns places touched."""
  for child in range(n):
    head = heads[child]
    count = arc_rows(keys, rows, head, child, shift, out)
    for place in range(count):
      change[out[place]] += sign
      touched[size] = out[place]
      size += 1
    if head < 0:
      continue
    # The nearest dependent of the head between it and this one.
    sibling = -1
    step = -1 if head < child else 1
    word = child + step
    while word != head:
      if heads[word] == head:
        sibling = word
        break
      word += step
    count = pair_rows(rows, head, sibling, child, shift, out)
    for place in range(count):
      change[out[place]] += sign
      touched[size] = out[place]
      size += 1
  return size


@njit
def learn(columns, offsets, gold, order, weights, late, steps, most):
  """Goes through the sentences once; returns the number of wrong heads."""
  shift = shift_of(weights)
  change = np.zeros(len(weights), np.int32)
  wrong = 0
  for number in range(len(order)):
    row = order[number]
    first, stop = offsets[row], offsets[row + 1]
    n = stop - first
    keys, rows = sentence_keys(columns, first, stop)
    arcs, pairs = scores(keys, rows, n, weights, shift)
    right = gold[first:stop]
    # The tree with the highest score plus number of wrong heads.
    for child in range(n):
      for head in range(-1, n):
        if head != right[child]:
          arcs[head + 1, child] += np.float32(1.0)
    heads = np.full(n, -1, np.int32)
    best_tree(arcs, pairs, n, heads)
    loss = 0
    for child in range(n):
      loss += heads[child] != right[child]
    if loss == 0:
      continue
    wrong += loss
    out = np.empty(ROOM + n, np.int64)
    touched = np.empty(2 * n * (ROOM + n), np.int64)
    size = _add_tree(keys, rows, right, n, shift, 1, change, touched, 0, out)
    size = _add_tree(
      keys, rows, heads, n, shift, -1, change, touched, size, out
    )
    # The margin that is lacking, over the squared length of the difference;
    # what was touched twice counts where it stands first.
    amounts = np.empty(size, np.int32)
    margin, squares = 0.0, 0.0
    for place in range(size):
      at = touched[place]
      amounts[place] = change[at]
      change[at] = 0
      margin += weights[at] * amounts[place]
      squares += amounts[place] * amounts[place]
    step = min(most, max(0.0, loss - margin) / max(squares, 1.0))
    for place in range(size):
      if amounts[place]:
        amount = amounts[place] * step
        weights[touched[place]] += np.float32(amount)
        late[touched[place]] += (steps + number) * amount
  return wrong
