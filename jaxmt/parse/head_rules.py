"""Constituents to dependencies: every phrase has a head child.

The head of a phrase is the head of its head child; the heads of the other
children depend on it. English rules are those of Collins (1999, appendix A)
for the Penn Treebank, Chinese rules those of Sun and Jurafsky (2004) for the
Chinese Treebank. The result is projective, with one root.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt.text.kernels import njit
from jaxmt.text.ragged import row_offsets
from jaxmt.text.treebank import PUNCTUATION, Treebank
from jaxmt.text.trees import Trees

# Steps of a rule: where to begin, and the labels. `<` takes the first child
# from the left that has one of the labels, `>` from the right. A rule written
# in one string has a step for each label. The last letter of a rule says which
# end to take if no step finds a child.
_ENGLISH = {
  "ADJP": "< NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB",
  "ADVP": "> RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN",
  "CONJP": "> CC RB IN",
  "FRAG": ">",
  "INTJ": "<",
  "LST": "> LS :",
  "NAC": "< NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW",
  "PP": "> IN TO VBG VBN RP FW",
  "PRN": "<",
  "PRT": "> RP",
  "QP": "< $ IN NNS NN JJ RB DT CD NCD QP JJR JJS",
  "RRC": "> VP NP ADVP ADJP PP",
  "S": "< TO IN VP S SBAR ADJP UCP NP",
  "SBAR": "< WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG",
  "SBARQ": "< SQ S SINV SBARQ FRAG",
  "SINV": "< VBZ VBD VBP VB MD VP S SINV ADJP NP",
  "SQ": "< VBZ VBD VBP VB MD VP SQ",
  "UCP": ">",
  "VP": "< TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP",
  "WHADJP": "< CC WRB JJ ADJP",
  "WHADVP": "> CC WRB",
  "WHNP": "< WDT WP WP$ WHADJP WHPP WHNP",
  "WHPP": "> IN TO FW",
  "X": ">",
}
_ENGLISH_NOUNS = (
  (">", "NN NNP NNPS NNS NX POS JJR"),
  ("<", "NP"),
  (">", "$ ADJP PRN"),
  (">", "CD"),
  (">", "JJ JJS RB QP"),
  (">", ""),
)
_CHINESE = {
  "ADJP": "> ADJP JJ AD",
  "ADVP": "> ADVP AD CS JJ NP PP P VA VV",
  "CLP": "> CLP M NN NP",
  "CP": "> CP IP VP",
  "DNP": "> DEG DNP DEC QP",
  "DP": "< M DP DT OD",
  "DVP": "> DEV AD VP",
  "FRAG": "> VV NR NN NT",
  "INTJ": "> INTJ IJ",
  "IP": "> IP VP VV",
  "LCP": "> LCP LC",
  "LST": "> CD NP QP",
  "NP": "> NP NN IP NR NT",
  "PP": "< P PP",
  "PRN": "> NP IP VP NT NR NN",
  "QP": "> QP CLP CD",
  "VP": "< VP VA VC VE VV BA LB VCD VSB VRD VNV VCP",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeadRules:
  """Steps of each label.

  Attributes:
    steps: (from the right?, labels) of each label; the last has no labels and
      takes the child at that end.
    default: steps of other labels.
  """

  steps: Mapping[str, Sequence[tuple[bool, frozenset[str]]]]
  default: Sequence[tuple[bool, frozenset[str]]]


def _steps(rule: str) -> list[tuple[bool, frozenset[str]]]:
  side, *labels = rule.split()
  right = side == ">"
  return [*((right, frozenset([x])) for x in labels), (right, frozenset())]


def _rules(table: Mapping[str, str], **others) -> HeadRules:
  return HeadRules(
    steps={**{label: _steps(rule) for label, rule in table.items()}, **others},
    default=_steps(">"),
  )


_NOUNS = [(side == ">", frozenset(x.split())) for side, x in _ENGLISH_NOUNS]
RULES = {
  "english": _rules(_ENGLISH, NP=_NOUNS, NX=_NOUNS),
  "chinese": _rules(_CHINESE),
}


def plain_label(label: str) -> str:
  """Returns a label without functions: `NP-SBJ=2` is `NP`, `-LRB-` stays."""
  if label.startswith("-"):
    return label
  return re.split(r"(?<=.)[-=|]", label, maxsplit=1)[0]


def dependencies(trees: Trees, rules: HeadRules) -> tuple[Treebank, np.ndarray]:
  """Returns the dependency trees, and the sentences they are of.

  Sentences without a tree are left out. Tags are the labels of preterminals;
  arcs have the label of the largest phrase that the dependent heads.
  """
  plain = [plain_label(label) for label in trees.labels]
  names = {name: number for number, name in enumerate(dict.fromkeys(plain))}
  number = np.array([names[name] for name in plain], np.int32)
  found = [rules.steps.get(name, rules.default) for name in names]
  offsets = row_offsets([len(steps) for steps in found])
  right = np.array([side for steps in found for side, _ in steps], bool)
  matches = np.zeros((offsets[-1], len(names)), bool)
  for row, (_, labels) in enumerate(step for steps in found for step in steps):
    matches[row, [names[label] for label in labels if label in names]] = True
  mark = np.array([name in PUNCTUATION for name in names], bool)
  label = number[trees.label]
  heads, phrase = _heads(
    trees.offsets, trees.size, trees.start, label, mark, offsets, right,
    matches, trees.words.offsets,
  )  # fmt: skip
  words = trees.words
  bank = Treebank(
    forms=trees.vocabulary,
    tag_names=tuple(trees.labels),
    label_names=tuple(trees.labels),
    words=words,
    tags=trees.label[trees.is_preterminal],
    heads=heads,
    labels=trees.label[phrase],
  )
  rows = np.flatnonzero(~trees.failed)
  keep = np.repeat(~trees.failed, words.lengths)
  assert keep.all()  # a sentence without a tree has no words
  lengths = words.lengths[rows]
  compact = dataclasses.replace(words, offsets=row_offsets(lengths))
  return dataclasses.replace(bank, words=compact), rows


@njit
def _heads(
  offsets, size, start, label, mark, rule_offsets, right, matches, word_offsets
):
  """Heads of words, and the largest phrase that each word heads."""
  heads = np.full(word_offsets[-1], -1, np.int32)
  phrase = np.zeros(word_offsets[-1], np.int64)
  head_word = np.zeros(len(size), np.int32)
  children = np.zeros(64, np.int64)
  for row in range(len(offsets) - 1):
    base = word_offsets[row]
    # From the last node to the first: children come before their parents.
    for node in range(offsets[row + 1] - 1, offsets[row] - 1, -1):
      if size[node] == 1:
        head_word[node] = start[node]
        phrase[base + start[node]] = node
        continue
      count = 0
      child = node + 1
      while child < node + size[node]:
        if count == len(children):
          larger = np.zeros(2 * count, np.int64)
          larger[:count] = children
          children = larger
        children[count] = child
        count += 1
        child += size[child]
      best = _head_child(
        children, count, label, mark, rule_offsets, right, matches, label[node]
      )
      head_word[node] = head_word[best]
      phrase[base + head_word[node]] = node
      for place in range(count):
        if children[place] != best:
          heads[base + head_word[children[place]]] = head_word[best]
  return heads, phrase


@njit
def _head_child(children, count, label, mark, offsets, right, matches, parent):
  """The head among the children of a phrase."""
  for step in range(offsets[parent], offsets[parent + 1]):
    for place in range(count):
      child = children[count - 1 - place if right[step] else place]
      if matches[step, label[child]]:
        return child
  # No step has found one: the last or first child that is no punctuation.
  last = offsets[parent + 1] - 1
  for place in range(count):
    child = children[count - 1 - place if right[last] else place]
    if not mark[label[child]]:
      return child
  return children[count - 1 if right[last] else 0]
