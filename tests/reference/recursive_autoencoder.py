"""A recursive auto-encoder of one phrase, written with lists and loops."""

import itertools

import numpy as np


def join(p, left, right, unit):
  """The parent of two vectors and the error of rebuilding them."""
  both = np.concatenate([left, right])
  parent = np.tanh(both @ p["encoder"] + p["encoder_bias"])
  if unit:
    parent = parent / np.sqrt((parent**2).sum())
  again = np.tanh(parent @ p["decoder"] + p["decoder_bias"])
  return parent, 0.5 * ((both - again) ** 2).sum()


def fold(p, ids, *, unit, tree=None):
  """Vector, error and tree of a phrase; a tree is the list of pairs' places."""
  nodes = [p["vectors"][i] for i in ids]
  if unit:
    nodes = [node / np.sqrt((node**2).sum()) for node in nodes]
  total, places = 0.0, []
  while len(nodes) > 1:
    pairs = [join(p, a, b, unit) for a, b in itertools.pairwise(nodes)]
    best = int(np.argmin([error for _, error in pairs]))
    if tree is not None:
      best = tree[len(places)]
    parent, error = pairs[best]
    nodes[best : best + 2] = [parent]
    total += error
    places.append(best)
  return nodes[0], total, places


def image(p, vector):
  """A vector in the space of the other language."""
  return np.tanh(vector @ p["transform"] + p["transform_bias"])


def side_error(p, ids, fixed, wrong, *, alpha, unit, tree=None):
  """E(s|t) of a phrase, given vectors of the other side."""
  vector, rebuild, _ = fold(p, ids, unit=unit, tree=tree)
  moved = image(p, vector)
  good = 0.5 * ((fixed - moved) ** 2).sum()
  bad = 0.5 * ((wrong - moved) ** 2).sum()
  return alpha * rebuild + (1 - alpha) * max(0.0, good - bad + 1.0)
