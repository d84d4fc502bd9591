"""Names of the features of a rule application, the slow way."""

import collections
import math

from jaxmt.grammar.table import Kind


def symbols(table, rule):
  source = [
    table.source_words.words[s] if s >= 0 else f"[{table.labels[-1 - s]}]"
    for s in table.source[rule].tolist()
  ]
  target = [
    table.target_words.words[s] if s >= 0 else f"[{-1 - s}]"
    for s in table.target[rule].tolist()
  ]
  return source, target


def shape(side):
  out, seen = "", 0
  for symbol in side.tolist():
    if symbol >= 0:
      out += "T"
    else:
      out += str(seen)
      seen += 1
  return out


def names(table, config, words, application):
  """Counts of all names of `(rule, begin, end)` on a sentence's words."""
  rule, begin, end = application
  found = collections.Counter()
  if rule == len(table):
    return found
  if rule > len(table):
    word = words[begin]
    source = target = [word]
    if "pairs" in config.names:
      found[f"Lex:{word}_{word}"] += 1
  else:
    if table.kind[rule] == Kind.GLUE:
      return found
    source, target = symbols(table, rule)
    if "rule" in config.names and table.counts[rule] >= config.min_count:
      left = table.labels[table.lhs[rule]]
      found[f"Rule:{left}>{'_'.join(source)}/{'_'.join(target)}"] += 1
    if "count" in config.names:
      found[f"Count:{int(math.log2(max(1, table.counts[rule])))}"] += 1
    if "shape" in config.names:
      right = "".join(
        "T" if s >= 0 else str(-1 - s) for s in table.target[rule].tolist()
      )
      found[f"Shape:{shape(table.source[rule])}/{right}"] += 1
    if "pairs" in config.names:
      for i, j in table.links[rule].tolist():
        found[f"Lex:{source[i]}_{target[j]}"] += 1
  if "edges" not in config.names:
    return found
  atoms = {
    "f": source[0],
    "l": source[-1],
    "F": target[0] if target else "",
    "L": target[-1] if target else "",
    "b": words[begin - 1] if begin else "<s>",
    "a": words[end] if end < len(words) else "</s>",
    "n": str(min(63, end - begin)),
    "c": str(min(63, len("".join(words[begin:end])))),
    "h": words[begin][0],
    "e": words[end - 1][-1],
  }
  for letters in config.edges:
    found[f"Edge:{letters}:{'_'.join(atoms[c] for c in letters)}"] += 1
  return found
