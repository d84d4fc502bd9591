"""Weights by domain: every feature once for all, and once for each domain.

    Domain:news:LanguageModel    the language model's score in news

(survey, section 8.2; Daume 2007). A sentence of a domain is scored with the sum
of both weights, so what domains have in common is learned from all of them.
Which domain a sentence is of is given. Search knows nothing of it: it gets the
sums (`effective`).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt.decode import candidate_lists
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.features.sparse import SparseRows
from jaxmt.tune.loop import Decode

PREFIX = "Domain:"


def check(labels: Sequence[str], sentences: int, path: str) -> None:
  """Raises InputError if labels of sentences cannot be used.

  Args:
    labels: a domain for each sentence.
    sentences: how many there are.
    path: where the labels are from.
  """
  if len(labels) != sentences:
    raise InputError(
      f"{len(labels)} lines for {sentences} sentences", path=path
    )
  for line, label in enumerate(labels):
    if not label.strip() or ":" in label or len(label.split()) > 1:
      raise InputError(
        "a domain is one word without a colon", path=path, line=line + 1
      )


def effective(weights: Mapping[str, float], domain: str) -> dict[str, float]:
  """Returns the weights that sentences of a domain are scored with.

  Args:
    weights: by name, those of all domains among them.
    domain: which; one without weights of its own has the common ones.
  """
  prefix = f"{PREFIX}{domain}:"
  out = {
    name: value
    for name, value in weights.items()
    if not name.startswith(PREFIX)
  }
  for name, value in weights.items():
    if name.startswith(prefix):
      common = name[len(prefix) :]
      out[common] = out.get(common, 0.0) + value
  return out


def split_lists(lists: CandidateLists, labels: Sequence[str]) -> CandidateLists:
  """Returns the lists with a copy of all features for each domain.

  Args:
    lists: of B sentences.
    labels: the domain of each.
  """
  domains, which = np.unique(np.array(labels, dtype=str), return_inverse=True)
  rows, size = lists.features, len(lists.names)
  shift = np.repeat(which[lists.sentence] * size, np.diff(rows.offsets))
  copies = SparseRows(
    ids=(rows.ids + shift).astype(np.int32),
    values=rows.values,
    offsets=rows.offsets,
  )
  names = [
    f"{PREFIX}{label}:{name}"
    for label in domains.tolist()
    for name in lists.names
  ]
  return candidate_lists.with_features(lists, [(copies, names)])


def split(decode: Decode, labels: Sequence[str]) -> Decode:
  """Returns a decoder whose lists have features by domain.

  Args:
    decode: without domains.
    labels: the domain of every sentence that it can decode.
  """

  def decode_domains(weights: Mapping[str, float], numbers: np.ndarray):
    numbers = np.asarray(numbers)
    label_of = np.array([str(labels[number]) for number in numbers.tolist()])
    parts = []
    for label in sorted(set(label_of.tolist())):
      rows = np.flatnonzero(label_of == label)
      lists = decode(effective(weights, label), numbers[rows])
      moved = candidate_lists.from_rows(
        rows[lists.sentence],
        lists.lines,
        lists.features,
        lists.names,
        sentences=len(numbers),
      )
      parts.append(split_lists(moved, label_of.tolist()))
    return candidate_lists.concatenate(parts)

  return decode_domains
