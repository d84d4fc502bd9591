"""MERT's line search by hand: sort and stack (survey Fig 7), and by trying."""

import itertools


def sweep_line(lines):
  """The upper envelope of `(intercept, slope)` lines: `(index, start)`s."""
  order = sorted(range(len(lines)), key=lambda k: (lines[k][1], lines[k][0]))
  stack = []
  for k in order:
    a, b = lines[k]
    if stack and lines[stack[-1][0]][1] == b:
      stack.pop()  # equal slopes come by rising intercept
    start = float("-inf")
    while stack:
      top, since = stack[-1]
      start = (a - lines[top][0]) / (lines[top][1] - b)
      if since < start:
        break
      stack.pop()
      start = float("-inf")
    stack.append((k, start))
  return stack


def breakpoints(sentences):
  """All steps at which any pair of lines of a sentence cross, sorted."""
  found = set()
  for lines in sentences:
    for (a, b), (c, d) in itertools.combinations(lines, 2):
      if b != d:
        found.add((a - c) / (d - b))
  return sorted(found)


def best_at(lines, step):
  """The first highest line at `step`."""
  return max(
    range(len(lines)), key=lambda k: (lines[k][0] + step * lines[k][1], -k)
  )


def all_points(sentences):
  """A step in every interval between crossings."""
  steps = breakpoints(sentences)
  if not steps:
    return [0.0]
  inner = [(x + y) / 2 for x, y in itertools.pairwise(steps)]
  return [steps[0] - 1.0, *inner, steps[-1] + 1.0]
