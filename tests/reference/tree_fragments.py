"""Tree fragments matched with trees by plain recursion.

Trees are those of `bracketed`; in a fragment `(label, None)` is a site.
"""


def nodes(tree):
  """All subtrees with the place of their first word, children first."""
  found = []

  def walk(node, begin):
    end = begin
    if isinstance(node[1], str):
      end += 1
    else:
      for kid in node[1]:
        end = walk(kid, end)
    found.append((node, begin, end))
    return end

  walk(tree, 0)
  return found


def match(fragment, tree):
  """The subtrees at the fragment's sites, or None if it does not match."""
  (label, inside), (other, below) = fragment, tree
  if label != other:
    return None
  if inside is None:
    return [tree]
  if isinstance(inside, str) or isinstance(below, str):
    return [] if inside == below else None
  if len(inside) != len(below):
    return None
  sites = []
  for part, kid in zip(inside, below, strict=True):
    more = match(part, kid)
    if more is None:
      return None
    sites += more
  return sites


def cut(tree, rng, *, root=True):
  """A random fragment of the top of a tree."""
  label, inside = tree
  if not root and rng.random() < 0.4:
    return (label, None)
  if isinstance(inside, str):
    return tree
  return (label, [cut(kid, rng, root=False) for kid in inside])


def sites(fragment):
  """The labels of a fragment's sites from left to right."""
  label, inside = fragment
  if inside is None:
    return [label]
  if isinstance(inside, str):
    return []
  return [site for kid in inside for site in sites(kid)]


def spell(fragment):
  """A fragment in Travatar's notation."""
  number = iter(range(100))

  def write(node):
    label, inside = node
    if inside is None:
      return f"x{next(number)}:{label}"
    if isinstance(inside, str):
      return f'{label} ( "{inside}" )'
    return f"{label} ( {' '.join(map(write, inside))} )"

  return write(fragment)
