"""GHKM by definition: slow, over nested tuples.

A tree is `(label, children)` with children trees, or `(label, word)`. Rules are
`(label, source, target, fragment, links)`: source symbols are words or
one-tuples `(label,)`, target symbols words or site numbers, the fragment a
bracketed string in which `[L]` is a site.
"""

import itertools


def nodes_of(tree, start=0, path=()):
  """All nodes as (path, label, start, end), in preorder."""
  label, below = tree
  if isinstance(below, str):
    return [(path, label, start, start + 1)]
  found, end = [], start
  for number, child in enumerate(below):
    inner = nodes_of(child, end, (*path, number))
    found += inner
    end = inner[0][3]
  return [(path, label, start, end), *found]


def intervals(node, links, target_size):
  """Target intervals with all that is linked inside, nothing from outside."""
  _, _, start, end = node
  inside = {t for s, t in links if start <= s < end}
  outside = {t for s, t in links if not start <= s < end}
  if not inside:
    return []
  return [
    (low, high)
    for low in range(target_size)
    for high in range(low + 1, target_size + 1)
    if inside <= set(range(low, high)) and not outside & set(range(low, high))
  ]


def _under(path, other):
  return path[: len(other)] == other


def _fragment(tree, path, sites):
  label, below = tree
  if path in sites:
    return f"[{label}]"
  if isinstance(below, str):
    return f"({label} {below})"
  inner = [
    _fragment(child, (*path, number), sites)
    for number, child in enumerate(below)
  ]
  return f"({label} {' '.join(inner)})"


def _subtree(tree, path):
  for number in path:
    tree = tree[1][number]
  return tree


def _rule(tree, words, links, root, sites, span, site_spans):
  """One rule from chosen target spans, or None if they overlap."""
  _, label, start, end = root
  taken = [t for low, high in site_spans for t in range(low, high)]
  if len(set(taken)) < len(taken):
    return None
  if not set(taken) <= set(range(*span)):
    return None
  source, target, source_at, target_at = [], [], {}, {}
  for word in range(start, end):
    owner = [site for site in sites if site[2] <= word < site[3]]
    if not owner:
      source_at[word] = len(source)
      source.append(words[0][word])
    elif owner[0][2] == word:
      source.append((owner[0][1],))
  for word in range(*span):
    owner = [
      number
      for number, (low, high) in enumerate(site_spans)
      if low <= word < high
    ]
    if not owner:
      target_at[word] = len(target)
      target.append(words[1][word])
    elif site_spans[owner[0]][0] == word:
      target.append(owner[0])
  fragment = _fragment(
    _subtree(tree, root[0]), root[0], {site[0] for site in sites}
  )
  kept = tuple(
    (source_at[s], target_at[t])
    for s, t in sorted(links)
    if s in source_at and t in target_at
  )
  return label, tuple(source), tuple(target), fragment, kept


def extract(tree, words, links, *, max_size, max_sites, attach_all):
  """All rules of one sentence pair, with repetitions.

  Args:
    tree: see above.
    words: (source words, target words).
    links: set of (source, target).
    max_size: most minimal rules in one.
    max_sites: most sites.
    attach_all: every attachment of unaligned words, or tight spans.
  """
  every = nodes_of(tree)
  size = len(words[1])
  choices = {}
  for node in every:
    found = intervals(node, links, size)
    if not attach_all and found:
      found = [min(found, key=lambda span: span[1] - span[0])]
    choices[node[0]] = found
  if choices[()]:
    choices[()] = [(0, size)]
  frontier = [node for node in every if choices[node[0]]]
  rules = []
  for root in frontier:
    below = [n for n in frontier if n != root and _under(n[0], root[0])]
    for number in range(max_sites + 1):
      for sites in itertools.combinations(below, number):
        if any(_under(a[0], b[0]) for a in sites for b in sites if a is not b):
          continue
        inner = [n for n in below if not any(_under(n[0], s[0]) for s in sites)]
        if 1 + len(inner) > max_size:
          continue
        for spans in itertools.product(
          choices[root[0]], *(choices[site[0]] for site in sites)
        ):
          rule = _rule(tree, words, links, root, sites, spans[0], spans[1:])
          if rule is not None:
            rules.append(rule)
  return rules


def derive(tree, rules):
  """All target strings that rules derive from a tree, as sets of tuples."""

  def expand(node):
    strings = set()
    for label, _, target, fragment, _ in rules:
      sites = _match(node, fragment) if label == node[0] else None
      if sites is None:
        continue
      for parts in itertools.product(*(expand(site) for site in sites)):
        out = []
        for symbol in target:
          out += parts[symbol] if isinstance(symbol, int) else [symbol]
        strings.add(tuple(out))
    return strings

  return expand(tree)


def _match(node, fragment):
  """The subtrees at the fragment's sites, or None if it does not match.

  A fragment that is a lone site matches nothing, so derivations end.
  """
  places = _paths(node)
  for sites in places:
    if _fragment(node, (), set(sites)) == fragment and () not in sites:
      return [_subtree(node, path) for path in sites]
  return None


def _paths(node):
  """All antichains of proper descendants, in source order."""
  every = [found[0] for found in nodes_of(node)][1:]
  return [
    sites
    for number in range(len(every) + 1)
    for sites in itertools.combinations(every, number)
    if not any(_under(a, b) for a in sites for b in sites if a is not b)
  ]
