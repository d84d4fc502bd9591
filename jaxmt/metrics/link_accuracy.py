"""Precision, recall, F1 and AER of word links, as functions of summed counts.

Och & Ney (2003): with A predicted, S sure and P possible links, S a subset of
P,

  precision = |A & P| / |A|,   recall = |A & S| / |S|,
  AER = 1 - (|A & S| + |A & P|) / (|A| + |S|).

Statistics of a sentence pair are (|A|, |S|, |A & S|, |A & P|). They come from
links or forests, not from text, so `METRICS` are for tuners and intervals, not
for `evaluate`.
"""

from collections.abc import Sequence

import numpy as np

from jaxmt.metrics import base
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

SIZE = 4
# Kinds of links, by the words that are linked with one another.
TYPES = ("1-1", "1-n", "discontiguous")


def _cannot(*_, **__):
  raise ValueError("statistics of links come from links, not from text")


def precision(statistics):
  """Returns |A & P| / |A|."""
  xp = base.array_module(statistics)
  return base.ratio(xp, statistics[..., 3], statistics[..., 0])


def recall(statistics):
  """Returns |A & S| / |S|."""
  xp = base.array_module(statistics)
  return base.ratio(xp, statistics[..., 2], statistics[..., 1])


def f1(statistics):
  """Returns 2 P R / (P + R), P of possible and R of sure links."""
  xp = base.array_module(statistics)
  one, two = precision(statistics), recall(statistics)
  return base.ratio(xp, 2.0 * one * two, one + two)


def aer(statistics):
  """Returns the alignment error rate; 0 without any links."""
  xp = base.array_module(statistics)
  total = statistics[..., 0] + statistics[..., 1]
  right = statistics[..., 2] + statistics[..., 3]
  return xp.where(total > 0, 1.0 - base.ratio(xp, right, total), 0.0)


def _metric(name, function, *, higher=True):
  return base.Metric(
    name=name,
    size=SIZE,
    higher_is_better=higher,
    percent=True,
    unit=base.WORD,
    prepare=_cannot,
    statistics=_cannot,
    corpus_score=function,
    sentence_score=function,
  )


METRICS = {
  metric.name: metric
  for metric in (
    _metric("link-precision", precision),
    _metric("link-recall", recall),
    _metric("link-f1", f1),
    _metric("aer", aer, higher=False),
  )
}


def link_keys(links: Ragged) -> np.ndarray:
  """Returns one number per link: sentence pair, source, target; int64."""
  row = np.repeat(np.arange(len(links)), links.lengths)
  pairs = np.asarray(links.flat, np.int64).reshape(-1, 2)
  return (row << 40) + (pairs[:, 0] << 20) + pairs[:, 1]


def statistics(
  predicted: Ragged, sure: Ragged, possible: Ragged | None = None
) -> np.ndarray:
  """Counts links of N sentence pairs, int64 `[N, 4]`.

  Args:
    predicted: pairs (source, target), N rows.
    sure: gold links, N rows.
    possible: further gold links, with the sure ones or without; None if all
      gold links are sure.

  Raises:
    ValueError: if the numbers of rows differ.
  """
  gold = [links for links in (sure, possible) if links is not None]
  for links in gold:
    if len(links) != len(predicted):
      raise ValueError(f"{len(predicted)} and {len(links)} rows of links")
  predictions, surely = (
    np.unique(link_keys(predicted)),
    np.unique(link_keys(sure)),
  )
  allowed = np.unique(np.concatenate([link_keys(links) for links in gold]))
  columns = (
    predictions,
    surely,
    predictions[np.isin(predictions, surely)],
    predictions[np.isin(predictions, allowed)],
  )
  count = lambda keys: np.bincount(keys >> 40, minlength=len(predicted))
  return np.stack([count(keys) for keys in columns], axis=1)


def link_types(links: Ragged) -> np.ndarray:
  """Returns the kind of each link, a number of `TYPES`, int8 `[L]`.

  Words that are linked with one another, directly or not, are a group. A group
  of one word each is "1-1"; a larger one is "discontiguous" if its words on a
  side do not stand together, else "1-n" (n-1 and n-m are meant, too).
  """
  flat = np.ascontiguousarray(links.flat, np.int64).reshape(-1, 2)
  return _types(flat, np.asarray(links.offsets, np.int64))


@njit
def _types(flat, offsets):
  """See `link_types`."""
  out = np.zeros(len(flat), np.int8)
  for row in range(len(offsets) - 1):
    low, high = offsets[row], offsets[row + 1]
    # Links of one group get the number of its first link.
    group = np.arange(high - low)
    changed = True
    while changed:
      changed = False
      for a in range(low, high):
        for b in range(low, a):
          if flat[a, 0] == flat[b, 0] or flat[a, 1] == flat[b, 1]:
            least = min(group[a - low], group[b - low])
            if group[a - low] != least or group[b - low] != least:
              group[a - low] = group[b - low] = least
              changed = True
    for link in range(low, high):
      kind = 0
      for side in range(2):
        # Words of the group on this side: how many, and how far apart.
        first, last, words = flat[link, side], flat[link, side], 0
        for other in range(low, high):
          if group[other - low] != group[link - low]:
            continue
          first = min(first, flat[other, side])
          last = max(last, flat[other, side])
          fresh = True
          for before in range(low, other):
            if (
              group[before - low] == group[link - low]
              and flat[before, side] == flat[other, side]
            ):
              fresh = False
          words += fresh
        if last - first + 1 > words:
          kind = 2
        elif words > 1:
          kind = max(kind, 1)
      out[link] = kind
  return out


def by_type(
  predicted: Ragged, sure: Ragged, possible: Ragged
) -> list[dict[str, float | str]]:
  """Returns precision and recall of each kind of link.

  The precision of a kind is that of predicted links that are of the kind among
  the predicted ones; its recall is that of sure links that are of the kind
  among all gold links.
  """
  predictions, gold = link_keys(predicted), link_keys(possible)
  kinds, gold_kinds = link_types(predicted), link_types(possible)
  surely = np.isin(gold, link_keys(sure))
  rows = []
  for number, name in enumerate(TYPES):
    correct_kind, sure_kind = (
      predictions[kinds == number],
      gold[(gold_kinds == number) & surely],
    )
    rows.append(
      {
        "links": name,
        "predicted": len(correct_kind),
        "precision": _share(np.isin(correct_kind, gold)),
        "sure": len(sure_kind),
        "recall": _share(np.isin(sure_kind, predictions)),
      }
    )
  return rows


def by_frequency(
  predicted: Ragged,
  sure: Ragged,
  possible: Ragged,
  frequencies: tuple[Ragged, Ragged],
  bounds: Sequence[int],
) -> list[dict[str, float | str]]:
  """Returns precision and recall of links by how rare their words are.

  A link belongs to the class of the rarer of its two words.

  Args:
    predicted: pairs (source, target), N rows.
    sure: gold links, N rows.
    possible: gold links that count as right, sure ones included, N rows.
    frequencies: how often each source and each target word occurs in some
      text, N rows each.
    bounds: rising; class k has frequencies up to `bounds[k]`, a last class all
      others.
  """
  classes = [
    np.searchsorted(bounds, _rarer(links, frequencies))
    for links in (predicted, sure)
  ]
  right = np.isin(link_keys(predicted), link_keys(possible))
  reached = np.isin(link_keys(sure), link_keys(predicted))
  names = [f"to {bound}" for bound in bounds] + [f"over {bounds[-1]}"]
  return [
    {
      "words": name,
      "predicted": int((classes[0] == number).sum()),
      "precision": _share(right[classes[0] == number]),
      "sure": int((classes[1] == number).sum()),
      "recall": _share(reached[classes[1] == number]),
    }
    for number, name in enumerate(names)
  ]


def _rarer(links: Ragged, frequencies: tuple[Ragged, Ragged]) -> np.ndarray:
  """Returns the frequency of the rarer word of each link, `[L]`."""
  row = np.repeat(np.arange(len(links)), links.lengths)
  flat = links.flat.reshape(-1, 2)
  found = [
    own.flat[own.offsets[row] + flat[:, side]]
    for side, own in enumerate(frequencies)
  ]
  return np.minimum(*found)


def unlinked(
  predicted: Ragged,
  possible: Ragged,
  source_lengths: np.ndarray,
  target_lengths: np.ndarray,
) -> dict[str, float | str]:
  """Returns precision and recall of words without links, both sides."""
  counts, gold = [], []
  for side, lengths in enumerate((source_lengths, target_lengths)):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    for links, out in ((predicted, counts), (possible, gold)):
      row = np.repeat(np.arange(len(links)), links.lengths)
      place = offsets[row] + links.flat.reshape(-1, 2)[:, side]
      out.append(np.bincount(place, minlength=offsets[-1]) == 0)
  ours, theirs = np.concatenate(counts), np.concatenate(gold)
  return {
    "links": "null",
    "predicted": int(ours.sum()),
    "precision": _share(theirs[ours]),
    "sure": int(theirs.sum()),
    "recall": _share(ours[theirs]),
  }


def _share(right: np.ndarray) -> float:
  return float(right.mean()) if len(right) else 1.0
