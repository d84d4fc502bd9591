import numpy as np
import pytest

from jaxmt.parse import head_rules
from jaxmt.text import trees
from tests.reference import dependency_trees as reference


def heads(*lines, rules="english"):
  parsed = trees.parse_trees(list(lines))
  return head_rules.dependencies(parsed, head_rules.RULES[rules])


def test_english_by_hand():
  bank, rows = heads(
    "(ROOT (S (NP-SBJ (DT the) (JJ old) (NN dog)) (VP (MD will) (VP (VB eat)"
    " (NP (NP (DT a) (NN bone)) (PP (IN of) (NP (PRP mine)))))) (. .)))",
    "(())",
    "(ROOT (NP (NP (NNP Tom) (POS 's)) (NN hat)))",
  )
  assert rows.tolist() == [0, 2]
  assert bank.lengths.tolist() == [10, 3]
  # the old dog will eat a bone of mine . : "will" is the root.
  assert bank.heads[:10].tolist() == [2, 2, 3, -1, 3, 6, 4, 6, 7, 3]
  assert bank.heads[10:].tolist() == [1, 2, -1]
  names = [bank.label_names[label] for label in bank.labels[:10]]
  assert names[2] == "NP-SBJ" and names[3] == "ROOT" and names[6] == "NP"
  assert bank.tag_names[bank.tags[1]] == "JJ"


def test_chinese_by_hand():
  bank, _ = heads(
    "(ROOT (IP (NP (NR 汤姆)) (VP (VV 买) (AS 了) (NP (NN 书))) (PU 。)))",
    rules="chinese",
  )
  assert bank.heads.tolist() == [1, -1, 1, 1, 1]


def test_unknown_labels_take_a_word_that_is_no_punctuation():
  bank, _ = heads("(FOO (A a) (B b) (. .))")
  assert bank.heads.tolist() == [1, -1, 1]
  bank, _ = heads("(FOO (. !) (. .))")
  assert bank.heads.tolist() == [1, -1]


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_become_projective_trees(seed):
  rng = np.random.default_rng(seed)

  def draw(depth):
    if depth == 0 or rng.random() < 0.3:
      return f"({rng.choice(['NN', 'DT', 'IN', 'VB', ','])} w)"
    parts = [draw(depth - 1) for _ in range(rng.integers(1, 4))]
    return f"({rng.choice(['NP', 'VP', 'S', 'PP'])} {' '.join(parts)})"

  bank, _ = heads(f"(ROOT {draw(3)})")
  assert reference.is_tree(bank.heads)
  assert reference.is_projective(bank.heads)


def test_functions_are_no_part_of_labels():
  assert head_rules.plain_label("NP-SBJ=2") == "NP"
  assert head_rules.plain_label("-LRB-") == "-LRB-"
