"""K-best lists, constituency and dependency trees as views."""

from collections.abc import Sequence

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists, decoded
from jaxmt.report.views import DependencyView, KBestView, ParseView
from jaxmt.text.treebank import UNKNOWN, Treebank
from jaxmt.text.trees import Trees


def kbest_views(
  lists: CandidateLists,
  names: Sequence[str],
  *,
  costs: np.ndarray | None = None,
) -> list[KBestView]:
  """Returns the list of each sentence.

  Args:
    lists: the candidates of B sentences.
    names: the features to show, in the order of their numbers.
    costs: sentence-level error of each candidate, or None.
  """
  place = {name: number for number, name in enumerate(names)}
  known = [place.get(name, -1) for name in lists.names]
  rows = lists.features
  scores = decoded(lists)[0]
  candidates: list[list] = [[] for _ in range(lists.sentences)]
  errors: list[list[float]] = [[] for _ in range(lists.sentences)]
  for row, sentence in enumerate(lists.sentence.tolist()):
    low, high = rows.offsets[row : row + 2].tolist()
    features = [
      (known[name], value)
      for name, value in zip(
        rows.ids[low:high].tolist(), rows.values[low:high].tolist(), strict=True
      )
      if known[name] >= 0
    ]
    candidates[sentence].append(
      (lists.lines[row], float(scores[row]), features)
    )
    if costs is not None:
      errors[sentence].append(float(costs[row]))
  return [
    KBestView(
      candidates=listed, costs=None if costs is None else errors[sentence]
    )
    for sentence, listed in enumerate(candidates)
  ]


def parse_view(trees: Trees, row: int, words: Sequence[str]) -> ParseView:
  """Returns the constituency tree of a sentence.

  Args:
    trees: of all sentences.
    row: the sentence.
    words: its words.
  """
  part = slice(*trees.offsets[row : row + 2].tolist())
  columns = (trees.label, trees.start, trees.end, trees.parent)
  nodes = [
    (trees.labels[label], begin, end, parent)
    for label, begin, end, parent in zip(
      *(column[part].tolist() for column in columns), strict=True
    )
  ]
  return ParseView(words=words, nodes=nodes)


def dependency_view(
  bank: Treebank,
  row: int,
  *,
  heads: Sequence[int] | np.ndarray | None = None,
  name: str = "parser",
) -> DependencyView:
  """Returns the dependency tree of a sentence, or a parse beside it.

  Args:
    bank: sentences with tags, and maybe with trees.
    row: the sentence.
    heads: of a parse to compare with the treebank's tree; None to show that
      tree alone.
    name: of the parse.

  Raises:
    ValueError: if there is neither a parse nor a tree.
  """
  part = slice(*bank.words.offsets[row : row + 2].tolist())
  given = bank.heads[part].tolist()
  known = UNKNOWN not in given
  labels = [bank.label_names[label] for label in bank.labels[part].tolist()]
  shown = []
  if heads is not None:
    shown.append((name, [int(head) for head in heads], []))
  if known:
    shown.append(("treebank", given, [] if heads is not None else labels))
  if not shown:
    raise ValueError(f"sentence {row} has no tree")
  return DependencyView(
    words=[bank.forms[word] for word in bank.words[row].tolist()],
    tags=[bank.tag_names[tag] for tag in bank.tags[part].tolist()],
    trees=shown,
  )
