"""Bracketed trees by recursive descent.

A tree is `(label, word)` or `(label, [tree, ...])`; None is a failed parse.
"""

import re


def parse(line):
  """Returns the tree of a line; raises ValueError if there is none."""
  tokens = re.findall(r"[()]|[^() \t\n\r\v\f]+", line)
  if not tokens:
    return None
  tree, rest = _outer(tokens)
  if rest:
    raise ValueError("text after the tree")
  return tree


def _expect(tokens, token):
  if not tokens or tokens[0] != token:
    raise ValueError(f"expected {token}")
  return tokens[1:]


def _outer(tokens):
  rest = _expect(tokens, "(")
  if rest and rest[0] == ")":
    return None, rest[1:]
  if rest and rest[0] == "(":
    tree, rest = _outer(rest)
    return tree, _expect(rest, ")")
  return _node(tokens)


def _node(tokens):
  rest = _expect(tokens, "(")
  if not rest or rest[0] in "()":
    raise ValueError("no label")
  label, rest = rest[0], rest[1:]
  if rest and rest[0] not in "()":
    return (label, rest[0]), _expect(rest[1:], ")")
  kids = []
  while rest and rest[0] == "(":
    kid, rest = _node(rest)
    kids.append(kid)
  if not kids:
    raise ValueError("nothing inside")
  return (label, kids), _expect(rest, ")")


def format_tree(tree):
  if tree is None:
    return "()"
  label, inside = tree
  if isinstance(inside, str):
    return f"({label} {inside})"
  return f"({label} {' '.join(map(format_tree, inside))})"


def leaves(tree):
  if tree is None:
    return []
  if isinstance(tree[1], str):
    return [tree[1]]
  return [word for kid in tree[1] for word in leaves(kid)]


def columns(tree):
  """Preorder rows `(label, size, parent, start, end, children)`."""
  rows = []

  def visit(node, parent, start):
    here = len(rows)
    rows.append(None)
    end, kids = start, []
    if isinstance(node[1], str):
      end += 1
    else:
      for kid in node[1]:
        kids.append(len(rows))
        end = visit(kid, here, end)
    rows[here] = (node[0], len(rows) - here, parent, start, end, kids)
    return end

  if tree is not None:
    visit(tree, -1, 0)
  return rows


def binarize(tree):
  """Left-heavy, by folding the children from the left."""
  if tree is None or isinstance(tree[1], str):
    return tree
  label, kids = tree[0], [binarize(kid) for kid in tree[1]]
  while len(kids) > 2:
    kids = [("@" + label, kids[:2]), *kids[2:]]
  return label, kids


def bar(tree, how):
  """The tree with nodes of two children at most, new labels barred."""
  if tree is None or isinstance(tree[1], str):
    return tree
  label, kids = tree[0], [bar(kid, how) for kid in tree[1]]
  while len(kids) > 2:
    if how == "left":
      kids = [(label + "'", kids[:2]), *kids[2:]]
    else:
      kids = [*kids[:-2], (label + "'", kids[-2:])]
  return (label, kids)
