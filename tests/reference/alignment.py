"""Slow, obvious word alignment: every alignment enumerated, in plain Python.

A sentence pair is two lists of word ids, `given` (e) and `generated` (f). An
alignment is a tuple with, for each generated word, a position of `given` from
1, or 0 for NULL. `table[(e, f)]` and `null[f]` are translation probabilities.
"""

import itertools
import math

import scipy.special


def alignments(given, generated):
  return itertools.product(range(len(given) + 1), repeat=len(generated))


def translation(alignment, given, generated, table, null):
  value = 1.0
  for word, i in zip(generated, alignment, strict=True):
    value *= null[word] if i == 0 else table[given[i - 1], word]
  return value


def model1_prior(alignment, given, generated):
  return (1.0 / (len(given) + 1)) ** len(generated)


def distance(i, j, given, generated):
  return abs(i / len(given) - j / len(generated))


def partition(j, given, generated, tension):
  return sum(
    math.exp(-tension * distance(i, j, given, generated))
    for i in range(1, len(given) + 1)
  )


def diagonal_prior(alignment, given, generated, *, tension, null_probability):
  value = 1.0
  for j, i in enumerate(alignment, start=1):
    if i == 0:
      value *= null_probability
    else:
      value *= (
        (1.0 - null_probability)
        * math.exp(-tension * distance(i, j, given, generated))
        / partition(j, given, generated, tension)
      )
  return value


def jump_probability(start, end, length, jump, uniform):
  """`jump` maps a distance to its weight."""
  norm = sum(jump[i - start] for i in range(1, length + 1))
  relative = jump[end - start] / norm if norm else 0.0
  return (1.0 - uniform) * relative + uniform / length


def hmm_prior(alignment, given, generated, *, jump, uniform, null_probability):
  value, last = 1.0, 0
  for i in alignment:
    if i == 0:
      value *= null_probability
    else:
      step = jump_probability(last, i, len(given), jump, uniform)
      value *= (1.0 - null_probability) * step
      last = i
  return value


def enumerate_pair(given, generated, table, null, prior):
  """Returns likelihood, link posteriors [j][i] with i from 0, and the best.

  The best are all alignments within rounding of the highest probability.
  """
  scored = [
    (
      prior(a, given, generated)
      * translation(a, given, generated, table, null),
      a,
    )
    for a in alignments(given, generated)
  ]
  total = sum(score for score, _ in scored)
  posteriors = [[0.0] * (len(given) + 1) for _ in generated]
  for score, alignment in scored:
    for j, i in enumerate(alignment):
      posteriors[j][i] += score / total
  highest = max(score for score, _ in scored)
  best = [a for score, a in scored if score >= highest * (1 - 1e-4)]
  return total, posteriors, best


def hmm_expectations(
  given, generated, table, null, *, jump, uniform, null_probability
):
  """Expected relative jumps {d: n} and departures {(i', I): m} of a pair.

  The part of a jump that the uniform distribution explains is left out.
  """
  jumps, departures, total = {}, {}, 0.0
  length = len(given)
  for a in alignments(given, generated):
    score = hmm_prior(
      a,
      given,
      generated,
      jump=jump,
      uniform=uniform,
      null_probability=null_probability,
    ) * translation(a, given, generated, table, null)
    total += score
    last = 0
    for i in a:
      if i == 0:
        continue
      whole = jump_probability(last, i, length, jump, uniform)
      share = score * (whole - uniform / length) / whole
      jumps[i - last] = jumps.get(i - last, 0.0) + share
      key = (last, length)
      departures[key] = departures.get(key, 0.0) + share
      last = i
  return (
    {d: n / total for d, n in jumps.items()},
    {k: m / total for k, m in departures.items()},
  )


def minorize(jump, jumps, departures):
  """One step on the jump weights, by the formula as it stands."""
  new = {}
  for d in jump:
    exposure = 0.0
    for (start, length), mass in departures.items():
      if 1 <= start + d <= length:
        norm = sum(jump[i - start] for i in range(1, length + 1))
        exposure += mass / norm
    new[d] = jumps.get(d, 0.0) / exposure if exposure else 0.0
  total = sum(new.values())
  return {d: value / total for d, value in new.items()}


def normalize(counts, null_counts, alpha):
  """Returns `(table, null)` from expected counts {(e, f): n} and {f: n}."""
  log = scipy.special.psi if alpha else lambda x: math.log(max(x, 1e-300))
  totals = {}
  for (e, _), count in counts.items():
    totals[e] = totals.get(e, 0.0) + count + alpha
  null_total = sum(count + alpha for count in null_counts.values())
  table = {
    (e, f): math.exp(log(count + alpha) - log(totals[e]))
    for (e, f), count in counts.items()
  }
  null = {
    f: math.exp(log(count + alpha) - log(null_total))
    for f, count in null_counts.items()
  }
  return table, null


def expected_counts(pairs, table, null, prior):
  """Returns `(counts, null counts, log-likelihood)` of a bitext."""
  counts = dict.fromkeys(table, 0.0)
  null_counts = dict.fromkeys(null, 0.0)
  log_likelihood = 0.0
  for given, generated in pairs:
    total, posteriors, _ = enumerate_pair(given, generated, table, null, prior)
    log_likelihood += math.log(total)
    for word, row in zip(generated, posteriors, strict=True):
      null_counts[word] += row[0]
      for i, e in enumerate(given, start=1):
        counts[e, word] += row[i]
  return counts, null_counts, log_likelihood


def uniform_tables(pairs):
  words = {f for _, generated in pairs for f in generated}
  table = {
    (e, f): 1.0 / len(words)
    for given, generated in pairs
    for e in given
    for f in generated
  }
  return table, dict.fromkeys(words, 1.0 / len(words))


def tension_step(pairs, table, null, tension, null_probability, *, exact):
  """Returns the tension after the gradient steps of one iteration.

  `exact` is the auxiliary function's gradient; otherwise the released
  fast_align's: positions from 0 in the expected feature, Z of exchanged
  lengths (its geometric series, infinite above the diagonal where j is beyond
  the end), and all words counted as linked.
  """
  feature, linked, words = 0.0, [], 0
  prior = lambda a, e, f: diagonal_prior(
    a, e, f, tension=tension, null_probability=null_probability
  )
  for given, generated in pairs:
    _, posteriors, _ = enumerate_pair(given, generated, table, null, prior)
    for j, row in enumerate(posteriors, start=1):
      at = j if exact else j - 1
      for i in range(1, len(given) + 1):
        feature -= row[i] * distance(i, at, given, generated)
      linked.append((j, given, generated, 1.0 - row[0] if exact else 1.0))
      words += 1
  for _ in range(8):
    expected = 0.0
    for j, given, generated, mass in linked:
      slope = -sum(
        distance(i, j, given, generated)
        * math.exp(-tension * distance(i, j, given, generated))
        for i in range(1, len(given) + 1)
      )
      if exact:
        scale = partition(j, given, generated, tension)
      else:
        scale = _exchanged(j, len(given), len(generated), tension)
      expected += mass * slope / scale
    tension += 20.0 * (feature - expected) / words
    tension = min(max(tension, 0.1), 14.0)
  return tension


def _exchanged(j, given, generated, tension):
  """Z_j with the lengths exchanged: a sum over positions of `generated`."""
  split = j * generated // given
  below = sum(
    math.exp(-tension * abs(i / generated - j / given))
    for i in range(1, split + 1)
  )
  last = generated if split <= generated else split + 5000
  above = sum(
    math.exp(-tension * abs(i / generated - j / given))
    for i in range(split + 1, last + 1)
  )
  return below + above


def symmetrize(forward, backward, method):
  """Links of one sentence pair as sets of (source, target)."""
  union, accepted = forward | backward, forward & backward
  if method == "union":
    return union

  def covered(link):
    return (
      any(s == link[0] for s, _ in accepted),
      any(t == link[1] for _, t in accepted),
    )

  growing = method.startswith("grow-diag")
  while growing:
    growing = False
    for link in sorted(union - accepted):
      near = any(
        (link[0] + di, link[1] + dj) in accepted
        for di in (-1, 0, 1)
        for dj in (-1, 0, 1)
      )
      if near and not all(covered(link)):
        accepted.add(link)
        growing = True
  if "final" in method:
    for links in (forward, backward):
      for link in sorted(links - accepted):
        both = covered(link)
        if not any(both) or (method.endswith("final") and not all(both)):
          accepted.add(link)
  return accepted
