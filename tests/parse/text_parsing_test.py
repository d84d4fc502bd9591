import pytest

from jaxmt.errors import InputError
from jaxmt.parse import text_parsing
from jaxmt.parse.induction import InductionConfig
from jaxmt.parse.sibling_parser import SiblingConfig
from jaxmt.text import treebank
from tests.reference import dependency_trees as reference

BANK = (
  "the\tDET\t2\ndog\tNOUN\t3\nbarks\tVERB\t0\n\n"
  "a\tDET\t2\ncat\tNOUN\t3\nsleeps\tVERB\t0\n\n"
) * 4
LINES = ["the cat barks", "", "a dog sleeps", "dog"]


@pytest.mark.parametrize("kind", text_parsing.KINDS)
def test_lines_become_trees(tmp_path, kind):
  (tmp_path / "bank").write_text(BANK)
  parser = text_parsing.learn(
    kind,
    treebank.read_treebank(str(tmp_path / "bank")),
    trees=SiblingConfig(epochs=3, bits=12),
    tags=InductionConfig(iterations=3, concave_iterations=3),
    seed=1,
  )
  bank = text_parsing.parse(parser, LINES)
  assert len(bank) == 3 and bank.has_trees.all()
  start = bank.words.offsets[:-1]
  for row, first in enumerate(start):
    assert reference.is_tree(bank.heads[first : first + bank.lengths[row]])
  if kind == "supervised":
    assert bank.heads.tolist() == [1, 2, -1, 1, 2, -1, -1]
    assert bank.tag_names[bank.tags[0]] == "DET"
  values = text_parsing.to_values(parser)
  again = text_parsing.parse(text_parsing.from_values(values), LINES)
  assert again.heads.tolist() == bank.heads.tolist()
  for name in values:
    if name == "kind" or kind != "random":
      rest = {key: value for key, value in values.items() if key != name}
      with pytest.raises(InputError, match=r"lacks|not a parser"):
        text_parsing.from_values(rest)


def test_a_treebank_is_needed():
  with pytest.raises(ValueError, match="a supervised parser needs a treebank"):
    text_parsing.learn("supervised", None)
  with pytest.raises(ValueError, match="no parser 'x'"):
    text_parsing.learn("x", None)
