"""Compiled writers of the features of rule applications.

A feature is a sequence of pieces (see `feature_keys`); `write` puts those of
one feature of one application into a buffer, from where it is hashed or
spelled. The templates are described in `rule_templates`.
"""

import numpy as np

from jaxmt.features.feature_keys import append, look_up, multiply
from jaxmt.text.kernels import grown, njit

# Places of the fixed pieces; those of numbers, labels and words follow.
LITERALS = (
  "Rule:",
  "Count:",
  "Shape:",
  "Lex:",
  "_",
  "/",
  "[",
  "]",
  ">",
  "T",
  "<s>",
  "</s>",
)
RULE, COUNT, SHAPE, LEX, SPACE, BAR = range(6)
OPEN, CLOSE, ARROW, TERMINAL, BEGIN, END = range(6, 12)
NUMBERS = 64  # "0" to "63"; larger ones are written as 63
# Letters of Word-Edges, in the order of the numbers the kernels know them by.
ATOMS = "flFLbanche"


@njit
def _number(value):
  return len(LITERALS) + min(value, NUMBERS - 1)


@njit
def _source_symbol(symbol, bases, out, size):
  """Writes a word, or a label in brackets."""
  if symbol >= 0:
    out[size] = bases[1] + symbol
    return size + 1
  out[size], out[size + 1], out[size + 2] = OPEN, bases[0] - 1 - symbol, CLOSE
  return size + 3


@njit
def _target_symbol(symbol, bases, out, size):
  """Writes a word, or the number of a non-terminal in brackets."""
  if symbol >= 0:
    out[size] = bases[2] + symbol
    return size + 1
  out[size], out[size + 1], out[size + 2] = OPEN, _number(-1 - symbol), CLOSE
  return size + 3


@njit
def _write_rule(rule, rules, bases, out):
  source, source_offsets, target, target_offsets, lhs = rules[:5]
  out[0], out[1], out[2] = RULE, bases[0] + lhs[rule], ARROW
  size = 3
  first = source_offsets[rule]
  for place in range(first, source_offsets[rule + 1]):
    if place > first:
      out[size] = SPACE
      size += 1
    size = _source_symbol(source[place], bases, out, size)
  out[size] = BAR
  size += 1
  first = target_offsets[rule]
  for place in range(first, target_offsets[rule + 1]):
    if place > first:
      out[size] = SPACE
      size += 1
    size = _target_symbol(target[place], bases, out, size)
  return size


@njit
def _write_shape(rule, rules, out):
  source, source_offsets, target, target_offsets = rules[:4]
  out[0] = SHAPE
  size, site = 1, 0
  for place in range(source_offsets[rule], source_offsets[rule + 1]):
    if source[place] >= 0:
      out[size] = TERMINAL
    else:
      out[size] = _number(site)
      site += 1
    size += 1
  out[size] = BAR
  size += 1
  for place in range(target_offsets[rule], target_offsets[rule + 1]):
    symbol = target[place]
    out[size] = TERMINAL if symbol >= 0 else _number(-1 - symbol)
    size += 1
  return size


@njit
def local_slots(rule, rules, used):
  """Returns how many features the rule alone has."""
  link_offsets, silent, indicated = rules[6], rules[7], rules[8]
  if rule >= len(silent):
    return 1 if rule > len(silent) and used[3] else 0  # a copied word, the goal
  if silent[rule]:
    return 0
  count = used[1] + used[2]
  if used[0] and indicated[rule]:
    count += 1
  if used[3]:
    count += link_offsets[rule + 1] - link_offsets[rule]
  return count


@njit
def write_local(rule, slot, rules, used, bases, out):
  """Writes the slot-th feature of a rule; returns the number of pieces."""
  source, source_offsets, target, target_offsets = rules[:4]
  links, link_offsets, silent, indicated, counts = rules[5:10]
  if rule >= len(silent):
    word = bases[3] + rule - len(silent) - 1
    out[0], out[1], out[2], out[3] = LEX, word, SPACE, word
    return 4
  if used[0] and indicated[rule]:
    if slot == 0:
      return _write_rule(rule, rules, bases, out)
    slot -= 1
  if used[1]:
    if slot == 0:
      out[0], out[1] = COUNT, _number(counts[rule])
      return 2
    slot -= 1
  if used[2]:
    if slot == 0:
      return _write_shape(rule, rules, out)
    slot -= 1
  pair = links[link_offsets[rule] + slot]
  out[0] = LEX
  out[1] = bases[1] + source[source_offsets[rule] + pair[0]]
  out[2] = SPACE
  out[3] = bases[2] + target[target_offsets[rule] + pair[1]]
  return 4


@njit
def _write_end(rule, rules, last, is_target, bases, out, size):
  """Writes the first or last symbol of one side of a rule or copied word."""
  if rule >= len(rules[7]):
    out[size] = bases[3] + rule - len(rules[7]) - 1
    return size + 1
  flat, offsets = rules[0], rules[1]
  if is_target:
    flat, offsets = rules[2], rules[3]
  low, high = offsets[rule], offsets[rule + 1]
  if low == high:
    return size
  symbol = flat[high - 1] if last else flat[low]
  if is_target:
    return _target_symbol(symbol, bases, out, size)
  return _source_symbol(symbol, bases, out, size)


@njit
def _write_atom(
  atom, rule, begin, end, sentence, rules, bases, text, out, size
):
  """Writes what one letter of Word-Edges stands for; returns the new size."""
  if atom < 4:
    return _write_end(rule, rules, atom % 2, atom > 1, bases, out, size)
  tokens, offsets, lengths, heads, tails = text
  low, high = offsets[sentence], offsets[sentence + 1]
  if atom == 4:
    place = low + begin - 1
    out[size] = bases[3] + tokens[place] if begin > 0 else BEGIN
  elif atom == 5:
    place = low + end
    out[size] = bases[3] + tokens[place] if place < high else END
  elif atom == 6:
    out[size] = _number(end - begin)
  elif atom == 7:
    out[size] = _number(lengths[low + end] - lengths[low + begin])
  elif atom == 8:
    out[size] = bases[3] + heads[tokens[low + begin]]
  else:
    out[size] = bases[3] + tails[tokens[low + end - 1]]
  return size + 1


@njit
def write_edge(application, combination, first, rules, bases, text, out):
  """Writes a Word-Edges feature; returns the number of pieces.

  Args:
    application: rule, begin, end, sentence.
    combination: numbers of its atoms, -1 beyond.
    first: the piece `Edge:letters:`.
    rules: columns of the rules.
    bases: first pieces of labels, source, target and text words.
    text: tokens, their offsets, summed lengths, first and last characters.
    out: the buffer.
  """
  rule, begin, end, sentence = application
  out[0] = first
  size = 1
  for number in range(len(combination)):
    atom = combination[number]
    if atom < 0:
      break
    if number:
      out[size] = SPACE
      size += 1
    size = _write_atom(
      atom, rule, begin, end, sentence, rules, bases, text, out, size
    )
  return size


@njit
def _has_edges(rule, rules):
  silent = rules[7]
  return not silent[rule] if rule < len(silent) else rule > len(silent)


@njit
def edge_scores(applications, kinds, rules, bases, text, pieces, table):
  """Returns the summed weights of Word-Edges of applications, float64 `[N]`.

  The key of a name follows from those of its parts, so those of the letters
  are made once for all combinations, and those that depend on the span alone
  once for a run of applications with the same span.

  Args:
    applications: rule, begin, end, sentence, int64 `[N, 4]`.
    kinds: `combination` and `first` of `write_edge` for each kind.
    rules: columns of the rules.
    bases: see `write_edge`.
    text: see `write_edge`.
    pieces: see `feature_keys.NamePieces`.
    table: weights by key.
  """
  # Which letters there are, and how many each kind has.
  combinations, firsts = kinds
  keys, powers = pieces[2], pieces[3]
  sizes = np.zeros(len(firsts), np.int64)
  used = np.zeros(len(ATOMS), np.bool_)
  for kind in range(len(firsts)):
    for number in range(combinations.shape[1]):
      if combinations[kind, number] < 0:
        break
      used[combinations[kind, number]] = True
      sizes[kind] += 1
  # Key and power of each letter, with and without the space before it.
  parts = np.zeros((len(ATOMS), 4), np.uint64)
  buffer = np.empty(8, np.int64)
  out = np.zeros(len(applications), np.float64)
  last_begin = last_end = last_sentence = np.int64(-1)
  for row in range(len(applications)):
    rule, begin = applications[row, 0], applications[row, 1]
    end, sentence = applications[row, 2], applications[row, 3]
    if not _has_edges(rule, rules):
      continue
    same = begin == last_begin and end == last_end and sentence == last_sentence
    last_begin, last_end, last_sentence = begin, end, sentence
    # Keys of the letters; those of the span alone are the last run's.
    for atom in range(4 if same else len(ATOMS)):
      if not used[atom]:
        continue
      size = _write_atom(
        atom, rule, begin, end, sentence, rules, bases, text, buffer, 0
      )
      key, power = np.uint64(0), np.uint64(1)
      for place in range(size):
        piece = buffer[place]
        key = append(key, powers[piece], keys[piece])
        power = multiply(power, powers[piece])
      parts[atom, 0], parts[atom, 1] = key, power
      parts[atom, 2] = append(keys[SPACE], power, key)
      parts[atom, 3] = multiply(powers[SPACE], power)
    # The key of each kind from those of its letters, and its weight.
    total = 0.0
    for kind in range(len(firsts)):
      key = keys[firsts[kind]]
      for number in range(sizes[kind]):
        atom, shift = combinations[kind, number], 2 if number else 0
        key = append(key, parts[atom, shift + 1], parts[atom, shift])
      total += look_up(key, table)
    out[row] = total
  return out


@njit
def _write(application, slot, slots, kinds, rules, used, bases, text, out):
  """Writes the slot-th of all features, the rule's `slots` ones first."""
  if slot < slots:
    return write_local(application[0], slot, rules, used, bases, out)
  combinations, firsts = kinds
  kind = slot - slots
  return write_edge(
    application, combinations[kind], firsts[kind], rules, bases, text, out
  )


@njit
def keys_of(applications, kinds, rules, used, bases, text, pieces, room):
  """Returns `(keys, offsets)` of all features of applications.

  Args:
    applications: rule, begin, end, sentence, int64 `[N, 4]`.
    kinds: `combination` and `first` of `write_edge` for each kind.
    rules: columns of the rules.
    used: which of the rules' own templates are in use.
    bases: see `write_edge`.
    text: see `write_edge`.
    pieces: see `feature_keys.NamePieces`.
    room: pieces that the longest name needs.
  """
  keys, powers = pieces[2], pieces[3]
  offsets = np.zeros(len(applications) + 1, np.int64)
  for row in range(len(applications)):
    count = local_slots(applications[row, 0], rules, used)
    if _has_edges(applications[row, 0], rules):
      count += len(kinds[1])
    offsets[row + 1] = offsets[row] + count
  out = np.empty(offsets[-1], np.uint64)
  buffer = np.empty(room, np.int64)
  for row in range(len(applications)):
    slots = local_slots(applications[row, 0], rules, used)
    for slot in range(offsets[row + 1] - offsets[row]):
      size = _write(
        applications[row], slot, slots, kinds, rules, used, bases, text, buffer
      )
      key = np.uint64(0)
      for place in range(size):
        key = append(key, powers[buffer[place]], keys[buffer[place]])
      out[offsets[row] + slot] = key
  return out, offsets


@njit
def spell(applications, slots, kinds, rules, used, bases, text, pieces, room):
  r"""Returns the names of features, `\n` after each, uint8.

  Args:
    applications: an application that has the feature, for each, `[N, 4]`.
    slots: which of its features it is, `[N]`.
    kinds: as in `keys_of`.
    rules: as in `keys_of`.
    used: as in `keys_of`.
    bases: as in `keys_of`.
    text: as in `keys_of`.
    pieces: as in `keys_of`.
    room: as in `keys_of`.
  """
  data, offsets = pieces[0], pieces[1]
  buffer = np.empty(room, np.int64)
  out = np.empty(64 * len(slots) + 64, np.uint8)
  filled = 0
  for row in range(len(slots)):
    rule_slots = local_slots(applications[row, 0], rules, used)
    size = _write(
      applications[row],
      slots[row],
      rule_slots,
      kinds,
      rules,
      used,
      bases,
      text,
      buffer,
    )
    for place in range(size):
      low, high = offsets[buffer[place]], offsets[buffer[place] + 1]
      out = grown(out, filled + high - low + 1)
      for byte in range(low, high):
        out[filled] = data[byte]
        filled += 1
    out[filled] = 10
    filled += 1
  return out[:filled]
