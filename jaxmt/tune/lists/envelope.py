"""Exact line search: upper envelopes and the statistics along a direction.

Along `w + step * direction` the score of a candidate is a line with intercept
`a = w.h` and slope `b = direction.h`. Per sentence the best candidate follows
the upper envelope of these lines (survey, section 5.1.2); the breakpoints of
all sentences, sorted, cut the direction into intervals on which nothing
changes. float64 throughout.

N: candidates. B: sentences. S: statistics. I: intervals.
"""

import numpy as np

from jaxmt.hypergraph.envelopes import upper_envelope
from jaxmt.text.kernels import longest_row, njit


@njit(fastmath={"nnan", "nsz"})
def trace(intercepts, slopes, offsets, statistics):
  """Returns breakpoints and corpus statistics along one direction.

  Args:
    intercepts: scores at step 0, float64 `[N]`.
    slopes: change of scores per step, float64 `[N]`.
    offsets: int64 `[B + 1]`.
    statistics: `[N, S]`.

  Returns:
    `(steps [I + 1], sums [I, S])`: interval i lies between `steps[i]` and
    `steps[i + 1]`; the first and the last step are infinite. Equal breakpoints
    are applied together.
  """
  width = longest_row(offsets)
  lines = np.empty(width + 1, np.int64)
  pending = np.empty(width + 1, np.int64)
  starts = np.empty(width + 1, np.float64)
  size = statistics.shape[1]
  first = np.zeros(size, np.float64)
  step = np.empty(4096, np.float64)
  leaves = np.empty(4096, np.int32)
  enters = np.empty(4096, np.int32)
  count = 0
  for row in range(len(offsets) - 1):
    added = upper_envelope(
      intercepts, slopes, offsets[row], offsets[row + 1], lines, starts, pending
    )
    if added == 0:
      continue
    for s in range(size):
      first[s] += statistics[lines[0], s]
    if count + added > len(step):
      room = 2 * (count + added)
      step = np.concatenate((step, np.empty(room, np.float64)))
      leaves = np.concatenate((leaves, np.empty(room, np.int32)))
      enters = np.concatenate((enters, np.empty(room, np.int32)))
    for line in range(1, added):
      step[count] = starts[line]
      leaves[count] = lines[line - 1]
      enters[count] = lines[line]
      count += 1
  return _accumulate(
    step[:count], leaves[:count], enters[:count], first, statistics
  )


@njit
def _accumulate(step, leaves, enters, first, statistics):
  """Sorts the events and sums statistics from left to right."""
  size = len(first)
  events = np.argsort(step)
  steps = np.empty(len(step) + 2, np.float64)
  sums = np.empty((len(step) + 1, size), np.float64)
  steps[0] = -np.inf
  sums[0] = first
  last = 0
  for place in range(len(step)):
    event = events[place]
    if step[event] > steps[last]:
      last += 1
      steps[last] = step[event]
      for s in range(size):
        sums[last, s] = sums[last - 1, s]
    for s in range(size):
      sums[last, s] += (
        statistics[enters[event], s] - statistics[leaves[event], s]
      )
  steps[last + 1] = np.inf
  return steps[: last + 2], sums[: last + 1]


def interval_points(steps: np.ndarray) -> np.ndarray:
  """Returns a step inside each interval: `[I + 1] -> [I]`.

  Midpoints; a tenth beyond the outermost breakpoints; 0 if there are none.
  """
  if len(steps) == 2:
    return np.zeros(1)
  points = np.empty(len(steps) - 1)
  points[1:-1] = 0.5 * (steps[1:-2] + steps[2:-1])
  points[0] = steps[1] - 0.1
  points[-1] = steps[-2] + 0.1
  return points
