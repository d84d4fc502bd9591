"""Statistics of a synthetic corpus: sizes, difficulty, phenomena."""

import collections
from collections.abc import Sequence
from typing import Any

from jaxmt.corpora.synthetic import Split, SyntheticCorpus

_NAMES = ("train", "tune", "test")


def statistics(corpus: SyntheticCorpus) -> list[dict[str, Any]]:
  """Rows `measure, train, tune, test`: sizes, then what makes it hard.

  Target figures are of the first reference.
  """
  splits = [corpus.train, corpus.tune, corpus.test]
  known_source = _words(corpus.train.source)
  known_target = _words(corpus.train.references[0])
  main = _main_translations(corpus.train)
  columns = []
  for split in splits:
    first = split.references[0]
    crossing, unlinked = _reordering(split)
    columns.append(
      {
        "sentences": len(split.source),
        "source words": sum(_words(split.source).values()),
        "target words": sum(_words(first).values()),
        "source types": len(_words(split.source)),
        "target types": len(_words(first)),
        "mean source length": _mean([len(s.split()) for s in split.source]),
        "longest source": max([len(s.split()) for s in split.source] or [0]),
        "references": len(split.references),
        "different references, mean": _mean(_different(split)),
        "unknown source words, %": _unknown(split.source, known_source),
        "unknown target words, %": _unknown(first, known_target),
        "sentences with an unknown source word, %": _mean(
          [
            100.0 * any(word not in known_source for word in line.split())
            for line in split.source
          ]
        ),
        "source words not in their main translation, %": _other(split, main),
        "links that cross another, %": crossing,
        "target words without a link, %": unlinked,
      }
    )
  return [
    {"measure": measure}
    | {
      name: column[measure]
      for name, column in zip(_NAMES, columns, strict=True)
    }
    for measure in columns[0]
  ]


def phenomena(corpus: SyntheticCorpus) -> list[dict[str, Any]]:
  """Rows `phenomenon, train, tune, test`: % of sentences that have it.

  Counted from what the productions say they built; most frequent first.
  """
  splits = [corpus.train, corpus.tune, corpus.test]
  counts = [
    collections.Counter(tag for tags in split.tags for tag in tags)
    for split in splits
  ]
  every = sum(counts, collections.Counter())
  names = sorted(every, key=lambda tag: (-every[tag], tag))
  return [
    {"phenomenon": tag}
    | {
      name: _percent(count[tag], len(split.source))
      for name, count, split in zip(_NAMES, counts, splits, strict=True)
    }
    for tag in names
  ]


def _words(lines: Sequence[str]) -> collections.Counter[str]:
  return collections.Counter(word for line in lines for word in line.split())


def _mean(values: Sequence[float]) -> float:
  return round(sum(values) / len(values), 2) if values else 0.0


def _percent(part: int, whole: int) -> float:
  return round(100 * part / whole, 2) if whole else 0.0


def _unknown(lines: Sequence[str], known: collections.Counter[str]) -> float:
  words = _words(lines)
  missing = sum(count for word, count in words.items() if word not in known)
  return _percent(missing, sum(words.values()))


def _different(split: Split) -> list[int]:
  return [
    len(set(wordings)) for wordings in zip(*split.references, strict=True)
  ]


def _pairs(line: str) -> list[tuple[int, int]]:
  return [
    (int(source), int(target))
    for source, target in (link.split("-") for link in line.split())
  ]


def _translations(split: Split) -> list[tuple[str, str]]:
  """Every source word with the English words it is linked to."""
  pairs = []
  for source, target, line in zip(
    split.source, split.references[0], split.links[0], strict=True
  ):
    tokens = target.split()
    linked: dict[int, list[str]] = {}
    for s, t in _pairs(line):
      linked.setdefault(s, []).append(tokens[t])
    pairs += [
      (word, " ".join(linked.get(place, [])))
      for place, word in enumerate(source.split())
    ]
  return pairs


def _main_translations(split: Split) -> dict[str, str]:
  counts: dict[str, collections.Counter[str]] = {}
  for word, english in _translations(split):
    counts.setdefault(word, collections.Counter())[english] += 1
  # Equal counts: the first in training, so the result has one value.
  return {word: c.most_common(1)[0][0] for word, c in counts.items()}


def _other(split: Split, main: dict[str, str]) -> float:
  pairs = _translations(split)
  other = sum(main.get(word) != english for word, english in pairs)
  return _percent(other, len(pairs))


def _reordering(split: Split) -> tuple[float, float]:
  """% of links that cross another one, % of target words without a link."""
  crossing = links = unlinked = total = 0
  for target, line in zip(split.references[0], split.links[0], strict=True):
    pairs = _pairs(line)
    links += len(pairs)
    crossing += sum(
      any((s - u) * (t - v) < 0 for u, v in pairs) for s, t in pairs
    )
    total += len(target.split())
    unlinked += len(target.split()) - len({t for _, t in pairs})
  return _percent(crossing, links), _percent(unlinked, total)
