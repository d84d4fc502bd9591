"""Online learners in plain Python over dense rows."""

import math

import numpy as np


def bleu(sums):
  if min(sums[:8]) <= 0:
    return 0.0
  logs = sum(math.log(m / c) for m, c in zip(sums[:4], sums[4:8], strict=True))
  return math.exp(logs / 4 + min(0.0, 1 - sums[8] / sums[4]))


def first_max(values):
  return int(np.argmax(values))


def mira(lists, statistics, weights, order, *, cap, decay, model):
  """One pass of hope-fear MIRA; returns last and averaged weights."""
  w = np.array(weights, float)
  document = np.ones(9)
  total = np.zeros_like(w)
  for s in order:
    h, stat = lists[s], statistics[s]
    if not len(h):
      continue
    scores = h @ w
    gains = np.array([bleu(document + x) * (document + x)[8] for x in stat])
    hope, fear = first_max(scores + gains), first_max(scores - gains)
    # The average is over the weights before each sentence's successor.
    lead = gains[hope] - gains[fear]
    x = h[hope] - h[fear]
    loss = lead - x @ w
    if hope != fear and lead > 0 and loss > 0 and x @ x > 0:
      w = w + min(cap, loss / (x @ x)) * x
    total += w
    chosen = first_max(scores) if model else hope
    document = decay * document + stat[chosen]
  return w, total


def rampion(lists, costs, initial, *, form, rounds, passes, rate, pull):
  """Gimpel's Algorithm 1 without the decoder; weights after each round."""
  w0 = np.array(initial, float)
  w = w0.copy()
  out = []
  for _ in range(rounds):
    hopes = [
      first_max(h @ w - (c if form in (2, 3) else 0)) if len(h) else None
      for h, c in zip(lists, costs, strict=True)
    ]
    for _ in range(passes):
      for h, c, hope in zip(lists, costs, hopes, strict=True):
        if hope is None:
          continue
        fear = first_max(h @ w + (c if form in (1, 3) else 0))
        w = w - rate * pull * (w - w0) / len(lists)
        w = w + rate * (h[hope] - h[fear])
    out.append(w.copy())
  return out


def soft_ramp_sgd(lists, costs, initial, *, loss, passes, rate, pull):
  """Gimpel's Algorithm 2 and risk without the decoder; the last weights."""
  w0 = np.array(initial, float)
  w = w0.copy()

  def expectation(h, values):
    p = np.exp(values - values.max())
    return p / p.sum() @ h

  for _ in range(passes):
    for h, c in zip(lists, costs, strict=True):
      if not len(h):  # nothing but the regulariser
        w = w - rate * pull * (w - w0) / len(lists)
        continue
      s = h @ w
      if loss == "risk":
        p = np.exp(s - s.max())
        p /= p.sum()
        step = -(p * (c - p @ c)) @ h
      else:
        form = int(loss[-1])
        hope = expectation(h, s - (c if form in (2, 3) else 0))
        fear = expectation(h, s + (c if form in (1, 3) else 0))
        step = hope - fear
      w = w - rate * pull * (w - w0) / len(lists) + rate * step
  return w
